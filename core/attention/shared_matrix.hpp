#pragma once

#include <armadillo>
#include <memory>

namespace core::attention {

/// A matrix with the behaviour of a value whose copies share their numbers until one of them is edited.
///
/// It lets a Model be copied for every undo step at the price of what the step changed.
class SharedMatrix {
 public:
  SharedMatrix();
  SharedMatrix(arma::mat numbers);  // NOLINT(google-explicit-constructor): a matrix is a shared matrix

  operator const arma::mat&() const { return *numbers_; }  // NOLINT(google-explicit-constructor)
  const arma::mat& operator*() const { return *numbers_; }
  const arma::mat* operator->() const { return numbers_.get(); }

  /// The numbers to write to; copied first when another value shares them.
  arma::mat& edit();

  /// Whether both share one block of memory, which costs nothing to ask.
  bool shares_with(const SharedMatrix& other) const { return numbers_ == other.numbers_; }

  /// Same shape and same bits: -0 differs from 0, and a NaN equals itself.
  friend bool operator==(const SharedMatrix& a, const SharedMatrix& b);

 private:
  std::shared_ptr<arma::mat> numbers_;
};

}  // namespace core::attention
