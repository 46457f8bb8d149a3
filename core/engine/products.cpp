#include "core/engine/products.hpp"

#include <cblas.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "core/graph/matrices.hpp"

namespace core::attention::fast {
namespace {

constexpr std::size_t cached_bytes = std::size_t{576} << 10;

}  // namespace

template <class Number>
Panels<Number>::Panels(const AttentionKernels<Number>& kernels, std::size_t n_rows, std::size_t depth,
                       Buffer<Number>& memory)
    : kernels_(&kernels), n_rows_(n_rows), depth_(depth), width_(kernels.panel_width) {
  if (memory.size() < n_panels() * width_ * depth) memory = Buffer<Number>(n_panels() * width_ * depth);
  numbers_ = memory.data();
}

template <class Number>
void Panels<Number>::fill(std::size_t panel, const arma::mat& matrix, std::size_t first_row) {
  Number* to = numbers_ + panel * width_ * depth_;
  const std::size_t first = first_row + panel * width_, n = rows_of(panel);
  for (std::size_t c = 0; c < depth_; ++c, to += width_) {
    std::copy_n(matrix.colptr(c) + first, n, to);
    std::fill(to + n, to + width_, Number(0));
  }
}

template <class Number>
void Panels<Number>::fill(std::size_t panel, const Number* rows) {
  Number* to = numbers_ + panel * width_ * depth_;
  const Number* from = rows + panel * width_ * depth_;
  const std::size_t n = rows_of(panel);
  for (std::size_t c = 0; c < depth_; ++c, ++from, to += width_) {
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i * depth_];
    std::fill(to + n, to + width_, Number(0));
  }
}

template <class Number>
std::size_t Panels<Number>::chunk_size() const {
  const std::size_t cached = cached_bytes / sizeof(Number) / (width_ * std::max<std::size_t>(depth_, 1));
  return std::clamp<std::size_t>(cached, 1, max_chunk_size);
}

namespace {

/// Stores a tile of queries, keys or values in the heads or KV heads that own its columns.
template <class Number>
void store_tile(AllHeads<Number>& all, Qkv what, const ProductTile<Number>& tile) {
  const auto numbers = [&](std::size_t column) { return tile.numbers + column * tile.stride; };
  const bool in_panels = what == Qkv::keys && !all.rules.has_norm_or_rope();
  for (std::size_t column = 0; column < tile.n_columns;) {
    const std::size_t part = (tile.first_column + column) / all.d_head,
                      c = (tile.first_column + column) % all.d_head, h = all.head_of(what, part);
    const std::size_t n = std::min(all.d_head - c, tile.n_columns - column);  // in this part
    if (in_panels) {  // tiles begin at panel boundaries
      const std::size_t width = all.kernels->panel_width;
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t i = 0; i < tile.n_rows; i += width)
          std::copy_n(numbers(column + k) + i, std::min(width, tile.n_rows - i),
                      &all.key(h, tile.first_row + i, c + k));
    } else {
      for (std::size_t i = 0; i < tile.n_rows; ++i) {
        Number* row = &all.projected(what, h, tile.first_row + i, c);
        for (std::size_t k = 0; k < n; ++k) row[k] = numbers(column + k)[i];
      }
    }
    column += n;
  }
}

/// Applies QK norm and RoPE to the queries of all heads and the keys of all KV heads.
template <class Number>
void prepare_all(AllHeads<Number>& all, ThreadPool& threads) {
  if (!all.rules.has_norm_or_rope()) return;
  const std::size_t n_heads = all.heads.size();
  threads.run(n_heads + all.kv_head_data.size(), all.n_queries * all.d_out, [&](std::size_t task) {
    const bool of_queries = task < n_heads;
    const Qkv what = of_queries ? Qkv::queries : Qkv::keys;
    const std::size_t h = all.head_of(what, of_queries ? task : task - n_heads);
    for (std::size_t t = 0; t < (of_queries ? all.n_queries : all.n_keys); ++t) all.prepare(what, h, t);
  });
}

/// Uses the embeddings as queries, keys and values; returns false if a number is not finite.
template <class Number>
bool copy_all(AllHeads<Number>& all, const arma::mat& x, const arma::mat& memory) {
  bool is_finite = true;
  const auto copy = [&](const arma::mat& from, Qkv what) {
    for (std::size_t i = 0; i < from.n_rows; ++i) {
      const auto row = arma::conv_to<arma::Row<Number>>::from(from.row(i));
      is_finite = is_finite && all.kernels->is_finite(row.memptr(), row.n_elem);
      all.store_row(what, i, row.memptr());
    }
  };
  copy(x, Qkv::queries);
  copy(memory, Qkv::keys);
  copy(memory, Qkv::values);
  return is_finite;
}

