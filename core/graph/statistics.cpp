#include "core/graph/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/difference.hpp"

namespace core::attention {

RowStatistics row_statistics(const arma::rowvec& numbers) {
  RowStatistics facts;
  bool first = true;
  for (std::size_t j = 0; j < numbers.n_elem; ++j) {
    const double v = numbers[j];
    if (!std::isfinite(v)) continue;
    facts.sum += v;
    if (first || v < facts.smallest) facts.smallest = v;
    if (first || v > facts.largest) facts.largest = v, facts.argmax = j;
    first = false;
  }
  if (!(facts.sum > 0) || facts.smallest < 0) return facts;
  for (std::size_t j = 0; j < numbers.n_elem; ++j) {
    const double p = numbers[j] / facts.sum;
    if (std::isfinite(p) && p > 0) facts.entropy_bits -= p * std::log2(p);
  }
  facts.effective_count = std::exp2(facts.entropy_bits);
  return facts;
}

RowStatistics row_statistics(const arma::mat& numbers, std::size_t row) {
  return row_statistics(arma::rowvec(numbers.row(row)));
}
RowStatistics row_statistics(const StageMatrix& numbers, std::size_t row) {
  return row_statistics(numbers.row(row));
}

namespace {

constexpr std::array metrics{
    HeadMetricInfo{HeadMetric::entropy, "entropy", "entropy", &HeadStatistics::entropy_bits, true},
    HeadMetricInfo{HeadMetric::itself, "itself", "itself", &HeadStatistics::itself, false},
    HeadMetricInfo{HeadMetric::previous, "previous", "previous", &HeadStatistics::previous, false},
    HeadMetricInfo{HeadMetric::two_or_three_back, "two_or_three_back", "2–3 tokens back",
                   &HeadStatistics::two_or_three_back, false},
    HeadMetricInfo{HeadMetric::first, "first", "first token", &HeadStatistics::first, false},
    HeadMetricInfo{HeadMetric::same_word, "same_word", "earlier same token", &HeadStatistics::same_word,
                   false}};

struct Mean {
  double sum = 0;
  std::size_t count = 0;
  void add(double value) { sum += value, ++count; }
  std::optional<double> value() const {
    return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
  }
};

/// Returns −p·log2 p, 0 for 0.
double surprise(double p) {
  return p > 0 ? -p * std::log2(p) : 0;
}

/// Row of weights, the row divided by its sum, and its entropy; shares are empty if it is not a distribution.
struct WeightRow {
  arma::rowvec weights, probabilities;
  double entropy_bits = 0;
  bool is_distribution() const { return !probabilities.is_empty(); }
};

WeightRow row_of(const StageMatrix& weights, std::size_t i) {
  WeightRow row{weights.row(i), {}};
  double sum = 0;
  bool sound = true;
  for (const double w : row.weights) {
    sum += w;
    sound = sound && w >= 0;
  }
  if (!sound || !(sum > 0) || !std::isfinite(sum)) return row;
  row.probabilities = row.weights * (1 / sum);
  for (const double p : row.probabilities) row.entropy_bits += surprise(p);
  return row;
}

/// Returns the Jensen–Shannon divergence of two distributions, in bits.
double divergence(const WeightRow& a, const WeightRow& b) {
  double middle_bits = 0;
  for (std::size_t j = 0; j < a.probabilities.n_elem; ++j)
    middle_bits += surprise((a.probabilities[j] + b.probabilities[j]) / 2);
  return std::clamp(middle_bits - (a.entropy_bits + b.entropy_bits) / 2, 0.0, 1.0);
}

}  // namespace

HeadStatistics head_statistics(const StageMatrix& weights, std::span<const std::string> tokens,
                               const core::StopToken& token) {
  Mean entropy, itself, previous, two_or_three, first, same;
  std::map<std::string_view, std::vector<std::size_t>> seen;
  const bool square = weights.n_rows() == weights.n_cols();
  for (std::size_t i = 0; i < weights.n_rows() && token.should_continue(); ++i) {
    std::vector<std::size_t>& earlier = seen[tokens[i]];
    const WeightRow row = row_of(weights, i);
    const arma::rowvec& w = row.weights;
    if (row.is_distribution()) {
      entropy.add(row.entropy_bits);
      if (!square) continue;  // the token's own key is unknown
      itself.add(w[i]);
      if (i >= 1) previous.add(w[i - 1]), first.add(w[0]);
      if (i >= 2) two_or_three.add(w[i - 2] + (i >= 3 ? w[i - 3] : 0));
      const auto add = [&](double sum, std::size_t j) { return sum + w[j]; };
      if (!earlier.empty()) same.add(std::accumulate(earlier.begin(), earlier.end(), 0.0, add));
    }
    earlier.push_back(i);
  }
  return {entropy.value(),      itself.value(), previous.value(),
          two_or_three.value(), first.value(),  same.value()};
}

std::span<const HeadMetricInfo> head_metrics() {
  return metrics;
}

const HeadMetricInfo& info(HeadMetric figure) {
  return metrics[static_cast<std::size_t>(figure)];
}

const HeadMetricInfo* find_head_metric(std::string_view name) {
  return find_by(metrics, name, &HeadMetricInfo::name);
}

std::vector<std::size_t> sort_heads(HeadMetric figure, std::span<const HeadStatistics> facts) {
  const HeadMetricInfo& by = info(figure);
  std::vector<std::size_t> order(facts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto &x = facts[a].*by.value, &y = facts[b].*by.value;
    if (!x || !y) return x.has_value() && !y;
    return by.smallest_first ? *x < *y : *x > *y;
  });
  return order;
}

arma::mat head_similarity(const Trace& trace, const core::StopToken& token) {
  const std::size_t n = trace.n_heads(), n_rows = n > 0 ? trace.at(Stage::weights, 0).n_rows() : 0;
  std::vector<Mean> divergences(n * n);
  for (std::size_t i = 0; i < n_rows && token.should_continue(); ++i) {
    std::vector<WeightRow> rows;
    for (std::size_t h = 0; h < n; ++h) rows.push_back(row_of(trace.at(Stage::weights, h), i));
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = a; b < n; ++b)
        if (rows[a].is_distribution() && rows[b].is_distribution())
          divergences[a * n + b].add(divergence(rows[a], rows[b]));
  }
  arma::mat all(n, n);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a; b < n; ++b) {
      const std::optional<double> mean = divergences[a * n + b].value();
      all(a, b) = all(b, a) = mean ? 1 - *mean : arma::datum::nan;
    }
  return all;
}
}  // namespace core::attention
