#include "core/engine/heads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <type_traits>

#include "core/system/process.hpp"

namespace core::attention::fast {
namespace {

constexpr std::size_t cache_line = 64, large_page = std::size_t{2} << 20;

}  // namespace

template <class Number>
Buffer<Number>::Buffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  const std::size_t bytes = size * sizeof(Number), unit = bytes < large_page ? cache_line : large_page;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  if (unit == large_page) system::advise_huge_pages(memory, rounded);
  numbers_.reset(static_cast<Number*>(memory));
}

template <class Number>
void Buffer<Number>::Free::operator()(Number* numbers) const {
  std::free(numbers);
}

namespace {

template <class Number>
constexpr Number infinity = std::numeric_limits<Number>::infinity();
template <class Number>
constexpr Number nan = std::numeric_limits<Number>::quiet_NaN();

std::size_t rounded_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

template <class Number>
void fill(Buffer<Number>& buffer, Number number) {
  std::fill_n(buffer.data(), buffer.size(), number);
}

/// Ends of rows first … end − 1, relative to key `from`.
class RelativeEnds {
 public:
  RelativeEnds(const UnmaskedKeys& v, std::size_t first, std::size_t end, std::size_t from)
      : ends_(v.ends().data() + first) {
    if (from == 0) return;
    counted_.assign(ends_, ends_ + (end - first));
    for (std::size_t& each : counted_) each -= std::min(each, from);
    ends_ = counted_.data();
  }
  RelativeEnds(const RelativeEnds&) = delete;
  RelativeEnds& operator=(const RelativeEnds&) = delete;
  const std::size_t* data() const { return ends_; }
  std::size_t operator[](std::size_t i) const { return ends_[i]; }

 private:
  const std::size_t* ends_;
  std::vector<std::size_t> counted_;
};

}  // namespace

template <class Number>
const Number* LearnedMatrix<Number>::of(const SharedMatrix& matrix) {
  const arma::mat& numbers = matrix;
  if constexpr (std::is_same_v<Number, double>) {
    return numbers.memptr();
  } else {
    if (!matrix_.shares_with(matrix)) {
      numbers_.assign(numbers.begin(), numbers.end());
      matrix_ = matrix;
    }
    return numbers_.data();
  }
}

template <class Number>
void AllHeads<Number>::compute_scores(std::size_t h, std::size_t first, std::size_t end) {
  const UnmaskedKeys& v = visibility;
  const std::size_t from = v.min_first_key(first, end, kernels->panel_width);
  if (uniform) {
    for (std::size_t i = first; i < end; ++i)
      std::fill(scores(h, i) + from, scores(h, i) + std::max(v.ends()[i], from), Number(0));
  } else {
    const RelativeEnds ends(v, first, end, from);
    kernels->products({query(h, first), d_head, kv_head(h).key_panels.data() + from * d_head, d_head,
                       static_cast<Number>(scale), ends.data(), scores(h, first) + from, row_stride,
                       end - first});
  }
  for (std::size_t i = first; i < end; ++i) {
    Number* const row = scores(h, i);
    if (v.ends()[i] == 0) continue;
    if (rules.changes_scores()) rules.finish_scores(*kernels, h, i, row, v.first_keys()[i], v.ends()[i]);
    std::fill(row + from, row + v.first_keys()[i], -infinity<Number>);
    for (const std::size_t j : v.masked_keys(i)) row[j] = -infinity<Number>;
  }
}

/// Computes a row's maximum, its sum and its exponentials from key `from` to its end; returns false if the
/// maximum or the sum is not finite.
template <class Number>
bool AllHeads<Number>::compute_exponentials(std::size_t h, std::size_t i, Number* to, std::size_t from) {
  HeadData<Number>& head = heads[h];
  const std::size_t end = visibility.ends()[i];
  head.rounding_errors[i] = {};
  if (end == 0) {  // all scores are −inf: 0/0 by the formula, or zeros
    head.largest[i] = empty_rows_are_zeros() ? 0 : -infinity<Number>;
    head.sums[i] = 1;
    return true;
  }
  const std::size_t lanes = kernels->lanes,
                    first = from + (visibility.first_keys()[i] - from) / lanes * lanes;
  std::fill(to + from, to + first, Number(0));
  const SoftmaxStats<Number> row = kernels->softmax(scores(h, i) + first, to + first, end - first);
  head.largest[i] = row.largest;
  head.sums[i] = row.sum + (sinks.empty() ? 0 : std::exp(sinks[h] - row.largest));
  return std::isfinite(head.sums[i]) && std::isfinite(row.largest);
}