/// Returns the cross-attention source of keys and values, or the embeddings.
const SharedMatrix& source_of(const Model& model, std::size_t sequence) {
  const Sequence& s = model.sequences[sequence];
  return model.has_key_embeddings() ? s.key_embeddings : s.embeddings;
}

/// Returns the columns of a projection for the kernels.
template <class Number>
ColumnView<Number> weight_columns(AllHeads<Number>& all, std::size_t which, const Linear& linear) {
  const SharedMatrix& w = linear.weight;
  return {all.weights[which].of(w), w.n_rows(), w.n_cols()};
}
constexpr std::size_t output_index = 3;  // index of the weights

/// Adds a projection's bias, if it has one, to a tile of its products.
template <class Number>
void add_bias(const Linear& linear, const ProductTile<Number>& tile) {
  if (!linear.bias) return;
  for (std::size_t c = 0; c < tile.n_columns; ++c) {
    const auto bias = static_cast<Number>(linear.bias->at(0, tile.first_column + c));
    Number* numbers = tile.numbers + c * tile.stride;
    for (std::size_t i = 0; i < tile.n_rows; ++i) numbers[i] += bias;
  }
}

}  // namespace

const Linear* projection(const Model& model, Qkv what) {
  constexpr std::array parts{ProjectionName::query, ProjectionName::key, ProjectionName::value};
  return find_linear(model, parts[static_cast<std::size_t>(what)]);
}

template <class Number>
std::vector<Number> projected_row(AllHeads<Number>& all, const Model& model, std::size_t sequence, Qkv what,
                                  std::size_t t) {
  const auto x = arma::conv_to<arma::Row<Number>>::from(
      what == Qkv::queries ? model.sequences[sequence].embeddings.row(t) : source_of(model, sequence).row(t));
  const Linear* linear = projection(model, what);
  if (linear == nullptr) return {x.begin(), x.end()};
  const auto columns = weight_columns(all, static_cast<std::size_t>(what), *linear);
  std::vector<Number> row(columns.count);
  for (std::size_t k = 0; k < row.size(); ++k)
    row[k] = all.kernels->dot(x.memptr(), columns.numbers + k * columns.stride, columns.stride) +
             static_cast<Number>(linear->bias ? linear->bias->at(0, k) : 0);
  return row;
}

template <class Number>
bool project_all(AllHeads<Number>& all, const Model& model, std::size_t sequence, ThreadPool& threads) {
  const arma::mat& x = model.sequences[sequence].embeddings;
  const arma::mat& memory = source_of(model, sequence);
  if (!model.projections) return copy_all(all, x, memory);
  std::array<ColumnView<Number>, 3> weights;
  threads.run(3, [&](std::size_t k) {
    weights[k] = weight_columns(all, k, *projection(model, static_cast<Qkv>(k)));
  });
  std::atomic<bool> is_finite{true};
  const auto project = [&](const arma::mat& from, std::size_t first, std::size_t end) {
    Panels<Number> tokens(*all.kernels, from.n_rows, from.n_cols, all.panels);
    threads.run(tokens.n_panels(), from.n_elem, [&](std::size_t panel) { tokens.fill(panel, from, 0); });
    const std::span<const ColumnView<Number>> some(weights.data() + first, end - first);
    multiply(tokens, some, threads, [&](std::size_t k, const ProductTile<Number>& tile) {
      const auto what = static_cast<Qkv>(first + k);
      add_bias(*projection(model, what), tile);
      store_tile(all, what, tile);
      for (std::size_t c = 0; c < tile.n_columns && what == Qkv::values; ++c)
        if (!all.kernels->is_finite(tile.numbers + c * tile.stride, tile.n_rows)) is_finite = false;
    });
  };
  project(x, 0, model.has_key_embeddings() ? 1 : 3);
  if (model.has_key_embeddings()) project(memory, 1, 3);
  prepare_all(all, threads);
  return is_finite;
}

void keep_blas_to_one_thread() {
  openblas_set_num_threads(1);
}

namespace {

template <class Number>
constexpr std::size_t max_sums = sizeof(Number) == sizeof(double) ? 64
                                                                  : 8;  // rounding of this many is negligible

}  // namespace

template <class Number>
void Output<Number>::mark_rows_changed(std::size_t first, std::size_t end) {
  if (first_ == end_) first_ = first, end_ = end;
  first_ = std::min(first_, first);
  end_ = std::max(end_, end);
}

template <class Number>
void Output<Number>::mark_head_changed(std::size_t head) {
  if (head_ && *head_ != head) all_ = true;
  head_ = head;
}

