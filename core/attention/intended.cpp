#include "core/attention/intended.hpp"

#include <cmath>
#include <limits>

#include "core/attention/formulas.hpp"
#include "core/attention/mistaken.hpp"
#include "core/attention/rounding.hpp"
#include "core/attention/stages.hpp"

namespace core::attention::intended {
namespace {

using F = std::string;

constexpr double infinity = std::numeric_limits<double>::infinity();

template <char symbol, Linear Projections::*part>
constexpr Projecting projected_by{
    [](const arma::mat& x, const Model& m) {
      return rounded(m.departures.precision, project(x, (*m.projections).*part));
    },
    [](const Model& m, bool) { return "X" + projected_words(((*m.projections).*part).bias, symbol); }};

constexpr Layout band_by_band{[](const HeadCell& c, const HeadSizes& s) {
                                return JoinedCell{c.row, c.head * s.d_head + c.column};
                              },
                              [](const JoinedCell& c, const HeadSizes& s) {
                                return HeadCell{c.column / s.d_head, c.row, c.column % s.d_head};
                              }};

double root_of_d_head(const Model& m) {
  return 1 / std::sqrt(static_cast<double>(m.d_head()));
}
double typed_factor(const Model& m) {
  return m.scale.factor;
}
double one(const Model&) {
  return 1;
}

/// The same with zeros in rows that see no key.
template <const Weighing& rule>
constexpr Weighing empty_rows_zero{[](const arma::mat& visible, const HeadSoFar& head) {
                                     return with_empty_rows_zeroed(rule.compute(visible, head), visible);
                                   },
                                   [](const Model& m, bool brief) { return rule.formula(m, brief); }};

}  // namespace

constexpr Projecting projected_query = projected_by<'q', &Projections::query>;
constexpr Projecting projected_key = projected_by<'k', &Projections::key>;
constexpr Projecting projected_value = projected_by<'v', &Projections::value>;
constexpr Projecting unprojected{
    [](const arma::mat& x, const Model& m) { return rounded(m.departures.precision, x); },
    [](const Model&, bool) { return F("X"); }};

constexpr Splitting in_bands{{band, [](const Model&, bool) { return F(); }}, band_by_band};

constexpr Scoring query_by_key{
    {[](const arma::mat& queries, const arma::mat& keys, const Model&) { return scores(queries, keys); },
     [](const Model&, bool) { return F("QKᵀ"); }}};
constexpr Scoring uniform{{[](const arma::mat&, const arma::mat&, const Model& m) -> arma::mat {
                             return arma::zeros(m.n_tokens(), m.n_keys());
                           },
                           [](const Model&, bool) { return F("all zero"); }}};

constexpr Scaling by_sqrt_d_head{
    {scaled_by<root_of_d_head>, [](const Model& m, bool) { return "÷ √" + std::to_string(m.d_head()); }},
    root_of_d_head,
    [](const Model& m) { return m.d_head(); }};
constexpr Scaling by_factor{{scaled_by<typed_factor>, [](const Model&, bool) { return F("× factor"); }},
                            typed_factor};
constexpr Scaling not_scaled{{scaled_by<one>, [](const Model&, bool) { return F("not scaled"); }}, one};

constexpr Seeing causal{
    [](std::int64_t query, std::int64_t key, const Model&) { return key <= query; },
    [](const Model&, bool brief) { return F(brief ? "1 visible" : "1 visible, 0 hidden"); }};
constexpr Seeing everything{
    [](std::int64_t, std::int64_t, const Model&) { return true; },
    [](const Model& m, bool brief) {
      return F(!m.mask.hides() ? "all 1" : brief ? "1 visible" : "1 visible, 0 hidden");
    }};

constexpr Masking minus_infinity{
    {[](const arma::mat& scores, const arma::mat& visible, const HeadSoFar&) {
       return masked(scores, visible, -infinity);
     },
     [](const Model& m, bool brief) { return masked_words(m, brief, -infinity); }},
    [](const Model&) { return -infinity; }};
constexpr Masking later{{[](const arma::mat& scores, const arma::mat&, const HeadSoFar&) { return scores; },
                         [](const Model& m, bool brief) {
                           if (!m.mask.hides()) return F(brief ? "all visible" : "every key is visible");
                           return F(brief ? "later" : "masked after the softmax");
                         }}};

constexpr Normalising over_keys{
    {[](const arma::mat& scores, const HeadSoFar&) { return softmax_rows(scores); },
     [](const Model&, bool brief) { return F(brief ? "softmax" : "softmax of each row"); }}};

constexpr Zeroing zero_where_hidden{
    [](const arma::mat& weights, const arma::mat& visible) -> arma::mat { return weights % visible; },
    [](const Model&, bool brief) { return F(brief ? "× mask" : "0 where hidden"); }};
constexpr Summing sum_of_row{[](const arma::mat& weights) -> arma::mat { return arma::sum(weights, 1); },
                             [](const Model&, bool) { return F("Σ"); }};

constexpr Weighing of_masked_scores{
    [](const arma::mat&, const HeadSoFar& head) {
      return head.rules.softmax->compute(head.stages.masked_scores, head);
    },
    [](const Model& m, bool brief) { return rules_of(m).softmax->formula(m, brief); }};
constexpr Weighing by_row_sum{
    [](const arma::mat&, const HeadSoFar& head) {
      return renormalised(head.stages.zeroed_weights, head.stages.row_sums);
    },
    [](const Model&, bool brief) { return F(brief ? "÷ row sum" : "each row ÷ its sum"); }};
constexpr Surviving rescaled{
    [](const Dropout& dropout) { return dropout.rate < 1 ? 1 / (1 - dropout.rate) : 0; },
    [](const Model& m, bool brief) { return dropout_words(m, brief, "0 or 1/(1−p)"); }};

constexpr Dropping of_weights{
    [](const arma::mat& weights, const arma::mat& dropout_mask) -> arma::mat {
      return weights % dropout_mask;
    },
    [](const Model&, bool brief) { return F(brief ? "× mask" : "weights × mask"); }};

constexpr Mixing weighted_values{[](const arma::mat& weights, const arma::mat& values,
                                    const Model&) -> arma::mat { return weights * values; },
                                 [](const Model&, bool) { return F("weights·V"); }};

constexpr Merging side_by_side{
    {concatenated,
     [](const Model& m, bool brief) {
       if (const std::size_t n = m.n_heads - m.heads_off.size(); n < m.n_heads)
         return std::to_string(n) + (brief ? " on" : n == 1 ? " head on" : " heads on");
       if (m.n_heads == 1) return F("one head");
       if (brief) return F();
       return m.n_heads == 2 ? "heads 0, 1" : "heads 0 … " + std::to_string(m.n_heads - 1);
     }},
    band_by_band};

constexpr Projecting projected_output{
    [](const arma::mat& x, const Model& m) {
      return rounded(m.departures.precision, project(x, *m.projections->output));
    },
    [](const Model& m, bool) { return projected_words(m.projections->output->bias, 'o'); }};

constexpr Projecting without_output{[](const arma::mat& x, const Model&) { return x; },
                                    [](const Model&, bool brief) { return F(brief ? "" : "no projection"); }};

std::string projected_words(const std::optional<SharedMatrix>& bias, char symbol) {
  const F s(1, symbol);
  return "·W_" + s + (bias ? " + b_" + s : F());
}

const Weighing& with_empty_rows_zero(const Weighing& rule) {
  if (&rule == &of_masked_scores) return empty_rows_zero<of_masked_scores>;
  return &rule == &by_row_sum ? empty_rows_zero<by_row_sum> : empty_rows_zero<mistaken::zeroed>;
}

std::string masked_words(const Model& m, bool brief, double fill) {
  if (!m.mask.hides()) return brief ? "all visible" : "every key is visible";
  const F words = fill_words(fill);
  if (!m.mask.is_plainly_causal() || rules_of(m).see != &causal)
    return words + (brief ? " if hidden" : " where hidden");
  return words + (brief ? " ahead" : " where key > query");
}

std::string dropout_words(const Model& m, bool brief, const char* numbers) {
  if (!m.dropout.training) return brief ? "off" : "off in evaluation";
  return m.dropout.rate == 0 ? "off" : numbers;
}

}  // namespace core::attention::intended
