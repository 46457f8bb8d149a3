#include "core/experiment/experiment_file.hpp"

#include <algorithm>
#include <system_error>

#include "core/error.hpp"
#include "core/formats/files/file.hpp"
#include "core/formats/sessions/session.hpp"
#include "core/text/number.hpp"
#include "core/transformer/layer_model.hpp"

namespace core::experiment {
namespace {

namespace fs = std::filesystem;
using attention::Linear;
using attention::Model;
using attention::Projections;
using attention::SharedMatrix;
using formats::Json;
using formats::json_quoted;

constexpr std::size_t hashed_bytes = std::size_t{1} << 20;
constexpr std::size_t looked_at = 512;  // bytes that tell such a session from others
constexpr const char* unchanged = "unchanged";

std::string joined(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() == 1 ? "" : ", ") + item;
  return text + "]";
}

std::string cells_json(const std::map<Place, double>& cells) {
  std::vector<std::string> items;
  for (const auto& [place, number] : cells)
    items.push_back("[" + std::to_string(place.first) + ", " + std::to_string(place.second) + ", " +
                    text::number_text(number) + "]");
  return joined(items);
}

std::string rows_json(const arma::mat& numbers) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < numbers.n_rows; ++i) {
    std::vector<std::string> row;
    for (const double number : arma::rowvec(numbers.row(i))) row.push_back(text::number_text(number));
    rows.push_back(joined(row));
  }
  return joined(rows);
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
  const auto empty = [](std::size_t n_rows, const Linear& like) {
    return Linear{arma::mat(n_rows, like.weight.n_cols(), arma::fill::zeros), std::nullopt};
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

std::string edit_json(std::size_t layer, const LayerEdit& edit, const Model& of_pass, std::size_t n_tokens,
                      std::size_t d_model) {
  std::vector<std::string> words;
  for (const std::string& done : edit.words) words.push_back(json_quoted(done));
  const bool keeps_norm = of_pass.additions.normalise == edit.model.additions.normalise;
  return "{\"layer\": " + std::to_string(layer) + ", \"words\": " + joined(words) +
         ",\n     \"inputs\": " + cells_json(edit.inputs) +
         ",\n     \"projections\": " + projections_json(*of_pass.projections, edit.model.projections) +
         ",\n     \"keeps_norm\": " + (keeps_norm ? "true" : "false") + ",\n     \"rules\": " +
         formats::session_text({rules_alone(of_pass, edit, n_tokens, d_model), "", {}}) + "}";
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

/// Whether a path leads into a folder once links are followed.
bool lies_in(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path home = fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, error);
  if (error) return false;
  const fs::path end = fs::weakly_canonical(folder / path, error);
  return !error && path.is_relative() && std::ranges::find(path, "..") == path.end() &&
         std::ranges::mismatch(home, end).in1 == home.end();
}

}  // namespace

FileMark mark_of(const fs::path& file) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(file, error);
  if (error) throw Error(file.string() + ": the model's file cannot be read: " + error.message());
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : formats::read_begin(file, hashed_bytes))
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  std::string begin;
  for (int k = 60; k >= 0; k -= 4) begin += "0123456789abcdef"[(hash >> k) & 15];
  return {bytes, begin};
}

std::string experiment_text(const transformer::Transformer& model, const Experiment& experiment,
                            const std::string& view, const fs::path& folder) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(model.path, ignored),
                 home = fs::absolute(folder.empty() ? "." : folder, ignored);
  const fs::path relative = whole.lexically_relative(home);
  const bool is_beside = !relative.empty() && *relative.begin() != "..";
  const FileMark mark = mark_of(model.weights->file().path());
  std::vector<std::string> made, off;
  for (const std::size_t id : experiment.made) made.push_back(std::to_string(id));
  for (const auto& [layer, head] : experiment.heads_off)
    off.push_back("[" + std::to_string(layer) + ", " + std::to_string(head) + "]");
  std::string text = "{\n  \"attnscope\": 1,\n  \"whole_model\": {\n    \"model\": " +
                     json_quoted((is_beside ? relative : whole).string()) +
                     ",\n    \"bytes\": " + std::to_string(mark.bytes) +
                     ",\n    \"begin\": " + json_quoted(mark.begin) +
                     ",\n    \"text\": " + json_quoted(experiment.text) + ",\n    \"made\": " + joined(made) +
                     ",\n    \"layer\": " + std::to_string(experiment.layer) +
                     ",\n    \"heads_off\": " + joined(off) + ",\n    \"edits\": [";
  const std::size_t n_tokens = experiment.layers.empty() ? 0 : tokens_of(model, experiment).size();
  bool is_first = true;
  for (const auto& [layer, edit] : experiment.layers) {
    text += std::string(is_first ? "\n    " : ",\n    ") +
            edit_json(layer, edit, transformer::layer_without_text(model, layer), n_tokens,
                      model.architecture.sizes.d_model);
    is_first = false;
  }
  text += "]\n  }";
  if (!view.empty()) text += ",\n  \"view\": " + formats::json_text(formats::parse_json(view, "view"));
  return text + "\n}\n";
}