/// Computes contexts of rows first … end − 1 from their exponentials, from key `from` on.
template <class Number>
void AllHeads<Number>::compute_contexts(std::size_t h, std::size_t first, std::size_t end,
                                        Number* exponentials, std::size_t from) {
  const RelativeEnds ends(visibility, first, end, from);
  for (std::size_t i = first; i < end && !kept.bits.empty(); ++i)
    kept.bits.for_each_unset(
        kept.first + (h * n_queries + i) * n_keys + from, ends[i - first],
        [row = exponentials + (i - first) * row_stride + from](std::size_t j) { row[j] = 0; });
  kernels->contexts({exponentials + from, row_stride, ends.data(), heads[h].sums.data() + first,
                     context_factor(), value(h, from), value_stride, d_head, context(h, first), d_out,
                     end - first});
  for (std::size_t i = first; i < end; ++i)
    if (visibility.ends()[i] == 0)
      std::fill_n(context(h, i), d_head, empty_rows_are_zeros() ? Number(0) : nan<Number>);
}

template <class Number>
bool AllHeads<Number>::same_shape(const Model& model) const {
  const bool has_norm_or_rope = model.additions.normalize || model.additions.positions.rotary;
  return n_queries == model.n_tokens() && n_keys == model.n_keys() && d_out == model.d_out() &&
         heads.size() == model.n_heads && kv_head_data.size() == model.kv_heads() &&
         has_norm_or_rope == (heads.front().projected_queries.size() > 0);
}

template <class Number>
Number* AllHeads<Number>::scratch(std::size_t size) {
  Buffer<Number>& own = scratch_rows.local();
  if (own.size() < size) own = Buffer<Number>(size);
  return own.data();
}

template <class Number>
void AllHeads<Number>::prepare(Qkv what, std::size_t h, std::size_t t) {
  if (!rules.has_norm_or_rope() || what == Qkv::values) return;
  std::vector<double> row(&projected(what, h, t, 0), &projected(what, h, t, 0) + d_head);
  rules.prepare(what, t, row.data());
  for (std::size_t c = 0; c < d_head; ++c)
    (what == Qkv::queries ? query(h, t)[c] : key(h, t, c)) = static_cast<Number>(row[c]);
}

template <class Number>
double AllHeads<Number>::max_squared_key_norm(std::size_t h) const {
  const std::size_t width = kernels->panel_width;
  const Number* numbers = kv_head_data[kv_head_of(h)].key_panels.data();
  double maximum = 0;
  for (std::size_t first = 0; first < n_keys; first += width) {  // beyond the last key a panel holds zeros
    std::array<Number, AttentionKernels<Number>::max_panel_width> sums{};
    for (std::size_t c = 0; c < d_head; ++c, numbers += width)
      for (std::size_t j = 0; j < width; ++j) sums[j] += numbers[j] * numbers[j];
    maximum = std::max<double>(maximum, *std::max_element(sums.begin(), sums.end()));
  }
  return maximum;
}

template <class Number>
void AllHeads<Number>::allocate(const Model& model) {
  heads.clear();  // before allocating the new ones: there may not be room for both
  kv_head_data.clear();
  const bool has_norm_or_rope = model.additions.normalize || model.additions.positions.rotary;
  n_queries = model.n_tokens();
  n_keys = model.n_keys();
  d_head = model.d_head();
  d_out = model.d_out();
  row_stride = rounded_up(n_keys, cache_line / sizeof(Number));
  value_stride = rounded_up(d_head, kernels->lanes);
  contexts = Buffer<Number>(n_queries * d_out);
  heads.resize(model.n_heads);
  for (HeadData<Number>& head : heads) {
    head.queries = Buffer<Number>(n_queries * d_head);
    if (has_norm_or_rope) head.projected_queries = Buffer<Number>(n_queries * d_head);
    head.scores = Buffer<Number>(n_queries * row_stride);
    for (auto* numbers : {&head.largest, &head.sums}) numbers->assign(n_queries, 1);
    head.rounding_errors.assign(n_queries, {});
  }
  std::vector<KvHeadData<Number>> new_kv_heads(
      model.kv_heads());  // assigned last, so that the shape stays invalid if memory runs out
  for (KvHeadData<Number>& kv_head : new_kv_heads) {
    kv_head.key_panels = Buffer<Number>(rounded_up(n_keys, kernels->panel_width) * d_head);
    if (has_norm_or_rope) kv_head.projected_keys = Buffer<Number>(n_keys * d_head);
    kv_head.values = Buffer<Number>(n_keys * value_stride);
    fill(kv_head.key_panels, Number(0));
    fill(kv_head.values, Number(0));
  }
  kv_head_data = std::move(new_kv_heads);
}

template <class Number>
void AllHeads<Number>::recompute_exponentials(std::size_t h, std::size_t i, std::size_t n,
                                              Number* exponentials, std::size_t first_key) {
  const Number* const row = scores(h, i) + first_key;
  const auto largest = static_cast<Number>(heads[h].largest[i]);
  for (std::size_t j = 0; j < n; ++j) exponentials[j] = row[j] - largest;
  kernels->exponentials(exponentials, n);
}

