#include "core/model/head_measures.hpp"

#include <cmath>
#include <map>

namespace core::transformer {

const PerMeasure<HeadMeasureInfo>& head_measures() {
  static constexpr PerMeasure<HeadMeasureInfo> rows{{
      {HeadMeasure::previous, "previous_token", "previous token",
       "Mean weight on the previous token, over queries from the second on"},
      {HeadMeasure::first, "first_token", "first token",
       "Mean weight on the first token, over queries from the second on"},
      {HeadMeasure::itself, "itself", "itself", "Mean weight on the query's own position"},
      {HeadMeasure::same_token, "same_token", "earlier same token",
       "Mean weight on earlier copies of the query's token, over queries that have one"},
      {HeadMeasure::induction, "induction", "induction",
       "Mean weight on the tokens after those copies, over the same queries"},
      {HeadMeasure::entropy, "entropy_bits", "entropy", "Mean entropy of a row of weights, in bits"},
      {HeadMeasure::distance, "distance", "distance",
       "Mean distance of query and key in tokens, weighted by the weights"},
  }};
  return rows;
}

TokenRepeats::TokenRepeats(const std::vector<std::size_t>& ids) : before_(ids.size()) {
  std::map<std::size_t, std::vector<std::size_t>> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto& places = seen[ids[i]];
    before_[i] = places;
    places.push_back(i);
  }
}

PerMeasure<std::size_t> TokenRepeats::counts() const {
  const std::size_t n = n_tokens(), n_later = n > 0 ? n - 1 : 0;
  std::size_t n_again = 0;
  for (const auto& places : before_) n_again += !places.empty();
  return {n_later, n_later, n, n_again, n_again, n, n};
}

PerMeasure<double> measure_sums(const RowsView& weights, const TokenRepeats& repeats) {
  double previous = 0, first = 0, itself = 0, same = 0, induction = 0, bits = 0, distance = 0;
  for (std::size_t i = 0; i < repeats.n_tokens(); ++i) {
    const float* const row = weights.row(i);
    if (i > 0) previous += row[i - 1], first += row[0];
    itself += row[i];
    for (std::size_t j = 0; j < weights.width; ++j) {
      const double weight = row[j];
      if (!(weight > 0)) continue;  // as of masked keys
      bits -= weight * std::log2(weight);
      distance += weight * static_cast<double>(i > j ? i - j : j - i);
    }
    for (const std::size_t j : repeats.before(i)) {
      same += row[j];
      if (j + 1 != i) induction += row[j + 1];
    }
  }
  return {previous, first, itself, same, induction, bits, distance};
}

HeadRoles roles_of(const PerMeasure<double>& sums, const PerMeasure<std::size_t>& counts) {
  const auto mean = [&](HeadMeasure measure) -> std::optional<double> {
    const auto k = static_cast<std::size_t>(measure);
    if (counts[k] == 0) return std::nullopt;
    return sums[k] / static_cast<double>(counts[k]);
  };
  return {mean(HeadMeasure::previous).value_or(0),
          mean(HeadMeasure::first).value_or(0),
          mean(HeadMeasure::itself).value_or(0),
          mean(HeadMeasure::same_token),
          mean(HeadMeasure::induction),
          mean(HeadMeasure::entropy).value_or(0)};
}

HeadRoles roles_of(const RowsView& weights, const std::vector<std::size_t>& ids) {
  const TokenRepeats repeats(ids);
  return roles_of(measure_sums(weights, repeats), repeats.counts());
}

}  // namespace core::transformer
