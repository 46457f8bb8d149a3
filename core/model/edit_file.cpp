#include "core/model/edit_file.hpp"

#include "core/base/number.hpp"
#include "core/files/session.hpp"

namespace core::experiment {
namespace {

using attention::Linear;
using attention::Model;
using attention::Projections;
using attention::SharedMatrix;
using formats::Json;
using formats::json_quoted;

constexpr const char* unchanged = "unchanged";

std::string cells_json(const std::map<Place, double>& cells) {
  std::vector<std::string> items;
  for (const auto& [place, number] : cells)
    items.push_back("[" + std::to_string(place.first) + ", " + std::to_string(place.second) + ", " +
                    text::number_text(number) + "]");
  return json_list(items);
}

std::string rows_json(const arma::mat& numbers) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < numbers.n_rows; ++i) {
    std::vector<std::string> row;
    for (const double number : arma::rowvec(numbers.row(i))) row.push_back(text::number_text(number));
    rows.push_back(json_list(row));
  }
  return json_list(rows);
}

/// What a matrix became: unchanged, some cells, or all of it.
std::string change_json(const SharedMatrix* of_pass, const SharedMatrix& now) {
  if (of_pass && *of_pass == now) return json_quoted(unchanged);
  const arma::mat& after = now;
  if (!of_pass || of_pass->n_rows() != after.n_rows || of_pass->n_cols() != after.n_cols)
    return rows_json(after);
  const arma::mat& before = *of_pass;
  std::map<Place, double> cells;
  for (std::size_t j = 0; j < after.n_cols; ++j)
    for (std::size_t i = 0; i < after.n_rows; ++i)
      if (!attention::same_bits(before.at(i, j), after.at(i, j))) cells[{i, j}] = after.at(i, j);
  return cells.size() * 4 > after.n_elem ? rows_json(after) : "{\"cells\": " + cells_json(cells) + "}";
}

std::string linear_json(const Linear* of_pass, const Linear& now) {
  const SharedMatrix* bias = of_pass && of_pass->bias ? &*of_pass->bias : nullptr;
  return "{\"weight\": " + change_json(of_pass ? &of_pass->weight : nullptr, now.weight) +
         ", \"bias\": " + (now.bias ? change_json(bias, *now.bias) : "null") + "}";
}

std::string projections_json(const Projections& of_pass, const std::optional<Projections>& now) {
  if (!now) return "null";
  return "{\"query\": " + linear_json(&of_pass.query, now->query) +
         ", \"key\": " + linear_json(&of_pass.key, now->key) +
         ", \"value\": " + linear_json(&of_pass.value, now->value) + ", \"output\": " +
         (now->output ? linear_json(of_pass.output ? &*of_pass.output : nullptr, *now->output) : "null") +
         "}";
}

/// The rules of an edited layer as a small model of its shape without its numbers.
Model rules_alone(const Model& of_pass, const LayerEdit& edit, std::size_t n_tokens, std::size_t d_model) {
  Model model = edit.model;
  auto& sequence = model.sequences.front();
  sequence.tokens = attention::numbered_tokens(n_tokens);
  if (!model.projections) {
    sequence.embeddings = arma::mat(n_tokens, d_model, arma::fill::zeros);
    return model;
  }
  sequence.embeddings = arma::mat(n_tokens, 1, arma::fill::zeros);
  const auto empty = [](std::size_t rows, const Linear& like) {
    return Linear{arma::mat(rows, like.weight.n_cols(), arma::fill::zeros), std::nullopt};
  };
  Projections& p = *model.projections;
  p.query = empty(1, p.query);
  p.key = empty(1, p.key);
  p.value = empty(1, p.value);
  if (p.output) p.output = Linear{arma::mat(p.output->weight.n_rows(), 1, arma::fill::zeros), std::nullopt};
  const bool has_own_norm = model.additions.normalise != of_pass.additions.normalise;
  if (!has_own_norm) model.additions.normalise.reset();
  return model;
}

