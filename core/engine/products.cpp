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

constexpr std::size_t cached_numbers = 73728;  // 576 KiB

}  // namespace

Panels::Panels(const Kernels& kernels, std::size_t n_rows, std::size_t depth, Buffer& memory)
    : kernels_(&kernels), n_rows_(n_rows), depth_(depth), width_(kernels.panel_width) {
  if (memory.size() < n_panels() * width_ * depth) memory = Buffer(n_panels() * width_ * depth);
  numbers_ = memory.data();
}

void Panels::fill(std::size_t panel, const arma::mat& matrix, std::size_t first_row) {
  double* to = numbers_ + panel * width_ * depth_;
  const std::size_t first = first_row + panel * width_, n = rows_of(panel);
  for (std::size_t c = 0; c < depth_; ++c, to += width_) {
    std::copy_n(matrix.colptr(c) + first, n, to);
    std::fill(to + n, to + width_, 0.0);
  }
}

void Panels::fill(std::size_t panel, const double* rows) {
  double* to = numbers_ + panel * width_ * depth_;
  const double* from = rows + panel * width_ * depth_;
  const std::size_t n = rows_of(panel);
  for (std::size_t c = 0; c < depth_; ++c, ++from, to += width_) {
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i * depth_];
    std::fill(to + n, to + width_, 0.0);
  }
}

std::size_t Panels::at_once() const {
  const std::size_t cached = cached_numbers / (width_ * std::max<std::size_t>(depth_, 1));
  return std::clamp<std::size_t>(cached, 1, most_at_once);
}

namespace {

/// Puts a tile of queries, keys or values in the heads or groups that own its columns.
void put_tile(Heads& all, Projected what, const ProductTile& tile) {
  const auto numbers = [&](std::size_t column) { return tile.numbers + column * tile.stride; };
  const bool in_panels = what == Projected::keys && !all.rules.prepares();
  for (std::size_t column = 0; column < tile.n_columns;) {
    const std::size_t part = (tile.first_column + column) / all.d_head,
                      c = (tile.first_column + column) % all.d_head, h = all.head_of(what, part);
    const std::size_t n = std::min(all.d_head - c, tile.n_columns - column);  // in this part
    if (in_panels) {                                                          // tiles begin where panels do
      const std::size_t width = all.kernels->panel_width;
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t i = 0; i < tile.n_rows; i += width)
          std::copy_n(numbers(column + k) + i, std::min(width, tile.n_rows - i),
                      &all.key(h, tile.first_row + i, c + k));
    } else {
      for (std::size_t i = 0; i < tile.n_rows; ++i) {
        double* row = &all.projected(what, h, tile.first_row + i, c);
        for (std::size_t k = 0; k < n; ++k) row[k] = numbers(column + k)[i];
      }
    }
    column += n;
  }
}

/// Prepares the queries of all heads and the keys of all groups.
void prepare_all(Heads& all, ThreadPool& threads) {
  if (!all.rules.prepares()) return;
  const std::size_t n_heads = all.heads.size();
  threads.run(n_heads + all.groups.size(), all.n_queries * all.d_out, [&](std::size_t task) {
    const bool of_queries = task < n_heads;
    const Projected what = of_queries ? Projected::queries : Projected::keys;
    const std::size_t h = all.head_of(what, of_queries ? task : task - n_heads);
    for (std::size_t t = 0; t < (of_queries ? all.n_queries : all.n_keys); ++t) all.prepare(what, h, t);
  });
}

/// The embeddings themselves as queries, keys and values.
bool copy_all(Heads& all, const arma::mat& x, const arma::mat& memory) {
  const auto copy = [&](const arma::mat& from, Projected what) {
    for (std::size_t i = 0; i < from.n_rows; ++i) {
      const arma::rowvec row = from.row(i);
      put_row(all, what, i, row.memptr());
    }
  };
  copy(x, Projected::queries);
  copy(memory, Projected::keys);
  copy(memory, Projected::values);
  return x.is_finite() && memory.is_finite();
}

/// What keys and values are made of.
const SharedMatrix& memory_of(const Model& model, std::size_t sequence) {
  const Sequence& s = model.sequences[sequence];
  return model.has_key_embeddings() ? s.key_embeddings : s.embeddings;
}

}  // namespace

