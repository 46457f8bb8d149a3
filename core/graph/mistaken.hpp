#pragma once

#include "core/graph/rules.hpp"

/// Steps as only mistakes take them, each beside the right one of the same kind in intended.hpp.
namespace core::attention::mistaken {

/// Projections whose products are coarse: see coarse_product().
extern const Projecting coarse_query, coarse_key, coarse_value, coarse_output;
extern const Splitting interleaved;     ///< head h takes columns h, h + n_heads, …
extern const Splitting viewed;          ///< [token][d_out] read again as [head][token][column]
extern const Turning not_turned;        ///< keys as they are
extern const Turning turned_values;     ///< values turned as keys are
extern const Scoring keys_by_queries;   ///< K·Qᵀ
extern const Scaling by_sqrt_d_model;   ///< ÷ √d_model
extern const Seeing another_edge;       ///< causal, but Departures moves or transposes the edge
extern const Masking large_negative;    ///< hidden scores are a large negative number
extern const Normalising over_queries;  ///< the softmax of each column
extern const Normalising in_blocks;     ///< the softmax block by block, as Departures::blocks says
extern const Weighing zeroed;           ///< hidden weights are 0 after the softmax, rows not renormalised
extern const Surviving not_rescaled;    ///< survivors stay as they are
extern const Dropping dropped_before;   ///< weights stay, as scores were dropped
extern const Mixing coarsely_weighted_values;
extern const Merging columns_in_turn;    ///< column k of head h becomes column k·n_heads + h
extern const Merging without_transpose;  ///< [head][token][column] read again as [token][d_out]

/// The same rule with coarse products, or with a coarse softmax.
const Scoring& coarse(const Scoring& rule);
const Normalising& coarse(const Normalising& rule);
/// The same rule of queries that are scaled already.
const Scoring& prescaled(const Scoring& rule);

/// The same rule of scores × dropout mask.
const Masking& of_dropped(const Masking& rule);
const Normalising& of_dropped(const Normalising& rule);

}  // namespace core::attention::mistaken
