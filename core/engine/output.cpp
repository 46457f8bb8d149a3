#include "core/engine/output.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/engine/panels.hpp"
#include "core/engine/projecting.hpp"
#include "core/graph/formulas.hpp"

namespace core::attention::fast {
namespace {

constexpr std::size_t most_sums = 64;  // roundings of so many do not show

}  // namespace

arma::mat merged_contexts(const Heads& all, MergeRule rule) {
  const arma::mat by_token(const_cast<double*>(all.contexts.data()), all.d_out, all.n_queries, false, true);
  if (rule == MergeRule::concatenate) return by_token.t();
  std::vector<arma::mat> contexts;
  for (std::size_t h = 0; h < all.heads.size(); ++h)
    contexts.push_back(by_token.rows(h * all.d_head, (h + 1) * all.d_head - 1).t());
  return reshaped_without_transpose(contexts);
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
  if (linear == nullptr || model.merge != MergeRule::concatenate) {
    output_ = merged_contexts(all, model.merge);
    if (linear != nullptr) output_ = project(output_, *linear);
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
