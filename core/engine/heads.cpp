#include "core/engine/heads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>

#include "core/system/process.hpp"

namespace core::attention::fast {
namespace {

constexpr std::size_t cache_line = 64, large_page = std::size_t{2} << 20;

}  // namespace

Buffer::Buffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  const std::size_t bytes = size * sizeof(double), unit = bytes < large_page ? cache_line : large_page;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  if (unit == large_page) system::prefer_large_pages(memory, rounded);
  numbers_.reset(static_cast<double*>(memory));
}

void Buffer::Free::operator()(double* numbers) const {
  std::free(numbers);
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::size_t rounded_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

void fill(Buffer& buffer, double number) {
  std::fill_n(buffer.data(), buffer.size(), number);
}

/// The ends of rows first … end − 1, counted from a key on.
class EndsFrom {
 public:
  EndsFrom(const Visibility& v, std::size_t first, std::size_t end, std::size_t from)
      : ends_(v.ends().data() + first) {
    if (from == 0) return;
    counted_.assign(ends_, ends_ + (end - first));
    for (std::size_t& each : counted_) each -= std::min(each, from);
    ends_ = counted_.data();
  }
  EndsFrom(const EndsFrom&) = delete;
  EndsFrom& operator=(const EndsFrom&) = delete;
  const std::size_t* data() const { return ends_; }
  std::size_t operator[](std::size_t i) const { return ends_[i]; }

 private:
  const std::size_t* ends_;
  std::vector<std::size_t> counted_;
};

void work_out_scores(Heads& all, std::size_t h, std::size_t first, std::size_t end) {
  const Visibility& v = all.visibility;
  const std::size_t from = v.first_of(first, end, all.kernels->panel_width);
  if (all.uniform) {
    for (std::size_t i = first; i < end; ++i)
      std::fill(all.scores(h, i) + from, all.scores(h, i) + std::max(v.ends()[i], from), 0.0);
  } else {
    const EndsFrom ends(v, first, end, from);
    all.kernels->products({all.query(h, first), all.d_head,
                           all.group(h).key_panels.data() + from * all.d_head, all.d_head, all.scale,
                           ends.data(), all.scores(h, first) + from, all.row_stride, end - first});
  }
  for (std::size_t i = first; i < end; ++i) {
    double* const row = all.scores(h, i);
    if (v.ends()[i] == 0) continue;
    if (all.rules.adjusts()) all.rules.adjust(*all.kernels, h, i, row, v.firsts()[i], v.ends()[i]);
    std::fill(row + from, row + v.firsts()[i], -infinity);
    for (const std::size_t j : v.hidden(i)) row[j] = -infinity;
  }
}

/// A row's largest, its sum and its exponentials from a key on up to its end; false when one of them is not
/// finite.
bool work_out_exponentials(Heads& all, std::size_t h, std::size_t i, double* to, std::size_t from) {
  Head& head = all.heads[h];
  const std::size_t end = all.visibility.ends()[i];
  head.losses[i] = 0;
  if (end == 0) {  // all scores are −inf: 0/0 by the formula, or zeros
    head.largest[i] = all.leaves_zeros() ? 0 : -infinity;
    head.sums[i] = 1;
    return true;
  }
  const std::size_t lanes = all.kernels->lanes,
                    first = from + (all.visibility.firsts()[i] - from) / lanes * lanes;
  std::fill(to + from, to + first, 0.0);
  const RowSums row = all.kernels->softmax(all.scores(h, i) + first, to + first, end - first);
  head.largest[i] = row.largest;
  head.sums[i] = row.sum + (all.sinks.empty() ? 0 : std::exp(all.sinks[h] - row.largest));
  return std::isfinite(head.sums[i]) && std::isfinite(row.largest);
}

/// Contexts of rows first … end − 1, of their exponentials, which count from a key on.
void work_out_contexts(Heads& all, std::size_t h, std::size_t first, std::size_t end, double* exponentials,
                       std::size_t from) {
  const EndsFrom ends(all.visibility, first, end, from);
  for (std::size_t i = first; i < end && !all.kept.bits.empty(); ++i)
    all.kept.bits.each_no(
        all.kept.first + (h * all.n_queries + i) * all.n_keys + from, ends[i - first],
        [row = exponentials + (i - first) * all.row_stride + from](std::size_t j) { row[j] = 0; });
  all.kernels->contexts({exponentials + from, all.row_stride, ends.data(), all.heads[h].sums.data() + first,
                         all.context_factor(), all.value(h, from), all.value_stride, all.d_head,
                         all.context(h, first), all.d_out, end - first});
  for (std::size_t i = first; i < end; ++i)
    if (all.visibility.ends()[i] == 0)
      std::fill_n(all.context(h, i), all.d_head, all.leaves_zeros() ? 0 : nan);
}

}  // namespace

