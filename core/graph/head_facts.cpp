#include "core/graph/head_facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "core/base/find.hpp"

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

/// A row of weights, and itself divided by its sum, with its entropy then; empty when it is no distribution.
struct Row {
  arma::rowvec weights, shares;
  double entropy_bits = 0;
  bool is_distribution() const { return !shares.is_empty(); }
};

Row row_of(const StageMatrix& weights, std::size_t i) {
  Row row{weights.row(i), {}};
  double sum = 0;
  bool sound = true;
  for (const double w : row.weights) {
    sum += w;
    sound = sound && w >= 0;
  }
  if (!sound || !(sum > 0) || !std::isfinite(sum)) return row;
  row.shares = row.weights * (1 / sum);
  for (const double p : row.shares) row.entropy_bits += surprise(p);
  return row;
}

/// The Jensen–Shannon divergence of two distributions, in bits.
double divergence(const Row& a, const Row& b) {
  double middle_bits = 0;
  for (std::size_t j = 0; j < a.shares.n_elem; ++j) middle_bits += surprise((a.shares[j] + b.shares[j]) / 2);
  return std::clamp(middle_bits - (a.entropy_bits + b.entropy_bits) / 2, 0.0, 1.0);
}

}  // namespace

HeadFacts head_facts(const StageMatrix& weights, std::span<const std::string> tokens,
                     const core::Token& token) {
  Mean entropy, itself, previous, two_or_three, first, same;
  std::map<std::string_view, std::vector<std::size_t>> seen;
  const bool square = weights.n_rows() == weights.n_cols();
  for (std::size_t i = 0; i < weights.n_rows() && token.goes_on(); ++i) {
    std::vector<std::size_t>& earlier = seen[tokens[i]];
    const Row row = row_of(weights, i);
    const arma::rowvec& w = row.weights;
    if (row.is_distribution()) {
      entropy.add(row.entropy_bits);
      if (!square) continue;  // which key is a token's own is not known
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

std::span<const HeadFigureInfo> head_figures() {
  return figures;
}

const HeadFigureInfo& info(HeadFigure figure) {
  return figures[static_cast<std::size_t>(figure)];
}

const HeadFigureInfo* find_head_figure(std::string_view name) {
  return find_by(figures, name, &HeadFigureInfo::name);
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

arma::mat likeness_of_heads(const Trace& trace, const core::Token& token) {
  const std::size_t n = trace.heads.size(), n_rows = n > 0 ? trace.heads.front().weights.n_rows() : 0;
  std::vector<Mean> divergences(n * n);
  for (std::size_t i = 0; i < n_rows && token.goes_on(); ++i) {
    std::vector<Row> rows;
    for (const HeadTrace& head : trace.heads) rows.push_back(row_of(head.weights, i));
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
