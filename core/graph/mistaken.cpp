#include "core/graph/mistaken.hpp"

#include <cmath>

#include "core/graph/formulas.hpp"
#include "core/graph/intended.hpp"
#include "core/graph/rounding.hpp"

namespace core::attention::mistaken {
namespace {

using F = std::string;

constexpr Layout turn_by_turn{[](const HeadCell& c, const HeadSizes& s) {
                                return JoinedCell{c.row, c.column * s.n_heads + c.head};
                              },
                              [](const JoinedCell& c, const HeadSizes& s) {
                                return HeadCell{c.column % s.n_heads, c.row, c.column / s.n_heads};
                              }};

constexpr Layout head_by_head{[](const HeadCell& c, const HeadSizes& s) {
                                const std::size_t nth = (c.head * s.n_tokens + c.row) * s.d_head + c.column,
                                                  width = s.n_heads * s.d_head;
                                return JoinedCell{nth / width, nth % width};
                              },
                              [](const JoinedCell& c, const HeadSizes& s) {
                                const std::size_t nth = c.row * s.n_heads * s.d_head + c.column,
                                                  per_head = s.n_tokens * s.d_head;
                                return HeadCell{nth / per_head, nth % per_head / s.d_head, nth % s.d_head};
                              }};

double root_of_d_model(const Model& m) {
  return 1 / std::sqrt(static_cast<double>(m.d_model()));
}

/// What makes products coarse: ", factors in tf32".
F coarseness(const Model& m) {
  const Departures& d = m.departures;
  F words = d.product_inputs == Precision::float64 ? F() : F(", factors in ") + name_of(d.product_inputs);
  return words + (d.sums_rounded ? F(", sums in ") + name_of(d.precision) : F());
}

arma::mat coarsely_projected(const arma::mat& x, const Linear& linear, const Departures& departures) {
  arma::mat y = coarse_product(x, *linear.weight, departures);
  if (linear.bias) y.each_row() += arma::rowvec(**linear.bias);
  return rounded(departures.precision, std::move(y));
}

template <char symbol, Linear Projections::*part>
constexpr Projecting coarsely_projected_by{
    [](const arma::mat& x, const Model& m) {
      return coarsely_projected(x, (*m.projections).*part, m.departures);
    },
    [](const Model& m, bool brief) {
      return (symbol != 'q' && m.has_memory() ? "M" : "X") +
             intended::projected_words(((*m.projections).*part).bias, symbol) + (brief ? F() : coarseness(m));
    }};

template <const Scoring& rule, bool swapped>
constexpr Scoring coarse_scoring{
    {[](const arma::mat& queries, const arma::mat& keys, const Model& m) {
       return swapped ? coarse_product(keys, queries.t(), m.departures)
                      : coarse_product(queries, keys.t(), m.departures);
     },
     [](const Model& m, bool brief) { return rule.formula(m, brief) + (brief ? F() : coarseness(m)); }},
    swapped};

template <const Scoring& rule, bool swapped>
constexpr Scoring prescaled_scoring{
    {[](const arma::mat& queries, const arma::mat& keys, const Model& m) -> arma::mat {
       return rule.compute(queries, keys, m) * scale_factor(m);
     },
     [](const Model& m, bool brief) { return rule.formula(m, brief) + ", already scaled"; }},
    swapped};

/// What a softmax takes and gives is rounded.
template <const Normalising& rule, bool over_keys, bool in_blocks>
constexpr Normalising coarse_normalising{
    {[](const arma::mat& scores, const HeadSoFar& head) {
       const Precision precision = head.model.departures.softmax_precision;
       return rounded(precision, rule.compute(rounded(precision, scores), head));
     },
     [](const Model& m, bool brief) {
       return rule.formula(m, brief) + (brief ? ", " : " in ") + name_of(m.departures.softmax_precision);
     }},
    over_keys,
    false,
    in_blocks};

template <const Masking& rule, bool fills>
constexpr Masking masking_of_dropped{
    {[](const arma::mat& scores, const arma::mat& visible, const HeadSoFar& head) {
       return rule.compute(scores % *head.stages.dropout_mask, visible, head);
     },
     [](const Model& m, bool brief) {
       const char* dropped = !m.dropout.active() ? "" : brief ? "× drop, " : "scores × dropout mask, ";
       return dropped + rule.formula(m, brief);
     }},
    fills ? +[](const Model& m) { return rule.fill(m); } : nullptr,
    true};

template <const Normalising& rule, bool over_keys, bool in_blocks>
constexpr Normalising normalising_of_dropped{
    {[](const arma::mat& scores, const HeadSoFar& head) {
       return rule.compute(scores % *head.stages.dropout_mask, head);
     },
     [](const Model& m, bool brief) {
       const char* dropped = !m.dropout.active() ? "" : brief ? " of dropped" : " of scores × dropout mask";
       return rule.formula(m, brief) + dropped;
     }},
    over_keys,
    true,
    in_blocks};

}  // namespace

constexpr Projecting coarse_query = coarsely_projected_by<'q', &Projections::query>;
constexpr Projecting coarse_key = coarsely_projected_by<'k', &Projections::key>;
constexpr Projecting coarse_value = coarsely_projected_by<'v', &Projections::value>;
constexpr Projecting coarse_output{[](const arma::mat& x, const Model& m) {
                                     return coarsely_projected(x, *m.projections->output, m.departures);
                                   },
                                   [](const Model& m, bool brief) {
                                     return intended::projected_words(m.projections->output->bias, 'o') +
                                            (brief ? F() : coarseness(m));
                                   }};

constexpr Splitting interleaved{{every_nth_column,
                                 [](const Model& m, bool brief) {
                                   return brief ? F()
                                                : ", columns h, h + " + std::to_string(m.n_heads) + ", …";
                                 }},
                                turn_by_turn};

constexpr Splitting viewed{
    {attention::viewed,
     [](const Model&, bool brief) { return F(brief ? ", viewed" : ", viewed without the transpose"); }},
    {[](const HeadCell& c, const HeadSizes& s) { return head_by_head.joined(c, s); },
     [](const JoinedCell& c, const HeadSizes& s) { return head_by_head.parted(c, s); }}};

constexpr Turning not_turned{[](const arma::mat& rows, const Model&) { return rows; },
                             [](const Model&, bool) { return F("not turned"); }};
constexpr Turning turned_values{
    [](const arma::mat& rows, const Model& m) { return intended::turned_keys.compute(rows, m); },
    [](const Model&, bool) { return F(", turned"); }};

constexpr Scoring keys_by_queries{
    {[](const arma::mat& queries, const arma::mat& keys, const Model&) { return scores(keys, queries); },
     [](const Model&, bool) { return F("KQᵀ"); }},
    true};

constexpr Scaling by_sqrt_d_model{{intended::scaled_by<root_of_d_model>,
                                   [](const Model& m, bool) { return "÷ √" + std::to_string(m.d_model()); }},
                                  root_of_d_model,
                                  [](const Model& m) { return m.d_model(); }};

constexpr Seeing another_edge{
    [](std::int64_t query, std::int64_t key, const Model& m) {
      const std::int64_t ahead = m.departures.mask_edge.transposed ? query - key : key - query;
      return ahead <= m.departures.mask_edge.diagonal;
    },
    [](const Model&, bool brief) { return F(brief ? "1 visible" : "1 visible, 0 hidden"); }};

constexpr Masking large_negative{
    {[](const arma::mat& scores, const arma::mat& visible, const HeadSoFar& head) {
       return masked(scores, visible, head.model.departures.large_negative);
     },
     [](const Model& m, bool brief) {
       return intended::masked_words(m, brief, m.departures.large_negative);
     }},
    [](const Model& m) { return m.departures.large_negative; }};

constexpr Normalising over_queries{
    {[](const arma::mat& scores, const HeadSoFar&) { return softmax_columns(scores); },
     [](const Model&, bool brief) { return F(brief ? "softmax, columns" : "softmax of each column"); }},
    false};

constexpr Normalising in_blocks{
    {[](const arma::mat& scores, const HeadSoFar& head) {
       const auto& sink = head.model.additions.sink;
       return softmax_in_blocks(scores, head.model.departures.blocks,
                                sink ? std::optional(sink->at(0, head.head)) : std::nullopt);
     },
     [](const Model& m, bool brief) {
       const auto& [rule, size] = m.departures.blocks;
       const F what = rule == BlockRule::last_dropped            ? "the last left out"
                      : rule == BlockRule::sum_not_rescaled      ? "sum not rescaled"
                      : rule == BlockRule::contexts_not_rescaled ? "contexts not rescaled"
                                                                 : "not rescaled";
       const F sink = intended::sink_words(m);
       return brief ? "blocks of " + std::to_string(size) + sink
                    : "softmax of each row" + sink + " in blocks of " + std::to_string(size) + ", " + what;
     }},
    true,
    false,
    true};

constexpr Weighing zeroed{
    [](const arma::mat& visible, const HeadSoFar& head) -> arma::mat {
      return *head.stages.unmasked_weights % visible;
    },
    [](const Model&, bool brief) { return F(brief ? "0 if hidden" : "0 where hidden, not renormalised"); }};

constexpr Surviving not_rescaled{
    [](const Dropout&) { return 1.0; },
    [](const Model& m, bool brief) { return intended::dropout_words(m, brief, "0 or 1"); }};

constexpr Dropping dropped_before{[](const arma::mat& weights, const arma::mat&) { return weights; },
                                  [](const Model& m, bool brief) {
                                    if (!m.dropout.active()) return F("weights");
                                    return F(brief ? "before" : "scores were dropped before");
                                  }};

constexpr Mixing coarsely_weighted_values{
    [](const arma::mat& weights, const arma::mat& values, const Model& m) {
      return coarse_product(weights, values, m.departures);
    },
    [](const Model& m, bool brief) { return F("weights·V") + (brief ? F() : coarseness(m)); }};

constexpr Merging columns_in_turn{
    {attention::interleaved, [](const Model&, bool) { return F("interleaved"); }}, turn_by_turn};

constexpr Merging without_transpose{
    {reshaped_without_transpose,
     [](const Model&, bool brief) { return F(brief ? "no transpose" : "reshaped without the transpose"); }},
    head_by_head};

const Masking& of_dropped(const Masking& rule) {
  if (&rule == &intended::later) return masking_of_dropped<intended::later, false>;
  return &rule == &large_negative ? masking_of_dropped<large_negative, true>
                                  : masking_of_dropped<intended::minus_infinity, true>;
}

namespace {

constexpr const Scoring &coarse_by_keys = coarse_scoring<intended::query_by_key, false>,
                        &coarse_swapped = coarse_scoring<keys_by_queries, true>;
constexpr const Normalising &coarse_over_keys = coarse_normalising<intended::over_keys, true, false>,
                            &coarse_in_blocks = coarse_normalising<in_blocks, true, true>,
                            &coarse_over_queries = coarse_normalising<over_queries, false, false>;

}  // namespace

const Normalising& of_dropped(const Normalising& rule) {
  if (&rule == &over_queries) return normalising_of_dropped<over_queries, false, false>;
  if (&rule == &coarse_over_queries) return normalising_of_dropped<coarse_over_queries, false, false>;
  if (&rule == &in_blocks) return normalising_of_dropped<in_blocks, true, true>;
  if (&rule == &coarse_in_blocks) return normalising_of_dropped<coarse_in_blocks, true, true>;
  if (&rule == &coarse_over_keys) return normalising_of_dropped<coarse_over_keys, true, false>;
  return normalising_of_dropped<intended::over_keys, true, false>;
}

const Scoring& coarse(const Scoring& rule) {
  return rule.swapped ? coarse_swapped : coarse_by_keys;
}

const Normalising& coarse(const Normalising& rule) {
  if (!rule.over_keys) return coarse_over_queries;
  return rule.in_blocks ? coarse_in_blocks : coarse_over_keys;
}

const Scoring& prescaled(const Scoring& rule) {
  if (&rule == &keys_by_queries) return prescaled_scoring<keys_by_queries, true>;
  if (&rule == &coarse_swapped) return prescaled_scoring<coarse_swapped, true>;
  if (&rule == &coarse_by_keys) return prescaled_scoring<coarse_by_keys, false>;
  return prescaled_scoring<intended::query_by_key, false>;
}

}  // namespace core::attention::mistaken
