#pragma once

#include "core/graph/rules.hpp"

/// The steps of the paper, and what else is meant to be so; wrong ones stand in mistaken.hpp.
namespace core::attention::intended {

extern const Projecting projected_query, projected_key, projected_value, projected_output;
extern const Projecting unprojected;     ///< Q = K = V = X
extern const Projecting without_output;  ///< the heads as they are merged
extern const Splitting in_bands;         ///< head h takes d_head neighbouring columns
extern const Norming normed_by_rms, normed_by_deviation;
extern const Turning turned_queries, turned_keys;  ///< by rotary positions
extern const Capping capped;                       ///< c·tanh(s/c)
extern const PlaceBias by_slope, by_bucket;        ///< ALiBi's, and T5's
extern const Biasing with_biases;
extern const Scoring query_by_key;
extern const Scoring uniform;  ///< zeros
extern const Scaling by_sqrt_d_head, by_factor, not_scaled;
extern const Seeing causal, everything;
extern const Masking minus_infinity;
extern const Masking later;          ///< the scores stay, as weights are masked
extern const Normalising over_keys;  ///< of each row, with the sink where there is one
extern const Zeroing zero_where_hidden;
extern const Summing sum_of_row;
extern const Weighing of_masked_scores;  ///< by the softmax
extern const Weighing by_row_sum;        ///< zeroed weights divided by their sum
extern const Surviving rescaled;         ///< by 1/(1 − rate)
extern const Dropping of_weights;
extern const Mixing weighted_values;
extern const Merging side_by_side;

/// The same rule with zeros in rows that see no key; of the two above, or of mistaken::zeroed.
const Weighing& with_empty_rows_zero(const Weighing& rule);

/// Scores times what factor makes of the model.
template <double (*factor)(const Model&)>
arma::mat scaled_by(const arma::mat& scores, const Model& model) {
  return scores * factor(model);
}

/// ", sink": what a sink adds to the words of a softmax.
std::string sink_words(const Model& model);
/// What stands behind the embeddings in the formula of a projection: "·W_q + b_q".
std::string projected_words(const std::optional<SharedMatrix>& bias, char symbol);
/// A formula of the mask: what hidden cells hold, and where they are.
std::string masked_words(const Model& model, bool brief, double fill);
/// A formula of the dropout mask: what it holds when something can be dropped.
std::string dropout_words(const Model& model, bool brief, const char* numbers);

}  // namespace core::attention::intended