template <class Number>
bool AllHeads<Number>::compute_stages(std::size_t h, std::size_t first, std::size_t end, StartStage from) {
  if (from == StartStage::queries) compute_scores(h, first, end);
  const std::size_t* ends = visibility.ends().data();
  const std::size_t filled = *std::max_element(ends + first, ends + end),
                    key = visibility.min_first_key(first, end, kernels->panel_width);
  Number* const exponentials = scratch((end - first) * row_stride);
  bool is_finite = true;
  for (std::size_t i = first; i < end; ++i) {
    Number* const row = exponentials + (i - first) * row_stride;
    const std::size_t counted = std::max(ends[i], key);
    std::fill(row + counted, row + std::max(filled, counted), Number(0));
    if (from == StartStage::weights)
      recompute_exponentials(h, i, counted - key, row + key, key);
    else
      is_finite = compute_exponentials(h, i, row, key) && is_finite;
  }
  compute_contexts(h, first, end, exponentials, key);
  return is_finite;
}

template <class Number>
void AllHeads<Number>::mask_row(std::size_t h, std::size_t row) {
  std::fill_n(scores(h, row), row_stride, -infinity<Number>);
}

template <class Number>
std::vector<Number> AllHeads<Number>::stored_row(Qkv what, std::size_t t) {
  std::vector<Number> row;
  for (std::size_t part = 0; part < n_parts(what); ++part)
    for (std::size_t c = 0; c < d_head; ++c) row.push_back(projected(what, head_of(what, part), t, c));
  return row;
}

template <class Number>
void AllHeads<Number>::store_row(Qkv what, std::size_t t, const Number* row) {
  for (std::size_t part = 0; part < n_parts(what); ++part) {
    const std::size_t h = head_of(what, part);
    for (std::size_t c = 0; c < d_head; ++c) projected(what, h, t, c) = *row++;
    prepare(what, h, t);
  }
}

template <class Number>
arma::mat AllHeads<Number>::combined_contexts(CombineRule rule) const {
  const arma::Mat<Number> by_token(const_cast<Number*>(contexts.data()), d_out, n_queries, false, true);
  if (rule == CombineRule::concatenate) return arma::conv_to<arma::mat>::from(by_token.t());
  arma::mat merged(d_out, n_queries);  // one token per column, so that a row is contiguous
  double* next = merged.memptr();
  for (std::size_t h = 0; h < heads.size(); ++h)
    for (std::size_t i = 0; i < n_queries; ++i)
      next = std::copy_n(by_token.colptr(i) + h * d_head, d_head, next);
  return merged.t();
}

namespace {

// A row is recomputed if the replaced exponential was at least this part of its sum …
constexpr double max_replaced_fraction = 0.5;
// … if an exponential is so far above that of the largest score, 1, that sums could overflow …
constexpr double max_exponential = 4.8e8;
// … or if its rounding errors, in units of the last place, reach 10⁻¹² of its numbers, 4 · 10⁻⁶ in float32.
template <class Number>
constexpr float max_rounding_error = sizeof(Number) == sizeof(double) ? 4096 : 64;

template <class Number>
constexpr Number max_exponent = sizeof(Number) == sizeof(double) ? 700
                                                                 : 88;  // largest argument of exponentials()

/// Prefetches n numbers that will be written.
template <class Number>
void prefetch(const Number* numbers, std::size_t n) {
  constexpr std::size_t line = cache_line / sizeof(Number);
  for (std::size_t c = 0; c < n; c += line) __builtin_prefetch(numbers + c, 1);
}

}  // namespace

/// Replaces the exponential of key t in row i; returns false if the row must be recomputed.
template <class Number>
bool AllHeads<Number>::update_weight(std::size_t h, std::size_t i, std::size_t t,
                                     const WeightChange& change) {
  const auto& [before, after, old_value, old_length, length] = change;
  HeadData<Number>& head = heads[h];
  const double old_sum = head.sums[i], sum = old_sum + (after - before);
  if (!(after < max_exponential) || !(before < max_replaced_fraction * old_sum)) return false;
  const double factor = 1 / sum, share = kept_factor(h, i, t) * factor;
  Number* const row = context(h, i);
  kernels->blend(row, static_cast<Number>(old_sum * factor), static_cast<Number>(after * share), value(h, t),
                 static_cast<Number>(-before * share), old_value, d_head);
  // A sum or context that shrinks keeps the rounding error of its former size.
  const double sum_error = head.rounding_errors[i].sum * std::max(1.0, old_sum / sum) + 1;
  const double size = std::sqrt(kernels->dot(row, row, d_head));
  const double context_error = head.rounding_errors[i].context * (old_sum * factor) +
                               share * (before * old_length + after * length) + size;
  if (!(sum_error < max_rounding_error<Number>) || !(context_error <= max_rounding_error<Number> * size))
    return false;
  head.sums[i] = sum;
  head.rounding_errors[i] = {static_cast<float>(sum_error), static_cast<float>(context_error)};
  return true;
}

