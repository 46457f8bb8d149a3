#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
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

/// What of the computation must be done again.
enum class Redo {
  nothing,
  everything,
  scores,             ///< of all heads, from the same queries and keys
  contexts,           ///< of all heads, from the same weights: another dropout mask
  embedding_row,      ///< one token's numbers
  source_row,         ///< one key's, where keys have numbers of their own
  projection_number,  ///< one entry of a weight or a bias
  mask_rows,          ///< rows of which other keys are visible
  output              ///< the output alone
};

/// How one model differs from another, of the same shape, that an engine holds.
struct Difference {
  Redo redo = Redo::nothing;
  std::size_t row = 0, column = 0;       ///< of the embeddings, of those of the keys, or of the weight
  std::optional<double> increment = {};  ///< when one number is another: after − before
  Projected projected = Projected::queries;
  bool is_bias = false;                     ///< column is then that of the bias
  std::vector<std::size_t> mask_rows = {};  ///< ascending
};

/// What differs for one sequence; everything when it is more than one thing.
Difference difference(const Model& before, const Model& after, std::size_t sequence);

/// A trace of such a model whose stages are made, when they are read, from what is kept and from the model
/// and the sequence that are held then; all of these must outlive it.
Trace trace_on_request(Heads& all, const Model& model, const Model& held, const std::size_t& sequence,
                       std::function<const arma::mat&()> output);

/// Lets every stage be made anew.
void renew(Trace& trace);

/// Query, key and value of one token, all heads or groups side by side, in the order of Projected; empty
/// where the token has none.
using TokenRows = std::array<std::vector<double>, 3>;

/// What an engine is made of.
struct Engine::Parts {
  explicit Parts(std::size_t n_threads);

  // The full pass, in compute.cpp.
  bool compute(const Model& model, std::size_t s, const Token* progress);
  bool compute_by_reference(Model model, std::size_t s);
  /// The numbers and the trace are that model's from now on.
  void hold(Model model, std::size_t s);
  void prepare(const Model& model, std::size_t s);
  /// Works out all heads from there on; nothing when it was called off, else whether all is finite.
  std::optional<bool> work_out_all(From from, const Token* progress);
  /// Measures queries and keys; false when their products might not be finite.
  bool measure_lengths();

  // Updates, in update.cpp: false when everything must be computed instead.
  bool update(const Model& after, const Difference& d, const Token* progress, Change& change);
  bool add_to_rows(const Model& after, const Difference& d, TokenRows& rows);
  /// One token's numbers, as one that asks, that is asked, or both.
  bool update_rows(const Model& after, const Difference& d, bool asks, bool is_asked, Change& change);
  bool update_projection(const Model& after, const Difference& d, Change& change);
  std::pair<std::size_t, std::size_t> heads_of(const Difference& d) const;
  bool add_to_column(const Difference& d, const std::vector<double>& increments, std::vector<double>& after);
  bool update_column_scores(const Difference& d, std::size_t h, const std::vector<double>& increments);
  void update_values(std::size_t h, std::size_t c, const std::vector<double>& column);
  bool update_mask(const Model& after, const Difference& d, Change& change);
  bool update_all(const Model& after, From from, const Token* progress, Change& change);
  /// How far off scores are at most by the roundings of one addition to queries, keys or values.
  double drift_after(double drift_before, const std::vector<double>& before, const std::vector<double>& after,
                     double increment) const;

  /// The same for all tokens; false when it becomes too much.
  bool allow_drift(const std::vector<double>& before, const std::vector<double>& after, double increment);
  /// Whether the next edit of a projection may be too much.
  bool is_far_off() const;

  /// Computes the numbers of held anew where something was thrown, or called off, while they changed.
  void restore();

  ThreadPool threads;
  Heads all;
  bool hide_first = true;  // before rows are worked out: other keys are visible than before
  Model held;              // what the trace is of, with sequence; none before the first pass
  std::size_t sequence = 0;
  std::atomic<bool> holds = false;  // whether all numbers are those of held; false as long as they change
  std::mutex restoring;
  bool by_reference = false;  // the trace is attend()'s
  Trace trace;
  Output output;
  double longest_query = 0, longest_key = 0;  // of any head, or more
  std::vector<double> drift;                  // [token]: how far off scores of its query or key may be by now
  double operations_per_ms = 5e6;             // measured by the last full pass
};

/// Multiplications of a full pass with what comes with them, roughly.
double operations(const Model& model);

}  // namespace core::attention::fast
