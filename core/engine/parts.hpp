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
template <class Number>
Trace trace_on_request(Heads<Number>& all, const Model& model, const Model& held, const std::size_t& sequence,
                       std::function<const arma::mat&()> output);

/// Lets every stage be made anew.
void renew(Trace& trace);

/// What an engine is made of, whatever the format of its numbers.
struct Engine::Parts {
  Parts(std::size_t n_threads, Precision its_format);
  virtual ~Parts() = default;

  /// The full pass.
  bool compute(const Model& model, std::size_t s, const Token* progress);
  /// Updates: false when everything must be computed instead.
  virtual bool update(const Model& after, const Difference& d, const Token* progress, Change& change) = 0;
  /// Whether the next edit of a projection may be too much.
  virtual bool is_far_off() const = 0;
  virtual RowView rows(Stage stage, std::size_t head) const = 0;
  virtual const arma::mat& bring_output_up_to_date() = 0;

  /// Computes the numbers of held anew where something was thrown, or called off, while they changed.
  void restore();

  ThreadPool threads;
  const Precision format;  // of all numbers
  Model held;              // what the trace is of, with sequence; none before the first pass
  std::size_t sequence = 0;
  std::atomic<bool> holds = false;  // whether all numbers are those of held; false as long as they change
  std::mutex restoring;
  bool by_reference = false;  // the trace is attend()'s
  std::unique_ptr<Trace> trace = std::make_unique<Trace>();
  double operations_per_ms = 5e6;  // measured by the last full pass

 protected:
  /// All numbers of a model; nothing when it was called off, else whether they are finite.
  virtual std::optional<bool> work_out(const Model& model, std::size_t s, const Token* progress) = 0;
  /// Frees what the next trace does not need.
  virtual void clear() = 0;
  virtual Trace new_trace(const Model& model) = 0;

 private:
  bool compute_by_reference(Model model, std::size_t s);
  /// The numbers and the trace are that model's from now on.
  void hold(Model model, std::size_t s);
};

/// The numbers of an engine in float64 or float32.
template <class Number>
struct PartsIn : Engine::Parts {
  explicit PartsIn(std::size_t n_threads);

  bool update(const Model& after, const Difference& d, const Token* progress, Change& change) override;
  bool is_far_off() const override;
  RowView rows(Stage stage, std::size_t head) const override;
  const arma::mat& bring_output_up_to_date() override;

 private:
  std::optional<bool> work_out(const Model& model, std::size_t s, const Token* progress) override;
  void clear() override { all.heads.clear(); }
  Trace new_trace(const Model& model) override;

  void prepare(const Model& model, std::size_t s);
  /// Works out all heads from there on; nothing when it was called off, else whether all is finite.
  std::optional<bool> work_out_all(From from, const Token* progress);
  /// Measures queries and keys; false when their products might not be finite.
  bool measure_lengths();

  // Updates, in update.cpp.

  /// Query, key and value of one token, all heads or groups side by side, in the order of Projected; empty
  /// where the token has none.
  using TokenRows = std::array<std::vector<Number>, 3>;
  using Numbers = std::vector<Number>;

  bool add_to_rows(const Model& after, const Difference& d, TokenRows& rows);
  /// The numbers of one token that is a query, a key, or both.
  bool update_rows(const Model& after, const Difference& d, bool is_query, bool is_key, Change& change);
  bool update_projection(const Model& after, const Difference& d, Change& change);
  std::pair<std::size_t, std::size_t> heads_of(const Difference& d) const;
  bool add_to_column(const Difference& d, const Numbers& increments, Numbers& after);
  bool project_column(const Linear& linear, const arma::mat& from, const Difference& d, Numbers& column);
  bool update_column_scores(const Difference& d, std::size_t h, const Numbers& increments);
  void update_values(std::size_t h, std::size_t c, const Numbers& column);
  bool update_mask(const Model& after, const Difference& d, Change& change);
  bool update_all(const Model& after, From from, const Token* progress, Change& change);
  /// How far off scores are at most by the roundings of one addition to queries, keys or values.
  double drift_after(double drift_before, const Numbers& before, const Numbers& after,
                     double increment) const;
  /// The same for all tokens; false when it becomes too much.
  bool allow_drift(const Numbers& before, const Numbers& after, double increment);

  Heads<Number> all;
  bool hide_first = true;  // before rows are worked out: other keys are visible than before
  Output<Number> output;
  double longest_query = 0, longest_key = 0;  // of any head, or more
  std::vector<double> drift;                  // [token]: how far off scores of its query or key may be by now
};

/// Multiplications of a full pass with what comes with them, roughly.
double operations(const Model& model);

/// The format in which an engine computes a model that it covers.
inline Precision format_of(const Model& model) {
  return model.arithmetic.precision;
}

}  // namespace core::attention::fast
