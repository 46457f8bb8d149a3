#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "core/base/thread_pool.hpp"
#include "core/engine/heads.hpp"

namespace core::attention::fast {

/// The output of all tokens, worked out when it is asked for and then only where contexts changed.
class Output {
 public:
  void all_changed() { all_ = true; }
  /// Contexts of rows first … end − 1 changed, in any head.
  void rows_changed(std::size_t first, std::size_t end);
  /// Contexts of one head changed, in any row.
  void head_changed(std::size_t head);

  /// n_tokens × d_output. Several threads may ask: the first works it out, the others wait for it.
  const arma::mat& bring_up_to_date(Heads& all, const Model& model, ThreadPool& threads);

 private:
  void redo_rows(Heads& all, const Model& model, std::size_t first, std::size_t end, ThreadPool& threads);
  bool add_head(Heads& all, const Linear& linear, ThreadPool& threads);
  void remember(const Heads& all, std::size_t first, std::size_t end);

  std::mutex working_;
  bool all_ = true;
  std::size_t first_ = 0, end_ = 0;  // rows that changed
  std::optional<std::size_t> head_;  // the head that changed
  std::size_t n_sums_ = 0;           // what was added since all of it was worked out
  arma::mat output_;
  Buffer contexts_;  // those that the output was worked out from
};

/// The heads' contexts as one matrix, n_tokens × d_out, as the model merges them.
arma::mat merged_contexts(const Heads& all, MergeRule rule);

}  // namespace core::attention::fast
