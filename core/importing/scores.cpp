#include "core/importing/scores.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/number.hpp"

namespace core::importing {
namespace {

using attention::GivenStage;
using attention::Stage;

constexpr double rounding = 0.02;      // of float16, relative to the largest score
constexpr double hidden_score = -1e4;  // what masks add is at least as low
constexpr double same_factor = 0.01;   // relative

bool is_score(double number) {
  return std::isfinite(number) && number > hidden_score;
}

/// The factor between Q·Kᵀ and scores where both are finite, or nothing when they do not go together.
std::optional<double> factor_between(const GivenStage& scores, const GivenStage& queries,
                                     const GivenStage& keys) {
  const std::size_t n = scores.matrices.size();
  if (queries.matrices.size() != n || n == 0 || n % keys.matrices.size() != 0) return std::nullopt;
  const std::size_t repeats = n / keys.matrices.size();
  double products = 0, squares = 0, largest = 0;
  std::vector<arma::mat> raw;
  for (std::size_t m = 0; m < n; ++m) {
    const arma::mat &q = queries.matrices[m], &k = keys.matrices[m / repeats], &s = scores.matrices[m];
    if (q.n_cols != k.n_cols || q.n_rows != s.n_rows || k.n_rows != s.n_cols) return std::nullopt;
    raw.emplace_back(q * k.t());
    for (arma::uword c = 0; c < s.n_elem; ++c) {
      if (!is_score(s[c])) continue;
      products += s[c] * raw[m][c], squares += raw[m][c] * raw[m][c];
      largest = std::max(largest, std::abs(s[c]));
    }
  }
  if (!(squares > 0) || !(largest > 0)) return std::nullopt;
  const double factor = products / squares;
  for (std::size_t m = 0; m < n; ++m) {
    const arma::mat& s = scores.matrices[m];
    for (arma::uword c = 0; c < s.n_elem; ++c)
      if (is_score(s[c]) && !(std::abs(s[c] - factor * raw[m][c]) <= rounding * largest)) return std::nullopt;
  }
  return factor;
}

bool hides_some(const GivenStage& scores) {
  return std::ranges::any_of(
      scores.matrices, [](const arma::mat& m) { return arma::any(arma::vectorise(m) <= hidden_score); });
}

}  // namespace

ScoresAre judge_scores(const GivenStage& scores, const GivenStage* queries, const GivenStage* keys,
                       bool has_scale) {
  const Stage done = hides_some(scores) ? Stage::masked_scores : Stage::scaled_scores;
  const auto factor = queries && keys ? factor_between(scores, *queries, *keys) : std::nullopt;
  if (factor && std::abs(*factor - 1) <= same_factor) {
    const auto d_head = static_cast<double>(queries->matrices.front().n_cols());
    return {Stage::scores, 1 / std::sqrt(d_head), "the scores are Q·Kᵀ, not scaled yet"};
  }
  if (factor)
    return {done,
            {},
            "the scores are scaled already: Q·Kᵀ × " + text::number_text(std::round(*factor * 1e4) / 1e4)};
  if (queries && keys)
    return {done, {}, "the scores, which are not Q·Kᵀ times a number, are scaled already", true};
  if (has_scale) return {Stage::scores, {}, "the scores are still to be scaled", true};
  return {done, {}, "the scores are scaled already", true};
}

}  // namespace core::importing
