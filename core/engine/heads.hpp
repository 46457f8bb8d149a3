#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "core/base/random.hpp"
#include "core/engine/kernels.hpp"
#include "core/engine/rules.hpp"
#include "core/graph/model.hpp"

namespace core::attention::fast {

/// Doubles that begin at a cache line, with any content; large ones lie in large pages where the system has
/// them.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size);

  double* data() { return numbers_.get(); }
  const double* data() const { return numbers_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(double* numbers) const;
  };
  std::unique_ptr<double, Free> numbers_;
  std::size_t size_ = 0;
};

/// What is kept of one head; a row of numbers lies in memory after the other.
struct Head {
  Buffer queries;       ///< n_queries × d_head, as they meet the keys
  Buffer bare_queries;  ///< the same as projected, where something is done to them before
  Buffer scores;        ///< n_queries × row_stride, as the softmax gets them: −inf where hidden
  std::vector<double> largest, sums;  ///< [row]; weights are exp(score − largest) / sum
  std::vector<float> losses;          ///< [row]: roundings since the row was worked out afresh
};

/// What is kept of the keys and values that a group of heads shares.
struct Group {
  Buffer key_panels;  ///< panel after panel of keys, each d_head × panel_width, as they meet the queries
  Buffer bare_keys;   ///< n_keys × d_head, as projected, where something is done to them before
  Buffer values;      ///< n_keys × value_stride, zeros beyond d_head
};

/// Which weights of a sequence dropout keeps.
struct Survivors {
  random::Bits bits;      ///< [sequence][head][row][column]; empty when dropout is not active
  std::size_t first = 0;  ///< where this sequence's begin
  double factor = 1;      ///< what dropout multiplies those by
};

/// How long what is kept is.
struct KeptSizes {
  std::size_t n_queries = 0, n_keys = 0, d_head = 0, d_out = 0, row_stride = 0, value_stride = 0;
};

/// All heads of one sequence, and what each block of their rows is computed from.
struct Heads : KeptSizes {
  const Kernels* kernels = nullptr;
  bool uniform = false;  ///< scores are all zero
  double scale = 1;
  EmptyRows empty_rows = EmptyRows::nan;
  Visibility visibility;
  Survivors kept;
  Rules rules;
  std::vector<double> sinks;  ///< [head], or empty
  std::vector<Head> heads;
  std::vector<Group> groups;
  Buffer contexts;  ///< n_queries × d_out, the heads side by side
  Buffer panels;    ///< of embeddings or contexts while they are multiplied
  /// Of each thread: weights while contexts are made of them. They are not kept, memory is slower.
  tbb::enumerable_thread_specific<Buffer> rows;

  bool same_shape(const Model& model) const;
  /// Makes query or key t, of a head or its group, from what was projected; without rules they are the same
  /// numbers.
  void prepare(Projected what, std::size_t h, std::size_t t);
  /// Memory for such a model, nothing visible yet.
  void allocate(const Model& model);

  /// So many numbers of any content, for the thread that calls until it calls again.
  double* scratch(std::size_t size);

  /// The group of a head, and how many heads a group has.
  std::size_t kv_head_of(std::size_t h) const { return h / heads_a_group(); }
  std::size_t heads_a_group() const { return heads.size() / groups.size(); }
  Group& group(std::size_t h) { return groups[kv_head_of(h)]; }
  /// Whether scores change by a product when one number of queries or keys does.
  bool is_bilinear() const { return !rules.prepares() && !rules.caps() && groups.size() == heads.size(); }

