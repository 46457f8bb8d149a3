#include "core/attention/mistaken.hpp"

#include <cmath>

#include "core/attention/formulas.hpp"
#include "core/attention/intended.hpp"

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

template <const Normalising& rule, bool over_keys>
constexpr Normalising normalising_of_dropped{
    {[](const arma::mat& scores, const HeadSoFar& head) {
       return rule.compute(scores % *head.stages.dropout_mask, head);
     },
     [](const Model& m, bool brief) {
       const char* dropped = !m.dropout.active() ? "" : brief ? " of dropped" : " of scores × dropout mask";
       return rule.formula(m, brief) + dropped;
     }},
    over_keys,
    true};

}  // namespace

constexpr Splitting interleaved{{every_nth_column,
                                 [](const Model& m, bool brief) {
                                   return brief ? F()
                                                : ", columns h, h + " + std::to_string(m.n_heads) + ", …";
                                 }},
                                turn_by_turn};

constexpr Scoring keys_by_queries{
    [](const arma::mat& queries, const arma::mat& keys, const Model&) { return scores(keys, queries); },
    [](const Model&, bool) { return F("KQᵀ"); }};

constexpr Scaling by_sqrt_d_model{{intended::scaled_by<root_of_d_model>,
                                   [](const Model& m, bool) { return "÷ √" + std::to_string(m.d_model()); }},
                                  root_of_d_model,
                                  [](const Model& m) { return m.d_model(); }};

constexpr Seeing another_edge{
    [](std::int64_t query, std::int64_t key, const Model& m) {
      const std::int64_t ahead = m.departures.mask_transposed ? query - key : key - query;
      return ahead <= m.departures.mask_diagonal;
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

const Normalising& of_dropped(const Normalising& rule) {
  return &rule == &over_queries ? normalising_of_dropped<over_queries, false>
                                : normalising_of_dropped<intended::over_keys, true>;
}

}  // namespace core::attention::mistaken
