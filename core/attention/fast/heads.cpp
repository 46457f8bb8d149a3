#include "core/attention/fast/heads.hpp"

#include <algorithm>
#include <array>
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

/// A row's largest, its sum and its exponentials up to its end; false when one of them is not finite.
bool work_out_exponentials(Heads& all, std::size_t h, std::size_t i, double* to) {
  Head& head = all.heads[h];
  const std::size_t end = all.visibility.ends()[i];
  head.losses[i] = 0;
  if (end == 0) {  // all scores are −inf: 0/0 by the formula, or zeros
    head.largest[i] = all.empty_rows == EmptyRows::zeros ? 0 : -infinity;
    head.sums[i] = 1;
    return true;
  }
  const RowSums row = all.kernels->softmax(all.scores(h, i), to, end);
  head.largest[i] = row.largest;
  head.sums[i] = row.sum;
  return std::isfinite(row.sum) && std::isfinite(row.largest);
}

/// Contexts of rows first … end − 1, of their exponentials.
void work_out_contexts(Heads& all, std::size_t h, std::size_t first, std::size_t end, double* exponentials) {
  const std::size_t* ends = all.visibility.ends().data() + first;
  for (std::size_t i = first; i < end && !all.kept.bits.empty(); ++i)
    all.kept.bits.each_no(all.kept.first + (h * all.n_tokens + i) * all.n_tokens, ends[i - first],
                          [row = exponentials + (i - first) * all.row_stride](std::size_t j) { row[j] = 0; });
  all.kernels->contexts({exponentials, all.row_stride, ends, all.heads[h].sums.data() + first,
                         all.context_factor(), all.value(h, 0), all.value_stride, all.d_head,
                         all.context(h, first), all.d_out, end - first});
  for (std::size_t i = first; i < end; ++i)
    if (ends[i - first] == 0)
      std::fill_n(all.context(h, i), all.d_head, all.empty_rows == EmptyRows::zeros ? 0 : nan);
}

}  // namespace

bool Heads::same_shape(const Model& model) const {
  return n_tokens == model.n_tokens() && d_out == model.d_out() && heads.size() == model.n_heads;
}

double Heads::longest_key_squared(std::size_t h) const {
  const std::size_t width = kernels->panel_width;
  const double* numbers = heads[h].key_panels.data();
  double most = 0;
  for (std::size_t first = 0; first < n_tokens; first += width) {  // beyond the last key a panel holds zeros
    std::array<double, Kernels::widest_panel> sums{};
    for (std::size_t c = 0; c < d_head; ++c, numbers += width)
      for (std::size_t j = 0; j < width; ++j) sums[j] += numbers[j] * numbers[j];
    most = std::max(most, *std::max_element(sums.begin(), sums.end()));
  }
  return most;
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
    fill(head.key_panels, 0);
    fill(head.values, 0);
    for (auto* numbers : {&head.largest, &head.sums}) numbers->assign(n_tokens, 1);
    head.losses.assign(n_tokens, 0);
  }
}

void row_of_exponentials(Heads& all, std::size_t h, std::size_t i, std::size_t n, double* exponentials,
                         std::size_t first_key) {
  const double* const scores = all.scores(h, i) + first_key;
  const double largest = all.heads[h].largest[i];
  for (std::size_t j = 0; j < n; ++j) exponentials[j] = scores[j] - largest;
  all.kernels->exponentials(exponentials, n);
}

bool work_out(Heads& all, std::size_t h, std::size_t first, std::size_t end, From from) {
  if (from == From::queries) work_out_scores(all, h, first, end);
  const std::size_t* ends = all.visibility.ends().data();
  const std::size_t filled = *std::max_element(ends + first, ends + end);
  Scratch::Borrowed exponentials(all.rows, (end - first) * all.row_stride);
  bool finite = true;
  for (std::size_t i = first; i < end; ++i) {
    double* const row = exponentials.data() + (i - first) * all.row_stride;
    std::fill(row + ends[i], row + filled, 0.0);
    if (from == From::weights)
      row_of_exponentials(all, h, i, ends[i], row);
    else
      finite = work_out_exponentials(all, h, i, row) && finite;
  }
  work_out_contexts(all, h, first, end, exponentials.data());
  return finite;
}

void hide_row(Heads& all, std::size_t h, std::size_t row) {
  std::fill_n(all.scores(h, row), all.row_stride, -infinity);
}

}  // namespace core::attention::fast