template <class Number>
const arma::mat& Output<Number>::refresh(AllHeads<Number>& all, const Model& model, ThreadPool& threads) {
  const std::lock_guard lock(mutex_);
  if (!all_ && !head_ && first_ == end_) return output_;
  bool everything = std::exchange(all_, true);  // for the next call, if an exception interrupts this one
  const Linear* linear =
      model.projections && model.projections->output ? &*model.projections->output : nullptr;
  if (linear == nullptr || model.merge != CombineRule::concatenate) {
    output_ = all.combined_contexts(model.merge);
    if (linear != nullptr) {
      output_ *= *linear->weight;
      if (linear->bias) output_.each_row() += arma::rowvec(**linear->bias);
    }
  } else {
    if (contexts_.size() != all.contexts.size()) contexts_ = Buffer<Number>(all.contexts.size());
    if (!everything && head_) everything = n_sums_ == max_sums<Number> || !add_head(all, *linear, threads);
    if (everything) {
      output_.set_size(all.n_queries, linear->weight.n_cols());
      recompute_rows(all, model, 0, all.n_queries, threads);
      n_sums_ = 0;
    } else {
      recompute_rows(all, model, first_, end_, threads);
    }
  }
  all_ = false;
  head_.reset();
  first_ = end_ = 0;
  return output_;
}

template <class Number>
void Output<Number>::recompute_rows(AllHeads<Number>& all, const Model& model, std::size_t first,
                                    std::size_t end, ThreadPool& threads) {
  const Linear& linear = *model.projections->output;
  Panels<Number> contexts(*all.kernels, end - first, all.d_out, all.panels);
  const Number* rows = all.contexts.data() + first * all.d_out;
  threads.run(contexts.n_panels(), (end - first) * all.d_out,
              [&](std::size_t panel) { contexts.fill(panel, rows); });
  const auto columns = weight_columns(all, output_index, linear);
  multiply(contexts, std::span<const ColumnView<Number>>(&columns, 1), threads,
           [&](std::size_t, const ProductTile<Number>& tile) {
             add_bias(linear, tile);
             for (std::size_t c = 0; c < tile.n_columns; ++c)
               std::copy_n(tile.numbers + c * tile.stride, tile.n_rows,
                           output_.colptr(tile.first_column + c) + first + tile.first_row);
           });
  store_contexts(all, first, end);
}

template <class Number>
void Output<Number>::store_contexts(const AllHeads<Number>& all, std::size_t first, std::size_t end) {
  std::copy_n(all.contexts.data() + first * all.d_out, (end - first) * all.d_out,
              contexts_.data() + first * all.d_out);
}

/// Adds (new − old contexts) · weight for one head; returns false if that loses too much precision.
template <class Number>
bool Output<Number>::add_head(AllHeads<Number>& all, const Linear& linear, ThreadPool& threads) {
  const std::size_t h = *head_, d = all.d_head, n = all.n_queries, offset = h * d;
  std::vector<Number> increments(n * d);
  Number maximum = 0, max_before = 0, max_after = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) {
      Number& then = contexts_.data()[i * all.d_out + offset + c];
      const Number now = all.context(h, i)[c], increment = now - then;
      if (std::isnan(now) && std::isnan(then)) continue;  // a row without unmasked keys does not change
      increments[i * d + c] = increment;
      maximum = std::max(maximum, std::abs(increment));
      max_before = std::max(max_before, std::abs(then));
      max_after = std::max(max_after, std::abs(now));
      then = now;
    }
  if (!(max_before <= 4 * max_after) || !std::isfinite(maximum)) return false;
  Panels<Number> rows(*all.kernels, n, d, all.panels);
  threads.run(rows.n_panels(), n * d, [&](std::size_t panel) { rows.fill(panel, increments.data()); });
  auto columns = weight_columns(all, output_index, linear);
  columns.numbers += offset;
  multiply(rows, std::span<const ColumnView<Number>>(&columns, 1), threads,
           [&](std::size_t, const ProductTile<Number>& tile) {
             for (std::size_t c = 0; c < tile.n_columns; ++c) {
               double* to = output_.colptr(tile.first_column + c) + tile.first_row;
               const Number* increment = tile.numbers + c * tile.stride;
               for (std::size_t i = 0; i < tile.n_rows; ++i)
                 to[i] = static_cast<Number>(to[i] + static_cast<double>(increment[i]));
             }
           });
  ++n_sums_;
  return true;
}

template bool project_all(AllHeads<double>&, const Model&, std::size_t, ThreadPool&);
template bool project_all(AllHeads<float>&, const Model&, std::size_t, ThreadPool&);
template std::vector<double> projected_row(AllHeads<double>&, const Model&, std::size_t, Qkv, std::size_t);
template std::vector<float> projected_row(AllHeads<float>&, const Model&, std::size_t, Qkv, std::size_t);
template class Output<double>;
template class Output<float>;

}  // namespace core::attention::fast
