#pragma once

#include <array>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/engine/difference.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/heads.hpp"
#include "core/engine/output.hpp"
#include "core/engine/requests.hpp"

namespace core::attention::fast {

/// Query, key and value of one token, all heads or groups side by side, in the order of Projected; empty
/// where the token has none.
using TokenRows = std::array<std::vector<double>, 3>;

/// What an engine is made of.
struct Engine::Parts {
  explicit Parts(std::size_t n_threads);

  // The full pass, in compute.cpp.
  bool compute(const Model& model, std::size_t s, const Token* progress);
  bool compute_by_reference(const Model& model, std::size_t s);
  void prepare(const Model& model, std::size_t s);
  /// Works out all heads from there on; nothing when it was called off, else whether all is finite.
  std::optional<bool> work_out_all(From from, const Token* progress);
  /// Measures queries and keys; false when their products might not be finite.
  bool measure_lengths();

  // Updates, in update.cpp: false when everything must be computed instead.
  bool update_embedding(const Model& after, const Difference& d, Change& change);
  bool add_to_rows(const Model& after, const Difference& d, TokenRows& rows);
  bool update_memory(const Model& after, const Difference& d, Change& change);
  /// One token's numbers, as one that asks, that is asked, or both.
  bool update_rows(const Model& after, const Difference& d, bool asks, bool is_asked, Change& change);
  bool update_projection(const Model& after, const Difference& d, Change& change);
  bool update_query_or_key(const Difference& d, const std::vector<double>& increments, Change& change);
  bool update_value(const Difference& d, const std::vector<double>& increments, Change& change);
  bool update_prepared(const Difference& d, const std::vector<double>& increments, Change& change);
  std::pair<std::size_t, std::size_t> heads_of(const Difference& d) const;
  bool update_mask(const Model& after, const Difference& d, Change& change);
  bool update_all(const Model& after, From from, const Token* progress, Change& change);
  /// How far off scores are at most by the roundings of one addition to queries, keys or values.
  double drift_after(double drift_before, const std::vector<double>& before, const std::vector<double>& after,
                     double increment) const;

  /// The same for all tokens; false when it becomes too much.
  bool allow_drift(const std::vector<double>& before, const std::vector<double>& after, double increment);
  /// Whether the next edit of a projection may be too much.
  bool is_far_off() const;

  ThreadPool threads;
  Heads all;
  bool hide_first = true;  // before rows are worked out: other keys are visible than before
  Model held;              // what the numbers belong to
  bool holds = false;      // whether they are complete
  std::size_t sequence = 0;
  bool by_reference = false;  // the trace is attend()'s
  Trace trace;
  TraceKind kind;  // of the trace, where it is not attend()'s
  Output output;
  double longest_query = 0, longest_key = 0;  // of any head, or more
  std::vector<double> drift;                  // [token]: how far off scores of its query or key may be by now
  double operations_per_ms = 5e6;             // measured by the last full pass
};

/// Multiplications of a full pass with what comes with them, roughly.
double operations(const Model& model);

}  // namespace core::attention::fast
