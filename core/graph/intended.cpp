#include "core/graph/intended.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/graph/formulas.hpp"
#include "core/graph/mistaken.hpp"
#include "core/graph/order.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/stages.hpp"

namespace core::attention::intended {
namespace {

using F = std::string;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What keys and values are projected from.
F source_words(const Model& m) {
  return m.has_memory() ? "M" : "X";
}

F norm_words(const Model& m, bool brief, const char* by) {
  const F after = m.departures.misplaced.norm_after_rotation && m.additions.positions.rotary
                      ? (brief ? ", turned" : ", after the rotation")
                      : "";
  return (brief ? F("norm") : F("each row ÷ its ") + by + " × w") + after;
}

F turn_words(const Model& m, bool brief) {
  const positions::Rotary& rotary = *m.additions.positions.rotary;
  const F pairs = rotary.pairs == positions::Pairs::halves ? "halves" : "neighbours";
  const F back = m.departures.misplaced.turned_backwards ? " backwards" : "";
  return brief ? "turned" + back : "pairs of " + pairs + " turned" + back + " by position";
}

F query_turn_words(const Model& m, bool brief) {
  const int offset = m.departures.misplaced.query_offset;
  if (offset == 0) return turn_words(m, brief);
  return turn_words(m, brief) + (offset < 0 ? " − " : " + ") + std::to_string(std::abs(offset));
}

template <char symbol, Linear Projections::*part>
constexpr Projecting projected_by{
    [](const arma::mat& x, const Model& m) {
      return rounded(m.departures.precision, project(x, (*m.projections).*part));
    },
    [](const Model& m, bool) {
      return (symbol == 'q' ? "X" : source_words(m)) + projected_words(((*m.projections).*part).bias, symbol);
    }};

constexpr Layout band_by_band{[](const HeadCell& c, const HeadSizes& s) {
                                return JoinedCell{c.row, c.head * s.d_head + c.column};
                              },
                              [](const JoinedCell& c, const HeadSizes& s) {
                                return HeadCell{c.column / s.d_head, c.row, c.column % s.d_head};
                              }};

/// n_tokens × n_keys of what a distance, key − query, gives.
arma::mat by_distance(const Model& m, const auto& number_of) {
  const std::int64_t first = position_of_query(m, 0) - position_of_key(m, 0);
  arma::mat bias(m.n_tokens(), m.n_keys());
  for (std::size_t j = 0; j < bias.n_cols; ++j)
    for (std::size_t i = 0; i < bias.n_rows; ++i)
      bias(i, j) = number_of(static_cast<std::int64_t>(j) - static_cast<std::int64_t>(i) - first);
  return bias;
}

double root_of_d_head(const Model& m) {
  return 1 / std::sqrt(static_cast<double>(m.d_head()));
}
double typed_factor(const Model& m) {
  return m.scale.factor;
}
double one(const Model&) {
  return 1;
}

/// The same with zeros in rows that see nothing.
template <const Weighing& rule>
constexpr Weighing empty_rows_zero{[](const arma::mat& visible, const HeadSoFar& head) {
                                     return with_empty_rows_zeroed(rule.compute(visible, head), visible,
                                                                   head.stages.masked_scores);
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

constexpr Norming normed_by_rms{
    [](const arma::mat& rows, const SharedMatrix& factors, const Model& m) {
      return divided_by_rms(rows, arma::rowvec(*factors), m.additions.normalise->epsilon);
    },
    [](const Model& m, bool brief) { return norm_words(m, brief, "root mean square"); }};
constexpr Norming normed_by_deviation{
    [](const arma::mat& rows, const SharedMatrix& factors, const Model& m) {
      return divided_by_deviation(rows, arma::rowvec(*factors), m.additions.normalise->epsilon);
    },
    [](const Model& m, bool brief) { return norm_words(m, brief, "standard deviation"); }};

constexpr Turning turned_queries{[](const arma::mat& rows, const Model& m) {
                                   return positions::rotate(rows, turned_from(m, Stage::queries),
                                                            rotation_of(m));
                                 },
                                 query_turn_words};
constexpr Turning turned_keys{[](const arma::mat& rows, const Model& m) {
                                return positions::rotate(rows, turned_from(m, Stage::keys), rotation_of(m));
                              },
                              turn_words};

constexpr Capping capped{[](const arma::mat& scores, const Model& m) -> arma::mat {
                           const double c = *m.additions.score_cap;
                           return c * arma::tanh(scores / c);
                         },
                         [](const Model&, bool brief) { return F(brief ? "c·tanh(s/c)" : "c·tanh(s ÷ c)"); }};

constexpr PlaceBias by_slope{
    [](std::size_t head, const Model& m) {
      const double slope = positions::slope_of(*m.additions.positions.alibi, head, m.n_heads);
      return by_distance(
          m, [&](std::int64_t distance) { return -slope * static_cast<double>(std::abs(distance)); });
    },
    [](const Model&, bool brief) {
      return F(brief ? "−slope·distance" : "−slope × distance of query and key");
    }};
constexpr PlaceBias by_bucket{[](std::size_t head, const Model& m) {
                                const positions::Relative& relative = *m.additions.positions.relative;
                                return by_distance(m, [&](std::int64_t distance) {
                                  return relative.table.at(head, positions::bucket_of(distance, relative));
                                });
                              },
                              [](const Model&, bool brief) {
                                return F(brief ? "by bucket" : "a number for each bucket of distances");
                              }};

constexpr Biasing with_biases{
    [](const arma::mat& scores, const arma::mat& position_bias, std::size_t head, const Model& m) {
      const auto& given = m.additions.score_bias;
      if (given.empty()) return arma::mat(scores + position_bias);
      const arma::mat& bias = given[given.size() == 1 ? 0 : head];
      return position_bias.is_empty() ? arma::mat(scores + bias) : arma::mat(scores + (position_bias + bias));
    },
    [](const Model& m, bool) {
      const Additions& a = m.additions;
      if (a.score_bias.empty()) return F("+ position bias");
      return F(a.positions.has_bias() ? "+ position bias + bias" : "+ bias");
    }};

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
    {[](const arma::mat& scores, const HeadSoFar& head) {
       const auto& sink = head.model.additions.sink;
       return sink ? softmax_rows_and_sink(scores, sink->at(0, head.head)) : softmax_rows(scores);
     },
     [](const Model& m, bool brief) { return (brief ? "softmax" : "softmax of each row") + sink_words(m); }}};

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

std::string sink_words(const Model& m) {
  return m.additions.sink ? " and sink" : "";
}

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