  double* query(std::size_t h, std::size_t i) { return heads[h].queries.data() + i * d_head; }
  double* value(std::size_t h, std::size_t j) { return group(h).values.data() + j * value_stride; }
  /// Number c of query, key or value t, of a head or its group, as projected; where nothing is done to keys
  /// they lie in panels, else one number after the other.
  double& projected(Projected what, std::size_t h, std::size_t t, std::size_t c) {
    const bool is_query = what == Projected::queries;
    if (what == Projected::values) return value(h, t)[c];
    if (rules.prepares())
      return (is_query ? heads[h].bare_queries : group(h).bare_keys).data()[t * d_head + c];
    return is_query ? query(h, t)[c] : key(h, t, c);
  }
  /// How many heads, or groups, have queries, keys or values of their own, and a head that has part number
  /// `part`.
  std::size_t n_parts(Projected what) const {
    return what == Projected::queries ? heads.size() : groups.size();
  }
  std::size_t head_of(Projected what, std::size_t part) const {
    return what == Projected::queries ? part : part * heads_a_group();
  }
  double* scores(std::size_t h, std::size_t i) { return heads[h].scores.data() + i * row_stride; }
  double* context(std::size_t h, std::size_t i) { return contexts.data() + i * d_out + h * d_head; }
  /// Number c of key j, within its panel.
  double& key(std::size_t h, std::size_t j, std::size_t c) {
    const std::size_t width = kernels->panel_width;
    return group(h).key_panels.data()[(j / width * d_head + c) * width + j % width];
  }
  /// The largest k·k of a head's keys.
  double longest_key_squared(std::size_t h) const;
  bool is_kept(std::size_t h, std::size_t i, std::size_t j) const {
    return kept.bits.empty() || kept.bits[kept.first + (h * n_queries + i) * n_keys + j];
  }
  /// What dropout multiplies a weight by.
  double kept_factor(std::size_t h, std::size_t i, std::size_t j) const {
    return kept.bits.empty() ? 1 : is_kept(h, i, j) ? kept.factor : 0;
  }
  /// Whether a query that sees no key has weights of zero.
  bool leaves_zeros() const { return empty_rows == EmptyRows::zeros || !sinks.empty(); }
  /// What multiplies contexts, beside the weights of what dropout keeps.
  double context_factor() const { return kept.bits.empty() ? 1 : kept.factor; }
};

/// How much of a row is worked out anew.
enum class From { queries, scores, weights };

/// exp(score − largest) of n keys of a row.
void row_of_exponentials(Heads& all, std::size_t head, std::size_t row, std::size_t n, double* exponentials,
                         std::size_t first_key = 0);

/// Works out rows first … end − 1 of a head: scores, if asked, then largest and sums, if asked, then
/// contexts.
///
/// False when a row that sees a key has no finite largest score or sum: such numbers are for attend().
bool work_out(Heads& all, std::size_t head, std::size_t first, std::size_t end, From from);

/// Forgets a row of which other keys are visible now: nothing of it is visible.
void hide_row(Heads& all, std::size_t head, std::size_t row);

/// The rows of a head that an update worked out afresh, and whether all of its numbers are finite.
struct RowsRedone {
  std::vector<std::size_t> rows;
  bool finite = true;
};

/// Brings one head up to date after its query, key and value of token t were replaced.
///
/// Row t is worked out afresh where token t asks. In every other row that sees t one score is another: its
/// sum changes by one exponential and its context by two values, unless so much of the row changes that it is
/// worked out afresh too. old_value: the d_head numbers that were replaced.
RowsRedone update_token(Heads& all, std::size_t head, std::size_t t, const double* old_value,
                        bool asks = true);

/// Adds row_parts[i] · key_parts[j] to the scores of rows first … end − 1 and works out the rest of them
/// afresh.
///
/// They hold n_queries and n_keys numbers. False when a sum is not finite.
bool update_scores(Heads& all, std::size_t head, std::size_t first, std::size_t end, const double* row_parts,
                   const double* key_parts);

/// Column c of the contexts of rows first … end − 1 of a head, after that column of its values was replaced.
///
/// values: that column, n_keys numbers.
void update_context_column(Heads& all, std::size_t head, std::size_t first, std::size_t end, std::size_t c,
                           const double* values);

}  // namespace core::attention::fast
