#include "core/attention/fast/output.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>

#include "core/attention/fast/projecting.hpp"
#include "core/attention/formulas.hpp"

namespace core::attention::fast {
namespace {

constexpr std::size_t most_sums = 64;  // roundings of so many do not show

/// Calls task(first, end) for a share of the rows on each thread.
template <class Task>
void share_rows(std::size_t n_rows, std::size_t n_numbers, ThreadPool& threads, const Task& task) {
  const std::size_t n = n_numbers < 4096 ? 1 : threads.n_threads();
  threads.run(n, [&](std::size_t k) { task(n_rows * k / n, n_rows * (k + 1) / n); });
}

}  // namespace

arma::mat merged_contexts(const Heads& all, MergeRule rule) {
  const arma::mat by_token(const_cast<double*>(all.contexts.data()), all.d_out, all.n_tokens, false, true);
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
  if (!all_ && !head_ && first_ == end_) return output_;
  const Linear* linear =
      model.projections && model.projections->output ? &*model.projections->output : nullptr;
  if (linear == nullptr || model.merge != MergeRule::concatenate) {
    output_ = merged_contexts(all, model.merge);
    if (linear != nullptr) output_ = project(output_, *linear);
  } else {
    if (contexts_.size() != all.contexts.size()) contexts_ = Buffer(all.contexts.size());
    if (!all_ && head_) all_ = n_sums_ == most_sums || !add_head(all, *linear, threads);
    if (all_) {
      output_.set_size(all.n_tokens, all.d_out);
      redo_rows(all, model, 0, all.n_tokens, threads);
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
  share_rows(end - first, (end - first) * all.d_out, threads, [&](std::size_t from, std::size_t to) {
    multiply_rows(all.contexts.data() + (first + from) * all.d_out, to - from, linear,
                  output_.memptr() + first + from, output_.n_rows);
    remember(all, first + from, first + to);
  });
}

void Output::remember(const Heads& all, std::size_t first, std::size_t end) {
  std::copy_n(all.contexts.data() + first * all.d_out, (end - first) * all.d_out,
              contexts_.data() + first * all.d_out);
}

/// Adds (contexts now − contexts then) · weight for one head; false when that would lose too much.
bool Output::add_head(Heads& all, const Linear& linear, ThreadPool& threads) {
  const std::size_t h = *head_, d = all.d_head, n = all.n_tokens, offset = h * d;
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
  share_rows(n, n * d, threads, [&](std::size_t first, std::size_t end) {
    cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, int(end - first), int(all.d_out), int(d), 1,
                increments.data() + first * d, int(d), linear.weight->memptr() + offset,
                int(linear.weight->n_rows), 1, output_.memptr() + first, int(n));
  });
  ++n_sums_;
  return true;
}

}  // namespace core::attention::fast
