#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "core/model/full_model.hpp"
#include "core/model/matrix.hpp"

namespace core::transformer {

/// What is measured of a head: its weight on keys of a kind, the entropy of a row, the distance of its keys.
enum class HeadMeasure { previous, first, itself, same_token, induction, entropy, distance };
constexpr std::size_t n_head_measures = 7;

/// A value for each measure.
template <class Value>
using PerMeasure = std::array<Value, n_head_measures>;

/// Row of the table of measures.
struct HeadMeasureInfo {
  HeadMeasure measure;
  const char* name;   ///< "previous_token"
  const char* title;  ///< "previous token"
  const char* about;  ///< one sentence without a dot
};
const PerMeasure<HeadMeasureInfo>& head_measures();

/// The earlier positions of the token of each query of a text.
class TokenRepeats {
 public:
  explicit TokenRepeats(const std::vector<std::size_t>& ids);
  std::size_t n_tokens() const { return before_.size(); }
  const std::vector<std::size_t>& before(std::size_t query) const { return before_[query]; }
  /// Returns over how many queries each measure is a mean.
  PerMeasure<std::size_t> counts() const;

 private:
  std::vector<std::vector<std::size_t>> before_;
};

/// Returns the sum of each measure over the queries of a text, from the weights of a head on it, n_tokens ×
/// n_tokens, a query per row.
PerMeasure<double> measure_sums(const RowsView& weights, const TokenRepeats& repeats);

/// Returns the means as roles; of no queries 0 or nothing.
HeadRoles roles_of(const PerMeasure<double>& sums, const PerMeasure<std::size_t>& counts);

}  // namespace core::transformer
