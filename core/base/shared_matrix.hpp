#pragma once

#include <armadillo>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace core::attention {

/// Returns whether two numbers have the same bits: -0 differs from 0, and a NaN equals itself.
inline bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Matrix with value semantics whose copies share their numbers until one of them is edited.
///
/// An undo step can copy a Model at the cost of its changes: after set(), a copy is the original and a short
/// list of cells, until all of it is read. Several threads may read one matrix, and edit copies of it.
class SharedMatrix {
 public:
  SharedMatrix();
  SharedMatrix(arma::mat numbers);  // NOLINT(google-explicit-constructor): a matrix is a shared matrix

  // All numbers; the first read after a set() may copy the matrix, unlike the functions below.
  operator const arma::mat&() const;  // NOLINT(google-explicit-constructor)
  const arma::mat& operator*() const { return *this; }
  const arma::mat* operator->() const { return &**this; }

  std::size_t n_rows() const;
  std::size_t n_cols() const;
  double at(std::size_t row, std::size_t column) const;
  arma::rowvec row(std::size_t i) const;
  arma::vec column(std::size_t j) const;

  /// Returns whether every number is finite; computed once.
  bool is_finite() const;
  /// Returns the largest magnitude, 0 if empty; computed once.
  double largest_magnitude() const;

  /// Returns the numbers for writing, until the next read; copied first if another value shares them.
  arma::mat& edit();

  /// Sets one number; the cost does not depend on the size, except for a copy every 64 changes.
  ///
  /// Throws std::out_of_range if there is no such cell.
  void set(std::size_t row, std::size_t column, double number);

  /// Returns whether both share one block of memory, at no cost.
  bool shares_with(const SharedMatrix& other) const { return storage_ == other.storage_; }

  /// Compares shape and bits: -0 differs from 0, and a NaN equals itself.
  friend bool operator==(const SharedMatrix& a, const SharedMatrix& b);

  struct MatrixCell {
    std::size_t row = 0, column = 0;
    friend auto operator<=>(const MatrixCell&, const MatrixCell&) = default;
  };
  /// Returns the only cell in which two matrices of one origin differ; nothing if none or several do, or if
  /// it is not known without comparing all numbers.
  friend std::optional<MatrixCell> known_difference(const SharedMatrix& a, const SharedMatrix& b);

  /// Calls visit with the address and bytes of each block of memory that it holds, shared ones included.
  void visit_memory(const std::function<void(const void*, std::size_t)>& visit) const;

 private:
  struct Storage;
  struct StorageView;
  static std::optional<std::vector<MatrixCell>> known_differences(const SharedMatrix& a,
                                                                  const SharedMatrix& b);

  std::shared_ptr<Storage> storage_;
};

}  // namespace core::attention