bool Heads::same_shape(const Model& model) const {
  const bool prepares = model.additions.normalise || model.additions.positions.rotary;
  return n_queries == model.n_tokens() && n_keys == model.n_keys() && d_out == model.d_out() &&
         heads.size() == model.n_heads && groups.size() == model.kv_heads() &&
         prepares == (heads.front().bare_queries.size() > 0);
}

double* Heads::scratch(std::size_t size) {
  Buffer& own = rows.local();
  if (own.size() < size) own = Buffer(size);
  return own.data();
}

void Heads::prepare(Projected what, std::size_t h, std::size_t t) {
  if (!rules.prepares() || what == Projected::values) return;
  std::vector<double> row(&projected(what, h, t, 0), &projected(what, h, t, 0) + d_head);
  rules.prepare(what, t, row.data());
  for (std::size_t c = 0; c < d_head; ++c)
    (what == Projected::queries ? query(h, t)[c] : key(h, t, c)) = row[c];
}

double Heads::longest_key_squared(std::size_t h) const {
  const std::size_t width = kernels->panel_width;
  const double* numbers = groups[kv_head_of(h)].key_panels.data();
  double most = 0;
  for (std::size_t first = 0; first < n_keys; first += width) {  // beyond the last key a panel holds zeros
    std::array<double, Kernels::widest_panel> sums{};
    for (std::size_t c = 0; c < d_head; ++c, numbers += width)
      for (std::size_t j = 0; j < width; ++j) sums[j] += numbers[j] * numbers[j];
    most = std::max(most, *std::max_element(sums.begin(), sums.end()));
  }
  return most;
}

void Heads::allocate(const Model& model) {
  heads.clear();  // before the new ones are asked for: there may not be room for both
  groups.clear();
  const bool prepares = model.additions.normalise || model.additions.positions.rotary;
  n_queries = model.n_tokens();
  n_keys = model.n_keys();
  d_head = model.d_head();
  d_out = model.d_out();
  row_stride = rounded_up(n_keys, 8);
  value_stride = rounded_up(d_head, kernels->lanes);
  contexts = Buffer(n_queries * d_out);
  heads.resize(model.n_heads);
  for (Head& head : heads) {
    head.queries = Buffer(n_queries * d_head);
    if (prepares) head.bare_queries = Buffer(n_queries * d_head);
    head.scores = Buffer(n_queries * row_stride);
    for (auto* numbers : {&head.largest, &head.sums}) numbers->assign(n_queries, 1);
    head.losses.assign(n_queries, 0);
  }
  std::vector<Group> all_groups(
      model.kv_heads());  // without them there is no shape, should memory end before
  for (Group& group : all_groups) {
    group.key_panels = Buffer(rounded_up(n_keys, kernels->panel_width) * d_head);
    if (prepares) group.bare_keys = Buffer(n_keys * d_head);
    group.values = Buffer(n_keys * value_stride);
    fill(group.key_panels, 0);
    fill(group.values, 0);
  }
  groups = std::move(all_groups);
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
  const std::size_t filled = *std::max_element(ends + first, ends + end),
                    key = all.visibility.first_of(first, end, all.kernels->panel_width);
  double* const exponentials = all.scratch((end - first) * all.row_stride);
  bool finite = true;
  for (std::size_t i = first; i < end; ++i) {
    double* const row = exponentials + (i - first) * all.row_stride;
    const std::size_t counted = std::max(ends[i], key);
    std::fill(row + counted, row + std::max(filled, counted), 0.0);
    if (from == From::weights)
      row_of_exponentials(all, h, i, counted - key, row + key, key);
    else
      finite = work_out_exponentials(all, h, i, row, key) && finite;
  }
  work_out_contexts(all, h, first, end, exponentials, key);
  return finite;
}

void hide_row(Heads& all, std::size_t h, std::size_t row) {
  std::fill_n(all.scores(h, row), all.row_stride, -infinity);
}

extern const Kernels plain_kernels;
#ifdef ATTNSCOPE_X86
extern const Kernels avx2_kernels, avx512_kernels;
#endif

std::span<const Kernels> kernels_of_this_processor() {
  static const std::vector<Kernels> all = [] {
    std::vector<Kernels> kernels;
#ifdef ATTNSCOPE_X86
    if (__builtin_cpu_supports("avx512f")) kernels.push_back(avx512_kernels);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) kernels.push_back(avx2_kernels);
#endif
    kernels.push_back(plain_kernels);
    return kernels;
  }();
  return all;
}

}  // namespace core::attention::fast
