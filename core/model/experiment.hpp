#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/model.hpp"
#include "core/model/transformer.hpp"

/// A whole model that reads a text while layers of it are edited.
namespace core::experiment {

/// A row and a column, or a layer and a head.
using Place = std::pair<std::size_t, std::size_t>;

/// What was edited in the attention of a layer, heads that are off not counted.
struct LayerEdit {
  attention::Model model;          ///< as edited, without tokens and without what enters it
  std::map<Place, double> inputs;  ///< numbers typed over what enters it, by row and column
  std::vector<std::string> words;  ///< what was done, each kind once
  friend bool operator==(const LayerEdit&, const LayerEdit&) = default;
};

/// A text and what was edited in the model that reads it; a value that undo keeps.
struct Experiment {
  std::string text = {};
  std::vector<std::size_t> made = {};            ///< tokens that the model wrote behind the text
  std::size_t layer = 0;                         ///< that is looked at
  std::set<Place> heads_off = {};                ///< layer and head
  std::map<std::size_t, LayerEdit> layers = {};  ///< those that were edited

  bool is_edited() const { return !heads_off.empty() || !layers.empty(); }
  friend bool operator==(const Experiment&, const Experiment&) = default;
};

/// The tokens that the model reads: of the text, and behind them those that it wrote.
///
/// Throws core::Error when there are none, or more than the model takes, or the text is not UTF-8.
std::vector<tokenizers::TextToken> tokens_of(const transformer::Transformer& model,
                                             const Experiment& experiment);

/// The text with what was written behind it.
std::string whole_text(const transformer::Transformer& model, const Experiment& experiment);

/// A layer as it was edited, with the tokens and the input of the layer as the pass gives it.
attention::Model edited(const attention::Model& of_pass, const LayerEdit& edit);

/// The experiment after a layer became another: what differs from the layer as the pass gives it is what was
/// edited, and where nothing does the layer counts as it was.
///
/// words say what was done. Throws core::Error when the layers behind it could not go on, as
/// require_goes_on() does.
Experiment with_layer(Experiment before, std::size_t layer, const attention::Model& of_pass,
                      const attention::Model& after, const std::string& words);

/// Makes sure that a whole model can go on with what a layer became: that it is of the same text, has no keys
/// of another one, and gives as many columns. Throws core::Error, "PLACE…".
void require_goes_on(std::size_t layer, const attention::Model& of_pass, const attention::Model& after,
                     const std::string& place);

/// The heads that a layer has with its edits.
std::size_t n_heads_in(const Experiment& experiment, std::size_t layer, const transformer::Sizes& sizes);

/// Takes back what was edited in a layer that has n_heads without it; those that stay off are some of these.
void drop_edit(Experiment& experiment, std::size_t layer, std::size_t n_heads);

/// Lets go of what was edited in layers and speaks of other tokens than the first n, or of a text of another
/// length; says of which layers, in words, or "".
std::string fit_tokens(Experiment& experiment, std::size_t n_tokens);

}  // namespace core::experiment
