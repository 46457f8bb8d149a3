#include "core/attention/row_facts.hpp"

#include <cmath>

namespace core::attention {

RowFacts row_facts(const arma::mat& numbers, std::size_t row) {
  RowFacts facts;
  bool first = true;
  for (std::size_t j = 0; j < numbers.n_cols; ++j) {
    const double v = numbers(row, j);
    if (!std::isfinite(v)) continue;
    facts.sum += v;
    if (first || v < facts.smallest) facts.smallest = v;
    if (first || v > facts.largest) facts.largest = v, facts.where = j;
    first = false;
  }
  if (!(facts.sum > 0) || facts.smallest < 0) return facts;
  for (std::size_t j = 0; j < numbers.n_cols; ++j) {
    const double p = numbers(row, j) / facts.sum;
    if (std::isfinite(p) && p > 0) facts.entropy_bits -= p * std::log2(p);
  }
  facts.effective_count = std::exp2(facts.entropy_bits);
  return facts;
}

}  // namespace core::attention
