#include "core/attention/shared_matrix.hpp"

#include <cstring>
#include <utility>

namespace core::attention {

SharedMatrix::SharedMatrix() : block_(std::make_shared<Block>()) {}

SharedMatrix::SharedMatrix(arma::mat numbers)
    : block_(std::make_shared<Block>(Block{.numbers = std::move(numbers)})) {}

arma::mat& SharedMatrix::edit() {
  if (block_.use_count() > 1) block_ = std::make_shared<Block>(Block{.numbers = block_->numbers});
  ++block_->version;
  block_->original.reset();
  return block_->numbers;
}

void SharedMatrix::set(std::size_t row, std::size_t column, double number) {
  const bool copied = block_.use_count() > 1;
  const std::shared_ptr<Block> original = copied ? block_ : nullptr;
  edit()(row, column) = number;
  if (!copied) return;
  block_->original = original;
  block_->original_version = original->version;
  block_->cell = {row, column};
}

bool SharedMatrix::was_set_from(const Block& copy, const std::shared_ptr<Block>& original) {
  return copy.original.lock() == original && copy.original_version == original->version;
}

std::optional<SharedMatrix::Cell> known_difference(const SharedMatrix& a, const SharedMatrix& b) {
  if (SharedMatrix::was_set_from(*b.block_, a.block_)) return b.block_->cell;
  if (SharedMatrix::was_set_from(*a.block_, b.block_)) return a.block_->cell;
  return std::nullopt;
}

bool operator==(const SharedMatrix& a, const SharedMatrix& b) {
  if (a.shares_with(b)) return true;
  if (arma::size(*a) != arma::size(*b)) return false;
  return a->n_elem == 0 || std::memcmp(a->memptr(), b->memptr(), a->n_elem * sizeof(double)) == 0;
}

}  // namespace core::attention