template <class Number>
RecomputedRows AllHeads<Number>::update_token(std::size_t h, std::size_t t, const Number* old_value,
                                              bool is_query) {
  RecomputedRows recomputed;
  std::vector<std::size_t> rows = visibility.rows_attending_to(t);
  if (is_query) {
    recomputed = {{t}, compute_stages(h, t, t + 1, StartStage::queries)};
    std::erase(rows, t);
  }

  const std::size_t n = rows.size();
  std::vector<Number> key_numbers(d_head), exponentials(2 * n);  // of the old scores, then of the new ones
  for (std::size_t c = 0; c < d_head; ++c) key_numbers[c] = key(h, t, c);
  // Entries of a column, and the contexts of one head, are far apart in memory, so they are prefetched.
  constexpr std::size_t ahead = 12, contexts_ahead = 4;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = rows[k];
    if (k + ahead < n) __builtin_prefetch(scores(h, rows[k + ahead]) + t, 1);
    Number& score = scores(h, i)[t];
    const auto largest = static_cast<Number>(heads[h].largest[i]);
    exponentials[k] = score - largest;
    score = uniform ? 0 : kernels->dot(query(h, i), key_numbers.data(), d_head) * static_cast<Number>(scale);
    if (rules.changes_scores()) score = static_cast<Number>(rules.biased_score(h, i, t, score));
    exponentials[n + k] = std::min(score - largest, max_exponent<Number>);
  }
  kernels->exponentials(exponentials.data(), exponentials.size());

  const auto length_of = [this](const Number* numbers) -> double {
    return std::sqrt(kernels->dot(numbers, numbers, d_head));
  };
  WeightChange change{
      .old_value = old_value, .old_length = length_of(old_value), .length = length_of(value(h, t))};
  for (std::size_t k = 0; k < n; ++k) {
    if (k + contexts_ahead < n) prefetch(context(h, rows[k + contexts_ahead]), d_head);
    change.before = exponentials[k], change.after = exponentials[n + k];
    if (update_weight(h, rows[k], t, change)) continue;
    recomputed.is_finite =
        compute_stages(h, rows[k], rows[k] + 1, StartStage::scores) && recomputed.is_finite;
    recomputed.rows.push_back(rows[k]);
  }
  std::sort(recomputed.rows.begin(), recomputed.rows.end());
  return recomputed;
}

template <class Number>
bool AllHeads<Number>::update_scores(std::size_t h, std::size_t first, std::size_t end,
                                     const Number* row_parts, const Number* key_parts) {
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t from = visibility.first_keys()[i], n = visibility.ends()[i] - from;
    kernels->add(scores(h, i) + from, key_parts + from, row_parts[i], n);
  }
  return compute_stages(h, first, end, StartStage::scores);
}

template <class Number>
void AllHeads<Number>::update_context_column(std::size_t h, std::size_t first, std::size_t end, std::size_t c,
                                             const Number* values) {
  Number* const exponentials = scratch(n_keys);
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t from = visibility.first_keys()[i], n = visibility.ends()[i] - from;
    if (n == 0) continue;
    recompute_exponentials(h, i, n, exponentials, from);
    context(h, i)[c] = kernels->dot(exponentials, values + from, n) / static_cast<Number>(heads[h].sums[i]);
  }
}

extern const KernelSet plain_kernels;
#ifdef ATTNSCOPE_X86
extern const KernelSet avx2_kernels, avx512_kernels;
#endif

template <class Number>
std::span<const AttentionKernels<Number>> supported_kernels() {
  static const std::vector<AttentionKernels<Number>> all = [] {
    std::vector<const KernelSet*> sets;
#ifdef ATTNSCOPE_X86
    if (__builtin_cpu_supports("avx512f")) sets.push_back(&avx512_kernels);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&avx2_kernels);
#endif
    sets.push_back(&plain_kernels);
    std::vector<AttentionKernels<Number>> kernels;
    for (const KernelSet* set : sets) {
      if constexpr (std::is_same_v<Number, double>)
        kernels.push_back(set->float64);
      else
        kernels.push_back(set->float32);
    }
    return kernels;
  }();
  return all;
}

template class Buffer<double>;
template class Buffer<float>;
template class LearnedMatrix<double>;
template class LearnedMatrix<float>;
template struct AllHeads<double>;
template struct AllHeads<float>;
template std::span<const AttentionKernels<double>> supported_kernels();
template std::span<const AttentionKernels<float>> supported_kernels();

}  // namespace core::attention::fast
