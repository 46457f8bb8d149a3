#pragma once

#include <armadillo>
#include <memory>
#include <optional>

namespace core::attention {

/// A matrix with the behaviour of a value whose copies share their numbers until one of them is edited.
///
/// It lets a Model be copied for every undo step at the price of what the step changed.
class SharedMatrix {
 public:
  SharedMatrix();
  SharedMatrix(arma::mat numbers);  // NOLINT(google-explicit-constructor): a matrix is a shared matrix

  operator const arma::mat&() const { return block_->numbers; }  // NOLINT(google-explicit-constructor)
  const arma::mat& operator*() const { return block_->numbers; }
  const arma::mat* operator->() const { return &block_->numbers; }

  /// The numbers to write to; copied first when another value shares them.
  arma::mat& edit();

  /// Sets one number; copied first likewise, and the copy then knows in which cell it differs from its
  /// original.
  void set(std::size_t row, std::size_t column, double number);

  /// Whether both share one block of memory, which costs nothing to ask.
  bool shares_with(const SharedMatrix& other) const { return block_ == other.block_; }

  /// Same shape and same bits: -0 differs from 0, and a NaN equals itself.
  friend bool operator==(const SharedMatrix& a, const SharedMatrix& b);

  struct Cell {
    std::size_t row = 0, column = 0;
  };
  /// The one cell in which two matrices can differ, when one was made of the other by set(); costs nothing to
  /// ask.
  friend std::optional<Cell> known_difference(const SharedMatrix& a, const SharedMatrix& b);

 private:
  struct Block {
    arma::mat numbers;
    unsigned version = 0;  // counts edits in place
    std::weak_ptr<const Block> original = {};
    unsigned original_version = 0;
    Cell cell = {};
  };
  static bool was_set_from(const Block& copy, const std::shared_ptr<Block>& original);

  std::shared_ptr<Block> block_;
};

}  // namespace core::attention
