#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/kernels.hpp"
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

/// Queries, keys and values: each is a projection of embeddings, or the embeddings themselves.
enum class Projected { queries, keys, values };

/// What a model does to queries and keys before they are multiplied, row by row (norms, then rotary
/// positions), and to scaled scores before the mask (a cap, then biases); by default nothing.
class Rules {
 public:
  Rules() = default;
  explicit Rules(const Model& model);
  /// Whether they are those of a model of the same sizes.
  bool fit(const Model& model) const;

  /// Whether something is done to queries and keys.
  bool prepares() const { return norm_ || rotary_; }
  /// Prepares the row of one head, or group: d_head numbers of token t, in place.
  void prepare(Projected what, std::size_t t, double* row) const;
  /// The norm alone.
  void norm(Projected what, double* row) const;

  bool caps() const { return cap_.has_value(); }
  /// Whether something is done to scores.
  bool adjusts() const { return caps() || !by_distance_.empty() || !bias_.empty(); }
  /// Scores first … end − 1 of a row, in place.
  template <class Number>
  void adjust(const Kernels<Number>& kernels, std::size_t head, std::size_t row, Number* scores,
              std::size_t first, std::size_t end) const;
  /// One scaled score with the cap, and then with all that is added.
  double capped(double scaled) const { return cap_ ? *cap_ * std::tanh(scaled / *cap_) : scaled; }
  double adjusted(std::size_t head, std::size_t row, std::size_t key, double scaled) const;
  /// What positions alone add.
  double position_bias(std::size_t head, std::size_t row, std::size_t key) const;

 private:
  const double* distances(std::size_t head, std::size_t row) const;
  const double* given(std::size_t head, std::size_t row) const;

  std::size_t n_queries_ = 0, n_keys_ = 0, d_head_ = 0, n_heads_ = 0;
  std::optional<HeadNorm> norm_;
  std::optional<positions::Rotary> rotary_;
  std::vector<positions::PairColumns> pairs_;
  std::vector<double> cosines_, sines_;  // [position from the earliest on][pair]
  std::optional<double> cap_;
  Positions positions_;
  std::vector<SharedMatrix> score_bias_;
  std::vector<std::vector<double>> by_distance_;  // [head][key − query, from the least on]
  std::vector<std::vector<double>> bias_;         // one for all heads or one each, row after row
};

}  // namespace core::attention::fast
