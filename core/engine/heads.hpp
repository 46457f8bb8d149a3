#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/base/random.hpp"
#include "core/base/thread_pool.hpp"
#include "core/engine/kernels.hpp"
#include "core/engine/rules.hpp"
#include "core/graph/model.hpp"

namespace core::attention::fast {

/// Uninitialized numbers aligned to a cache line; large buffers use huge pages where the system has them.
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

/// Rounding errors since a row was last fully computed, in units of the last place: relative for its sum,
/// absolute for its context vector, which can be far smaller than the numbers added to it and subtracted.
struct RoundingErrors {
  float sum = 0, context = 0;
};

/// Stored numbers of one head, row-major.
template <class Number>
struct HeadData {
  Buffer<Number> queries;             ///< n_queries × d_head, as multiplied with the keys
  Buffer<Number> projected_queries;   ///< as projected; only with QK norm or RoPE
  Buffer<Number> scores;              ///< n_queries × row_stride, input of the softmax: −inf where masked
  std::vector<double> largest, sums;  ///< [row]; weights are exp(score − largest) / sum
  std::vector<RoundingErrors> rounding_errors;  ///< [row]
};

/// Stored keys and values of one KV head, shared by a group of heads.
template <class Number>
struct KvHeadData {
  Buffer<Number> key_panels;  ///< panels of keys, each d_head × panel_width, as multiplied with the queries
  Buffer<Number> projected_keys;  ///< n_keys × d_head, as projected; only with QK norm or RoPE
  Buffer<Number> values;          ///< n_keys × value_stride, zeros beyond d_head
};

/// Weights of a sequence that dropout keeps.
struct KeptWeights {
  random::Bits bits;      ///< [sequence][head][row][column]; empty when dropout is not active
  std::size_t first = 0;  ///< where this sequence's begin
  double factor = 1;      ///< dropout scale of the kept weights
};

/// Sizes of the stored numbers.
struct BufferSizes {
  std::size_t n_queries = 0, n_keys = 0, d_head = 0, d_out = 0, row_stride = 0, value_stride = 0;
};

/// A learned matrix for the kernels: in float32 a copy, which is kept until the matrix changes.
template <class Number>
class LearnedMatrix {
 public:
  const Number* of(const SharedMatrix& matrix);

 private:
  SharedMatrix matrix_;
  std::vector<Number> numbers_;
};

/// Stage from which a row is recomputed.
enum class StartStage { queries, scores, weights };

/// Rows of a head that an update recomputed in full, and whether all numbers of the head are finite.
struct RecomputedRows {
  std::vector<std::size_t> rows;
  bool is_finite = true;
};

/// All heads of one sequence and the inputs of every block of their rows, in float64 or float32.
///
/// In float32 every product, sum and exponential is float32, as in PyTorch; row maxima and row sums are
/// stored in float64, so that updates accumulate without loss.
template <class Number>
struct AllHeads : BufferSizes {
  /// Whether the format is precise enough to update stored numbers by increments many times; in float32 they
  /// are recomputed.
  static constexpr bool can_increment = sizeof(Number) == sizeof(double);

  const AttentionKernels<Number>* kernels = nullptr;
  bool uniform = false;  ///< scores are all zero
  double scale = 1;
  EmptyRows empty_rows = EmptyRows::nan;
  UnmaskedKeys visibility;
  KeptWeights kept;
  Rules rules;
  std::vector<double> sinks;  ///< [head], or empty
  std::vector<HeadData<Number>> heads;
  std::vector<KvHeadData<Number>> kv_head_data;
  std::array<LearnedMatrix<Number>, 4> weights;  ///< of queries, keys, values and the output
  Buffer<Number> contexts;                       ///< n_queries × d_out, the heads concatenated
  Buffer<Number> panels;                         ///< scratch memory for embeddings or contexts
  /// Weights of each thread while it computes context vectors; storing all of them would be slower.
  PerThread<Buffer<Number>> scratch_rows;

  bool same_shape(const Model& model) const;
  /// Applies QK norm and RoPE to the projected query or key t of a head or its KV head; without them it does
  /// nothing.
  void prepare(Qkv what, std::size_t h, std::size_t t);
  /// Allocates memory for such a model; mask_row() must initialize the scores.
  void allocate(const Model& model);

  /// Returns uninitialized numbers that belong to the calling thread until it calls again.
  Number* scratch(std::size_t size);

  /// KV head of a head, and number of heads per KV head.
  std::size_t kv_head_of(std::size_t h) const { return h / heads_per_kv_head(); }
  std::size_t heads_per_kv_head() const { return heads.size() / kv_head_data.size(); }
  KvHeadData<Number>& kv_head(std::size_t h) { return kv_head_data[kv_head_of(h)]; }
  /// Returns whether a change of one query or key entry changes scores by a product.
  bool is_bilinear() const {
    return can_increment && rules.is_bilinear() && kv_head_data.size() == heads.size();
  }

