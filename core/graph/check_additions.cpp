#include "core/graph/check_additions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.hpp"
#include "core/graph/stages.hpp"

namespace core::attention {
namespace {

using std::to_string;

std::string at(const std::string& path, std::size_t row, std::size_t column) {
  return path + "[" + to_string(row) + "][" + to_string(column) + "]";
}

bool is_positive(double number) {
  return number > 0 && std::isfinite(number);
}

std::optional<Problem> check_norm(const Model& m) {
  if (!m.additions.normalise) return std::nullopt;
  const HeadNorm& norm = *m.additions.normalise;
  constexpr const char* meaning = "one number for each column of a head";
  if (m.d_head() == 0) return Problem{"normalise", "expected queries and keys of known width"};
  if (!(norm.epsilon >= 0) || !std::isfinite(norm.epsilon))
    return Problem{"normalise.epsilon", "expected a finite number that is not negative"};
  if (auto p = check_matrix("normalise.query", norm.query, 1, m.d_head(), meaning)) return p;
  return check_matrix("normalise.key", norm.key, 1, m.d_head(), meaning);
}

std::optional<Problem> check_scaling(const positions::Scaling& s) {
  if (s.rule == positions::ScalingRule::none) return std::nullopt;
  const std::string path = "positions.rotary.scaling";
  if (!is_positive(s.factor)) return Problem{path + ".factor", "expected a finite number above 0"};
  if (s.rule == positions::ScalingRule::linear) return std::nullopt;
  if (!is_positive(s.low)) return Problem{path + ".low", "expected a finite number above 0"};
  if (!is_positive(s.high) || s.high <= s.low)
    return Problem{path + ".high", "expected a finite number above low"};
  if (!is_positive(s.original)) return Problem{path + ".original", "expected a finite number above 0"};
  return std::nullopt;
}

std::optional<Problem> check_rotary(const Model& m) {
  if (!m.additions.positions.rotary) return std::nullopt;
  const positions::Rotary& rotary = *m.additions.positions.rotary;
  const std::string path = "positions.rotary";
  const std::size_t d_head = m.d_head();
  if (!is_positive(rotary.base)) return Problem{path + ".base", "expected a finite number above 0"};
  if (d_head == 0) return Problem{path, "expected queries and keys of known width"};
  const std::size_t turned = positions::rotated_columns(rotary, d_head);
  if (turned == 0 || turned > d_head || turned % 2 != 0)
    return Problem{path + ".dimensions", "expected an even number from 2 to d_head = " + to_string(d_head) +
                                             ", got " + to_string(turned)};
  constexpr std::int64_t furthest = std::int64_t{1} << 40;
  if (rotary.first < -furthest || rotary.first > furthest)
    return Problem{path + ".first", "expected a position between −2⁴⁰ and 2⁴⁰"};
  if (auto p = check_scaling(rotary.scaling)) return p;
  if (!rotary.inverse_frequencies) return std::nullopt;
  return check_matrix(path + ".inverse_frequencies", *rotary.inverse_frequencies, 1, turned / 2,
                      "one number for each pair");
}

std::optional<Problem> check_position_bias(const Model& m) {
  const Positions& positions = m.additions.positions;
  if (positions.alibi && positions.relative)
    return Problem{"positions", "expected one of \"alibi\" and \"relative\", got both"};
  if (positions.alibi && positions.alibi->slopes)
    return check_matrix("positions.alibi.slopes", *positions.alibi->slopes, 1, m.n_heads,
                        "one number for each head");
  if (!positions.relative) return std::nullopt;
  const auto& [table, max_distance, bidirectional] = *positions.relative;
  const std::size_t n = table.n_cols(), least = bidirectional ? 4 : 2;
  if (n < least || (bidirectional && n % 2 != 0))
    return Problem{"positions.relative.table",
                   bidirectional ? "expected an even number of buckets, at least 4, got " + to_string(n)
                                 : "expected at least 2 buckets, got " + to_string(n)};
  if (auto p = check_matrix("positions.relative.table", table, m.n_heads, n, "n_heads × n_buckets")) return p;
  const std::size_t near = (bidirectional ? n / 2 : n) / 2;
  if (max_distance > near) return std::nullopt;
  return Problem{"positions.relative.max_distance",
                 "expected more than " + to_string(near) + ", got " + to_string(max_distance)};
}

std::optional<Problem> check_score_bias(const Model& m) {
  const auto& bias = m.additions.score_bias;
  if (bias.empty()) return std::nullopt;
  if (bias.size() != 1 && bias.size() != m.n_heads)
    return Problem{"score_bias", "expected one matrix, or " + to_string(m.n_heads) +
                                     ", one for each head, got " + to_string(bias.size())};
  for (std::size_t h = 0; h < bias.size(); ++h) {
    const std::string path = "score_bias" + (bias.size() > 1 ? "[" + to_string(h) + "]" : "");
    const arma::mat& b = bias[h];
    if (b.n_rows != m.n_tokens() || b.n_cols != m.n_keys())
      return Problem{path, "expected " + text::shape_text(m.n_tokens(), m.n_keys()) +
                               " (n_tokens × n_keys), got " + text::shape_text(b.n_rows, b.n_cols)};
    if (bias[h].is_finite()) continue;
    for (std::size_t i = 0; i < b.n_rows; ++i)
      for (std::size_t j = 0; j < b.n_cols; ++j)
        if (!std::isfinite(b(i, j)) && b(i, j) != -std::numeric_limits<double>::infinity())
          return Problem{at(path, i, j), "expected a finite number or −inf"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> check_groups(const Model& m) {
  if (!m.n_kv_heads) return std::nullopt;
  const std::size_t groups = *m.n_kv_heads;
  if (groups == 0 || m.n_heads % groups != 0)
    return Problem{"n_kv_heads", "expected a number that divides n_heads = " + to_string(m.n_heads) +
                                     ", got " + to_string(groups)};
  if (!m.projections && groups != m.n_heads && m.has_embeddings())
    return Problem{"n_kv_heads",
                   "expected " + to_string(m.n_heads) + ", one for each head, as there are no projections"};
  return std::nullopt;
}

std::optional<Problem> check_memory(const Model& m) {
  const std::size_t n_rows = m.sequences.front().key_embeddings.n_rows();
  if (n_rows == 0 && m.sequences.size() == 1) return std::nullopt;  // as nearly always
  for (std::size_t s = 0; s < m.sequences.size(); ++s) {
    const SharedMatrix& memory = m.sequences[s].key_embeddings;
    const std::string path = "key_embeddings" + (m.sequences.size() > 1 ? "[" + to_string(s) + "]" : "");
    if (n_rows == 0 && memory.n_rows() > 0)
      return Problem{path, "expected them in every sequence or in none"};
    if (n_rows > 0 && memory.n_cols() == 0) return Problem{path, "expected at least one number for each key"};
    if (auto p = check_matrix(path, memory, n_rows, m.sequences.front().key_embeddings.n_cols(),
                              "as the first sequence"))
      return p;
  }
  if (n_rows == 0 || m.projections) return std::nullopt;
  if (m.has_embeddings() && m.d_memory() != m.d_model())
    return Problem{"key_embeddings", "expected " + to_string(m.d_model()) +
                                         " columns, as the embeddings have, or projections, got " +
                                         to_string(m.d_memory())};
  return std::nullopt;
}

std::optional<Problem> check_additions(const Model& m) {
  if (auto p = check_norm(m)) return p;
  if (auto p = check_rotary(m)) return p;
  if (auto p = check_position_bias(m)) return p;
  const Additions& a = m.additions;
  if (a.score_cap && !is_positive(*a.score_cap))
    return Problem{"score_cap", "expected a finite number above 0"};
  if (auto p = check_score_bias(m)) return p;
  if (!a.sink) return std::nullopt;
  return check_matrix("sink", *a.sink, 1, m.n_heads, "one number for each head");
}

}  // namespace core::attention
