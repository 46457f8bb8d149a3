#include "core/attention/fast/heads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace core::attention::fast {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::size_t rounded_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

void fill(Buffer& buffer, double number) {
  std::fill_n(buffer.data(), buffer.size(), number);
}

void work_out_scores(Heads& all, std::size_t h, std::size_t first, std::size_t end) {
  const std::size_t* ends = all.visibility.ends().data() + first;
  if (all.uniform) {
    for (std::size_t i = first; i < end; ++i) std::fill_n(all.scores(h, i), ends[i - first], 0.0);
  } else {
    all.kernels->products({all.query(h, first), all.d_head, all.heads[h].key_panels.data(), all.d_head,
                           all.scale, ends, all.scores(h, first), all.row_stride, end - first});
  }
  for (std::size_t i = first; i < end; ++i)
    for (const std::size_t j : all.visibility.hidden(i)) all.scores(h, i)[j] = -infinity;
}

bool work_out_weights(Heads& all, std::size_t h, std::size_t i) {
  Head& head = all.heads[h];
  const std::size_t end = all.visibility.ends()[i];
  head.losses[i] = 0;
  if (end == 0) {  // 0/0 by the formula, or zeros
    std::fill_n(all.exponentials(h, i), all.n_tokens, all.empty_rows == EmptyRows::zeros ? 0 : nan);
    head.largest[i] = -infinity;
    head.sums[i] = head.factors[i] = 1;
    return true;
  }
  const RowSums row = all.kernels->softmax(all.scores(h, i), all.exponentials(h, i), end);
  head.largest[i] = row.largest;
  head.sums[i] = row.sum;
  head.factors[i] = 1 / row.sum;
  return std::isfinite(row.sum) && std::isfinite(row.largest);
}

/// Rows of weights after dropout, still without the factor of the row; its own factor is left to the caller.
std::vector<double> dropped(Heads& all, std::size_t h, std::size_t first, std::size_t end) {
  std::vector<double> rows((end - first) * all.row_stride, 0);
  for (std::size_t i = first; i < end; ++i) {
    const double* from = all.exponentials(h, i);
    double* to = rows.data() + (i - first) * all.row_stride;
    for (std::size_t j = 0; j < all.visibility.ends()[i]; ++j)
      to[j] = all.kept[(h * all.n_tokens + i) * all.n_tokens + j] ? from[j] : 0;
  }
  return rows;
}

void work_out_contexts(Heads& all, std::size_t h, std::size_t first, std::size_t end) {
  const Head& head = all.heads[h];
  const std::size_t* ends = all.visibility.ends().data() + first;
  ProductBlock block{all.exponentials(h, first),
                     all.row_stride,
                     ends,
                     head.factors.data() + first,
                     all.value(h, 0),
                     all.value_stride,
                     all.d_head,
                     all.context(h, first),
                     all.d_out,
                     end - first};
  if (all.kept.empty()) {
    all.kernels->contexts(block);
  } else {
    const std::vector<double> weights = dropped(all, h, first, end);
    std::vector<double> factors(head.factors.begin() + std::ptrdiff_t(first),
                                head.factors.begin() + std::ptrdiff_t(end));
    for (double& factor : factors) factor *= all.survivor_factor;
    block.weights = weights.data();
    block.factors = factors.data();
    all.kernels->contexts(block);
  }
  for (std::size_t i = first; i < end; ++i)
    if (ends[i - first] == 0)
      std::fill_n(all.context(h, i), all.d_head, all.empty_rows == EmptyRows::zeros ? 0 : nan);
}

}  // namespace

bool Heads::same_shape(const Model& model) const {
  return n_tokens == model.n_tokens() && d_out == model.d_out() && heads.size() == model.n_heads;
}

void Heads::allocate(const Model& model) {
  heads.clear();  // before the new ones are asked for: there may not be room for both
  n_tokens = model.n_tokens();
  d_head = model.d_head();
  d_out = model.d_out();
  row_stride = rounded_up(n_tokens, 8);
  value_stride = rounded_up(d_head, kernels->lanes);
  contexts = Buffer(n_tokens * d_out);
  heads.resize(model.n_heads);
  for (Head& head : heads) {
    head.queries = Buffer(n_tokens * d_head);
    head.key_panels = Buffer(rounded_up(n_tokens, kernels->panel_width) * d_head);
    head.values = Buffer(n_tokens * value_stride);
    head.scores = Buffer(n_tokens * row_stride);
    head.exponentials = Buffer(n_tokens * row_stride);
    fill(head.key_panels, 0);
    fill(head.values, 0);
    for (auto* numbers : {&head.largest, &head.sums, &head.factors}) numbers->assign(n_tokens, 1);
    head.losses.assign(n_tokens, 0);
  }
}

bool work_out(Heads& all, std::size_t h, std::size_t first, std::size_t end, From from) {
  bool finite = true;
  if (from == From::queries) work_out_scores(all, h, first, end);
  if (from != From::weights)
    for (std::size_t i = first; i < end; ++i) finite = work_out_weights(all, h, i) && finite;
  work_out_contexts(all, h, first, end);
  return finite;
}

void hide_row(Heads& all, std::size_t h, std::size_t row) {
  std::fill_n(all.scores(h, row), all.row_stride, -infinity);
  std::fill_n(all.exponentials(h, row), all.row_stride, 0.0);
}

}  // namespace core::attention::fast