  Number* query(std::size_t h, std::size_t i) { return heads[h].queries.data() + i * d_head; }
  Number* value(std::size_t h, std::size_t j) { return kv_head(h).values.data() + j * value_stride; }
  /// Returns entry c of query, key or value t of a head or its KV head, as projected. Keys are in panels
  /// if there is neither QK norm nor RoPE, else contiguous.
  Number& projected(Qkv what, std::size_t h, std::size_t t, std::size_t c) {
    const bool is_query = what == Qkv::queries;
    if (what == Qkv::values) return value(h, t)[c];
    if (rules.has_norm_or_rope())
      return (is_query ? heads[h].projected_queries : kv_head(h).projected_keys).data()[t * d_head + c];
    return is_query ? query(h, t)[c] : key(h, t, c);
  }
  /// Number of heads (queries) or KV heads (keys, values), and a head that uses number `part` of them.
  std::size_t n_parts(Qkv what) const { return what == Qkv::queries ? heads.size() : kv_head_data.size(); }
  std::size_t head_of(Qkv what, std::size_t part) const {
    return what == Qkv::queries ? part : part * heads_per_kv_head();
  }
  Number* scores(std::size_t h, std::size_t i) { return heads[h].scores.data() + i * row_stride; }
  Number* context(std::size_t h, std::size_t i) { return contexts.data() + i * d_out + h * d_head; }
  /// Returns entry c of key j, within its panel.
  Number& key(std::size_t h, std::size_t j, std::size_t c) {
    const std::size_t width = kernels->panel_width;
    return kv_head(h).key_panels.data()[(j / width * d_head + c) * width + j % width];
  }
  /// Returns the largest k·k of a head's keys.
  double max_squared_key_norm(std::size_t h) const;
  bool is_kept(std::size_t h, std::size_t i, std::size_t j) const {
    return kept.bits.empty() || kept.bits[kept.first + (h * n_queries + i) * n_keys + j];
  }
  /// Returns the factor by which dropout multiplies a weight.
  double kept_factor(std::size_t h, std::size_t i, std::size_t j) const {
    return kept.bits.empty() ? 1 : is_kept(h, i, j) ? kept.factor : 0;
  }
  /// Returns whether a query without unmasked keys gets weights of zero.
  bool empty_rows_are_zeros() const { return empty_rows == EmptyRows::zeros || !sinks.empty(); }
  /// Returns the dropout scale of the context vectors, 1 without dropout.
  double context_factor() const { return kept.bits.empty() ? 1 : kept.factor; }

  /// Returns row t of queries, keys or values as projected, all heads or KV heads concatenated.
  std::vector<Number> stored_row(Qkv what, std::size_t t);
  /// Stores row t in every head or KV head, and prepares it.
  void store_row(Qkv what, std::size_t t, const Number* row);
  /// Combines the heads' contexts into one matrix, n_tokens × d_out, by the model's rule.
  arma::mat combined_contexts(CombineRule rule) const;

  /// Computes exp(score − largest) of n keys of a row, from first_key on.
  void recompute_exponentials(std::size_t head, std::size_t row, std::size_t n, Number* exponentials,
                              std::size_t first_key = 0);

  /// Computes rows first … end − 1 of a head: scores (for From::queries), row maxima and sums (unless
  /// From::weights), then contexts.
  ///
  /// Returns false if a row with unmasked keys has no finite maximum or sum; such models need attend().
  bool compute_stages(std::size_t head, std::size_t first, std::size_t end, StartStage from);

  /// Fills a row's scores with −inf, for a row whose unmasked keys changed.
  void mask_row(std::size_t head, std::size_t row);

  /// Updates one head after its query, key and value of token t were replaced.
  ///
  /// Row t is recomputed if token t is a query. In every other row that attends to t one score changes: its
  /// sum changes by one exponential and its context by two values, unless so much of the row changes that it
  /// is recomputed too. old_value: the d_head numbers that were replaced.
  RecomputedRows update_token(std::size_t head, std::size_t t, const Number* old_value, bool is_query = true);

  /// Adds row_parts[i] · key_parts[j] to the scores of rows first … end − 1 and recomputes the later stages.
  ///
  /// row_parts holds n_queries numbers, key_parts n_keys. Returns false if a sum is not finite.
  bool update_scores(std::size_t head, std::size_t first, std::size_t end, const Number* row_parts,
                     const Number* key_parts);

  /// Recomputes column c of the contexts of rows first … end − 1 of a head, after that column of its values
  /// was replaced.
  ///
  /// values: that column, n_keys numbers.
  void update_context_column(std::size_t head, std::size_t first, std::size_t end, std::size_t c,
                             const Number* values);

 private:
  void compute_scores(std::size_t head, std::size_t first, std::size_t end);
  bool compute_exponentials(std::size_t head, std::size_t row, Number* to, std::size_t from);
  void compute_contexts(std::size_t head, std::size_t first, std::size_t end, Number* exponentials,
                        std::size_t from);
  /// The exponential and the value of a key before and after an edit.
  struct WeightChange {
    double before = 0, after = 0;
    const Number* old_value;
    double old_length, length;  ///< of the old and the new value
  };
  bool update_weight(std::size_t head, std::size_t row, std::size_t t, const WeightChange& change);
};

}  // namespace core::attention::fast
