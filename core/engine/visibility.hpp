#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/graph/model.hpp"

namespace core::attention::fast {

/// Which keys each query may see, row by row: those from a first to before an end, but for single ones that
/// are hidden.
class Visibility {
 public:
  Visibility() = default;
  Visibility(const Model& model, std::size_t sequence);

  /// [row]: one past the last visible key, 0 when there is none.
  const std::vector<std::size_t>& ends() const { return ends_; }
  /// [row]: the first visible key, 0 when there is none.
  const std::vector<std::size_t>& firsts() const { return firsts_; }
  /// The least first key of rows first … end − 1 that see any, rounded down to a multiple of the unit.
  std::size_t first_of(std::size_t first, std::size_t end, std::size_t unit) const;
  /// Keys from the first to the end of a row, on average.
  std::size_t mean_width() const;
  /// The hidden keys between the first and the end of a row, ascending.
  const std::vector<std::uint32_t>& hidden(std::size_t row) const;
  bool sees(std::size_t row, std::size_t key) const;
  /// The rows that see a key, ascending.
  std::vector<std::size_t> rows_that_see(std::size_t key) const;
  friend bool operator==(const Visibility&, const Visibility&) = default;

 private:
  void put_range(const Model& model, std::size_t sequence, std::size_t row);
  void put_keys(std::size_t row, const std::vector<char>& visible);

  std::vector<std::size_t> firsts_, ends_;
  std::vector<std::pair<std::size_t, std::vector<std::uint32_t>>> hidden_;  // rows that have any, ascending
};

}  // namespace core::attention::fast
