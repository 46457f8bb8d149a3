#pragma once

#include <armadillo>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/base/token.hpp"
#include "core/model/attending.hpp"
#include "core/model/transformer.hpp"

namespace core::transformer {

/// What is done to a run while it goes on.
struct Interventions {
  std::set<std::pair<std::size_t, std::size_t>> heads_off =
      {};  ///< layer and head, whose contexts count as zero
  /// [layer]: what attention gives there, instead of what it computes; n_tokens × d_model.
  std::map<std::size_t, arma::fmat> outputs = {};
  /// [layer]: what attention makes there of what enters it, n_tokens × d_model of both, instead.
  std::map<std::size_t, std::function<arma::fmat(const arma::fmat& attention_input)>> attentions = {};
};

/// The heads of a layer that are off, in order; of those that it has.
std::vector<std::size_t> heads_off_in(const std::set<std::pair<std::size_t, std::size_t>>& heads_off,
                                      std::size_t layer, std::size_t n_heads);

/// What one layer did, all of n_tokens rows.
struct LayerRun {
  arma::fmat residual;         ///< what enters the layer
  arma::fmat attention_input;  ///< what enters attention: after the norm, where that stands before
  arma::fmat queries;          ///< rotated and normed, where the model does so
  KeysAndValues keys;
  arma::fmat output;  ///< what attention adds
};

/// One pass of a text through a model, in float32.
struct Pass {
  std::vector<std::size_t> ids;
  std::vector<std::shared_ptr<const LayerRun>> layers;
  arma::fmat last;                              ///< what leaves the last layer, n_tokens × d_model
  std::optional<std::size_t> first_not_finite;  ///< the first layer that leaves NaN or an infinity behind
};

/// What a pass is done with; progress counts layers.
struct Means {
  ThreadPool& pool;
  const Token& progress;
};

/// Makes sure that a model can read tokens behind so many others. Throws core::Error.
void require_tokens(const Transformer& model, const std::vector<std::size_t>& ids, std::size_t n_before);

/// What enters the first layer for tokens that stand at positions from first on: n_tokens × d_model.
arma::fmat embedded(const Transformer& model, const std::vector<std::size_t>& ids, std::size_t first,
                    const Token& progress);

/// All layers on the tokens of a text.
///
/// Throws core::Error when there is no token, there are more than the model takes, or one is not in its
/// vocabulary; Stopped when that was asked for.
Pass run(const Transformer& model, const std::vector<std::size_t>& ids, const Interventions& interventions,
         const Means& means);

/// The same from a layer on; what is before it is that of an earlier run of the same text.
Pass run_from(const Transformer& model, const Pass& before, std::size_t layer,
              const Interventions& interventions, const Means& means);

/// The same text with tokens behind it, of a model whose tokens see no later ones: only their rows are
/// computed.
///
/// Throws core::Error as run() does.
Pass run_on(const Transformer& model, const Pass& before, const std::vector<std::size_t>& more,
            const Interventions& interventions, const Means& means);

/// What a layer makes of what enters it, the queries being the last of the keys; keys and values are added to
/// those that are there.
std::shared_ptr<LayerRun> run_layer(const Transformer& model, std::size_t layer, arma::fmat residual,
                                    KeysAndValues before, const Interventions& interventions,
                                    const Means& means, arma::fmat& next);

/// The scores of all tokens that may stand at a place, by rows of what leaves the last layer: rows ×
/// n_vocabulary.
///
/// Throws core::Error when the model has nothing to predict with, or finite rows become what is no number.
arma::fmat logits_of(const Transformer& model, const arma::fmat& last, const Means& means);

/// What leaves the last layer after the norm that stands before the prediction, where one does.
arma::fmat before_prediction(const Transformer& model, const arma::fmat& last, const Means& means);

/// The weights of a head in a run, n_tokens × n_tokens, a query a row.
arma::fmat weights_in(const Transformer& model, const Pass& run, std::size_t layer, std::size_t head);

}  // namespace core::transformer
