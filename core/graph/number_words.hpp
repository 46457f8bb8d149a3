#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.hpp"
#include "core/graph/stage.hpp"

namespace core::graph {

/// Numbers of a model in words: sizes, the scale and the like have names.
class NumberWords {
 public:
  NumberWords(const attention::Model& model, attention::Precision precision);

  /// Returns the relative accuracy of fitted numbers, and how many digits of them are shown.
  double tolerance() const { return tolerance_; }
  int n_digits() const { return n_digits_; }

  /// Returns "0.353553 = 1/√d_head"; if is_plain, a number of two digits has no name.
  std::string number(double f, bool is_plain = true) const;
  /// Returns 1 for a factor that people write (with a known name, whole, or of two digits), 2 for others.
  int rank_of_factor(double f) const;
  /// Returns "[0.5, 0.25, …]".
  std::string list(const std::vector<double>& numbers, std::size_t max_shown = 12) const;
  /// Returns "the bias is missing", "… is added twice", "… counts 1.5 times".
  std::string factor(double f, const std::string& what) const;

 private:
  std::string known_number(double f) const;
  bool has_two_digits(double f) const;

  double d_, d_value_, d_model_, n_heads_, n_kv_heads_, scale_, cap_;
  positions::Scaling scaling_;
  double tolerance_;
  int n_digits_;
};

/// Returns a number with at most n significant digits.
std::string digits(double f, int n = 6);
/// Returns "0, 3, 5, …".
std::string list_of(const std::vector<std::size_t>& numbers, std::size_t max_shown = 16);
/// Returns "4 behind", "2 ahead".
std::string shift_words(double n);
/// Returns "rotated queries".
std::string words_of(attention::Stage stage);
/// Returns "queries and keys" for "qk", "the query and key projections".
std::string stages_of_sides(std::string_view sides);
std::string projections_of_sides(std::string_view sides);

// Orders of heads or columns: [place]: the one that is there.

/// Returns 0, 1, …, n − 1.
std::vector<std::size_t> index_order(std::size_t n);
/// Returns all shifts, the reverse, the interleavings and the swap of neighbors of n items.
std::vector<std::vector<std::size_t>> usual_orders(std::size_t n);
/// Describes an order, as a rule if possible: "every head is head +1 (cyclic)".
std::string order_words(const std::vector<std::size_t>& order, const std::string& what);

}  // namespace core::graph