const Linear* projection(const Model& model, Projected what) {
  constexpr std::array parts{Part::query, Part::key, Part::value};
  return find_linear(model, parts[static_cast<std::size_t>(what)]);
}

std::vector<double> projected_row(const Heads& all, const Model& model, std::size_t sequence, Projected what,
                                  std::size_t t) {
  const arma::rowvec x = what == Projected::queries ? model.sequences[sequence].embeddings.row(t)
                                                    : memory_of(model, sequence).row(t);
  const Linear* linear = projection(model, what);
  if (linear == nullptr) return {x.begin(), x.end()};
  const arma::mat& w = linear->weight;
  std::vector<double> row(w.n_cols);
  for (std::size_t k = 0; k < row.size(); ++k)
    row[k] =
        all.kernels->dot(x.memptr(), w.colptr(k), w.n_rows) + (linear->bias ? linear->bias->at(0, k) : 0);
  return row;
}

std::vector<double> kept_row(Heads& all, Projected what, std::size_t t) {
  std::vector<double> row;
  for (std::size_t part = 0; part < all.n_parts(what); ++part)
    for (std::size_t c = 0; c < all.d_head; ++c)
      row.push_back(all.projected(what, all.head_of(what, part), t, c));
  return row;
}

void put_row(Heads& all, Projected what, std::size_t t, const double* row) {
  for (std::size_t part = 0; part < all.n_parts(what); ++part) {
    const std::size_t h = all.head_of(what, part);
    for (std::size_t c = 0; c < all.d_head; ++c) all.projected(what, h, t, c) = *row++;
    all.prepare(what, h, t);
  }
}

bool project_all(Heads& all, const Model& model, std::size_t sequence, ThreadPool& threads) {
  const arma::mat& x = model.sequences[sequence].embeddings;
  const arma::mat& memory = memory_of(model, sequence);
  if (!model.projections) return copy_all(all, x, memory);
  std::array<Columns, 3> weights;
  for (std::size_t k = 0; k < 3; ++k) {
    const arma::mat& w = projection(model, static_cast<Projected>(k))->weight;
    weights[k] = {w.memptr(), w.n_rows, w.n_cols};
  }
  std::atomic<bool> finite{true};
  const auto project = [&](const arma::mat& from, std::size_t first, std::size_t end) {
    Panels tokens(*all.kernels, from.n_rows, from.n_cols, all.panels);
    threads.run(tokens.n_panels(), from.n_elem, [&](std::size_t panel) { tokens.fill(panel, from, 0); });
    const std::span some(weights.data() + first, end - first);
    multiply(tokens, some, threads, [&](std::size_t k, const ProductTile& tile) {
      const auto what = static_cast<Projected>(first + k);
      add_bias(*projection(model, what), tile);
      put_tile(all, what, tile);
      for (std::size_t c = 0; c < tile.n_columns && what == Projected::values; ++c)
        if (!all.kernels->finite(tile.numbers + c * tile.stride, tile.n_rows)) finite = false;
    });
  };
  project(x, 0, model.has_key_embeddings() ? 1 : 3);
  if (model.has_key_embeddings()) project(memory, 1, 3);
  prepare_all(all, threads);
  return finite;
}

void add_bias(const Linear& linear, const ProductTile& tile) {
  if (!linear.bias) return;
  for (std::size_t c = 0; c < tile.n_columns; ++c) {
    const double bias = linear.bias->at(0, tile.first_column + c);
    double* numbers = tile.numbers + c * tile.stride;
    for (std::size_t i = 0; i < tile.n_rows; ++i) numbers[i] += bias;
  }
}

void keep_blas_to_one_thread() {
  openblas_set_num_threads(1);
}

namespace {

constexpr std::size_t most_sums = 64;  // roundings of so many do not show

}  // namespace

arma::mat combined_contexts(const Heads& all, CombineRule rule) {
  const arma::mat by_token(const_cast<double*>(all.contexts.data()), all.d_out, all.n_queries, false, true);
  if (rule == CombineRule::concatenate) return by_token.t();
  arma::mat merged(all.d_out, all.n_queries);  // one token a column, so that memory runs along a row
  double* next = merged.memptr();
  for (std::size_t h = 0; h < all.heads.size(); ++h)
    for (std::size_t i = 0; i < all.n_queries; ++i)
      next = std::copy_n(by_token.colptr(i) + h * all.d_head, all.d_head, next);
  return merged.t();
}

