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

/// What an update changed of one head's masked scores and weights, so that pictures of them need no more.
struct HeadChange {
  bool all = true;                         ///< every number, whatever the rest says
  std::vector<std::size_t> rows = {};      ///< these rows in full
  std::optional<std::size_t> column = {};  ///< this column
  std::size_t first_sum = SIZE_MAX;        ///< sums of rows changed from this row on; n_tokens when none did
};

/// What an update changed; stages of other shapes may always have changed.
struct Change {
  bool completed = true;               ///< false: called off
  bool everything = true;              ///< a new trace; heads is empty
  std::vector<HeadChange> heads = {};  ///< [head]
};

/// A stage in the form in which it is kept: row after row, weights as the scores of which they are made.
struct RowView {
  const double* numbers = nullptr;  ///< nullptr where they are kept in float32, or not at all
  std::size_t stride = 0;           ///< from one row to the next
  std::size_t n_rows = 0, n_cols = 0;
  /// [row]: weights are exp(number − largest) / sum; nullptr when the numbers are the stage itself.
  const double *largest = nullptr, *sums = nullptr;
  void (*exponentials)(double* numbers, std::size_t n) = nullptr;  ///< of all weights, fast: eˣ of n numbers
  const float* float32_numbers = nullptr;

  /// False when this stage is not kept; then read it from the trace.
  explicit operator bool() const { return numbers || float32_numbers; }
  /// So many numbers of a row from a column on; those of float32 are copied to memory.
  const double* read(std::size_t row, std::size_t first, std::size_t n, std::vector<double>& memory) const {
    if (numbers) return numbers + row * stride + first;
    const float* from = float32_numbers + row * stride + first;
    memory.assign(from, from + n);
    return memory.data();
  }
};

struct Difference;  // in difference.hpp

/// Attention as attend() computes it, to rounding, but faster: on all processors, and after an edit only what
/// changed.
///
/// What cannot be had cheaply is kept (queries, keys, values, masked scores, the largest and the sum of each
/// row, contexts); the trace makes the other stages when they are read. A model that covers() refuses goes to
/// attend() itself. A model in float32 is computed in float32, as PyTorch does it, where attend() rounds
/// every stage of sums in float64: it is twice as fast, and as far from attend() as sums of float32 are. One
/// thread at a time may call what is not const, and nobody reads meanwhile; several may read trace() and
/// rows() at once, each stage is made by the first of them. An engine can be handed from thread to thread.
class Engine {
 public:
  /// So many threads, the caller's among them; 0 for one on each processor. Sets OpenBLAS to one thread, for
  /// the whole program: the engine's own threads share the work.
  explicit Engine(std::size_t n_threads = 0);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  /// Computes everything; false when it was called off.
  ///
  /// Throws core::Error as attend() does.
  bool compute(const Model& model, std::size_t sequence = 0, const Token* progress = nullptr);

  /// Goes from the model that it holds to another one, recomputing only what depends on what differs.
  ///
  /// Throws core::Error as attend() does. Whatever is thrown, here or in compute(), the trace stays that of
  /// the model before, for which it may be computed anew when it is read next.
  Change update(const Model& after, std::size_t sequence = 0, const Token* progress = nullptr);

  /// What update() would have to do to get to another model, which passes check().
  struct Plan {
    double ms = 0;  ///< it takes, from what computing took on this machine so far
    std::shared_ptr<const Difference> difference;  ///< nullptr when everything is to be computed
  };
  Plan plan(const Model& after, std::size_t sequence = 0) const;
  /// Carries out a plan that was made for that model, which is not checked again.
  Change update(const Model& after, std::size_t sequence, const Plan& plan, const Token* progress = nullptr);

  /// Every stage; valid until the next compute() or update(). Empty before the first.
  const Trace& trace() const;
  /// The model that the trace is of.
  const Model& model() const;

  /// Masked scores, or weights, of a head as they are kept; of other stages nothing.
  RowView rows(Stage stage, std::size_t head) const;

  /// n_tokens × d_output, brought up to date; the same as trace().at(Stage::output).
  const arma::mat& output();

  struct Parts;  // in parts.hpp

 private:
  bool compute_in_format(const Model& model, std::size_t sequence, const Token* progress);

  std::unique_ptr<Parts> parts_;
};

/// Whether an engine computes such a model itself: in float64 or float32, queries and keys or uniform scores,
/// a mask of −inf before the softmax.
bool covers(const Model& model);

/// Bytes that an engine needs for a model of this size, the model's own not counted; without n_keys there are
/// as many keys as tokens.
std::uint64_t engine_bytes(std::size_t n_tokens, std::size_t d_out, std::size_t n_heads,
                           std::size_t n_keys = 0);

}  // namespace core::attention::fast
