#include "core/attention/shared_matrix.hpp"

#include <cstring>
#include <utility>

namespace core::attention {

SharedMatrix::SharedMatrix() : numbers_(std::make_shared<arma::mat>()) {}

SharedMatrix::SharedMatrix(arma::mat numbers) : numbers_(std::make_shared<arma::mat>(std::move(numbers))) {}

arma::mat& SharedMatrix::edit() {
  if (numbers_.use_count() > 1) numbers_ = std::make_shared<arma::mat>(*numbers_);
  return *numbers_;
}

bool operator==(const SharedMatrix& a, const SharedMatrix& b) {
  if (a.shares_with(b)) return true;
  if (arma::size(*a) != arma::size(*b)) return false;
  return a->n_elem == 0 || std::memcmp(a->memptr(), b->memptr(), a->n_elem * sizeof(double)) == 0;
}

}  // namespace core::attention
