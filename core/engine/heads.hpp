#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/base/random.hpp"
#include "core/engine/kernels.hpp"
#include "core/engine/rules.hpp"
#include "core/graph/model.hpp"

namespace core::attention::fast {

/// Numbers that begin at a cache line, with any content; many of them lie in large pages where the system has
/// some.
template <class Number>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size);

  Number* data() { return numbers_.get(); }
  const Number* data() const { return numbers_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(Number* numbers) const;
  };
  std::unique_ptr<Number, Free> numbers_;
  std::size_t size_ = 0;
};

/// What roundings have taken since a row was worked out afresh, in units of the last place: of its sum,
/// relative to it, and of its context, whose numbers can be far smaller than what was added to it and taken
/// away.
struct Losses {
  float sum = 0, context = 0;
};

/// What is kept of one head; a row of numbers lies in memory after the other.
template <class Number>
struct Head {
  Buffer<Number> queries;       ///< n_queries × d_head, as they meet the keys
  Buffer<Number> bare_queries;  ///< the same as projected, where something is done to them before
  Buffer<Number> scores;        ///< n_queries × row_stride, as the softmax gets them: −inf where hidden
  std::vector<double> largest, sums;  ///< [row]; weights are exp(score − largest) / sum
  std::vector<Losses> losses;         ///< [row]
};

/// What is kept of the keys and values that a group of heads shares.
template <class Number>
struct Group {
  Buffer<Number>
      key_panels;  ///< panel after panel of keys, each d_head × panel_width, as they meet the queries
  Buffer<Number> bare_keys;  ///< n_keys × d_head, as projected, where something is done to them before
  Buffer<Number> values;     ///< n_keys × value_stride, zeros beyond d_head
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

/// A learned matrix as the loops multiply it: in float32 a copy, which is kept until the matrix is another.
template <class Number>
class Weights {
 public:
  const Number* of(const SharedMatrix& matrix);

 private:
  SharedMatrix matrix_;
  std::vector<Number> numbers_;
};

/// How much of a row is worked out anew.
enum class From { queries, scores, weights };

/// The rows of a head that an update worked out afresh, and whether all of its numbers are finite.
struct RowsRedone {
  std::vector<std::size_t> rows;
  bool finite = true;
};

/// All heads of one sequence, and what each block of their rows is computed from; in float64 or in float32.
///
/// In float32 every product, sum and exponential is one of float32, as PyTorch computes; largest scores and
/// sums of rows are kept in float64, so that updates add up without loss.
template <class Number>
struct Heads : KeptSizes {
  /// Whether roundings are so small that what was kept may change by increments many times. In float32 it is
  /// computed afresh.
  static constexpr bool is_fine = sizeof(Number) == sizeof(double);

  const Kernels<Number>* kernels = nullptr;
  bool uniform = false;  ///< scores are all zero
  double scale = 1;
  EmptyRows empty_rows = EmptyRows::nan;
  Visibility visibility;
  Survivors kept;
  Rules rules;
  std::vector<double> sinks;  ///< [head], or empty
  std::vector<Head<Number>> heads;
  std::vector<Group<Number>> groups;
  std::array<Weights<Number>, 4> weights;  ///< of queries, keys, values and the output
  Buffer<Number> contexts;                 ///< n_queries × d_out, the heads concatenated
  Buffer<Number> panels;                   ///< of embeddings or contexts while they are multiplied
  /// Of each thread: weights while context vectors are computed from them. They are not kept, memory is
  /// slower.
  tbb::enumerable_thread_specific<Buffer<Number>> scratch_rows;

  bool same_shape(const Model& model) const;
  /// Makes query or key t, of a head or its group, from what was projected; without rules they are the same
  /// numbers.
  void prepare(Projected what, std::size_t h, std::size_t t);
  /// Memory for such a model, nothing visible yet.
  void allocate(const Model& model);

  /// So many numbers of any content, for the thread that calls until it calls again.
  Number* scratch(std::size_t size);

