#pragma once

#include <armadillo>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/contributions.hpp"
#include "core/model/experiment.hpp"
#include "core/model/predictions.hpp"
#include "core/model/roles.hpp"

namespace core::experiment {

/// What one head of a layer does on a text.
struct HeadSight {
  arma::mat map;  ///< its weights, of long texts each number the largest of a block of them
  transformer::HeadRoles roles;
};

/// What a layer does on a text.
struct LayerSight {
  std::shared_ptr<const transformer::LayerRun> run;  ///< that it was seen in
  std::vector<HeadSight> heads;
  /// What each head adds at the place that is guessed, n_heads × d_model; empty where that is not known, as
  /// in a layer whose heads are not simply put side by side.
  arma::fmat added;
  std::shared_ptr<const arma::mat> visible;  ///< of a map: 0 = hidden from its query; nullptr when nothing is
  bool is_edited = false;                    ///< computed in float64, by its edited numbers
};

/// All that is known of a text as a model reads it, with what was edited.
struct Reading {
  Experiment experiment;
  std::vector<tokenizers::TextToken> tokens;
  std::vector<std::string> names;  ///< of the tokens, for people
  transformer::Pass pass;
  std::vector<std::shared_ptr<const LayerSight>> layers;
  std::size_t block = 1;  ///< rows and columns of weights that one number of a map stands for
  std::optional<transformer::Place> place;  ///< whose token is guessed
  std::string no_guess;                     ///< why there is none, or ""
  arma::fmat logits;  ///< after each layer, n_layers × n_vocabulary; empty where nothing is guessed
};

/// Reads the text of an experiment.
///
/// What an earlier reading of the same model has in common with it is taken over: layers before the first one
/// that is edited otherwise, and tokens before those that were written behind the same text. Throws
/// core::Error as tokens_of() and attend() do, and when numbers end to be finite, which says where; Stopped.
Reading read(const transformer::Transformer& model, const Experiment& experiment, const Reading* before,
             const transformer::Means& means);

/// The layer that is looked at as the pass gives it, heads off with it, in float64.
attention::Model layer_of(const transformer::Transformer& model, const Reading& reading, std::size_t layer);

/// The most probable tokens after a layer.
std::vector<transformer::Guess> guesses_after(const transformer::Transformer& model, const Reading& reading,
                                              std::size_t layer, std::size_t n_guesses);

/// What each head adds to the logit of a token directly; nothing where that cannot be said.
std::optional<transformer::Contributions> contributions_in(const transformer::Transformer& model,
                                                           const Reading& reading, std::size_t token,
                                                           const transformer::Means& means);

/// The logits with one head more switched off.
arma::frowvec logits_without(const transformer::Transformer& model, const Reading& reading, std::size_t layer,
                             std::size_t head, const transformer::Means& means);

}  // namespace core::experiment
