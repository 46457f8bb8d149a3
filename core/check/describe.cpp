#include "core/check/describe.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/number.hpp"
#include "core/check/pattern.hpp"

namespace core::check {
namespace {

double farthest(const arma::mat& theirs, const arma::mat& ours) {
  double most = 0;
  for (arma::uword k = 0; k < ours.n_elem; ++k) most = std::max(most, abs_difference(theirs[k], ours[k]));
  return most;
}

}  // namespace

std::string pattern_in(const Theirs& theirs, const Reading& reading, const Computed& right,
                       const Tolerance& tolerance) {
  const attention::StageInfo& stage = attention::info(reading.stage);
  const std::size_t worst = agreement(theirs, reading, right, tolerance).sequence;
  const double more = is_exact(theirs.rounding) ? 0 : right.float32_error(reading);
  PatternOf of;
  of.n_heads = reading.joined || reading.layout.is_mean ? 1
               : stage.per_head                         ? right.model().n_heads
                                                        : reading.n_heads;
  of.columns_are_keys = stage.columns == attention::Columns::tokens;
  of.allowed = [&](double ours) {
    return tolerance.absolute + tolerance.relative * std::abs(ours) + float32_sums * more +
           storing_error(theirs.rounding, ours);
  };
  std::vector<HeadDifference> heads;
  for_each_part(reading, right, [&](std::size_t s, std::size_t h) {
    const std::size_t sequence = reading.first_sequence + s, head = head_of(reading, right.model(), h);
    if (sequence != worst) return;
    arma::mat numbers(reading.n_rows, reading.n_columns);
    for (std::size_t i = 0; i < numbers.n_rows; ++i)
      for (std::size_t j = 0; j < numbers.n_cols; ++j)
        numbers(i, j) = theirs.tensor.numbers[reading.at(s, h, i, j)];
    arma::mat nearest;
    for (arma::mat& form : right.forms(reading, sequence, head))
      if (nearest.is_empty() || farthest(numbers, form) < farthest(numbers, nearest))
        nearest = std::move(form);
    if (!reading.of_groups) return heads.push_back({head, std::move(numbers), std::move(nearest)});
    for (std::size_t each = 0; each < right.model().n_heads; ++each)  // that shares it
      if (matrix_of_head(right.model(), reading.stage, each) == h) heads.push_back({each, numbers, nearest});
  });
  return heads.empty() ? "" : pattern_of(heads, of);
}

}  // namespace core::check
