#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/heads.hpp"
#include "core/engine/products.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace core::attention::fast {

/// Part of the computation that must be redone.
enum class RecomputeScope {
  nothing,
  everything,
  scores,             ///< of all heads, from the same queries and keys
  contexts,           ///< of all heads, from the same weights: another dropout mask
  embedding_row,      ///< embedding of one token
  source_row,         ///< source embedding of one key, in cross-attention
  projection_number,  ///< one entry of a weight or a bias
  mask_rows,          ///< rows whose unmasked keys changed
  output              ///< only the output
};

/// Difference between the model that an engine holds and another one of the same shape.
struct ModelDifference {
  RecomputeScope recompute = RecomputeScope::nothing;
  std::size_t row = 0, column = 0;       ///< of the embeddings, the source embeddings or the weight
  std::optional<double> increment = {};  ///< after − before, if a single number changed
  Qkv projected = Qkv::queries;
  bool is_bias = false;                     ///< column then indexes the bias
  std::vector<std::size_t> mask_rows = {};  ///< ascending
};

/// Returns the difference for one sequence; Redo::everything if more than one thing differs.
ModelDifference difference(const Model& before, const Model& after, std::size_t sequence);

/// Returns a trace with the stages of `model`, each computed when it is read, from `all`, `traced_model` and
/// `sequence` as they are then; these must outlive the trace.
template <class Number>
Trace lazy_trace(AllHeads<Number>& all, const Model& model, const Model& traced_model,
                 const std::size_t& sequence, std::function<const arma::mat&()> output);

/// Makes every stage recompute when it is next read.
void invalidate(Trace& trace);

/// Internals of an engine, independent of its number format.
struct Engine::Impl {
  Impl(std::size_t n_threads, Precision number_format);
  virtual ~Impl() = default;

  /// Runs the full pass; returns false if it was canceled.
  bool compute(const Model& model, std::size_t s, const StopToken* progress);
  /// Applies a difference; returns false if everything must be computed instead.
  virtual bool update(const Model& after, const ModelDifference& d, const StopToken* progress,
                      UpdateResult& change) = 0;
  /// Returns whether rounding errors are close to the limit for edits of a projection.
  virtual bool is_near_drift_limit() const = 0;
  virtual RowView rows(Stage stage, std::size_t head) const = 0;
  virtual const arma::mat& updated_output() = 0;

  /// Recomputes the numbers of `traced_model` if an exception or a cancellation interrupted an update.
  void restore();

  ThreadPool threads;
  const Precision format;  // of all numbers
  Model traced_model;      // model of the trace, with sequence; empty before the first pass
  std::size_t sequence = 0;
  std::atomic<bool> is_valid = false;  // whether all numbers belong to held; false while they change
  std::mutex restore_mutex;
  bool uses_attend = false;  // the trace was computed by attend()
  std::unique_ptr<Trace> trace = std::make_unique<Trace>();
  double operations_per_ms = 5e6;  // measured by the last full pass

 protected:
  /// Computes all numbers of a model; returns nullopt if canceled, else whether they are finite.
  virtual std::optional<bool> compute_stages(const Model& model, std::size_t s,
                                             const StopToken* progress) = 0;
  /// Frees memory that the next trace does not need.
  virtual void clear() = 0;
  virtual Trace new_trace(const Model& model) = 0;

 private:
  bool compute_with_attend(Model model, std::size_t s);
  /// Records that the numbers and the trace belong to this model.
  void set_traced_model(Model model, std::size_t s);
};

/// Internals of an engine in float64 or float32.
template <class Number>
struct TypedImpl : Engine::Impl {
  explicit TypedImpl(std::size_t n_threads);

  bool update(const Model& after, const ModelDifference& d, const StopToken* progress,
              UpdateResult& change) override;
  bool is_near_drift_limit() const override;
  RowView rows(Stage stage, std::size_t head) const override;
  const arma::mat& updated_output() override;

 private:
  std::optional<bool> compute_stages(const Model& model, std::size_t s, const StopToken* progress) override;
  void clear() override { all.heads.clear(); }
  Trace new_trace(const Model& model) override;

  void prepare(const Model& model, std::size_t s);
  /// Computes all heads from this stage on; returns nullopt if canceled, else whether all is finite.
  std::optional<bool> compute_all_heads(StartStage from, const StopToken* progress);
  /// Measures queries and keys; returns false if their products might not be finite.
  bool measure_norms();

  // Updates, in update.cpp.

  /// Query, key and value of one token, heads or KV heads concatenated, in the order of Projected; empty
  /// where the token has none.
  using TokenRows = std::array<std::vector<Number>, 3>;
  using NumberList = std::vector<Number>;

  bool add_to_rows(const Model& after, const ModelDifference& d, TokenRows& rows);
  /// Updates the numbers of one token that is a query, a key, or both.
  bool update_rows(const Model& after, const ModelDifference& d, bool is_query, bool is_key,
                   UpdateResult& change);
  bool update_projection(const Model& after, const ModelDifference& d, UpdateResult& change);
  std::pair<std::size_t, std::size_t> affected_heads(const ModelDifference& d) const;
  bool add_to_column(const ModelDifference& d, const NumberList& increments, NumberList& after);
  bool project_column(const Linear& linear, const arma::mat& from, const ModelDifference& d,
                      NumberList& column);
  bool update_column_scores(const ModelDifference& d, std::size_t h, const NumberList& increments);
  void update_values(std::size_t h, std::size_t c, const NumberList& column);
  bool update_mask(const Model& after, const ModelDifference& d, UpdateResult& change);
  bool update_all(const Model& after, StartStage from, const StopToken* progress, UpdateResult& change);
  /// Returns an upper bound of the score error after one more addition to queries, keys or values.
  double drift_after(double drift_before, const NumberList& before, const NumberList& after,
                     double increment) const;
  /// Updates this bound for all tokens; returns false if it exceeds the limit.
  bool add_drift(const NumberList& before, const NumberList& after, double increment);

  AllHeads<Number> all;
  bool must_clear_rows = true;  // fill rows with −inf before computing them: the mask changed
  Output<Number> output;
  double max_query_norm = 0, max_key_norm = 0;  // upper bounds over all heads
  std::vector<double> drift;                    // [token]: bound of the score error from its query or key
};

/// Estimates the cost of a full pass, in multiplications with the operations around them.
double operations(const Model& model);

/// Returns the format in which an engine computes a model that it covers.
inline Precision format_of(const Model& model) {
  return model.arithmetic.precision;
}

}  // namespace core::attention::fast
