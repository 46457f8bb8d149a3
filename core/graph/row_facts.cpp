#include "core/graph/row_facts.hpp"

#include <cmath>

namespace core::attention {

RowFacts row_facts(const arma::rowvec& numbers) {
  RowFacts facts;
  bool first = true;
  for (std::size_t j = 0; j < numbers.n_elem; ++j) {
    const double v = numbers[j];
    if (!std::isfinite(v)) continue;
    facts.sum += v;
    if (first || v < facts.smallest) facts.smallest = v;
    if (first || v > facts.largest) facts.largest = v, facts.where = j;
    first = false;
  }
  if (!(facts.sum > 0) || facts.smallest < 0) return facts;
  for (std::size_t j = 0; j < numbers.n_elem; ++j) {
    const double p = numbers[j] / facts.sum;
    if (std::isfinite(p) && p > 0) facts.entropy_bits -= p * std::log2(p);
  }
  facts.effective_count = std::exp2(facts.entropy_bits);
  return facts;
}

RowFacts row_facts(const arma::mat& numbers, std::size_t row) {
  return row_facts(arma::rowvec(numbers.row(row)));
}
RowFacts row_facts(const StageMatrix& numbers, std::size_t row) {
  return row_facts(numbers.row(row));
}

}  // namespace core::attention