std::map<Place, double> read_cells(const Json& list) {
  std::map<Place, double> cells;
  for (const Json& cell : list.items_if_any("a list of cells")) {
    const auto parts = cell.items("[row, column, number]");
    if (parts.size() != 3) cell.fail("[row, column, number]");
    cells[{parts[0].whole(0), parts[1].whole(0)}] = parts[2].number();
  }
  return cells;
}

SharedMatrix read_change(const Json& place, const SharedMatrix* of_pass) {
  if (place.is_list()) return place.matrix();
  if (!of_pass) place.fail("rows of numbers, as the model has none there");
  if (place.is_text() && place.text() == unchanged) return *of_pass;
  place.expect_keys({"cells"});
  SharedMatrix changed = *of_pass;
  for (const auto& [cell, number] : read_cells(place.required("cells"))) {
    if (cell.first >= changed.n_rows() || cell.second >= changed.n_cols())
      place.fail("cells of a matrix of " + std::to_string(changed.n_rows()) + " × " +
                     std::to_string(changed.n_cols()),
                 "[" + std::to_string(cell.first) + ", " + std::to_string(cell.second) + "]");
    changed.set(cell.first, cell.second, number);
  }
  return changed;
}

Linear read_linear(const Json& place, const Linear* of_pass) {
  place.expect_keys({"weight", "bias"});
  Linear linear{read_change(place.required("weight"), of_pass ? &of_pass->weight : nullptr), std::nullopt};
  if (const Json bias = place.required("bias"); !bias.is_null())
    linear.bias = read_change(bias, of_pass && of_pass->bias ? &*of_pass->bias : nullptr);
  return linear;
}

std::optional<Projections> read_projections(const Json& place, const Projections& of_pass) {
  if (place.is_null()) return std::nullopt;
  place.expect_keys({"query", "key", "value", "output"});
  Projections p{read_linear(place.required("query"), &of_pass.query),
                read_linear(place.required("key"), &of_pass.key),
                read_linear(place.required("value"), &of_pass.value), std::nullopt};
  if (const Json output = place.required("output"); !output.is_null())
    p.output = read_linear(output, of_pass.output ? &*of_pass.output : nullptr);
  return p;
}

}  // namespace

std::string edit_json(std::size_t layer, const LayerEdit& edit, const Model& of_pass, std::size_t n_tokens,
                      std::size_t d_model) {
  std::vector<std::string> words;
  for (const std::string& done : edit.words) words.push_back(json_quoted(done));
  const bool keeps_norm = of_pass.additions.normalise == edit.model.additions.normalise;
  return "{\"layer\": " + std::to_string(layer) + ", \"words\": " + json_list(words) +
         ",\n     \"inputs\": " + cells_json(edit.inputs) +
         ",\n     \"projections\": " + projections_json(*of_pass.projections, edit.model.projections) +
         ",\n     \"keeps_norm\": " + (keeps_norm ? "true" : "false") + ",\n     \"rules\": " +
         formats::session_text({rules_alone(of_pass, edit, n_tokens, d_model), "", {}}) + "}";
}

std::size_t edited_layer(const Json& place, std::size_t n_layers) {
  place.expect_keys({"layer", "words", "inputs", "projections", "keeps_norm", "rules"});
  const Json number = place.required("layer");
  const std::size_t layer = number.whole(0);
  if (layer >= n_layers) number.fail("a layer below " + std::to_string(n_layers), std::to_string(layer));
  return layer;
}

LayerEdit read_edit(const Json& place, const Model& of_pass) {
  LayerEdit edit;
  edit.model = formats::parse_session(formats::json_text(place.required("rules")), place.place()).model;
  edit.model.projections = read_projections(place.required("projections"), *of_pass.projections);
  if (place.required("keeps_norm").boolean()) edit.model.additions.normalise = of_pass.additions.normalise;
  edit.model.sequences.front().tokens.clear();
  edit.model.sequences.front().embeddings = {};
  edit.model.heads_off.clear();
  edit.inputs = read_cells(place.required("inputs"));
  for (const Json& done : place.required("words").items_if_any("a list of words"))
    edit.words.push_back(done.text());
  return edit;
}

}  // namespace core::experiment