  /// The group of a head, and how many heads a group has.
  std::size_t kv_head_of(std::size_t h) const { return h / heads_a_group(); }
  std::size_t heads_a_group() const { return heads.size() / groups.size(); }
  Group<Number>& group(std::size_t h) { return groups[kv_head_of(h)]; }
  /// Whether scores change by a product when one number of queries or keys does.
  bool is_bilinear() const {
    return is_fine && !rules.prepares() && !rules.caps() && groups.size() == heads.size();
  }

  Number* query(std::size_t h, std::size_t i) { return heads[h].queries.data() + i * d_head; }
  Number* value(std::size_t h, std::size_t j) { return group(h).values.data() + j * value_stride; }
  /// Number c of query, key or value t, of a head or its group, as projected; where nothing is done to keys
  /// they lie in panels, else one number after the other.
  Number& projected(Projected what, std::size_t h, std::size_t t, std::size_t c) {
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
  Number* scores(std::size_t h, std::size_t i) { return heads[h].scores.data() + i * row_stride; }
  Number* context(std::size_t h, std::size_t i) { return contexts.data() + i * d_out + h * d_head; }
  /// Number c of key j, within its panel.
  Number& key(std::size_t h, std::size_t j, std::size_t c) {
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
  /// Whether a query that has no unmasked key has weights of zero.
  bool leaves_zeros() const { return empty_rows == EmptyRows::zeros || !sinks.empty(); }
  /// What multiplies contexts, beside the weights of what dropout keeps.
  double context_factor() const { return kept.bits.empty() ? 1 : kept.factor; }

  /// Row t of queries, keys or values as it is kept, all heads or groups side by side.
  std::vector<Number> kept_row(Projected what, std::size_t t);
  /// Puts row t in its place in every head or group, and prepares it.
  void put_row(Projected what, std::size_t t, const Number* row);
  /// The heads' contexts as one matrix, n_tokens × d_out, as the model merges them.
  arma::mat combined_contexts(CombineRule rule) const;

  /// exp(score − largest) of n keys of a row.
  void row_of_exponentials(std::size_t head, std::size_t row, std::size_t n, Number* exponentials,
                           std::size_t first_key = 0);

  /// Works out rows first … end − 1 of a head: scores, if asked, then largest and sums, if asked, then
  /// contexts.
  ///
  /// False when a row that sees a key has no finite largest score or sum: such numbers are for attend().
  bool work_out(std::size_t head, std::size_t first, std::size_t end, From from);

  /// Forgets a row of which other keys are visible now: nothing of it is visible.
  void hide_row(std::size_t head, std::size_t row);

  /// Brings one head up to date after its query, key and value of token t were replaced.
  ///
  /// Row t is computed again where token t is a query. In every other row that sees t one score is another:
  /// its sum changes by one exponential and its context by two values, unless so much of the row changes that
  /// it is worked out afresh too. old_value: the d_head numbers that were replaced.
  RowsRedone update_token(std::size_t head, std::size_t t, const Number* old_value, bool is_query = true);

  /// Adds row_parts[i] · key_parts[j] to the scores of rows first … end − 1 and works out the rest of them
  /// afresh.
  ///
  /// They hold n_queries and n_keys numbers. False when a sum is not finite.
  bool update_scores(std::size_t head, std::size_t first, std::size_t end, const Number* row_parts,
                     const Number* key_parts);

  /// Column c of the contexts of rows first … end − 1 of a head, after that column of its values was
  /// replaced.
  ///
  /// values: that column, n_keys numbers.
  void update_context_column(std::size_t head, std::size_t first, std::size_t end, std::size_t c,
                             const Number* values);

 private:
  void work_out_scores(std::size_t head, std::size_t first, std::size_t end);
  bool work_out_exponentials(std::size_t head, std::size_t row, Number* to, std::size_t from);
  void work_out_contexts(std::size_t head, std::size_t first, std::size_t end, Number* exponentials,
                         std::size_t from);
  /// The exponential and the value of a key before and after an edit.
  struct WeightChange {
    double before = 0, after = 0;
    const Number* old_value;
    double old_length, length;  ///< of both values
  };
  bool change_one_weight(std::size_t head, std::size_t row, std::size_t t, const WeightChange& change);
};

}  // namespace core::attention::fast
