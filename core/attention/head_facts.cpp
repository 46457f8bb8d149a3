#include "core/attention/head_facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

namespace core::attention {
namespace {

constexpr std::array figures{
    HeadFigureInfo{HeadFigure::entropy, "entropy", "entropy", &HeadFacts::entropy_bits, true},
    HeadFigureInfo{HeadFigure::itself, "itself", "itself", &HeadFacts::itself, false},
    HeadFigureInfo{HeadFigure::previous, "previous", "previous", &HeadFacts::previous, false},
    HeadFigureInfo{HeadFigure::two_or_three_back, "two_or_three_back", "two or three back",
                   &HeadFacts::two_or_three_back, false},
    HeadFigureInfo{HeadFigure::first, "first", "first token", &HeadFacts::first, false},
    HeadFigureInfo{HeadFigure::same_word, "same_word", "same word before", &HeadFacts::same_word, false}};

struct Mean {
  double sum = 0;
  std::size_t count = 0;
  void add(double value) { sum += value, ++count; }
  std::optional<double> value() const {
    return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
  }
};

/// −p·log2 p, 0 for 0.
double surprise(double p) {
  return p > 0 ? -p * std::log2(p) : 0;
}

/// What a row is multiplied by to become a distribution, 0 for a row that cannot, and its entropy then.
struct Rows {
  std::vector<double> factor, entropy_bits;
  bool is_distribution(std::size_t row) const { return factor[row] > 0; }
};

Rows rows_of(const arma::mat& weights) {  // column by column, as they lie in memory
  const std::size_t n = weights.n_rows;
  std::vector<double> sum(n, 0);
  std::vector<bool> sound(n, true);
  for (std::size_t j = 0; j < weights.n_cols; ++j)
    for (std::size_t i = 0; i < n; ++i) {
      const double w = weights(i, j);
      sum[i] += w;
      if (!(w >= 0)) sound[i] = false;
    }
  Rows rows{std::vector<double>(n, 0), std::vector<double>(n, 0)};
  for (std::size_t i = 0; i < n; ++i)
    if (sound[i] && sum[i] > 0 && std::isfinite(sum[i])) rows.factor[i] = 1 / sum[i];
  for (std::size_t j = 0; j < weights.n_cols; ++j)
    for (std::size_t i = 0; i < n; ++i)
      if (rows.is_distribution(i)) rows.entropy_bits[i] += surprise(weights(i, j) * rows.factor[i]);
  return rows;
}

double likeness(const arma::mat& a, const Rows& rows_a, const arma::mat& b, const Rows& rows_b) {
  std::vector<double> middle_bits(a.n_rows, 0);
  const auto both = [&](std::size_t i) { return rows_a.is_distribution(i) && rows_b.is_distribution(i); };
  for (std::size_t j = 0; j < a.n_cols; ++j)
    for (std::size_t i = 0; i < a.n_rows; ++i)
      if (both(i)) middle_bits[i] += surprise((a(i, j) * rows_a.factor[i] + b(i, j) * rows_b.factor[i]) / 2);
  Mean divergence;
  for (std::size_t i = 0; i < a.n_rows; ++i)
    if (both(i))
      divergence.add(
          std::clamp(middle_bits[i] - (rows_a.entropy_bits[i] + rows_b.entropy_bits[i]) / 2, 0.0, 1.0));
  return divergence.count > 0 ? 1 - *divergence.value() : arma::datum::nan;
}

}  // namespace

HeadFacts head_facts(const arma::mat& weights, std::span<const std::string> tokens) {
  const Rows rows = rows_of(weights);
  Mean entropy, itself, previous, two_or_three, first, same;
  std::map<std::string_view, std::vector<std::size_t>> seen;
  for (std::size_t i = 0; i < weights.n_rows; ++i) {
    std::vector<std::size_t>& earlier = seen[tokens[i]];
    if (rows.is_distribution(i)) {
      entropy.add(rows.entropy_bits[i]);
      itself.add(weights(i, i));
      if (i >= 1) previous.add(weights(i, i - 1)), first.add(weights(i, 0));
      if (i >= 2) two_or_three.add(weights(i, i - 2) + (i >= 3 ? weights(i, i - 3) : 0));
      const auto add = [&](double sum, std::size_t j) { return sum + weights(i, j); };
      if (!earlier.empty()) same.add(std::accumulate(earlier.begin(), earlier.end(), 0.0, add));
    }
    earlier.push_back(i);
  }
  return {entropy.value(),      itself.value(), previous.value(),
          two_or_three.value(), first.value(),  same.value()};
}

std::span<const HeadFigureInfo> head_figures() {
  return figures;
}

const HeadFigureInfo& info(HeadFigure figure) {
  return figures[static_cast<std::size_t>(figure)];
}

const HeadFigureInfo* find_head_figure(std::string_view name) {
  const auto row =
      std::find_if(figures.begin(), figures.end(), [&](const HeadFigureInfo& f) { return name == f.name; });
  return row == figures.end() ? nullptr : &*row;
}

std::vector<std::size_t> heads_by(HeadFigure figure, std::span<const HeadFacts> facts) {
  const HeadFigureInfo& by = info(figure);
  std::vector<std::size_t> order(facts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto &x = facts[a].*by.value, &y = facts[b].*by.value;
    if (!x || !y) return x.has_value() && !y;
    return by.smallest_first ? *x < *y : *x > *y;
  });
  return order;
}

arma::mat likeness_of_heads(const Trace& trace) {
  const std::size_t n = trace.heads.size();
  std::vector<Rows> rows;
  for (const HeadTrace& head : trace.heads) rows.push_back(rows_of(head.weights));
  arma::mat all(n, n);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a; b < n; ++b)
      all(a, b) = all(b, a) = likeness(trace.heads[a].weights, rows[a], trace.heads[b].weights, rows[b]);
  return all;
}

}  // namespace core::attention
