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

/// Whether two numbers are the same to the last bit: -0 differs from 0, and a NaN equals itself.
inline bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// A matrix with the behaviour of a value whose copies share their numbers until one of them is edited.
///
/// It lets a Model be copied for every undo step at the price of what the step changed: a copy that set()
/// changed is the original and a short list of cells, until somebody reads all of it. Several threads may
/// read one matrix, and edit copies of it.
class SharedMatrix {
 public:
  SharedMatrix();
  SharedMatrix(arma::mat numbers);  // NOLINT(google-explicit-constructor): a matrix is a shared matrix

  // All numbers; the first reading after a set() may copy the matrix, those below do not.
  operator const arma::mat&() const;  // NOLINT(google-explicit-constructor)
  const arma::mat& operator*() const { return *this; }
  const arma::mat* operator->() const { return &**this; }

  std::size_t n_rows() const;
  std::size_t n_cols() const;
  double at(std::size_t row, std::size_t column) const;
  arma::rowvec row(std::size_t i) const;
  arma::vec column(std::size_t j) const;

  /// Whether every number is finite; found out once.
  bool is_finite() const;
  /// The largest of all numbers without their signs, 0 of none; found out once.
  double largest_magnitude() const;

  /// The numbers to write to, before anybody reads them again; copied first when another value shares them.
  arma::mat& edit();

  /// Sets one number, at a price that does not depend on the size.
  ///
  /// Throws std::out_of_range when there is no such cell.
  void set(std::size_t row, std::size_t column, double number);

  /// Whether both share one block of memory, which costs nothing to ask.
  bool shares_with(const SharedMatrix& other) const { return block_ == other.block_; }

  /// Same shape and same bits: -0 differs from 0, and a NaN equals itself.
  friend bool operator==(const SharedMatrix& a, const SharedMatrix& b);

  struct Cell {
    std::size_t row = 0, column = 0;
    friend auto operator<=>(const Cell&, const Cell&) = default;
  };
  /// The one cell in which two matrices of one origin differ; nothing when they differ in none or in several,
  /// or when it is not known without comparing all numbers.
  friend std::optional<Cell> known_difference(const SharedMatrix& a, const SharedMatrix& b);

  /// Calls visit for each piece of memory that it holds now, perhaps together with others, and its bytes.
  void visit_memory(const std::function<void(const void*, std::size_t)>& visit) const;

 private:
  struct Block;
  struct Version;
  static std::optional<std::vector<Cell>> known_differences(const SharedMatrix& a, const SharedMatrix& b);

  std::shared_ptr<Block> block_;
};

}  // namespace core::attention