void Output::rows_changed(std::size_t first, std::size_t end) {
  if (first_ == end_) first_ = first, end_ = end;
  first_ = std::min(first_, first);
  end_ = std::max(end_, end);
}

void Output::head_changed(std::size_t head) {
  if (head_ && *head_ != head) all_ = true;
  head_ = head;
}

const arma::mat& Output::bring_up_to_date(Heads& all, const Model& model, ThreadPool& threads) {
  const std::lock_guard lock(working_);
  if (!all_ && !head_ && first_ == end_) return output_;
  bool everything = std::exchange(all_, true);  // next time, when an exception breaks this off
  const Linear* linear =
      model.projections && model.projections->output ? &*model.projections->output : nullptr;
  if (linear == nullptr || model.merge != CombineRule::concatenate) {
    output_ = combined_contexts(all, model.merge);
    if (linear != nullptr) {
      output_ *= *linear->weight;
      if (linear->bias) output_.each_row() += arma::rowvec(**linear->bias);
    }
  } else {
    if (contexts_.size() != all.contexts.size()) contexts_ = Buffer(all.contexts.size());
    if (!everything && head_) everything = n_sums_ == most_sums || !add_head(all, *linear, threads);
    if (everything) {
      output_.set_size(all.n_queries, linear->weight.n_cols());
      redo_rows(all, model, 0, all.n_queries, threads);
      n_sums_ = 0;
    } else {
      redo_rows(all, model, first_, end_, threads);
    }
  }
  all_ = false;
  head_.reset();
  first_ = end_ = 0;
  return output_;
}

void Output::redo_rows(Heads& all, const Model& model, std::size_t first, std::size_t end,
                       ThreadPool& threads) {
  const Linear& linear = *model.projections->output;
  const arma::mat& w = linear.weight;
  Panels contexts(*all.kernels, end - first, all.d_out, all.panels);
  const double* rows = all.contexts.data() + first * all.d_out;
  threads.run(contexts.n_panels(), (end - first) * all.d_out,
              [&](std::size_t panel) { contexts.fill(panel, rows); });
  const Columns columns{w.memptr(), w.n_rows, w.n_cols};
  multiply(contexts, std::span(&columns, 1), threads, [&](std::size_t, const ProductTile& tile) {
    add_bias(linear, tile);
    for (std::size_t c = 0; c < tile.n_columns; ++c)
      std::copy_n(tile.numbers + c * tile.stride, tile.n_rows,
                  output_.colptr(tile.first_column + c) + first + tile.first_row);
  });
  remember(all, first, end);
}

void Output::remember(const Heads& all, std::size_t first, std::size_t end) {
  std::copy_n(all.contexts.data() + first * all.d_out, (end - first) * all.d_out,
              contexts_.data() + first * all.d_out);
}

/// Adds (contexts now − contexts then) · weight for one head; false when that would lose too much.
bool Output::add_head(Heads& all, const Linear& linear, ThreadPool& threads) {
  const std::size_t h = *head_, d = all.d_head, n = all.n_queries, offset = h * d;
  std::vector<double> increments(n * d);
  double most = 0, most_then = 0, most_now = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) {
      double& then = contexts_.data()[i * all.d_out + offset + c];
      const double now = all.context(h, i)[c], increment = now - then;
      if (std::isnan(now) && std::isnan(then)) continue;  // a row without visible keys stays as it is
      increments[i * d + c] = increment;
      most = std::max(most, std::abs(increment));
      most_then = std::max(most_then, std::abs(then));
      most_now = std::max(most_now, std::abs(now));
      then = now;
    }
  if (!(most_then <= 4 * most_now) || !std::isfinite(most)) return false;
  Panels rows(*all.kernels, n, d, all.panels);
  threads.run(rows.n_panels(), n * d, [&](std::size_t panel) { rows.fill(panel, increments.data()); });
  const Columns columns{linear.weight->memptr() + offset, all.d_out, linear.weight.n_cols()};
  multiply(rows, std::span(&columns, 1), threads, [&](std::size_t, const ProductTile& tile) {
    for (std::size_t c = 0; c < tile.n_columns; ++c)
      all.kernels->add(output_.colptr(tile.first_column + c) + tile.first_row, tile.numbers + c * tile.stride,
                       1, tile.n_rows);
  });
  ++n_sums_;
  return true;
}

}  // namespace core::attention::fast
