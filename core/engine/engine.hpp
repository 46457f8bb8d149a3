#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace core::attention::fast {

/// Changes of one update to one head's masked scores and weights, so that only these parts are redrawn.
struct HeadChange {
  bool all = true;                           ///< every number changed; the other fields do not count
  std::vector<std::size_t> rows = {};        ///< rows that changed in full
  std::optional<std::size_t> column = {};    ///< a column that changed
  std::size_t first_changed_sum = SIZE_MAX;  ///< row sums changed from this row on; n_tokens if none did
};

/// Changes of one update; stages of other shapes may always have changed.
struct UpdateResult {
  bool completed = true;               ///< false: canceled
  bool everything = true;              ///< a new trace; heads is empty
  std::vector<HeadChange> heads = {};  ///< [head]
};

/// A stage as it is stored: row-major, and weights as the scores that they are computed from.
struct RowView {
  const double* numbers = nullptr;  ///< nullptr if they are stored in float32 or not at all
  std::size_t stride = 0;           ///< from one row to the next
  std::size_t n_rows = 0, n_cols = 0;
  /// [row]: weights are exp(number − largest) / sum; nullptr when the numbers are the stage itself.
  const double *largest = nullptr, *sums = nullptr;
  void (*exponentials)(double* numbers, std::size_t n) = nullptr;  ///< of weights, fast: eˣ of n numbers
  const float* float32_numbers = nullptr;

  /// False if this stage is not stored and must be read from the trace.
  explicit operator bool() const { return numbers || float32_numbers; }
  /// Returns n numbers of a row, from column `first` on; float32 numbers are copied to memory.
  const double* read(std::size_t row, std::size_t first, std::size_t n, std::vector<double>& memory) const {
    if (numbers) return numbers + row * stride + first;
    const float* from = float32_numbers + row * stride + first;
    memory.assign(from, from + n);
    return memory.data();
  }
};

struct ModelDifference;  // in implementation.hpp

/// Attention equal to that of attend() up to rounding, but faster: on all processors, and after an edit only
/// the parts that it affects.
///
/// Stores the stages that are expensive to compute (queries, keys, values, masked scores, row maxima and
/// sums, context vectors); the trace computes the others when they are read. Models that supports() rejects
/// are passed to attend(). A float32 model is computed in float32, as in PyTorch, while attend() sums in
/// float64 and rounds every stage: this is twice as fast and differs from attend() by the rounding of float32
/// sums. Non-const functions need exclusive access; several threads may read trace() and rows() at once, the
/// first reader of a stage computes it. An engine may move between threads.
class Engine {
 public:
  /// Uses n_threads threads, the caller's included; 0 for one per processor. Limits OpenBLAS to one thread in
  /// the whole program, because the engine's own threads share the work.
  explicit Engine(std::size_t n_threads = 0);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  /// Computes everything; returns false if it was canceled.
  ///
  /// Throws core::Error as attend() does.
  bool compute(const Model& model, std::size_t sequence = 0, const StopToken* progress = nullptr);

  /// Switches to another model and recomputes only the results that depend on the differences.
  ///
  /// Throws core::Error as attend() does. If this or compute() throws, the trace still belongs to the
  /// previous model and may be recomputed when it is next read.
  UpdateResult update(const Model& after, std::size_t sequence = 0, const StopToken* progress = nullptr);

  /// Work that update() would do for another model, which must pass check().
  struct Plan {
    double ms = 0;  ///< estimated time, from the speed of the last full pass
    std::shared_ptr<const ModelDifference> difference;  ///< nullptr if everything must be computed
  };
  Plan plan(const Model& after, std::size_t sequence = 0) const;
  /// Updates by a plan that was made for this model, which is not checked again.
  UpdateResult update(const Model& after, std::size_t sequence, const Plan& plan,
                      const StopToken* progress = nullptr);

  /// Returns all stages; valid until the next compute() or update(), empty before the first.
  const Trace& trace() const;
  /// Returns the model of the trace.
  const Model& model() const;

  /// Returns the stored masked scores or weights of a head; an empty view for other stages.
  RowView rows(Stage stage, std::size_t head) const;

  /// Returns the up-to-date output, n_tokens × d_output; the same as trace().at(Stage::output).
  const arma::mat& output();

  struct Impl;  // in implementation.hpp

 private:
  bool compute_in_format(const Model& model, std::size_t sequence, const StopToken* progress);

  std::unique_ptr<Impl> impl_;
};

/// Returns whether an engine computes such a model itself: float64 or float32, masked with −inf before the
/// softmax, without injected bugs, given stages or ablated heads.
bool supports(const Model& model);

/// Returns the bytes that an engine needs for a model of this size, without the model's own; n_keys = 0 means
/// n_tokens keys.
std::uint64_t engine_bytes(std::size_t n_tokens, std::size_t d_out, std::size_t n_heads,
                           std::size_t n_keys = 0);

}  // namespace core::attention::fast