bool is_saved_experiment(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() != ".json" || !fs::is_regular_file(path, ignored)) return false;
  return is_saved_experiment_text(formats::read_begin(path, looked_at));
}

bool is_saved_experiment_text(std::string_view text) {
  return text.substr(0, looked_at).find("\"whole_model\"") != std::string_view::npos;
}

SavedExperiment parse_experiment(std::string_view text, const fs::path& file, Elsewhere elsewhere) {
  const Json top = formats::parse_json(text, file.string());
  top.expect_keys({"attnscope", "whole_model", "view"});
  const Json version = top.required("attnscope");
  if (version.whole(0) != 1) version.fail("version 1 of the session file");
  const Json place = top.required("whole_model");
  place.expect_keys({"model", "bytes", "begin", "text", "made", "layer", "heads_off", "edits"});
  SavedExperiment saved;
  const Json name = place.required("model");
  if (name.text().find('\0') != std::string::npos) name.fail("the path of a model");
  if (elsewhere == Elsewhere::refused && !lies_in(name.text(), file.parent_path()))
    throw Outside(name.place() + "the model " + formats::quoted_briefly(name.text()) +
                  " does not lie beside the session");
  saved.model = file.parent_path() / name.text();
  saved.mark = {place.required("bytes").whole(0), place.required("begin").text()};
  saved.experiment.text = place.required("text").text();
  saved.experiment.layer = place.required("layer").whole(0);
  for (const Json& id : place.required("made").items_if_any("a list of tokens"))
    saved.experiment.made.push_back(id.whole(0));
  for (const Json& off : place.required("heads_off").items_if_any("a list of heads")) {
    const auto parts = off.items("[layer, head]");
    if (parts.size() != 2) off.fail("[layer, head]");
    saved.experiment.heads_off.insert({parts[0].whole(0), parts[1].whole(0)});
  }
  saved.edits = place.required("edits").items_if_any("a list of edited layers");
  if (const auto view = top.member("view")) {
    if (!view->is_object()) view->fail("an object");
    saved.view = formats::json_text(*view);
  }
  return saved;
}

void require_mark(const SavedExperiment& saved, const transformer::Transformer& model,
                  const fs::path& session) {
  const fs::path file = model.weights->file().path();
  const FileMark now = mark_of(file);
  if (now == saved.mark) return;
  throw Error(
      session.string() + ": whole_model.model: expected " + file.string() + " of " +
      std::to_string(saved.mark.bytes) + " bytes as it was when this was saved, got " +
      (now.bytes == saved.mark.bytes ? "one of other contents" : "one of " + std::to_string(now.bytes)));
}

Experiment with_saved_edits(const SavedExperiment& saved, const transformer::Transformer& model) {
  Experiment experiment = saved.experiment;
  const auto& sizes = model.architecture.sizes;
  transformer::require_layer(model, experiment.layer);
  const std::size_t n_tokens = tokens_of(model, experiment).size();
  for (const Json& place : saved.edits) {
    place.expect_keys({"layer", "words", "inputs", "projections", "keeps_norm", "rules"});
    const Json number = place.required("layer");
    const std::size_t layer = number.whole(0);
    if (layer >= sizes.n_layers)
      number.fail("a layer below " + std::to_string(sizes.n_layers), std::to_string(layer));
    // Whether edits fit does not depend on what enters the layer.
    Model of_pass = transformer::layer_without_text(model, layer);
    of_pass.sequences.front() = {attention::numbered_tokens(n_tokens),
                                 arma::mat(n_tokens, sizes.d_model, arma::fill::zeros)};
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
    const Model now = edited(of_pass, edit);
    attention::require(now, place.place());
    require_goes_on(layer, of_pass, now, place.place());
    experiment.layers[layer] = std::move(edit);
  }
  for (const auto& [layer, head] : experiment.heads_off)
    if (layer >= sizes.n_layers || head >= n_heads_in(experiment, layer, sizes))
      throw Error("whole_model.heads_off: expected layers below " + std::to_string(sizes.n_layers) +
                  " and heads that they have, got " + std::to_string(layer) + "." + std::to_string(head));
  return experiment;
}

}  // namespace core::experiment
