#pragma once

#include <armadillo>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/experiment.hpp"
#include "core/model/lens.hpp"

namespace core::experiment {

/// Everything that is displayed about a text as a model reads it, with its edits.
struct TextReading {
  Experiment experiment;
  std::vector<tokenizers::TextToken> tokens;
  std::vector<std::string> names;  ///< of the tokens, for display
  transformer::PassRef pass;
  std::map<std::size_t, std::shared_ptr<const arma::fmat>> outputs;  ///< of edited and patched layers
  transformer::PassRef first;  ///< over the first prompt, where something is patched from it
  std::vector<std::shared_ptr<const transformer::LayerHeads>>
      layers;             ///< without heads until fill() computes them
  std::size_t block = 1;  ///< rows and columns of weights for each number of a map
  std::optional<transformer::PredictedPosition> place;  ///< of the predicted token
  std::string no_prediction_reason;                     ///< set where nothing is predicted, else ""
  arma::fmat logits;  ///< after each layer, n_layers × n_vocabulary; empty if nothing is predicted
  arma::frowvec unedited_logits;  ///< of the second of two prompts; else empty

  double maps_ms = 0;  ///< time for the heads of the layer computed last

  std::size_t row() const { return place ? place->row : pass->ids.size() - 1; }
  /// Returns whether the heads of all layers are known.
  bool is_filled() const;
};

/// Reads the text of an experiment. Edited layers are computed by core::attention, in float64; their outputs
/// continue through the model.
///
/// Reuses equal parts of an earlier reading of the same model. With only_layer, of the layers that are
/// neither edited nor reused only that one gets its heads. Throws core::Error as tokens_of() and
/// FullModel::run() do; Stopped.
TextReading read(const transformer::FullModel& model, const Experiment& experiment, const TextReading* before,
                 const transformer::CallContext& context, std::optional<std::size_t> only_layer = {});

/// Computes the heads of `layer` if they are missing, else of the first layer that lacks them.
void fill(const transformer::FullModel& model, TextReading& reading, std::size_t layer,
          const transformer::CallContext& context);

/// Returns a layer of the pass, with its ablated heads and, as given cells, its patches, in float64.
attention::Model unedited_layer(const transformer::FullModel& model, const TextReading& reading,
                                std::size_t layer, const StopToken& progress = {});

/// Returns the logits of the predicted token with other edits of the same text; first: a pass over the first
/// prompt, if parts are patched from it. Throws core::Error when the model's parameters have changed.
arma::frowvec edited_logits(const transformer::FullModel& model, const TextReading& reading,
                            const Experiment& edited, const transformer::PassRef& first,
                            const transformer::CallContext& context);

/// The effect of an ablation on the logit of a token, and the token's probability with it.
struct AblationEffect {
  double logit_change = 0, probability = 0;
};

/// Computes the effect of ablating one more head. Temperature above 0.
AblationEffect ablation_effect(const transformer::FullModel& model, const TextReading& reading,
                               const IndexPair& head, std::size_t token, double temperature,
                               const transformer::CallContext& context);

/// A candidate for the next token, with its probability now and before the edits.
struct NextToken {
  std::size_t id = 0;
  std::string text;
  double now = 0, before = 0;
};

/// A lens at a point of a model: the top token, and the probability of the chosen one.
struct LensToken {
  std::string text;
  double probability = 0, chosen_probability = 0;
};

/// A lens at every layer; empty text where it predicts nothing.
struct LensReading {
  std::vector<LensToken> after;    ///< [layer]
  std::vector<LensToken> between;  ///< attention and the MLP of each layer; empty unless the lens reads there
  std::string error = {};          ///< one line, where there is no such lens, or ""
};

/// Returns what a lens of a model predicts in a pass of a reading; chosen: a token; temperature above 0.
/// Errors are in the result; throws Stopped.
LensReading read_lens(const transformer::FullModel& model, const TextReading& reading,
                      transformer::LensKind kind, std::size_t chosen, double temperature,
                      const transformer::CallContext& context);

/// The prediction of the next token.
struct Prediction {
  NextToken chosen;
  double logit = 0;
  std::vector<NextToken> candidates;  ///< the most probable ones now
  std::size_t n_other_tokens = 0;     ///< tokens that are not in the table
  double other_probability = 0;       ///< their total probability
  std::vector<LensToken> lens;        ///< [layer]
  /// Direct logit attribution of the chosen token; empty where logits are not such sums.
  std::optional<transformer::LogitAttributions> attribution, attribution_before;
  double max_attribution = 0;  ///< of any head, now or before
};

/// Returns the prediction now, compared with that before the edits; empty where nothing is predicted.
///
/// token is the chosen one, or nothing for the most probable one before the edits; temperature above 0.
Prediction predict_next(const transformer::FullModel& model, const TextReading& now,
                        const TextReading& before, std::optional<std::size_t> token, double temperature,
                        const transformer::CallContext& context);

/// The logit difference of two tokens after the first of two prompts, the second, and the second with edits.
struct WatchedDifference {
  std::string error = {};  ///< why there is none, one line; or ""
  std::size_t answer = 0, against = 0;
  std::string answer_text = {}, against_text = {};
  double first = 0, second = 0, now = 0;
  std::vector<double> first_lens = {}, now_lens = {};       ///< as if the model ended after each layer
  LensToken first_top = {}, second_top = {}, now_top = {};  ///< the most probable tokens
  /// Returns the part of the difference between the prompts that the edits recover.
  double recovered() const { return (now - second) / (first - second); }
};

/// Computes it for the answers of the experiment; without them, for the most probable tokens after each
/// prompt.
WatchedDifference watched_difference(const transformer::FullModel& model, const TextReading& now,
                                     const TextReading& before);

/// Returns the mean roles of every head on rows of random tokens, each row repeated once; [layer][head].
///
/// Empty for a model that is not causal or takes too few tokens. Source: Olsson et al. 2022.
std::vector<std::vector<transformer::HeadRoles>> roles_on_random_tokens(
    const transformer::FullModel& model, const transformer::CallContext& context);

}  // namespace core::experiment
