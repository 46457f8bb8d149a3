#include "core/model/experiment.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/graph/stages.hpp"
#include "core/model/run.hpp"

namespace core::experiment {
namespace {

using attention::Model;

/// A layer without what follows from the text.
Model without_text(Model model) {
  model.sequences.front().tokens.clear();
  model.sequences.front().embeddings = {};
  model.heads_off.clear();
  return model;
}

/// The numbers of one matrix that are others in another of its shape.
std::map<Place, double> changed_numbers(const arma::mat& before, const arma::mat& after) {
  std::map<Place, double> changed;
  for (std::size_t j = 0; j < before.n_cols; ++j)
    for (std::size_t i = 0; i < before.n_rows; ++i)
      if (!attention::same_bits(before.at(i, j), after.at(i, j))) changed[{i, j}] = after.at(i, j);
  return changed;
}

/// Takes away what is there for each token of a text of another length; whether there was something.
bool drop_what_fits_no_text(LayerEdit& edit, std::size_t n_tokens) {
  Model& model = edit.model;
  const auto beyond = [n_tokens](std::size_t row, std::size_t column) {
    return row >= n_tokens || column >= n_tokens;
  };
  const std::size_t before = edit.inputs.size() + model.given.cells.size() + model.given.stages.size() +
                             model.mask.cells.size() + model.mask.documents.size() +
                             model.mask.hidden_keys.size() + model.dropout.given.size() +
                             model.additions.score_bias.size();
  std::erase_if(edit.inputs, [&](const auto& cell) { return cell.first.first >= n_tokens; });
  std::erase_if(model.given.cells, [&](const attention::GivenCell& cell) {
    const bool of_pairs = attention::info(cell.place.stage).columns == attention::Columns::tokens;
    return beyond(cell.place.row, of_pairs ? cell.place.column : 0);
  });
  model.given.stages.clear();
  std::erase_if(model.mask.cells,
                [&](const attention::MaskCell& cell) { return beyond(cell.row, cell.column); });
  model.mask.documents.clear();
  model.mask.hidden_keys.clear();
  model.dropout.given.clear();
  model.additions.score_bias.clear();
  const bool is_too_long = model.mask.prefix > n_tokens,
             is_too_short = model.context_length && *model.context_length < n_tokens;
  if (is_too_long) model.mask.prefix = n_tokens;
  if (is_too_short) model.context_length.reset();
  return is_too_long || is_too_short ||
         before != edit.inputs.size() + model.given.cells.size() + model.mask.cells.size();
}

}  // namespace

std::vector<tokenizers::TextToken> tokens_of(const transformer::Transformer& model,
                                             const Experiment& experiment) {
  std::vector<tokenizers::TextToken> tokens = model.tokenizer->encode(experiment.text);
  for (const std::size_t id : experiment.made)
    tokens.push_back({id, model.tokenizer->bytes(id), model.tokenizer->is_special(id), false});
  std::vector<std::size_t> ids;
  for (const auto& token : tokens) ids.push_back(token.id);
  transformer::require_tokens(model, ids, 0);
  return tokens;
}

std::string whole_text(const transformer::Transformer& model, const Experiment& experiment) {
  std::string text = experiment.text;
  for (const std::size_t id : experiment.made) text += model.tokenizer->bytes(id);
  return text;
}

Model edited(const Model& of_pass, const LayerEdit& edit) {
  Model model = edit.model;
  model.sequences.front().tokens = of_pass.sequences.front().tokens;
  model.sequences.front().embeddings = of_pass.sequences.front().embeddings;
  for (const auto& [place, number] : edit.inputs)
    if (place.first < of_pass.n_tokens() && place.second < of_pass.d_model())
      model.sequences.front().embeddings.set(place.first, place.second, number);
  model.heads_off = of_pass.heads_off;
  std::erase_if(model.heads_off, [&](std::size_t head) { return head >= model.n_heads; });
  return model;
}

void require_goes_on(std::size_t layer, const Model& of_pass, const Model& after, const std::string& place) {
  const attention::Sequence &then = of_pass.sequences.front(), &now = after.sequences.front();
  const bool is_same_text = after.sequences.size() == 1 && then.tokens == now.tokens &&
                            then.embeddings.n_rows() == now.embeddings.n_rows() &&
                            then.embeddings.n_cols() == now.embeddings.n_cols();
  const bool has_other_keys =
      after.has_memory() || !now.key_tokens.empty() || after.n_keys() != after.n_tokens();
  if (!is_same_text || has_other_keys)
    throw Error(place +
                "A whole model makes what enters its layers, and their keys, of the text: change the text "
                "under PROMPT.");
  if (after.d_output() != of_pass.d_output())
    throw Error(place + "Layer " + std::to_string(layer) + " must give " +
                std::to_string(of_pass.d_output()) + " numbers for each token to the layers behind it, not " +
                std::to_string(after.d_output()) + ".");
}

std::size_t n_heads_in(const Experiment& experiment, std::size_t layer, const transformer::Sizes& sizes) {
  const auto edit = experiment.layers.find(layer);
  return edit == experiment.layers.end() ? sizes.n_heads : edit->second.model.n_heads;
}

void drop_edit(Experiment& experiment, std::size_t layer, std::size_t n_heads) {
  experiment.layers.erase(layer);
  std::erase_if(experiment.heads_off,
                [&](const Place& off) { return off.first == layer && off.second >= n_heads; });
}

Experiment with_layer(Experiment before, std::size_t layer, const Model& of_pass, const Model& after,
                      const std::string& words) {
  require_goes_on(layer, of_pass, after, "");
  std::erase_if(before.heads_off, [layer](const Place& off) { return off.first == layer; });
  for (const std::size_t head : after.heads_off) before.heads_off.insert({layer, head});
  LayerEdit edit{without_text(after),
                 changed_numbers(of_pass.sequences.front().embeddings, after.sequences.front().embeddings),
                 {}};
  if (edit.inputs.empty() && edit.model == without_text(of_pass)) {
    drop_edit(before, layer, of_pass.n_heads);
    return before;
  }
  LayerEdit& known = before.layers[layer];
  edit.words = known.words;
  const bool is_another = edit.model != known.model || edit.inputs != known.inputs;  // not a head alone
  if (is_another && std::ranges::find(edit.words, words) == edit.words.end()) edit.words.push_back(words);
  known = std::move(edit);
  return before;
}

std::string fit_tokens(Experiment& experiment, std::size_t n_tokens) {
  std::string words;
  for (auto& [layer, edit] : experiment.layers)
    if (drop_what_fits_no_text(edit, n_tokens)) words += (words.empty() ? "" : ", ") + std::to_string(layer);
  if (words.empty()) return "";
  return "What was set for tokens of the text before was let go of, in layer " + words + ".";
}

}  // namespace core::experiment
