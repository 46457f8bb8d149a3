#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/shared_matrix.hpp"
#include "core/graph/additions.hpp"
#include "core/graph/bug_case.hpp"
#include "core/graph/given.hpp"
#include "core/graph/rounding.hpp"

namespace core::attention {

/// Learned projection, used as x·weight + bias.
struct Linear {
  SharedMatrix weight;               ///< d_in × d_out
  std::optional<SharedMatrix> bias;  ///< 1 × d_out
  friend bool operator==(const Linear&, const Linear&) = default;
};

/// Learned matrices: queries, keys and values of all heads concatenated, and an optional output projection.
struct Projections {
  /// d_in × d_out, keys and values with the columns of the KV heads; see column_of_head().
  Linear query, key, value;
  std::optional<Linear> output;  ///< d_out × d_output
  friend bool operator==(const Projections&, const Projections&) = default;
};

/// One sequence of a batch: a token and an embedding for each position.
struct Sequence {
  std::vector<std::string> tokens;  ///< n_tokens names in UTF-8
  SharedMatrix embeddings;          ///< n_tokens × d_model; no columns if unknown
  /// n_keys names of the tokens of keys, if they differ from those of queries; else empty.
  std::vector<std::string> key_tokens = {};
  /// n_keys × d_source: source of keys and values in cross-attention (encoder states); else empty.
  SharedMatrix key_embeddings = {};
  /// Returns the names of the tokens of keys.
  const std::vector<std::string>& keys() const { return key_tokens.empty() ? tokens : key_tokens; }
  friend bool operator==(const Sequence&, const Sequence&) = default;
};

/// Source of the scores.
enum class ScoreRule { query_key, uniform };

/// Rule for the factor between scores and scaled scores.
enum class ScaleRule { inverse_sqrt_d_head, none, inverse_sqrt_d_model, factor };

struct Scale {
  ScaleRule rule = ScaleRule::inverse_sqrt_d_head;
  double factor = 1;  ///< multiplies the scores if rule is ScaleRule::factor; any finite number
  friend bool operator==(const Scale&, const Scale&) = default;
};

/// How masked cells are excluded: before the softmax (negative_infinity, large_negative) or after it.
enum class MaskMethod { negative_infinity, renormalize, zero_after_softmax, large_negative };

/// Weights of a query whose keys are all masked: 0/0 by the formula, or zeros on request.
enum class EmptyRows { nan, zeros };

/// One cell of the mask set by hand.
struct MaskCell {
  std::size_t row = 0, column = 0;
  bool visible = true;
  std::pair<std::size_t, std::size_t> place() const { return {row, column}; }
  friend auto operator<=>(const MaskCell&, const MaskCell&) = default;
};

/// Keys that queries are aligned with if their numbers differ: the last, as with a KV cache, or the first.
/// Query i is then at position i + n_keys − n_tokens, or at i.
enum class MaskAlignment { last, first };

/// Sliding window of keys around a query; a side without a number is unlimited.
struct MaskWindow {
  std::optional<std::size_t> left, right;
  friend bool operator==(const MaskWindow&, const MaskWindow&) = default;
};

/// Edge of the causal mask; PyTorch's tril(diagonal), or triu(-diagonal) if it is transposed.
struct MaskEdge {
  int diagonal = 0;         ///< queries attend to keys up to their own position plus this
  bool transposed = false;  ///< queries and keys are swapped
  friend bool operator==(const MaskEdge&, const MaskEdge&) = default;
};

struct Mask {
  bool causal = true;  ///< whether queries attend only to keys up to their own position
  MaskMethod method = MaskMethod::negative_infinity;
  EmptyRows empty_rows = EmptyRows::nan;
  std::vector<MaskCell> cells;  ///< each cell once, sorted by row, then column
  MaskAlignment align = MaskAlignment::last;
  MaskEdge edge;
  double large_negative = -1e9;  ///< masked scores with MaskMethod::large_negative; finite
  MaskWindow window;
  std::size_t prefix = 0;  ///< keys that every query attends to, despite causal rule and window
  /// Document of each token, or none; queries attend only to keys of their own document.
  std::vector<std::size_t> documents;
  /// [sequence]: keys masked for all queries (padding), each once and sorted; no lists if all are empty.
  std::vector<std::vector<std::size_t>> hidden_keys;
  /// Returns the cell set by hand at that place, or nullptr.
  const MaskCell* find(std::size_t row, std::size_t column) const;
  /// Returns whether there is more than the causal rule and cells set by hand: an alignment, a window, a
  /// prefix, documents, padding.
  bool has_other_rules() const;
  /// Returns whether only the causal rule masks keys, and queries are aligned with the last keys.
  bool is_only_causal() const;
  /// Returns whether scores are masked, not weights.
  bool is_before_softmax() const {
    return method == MaskMethod::negative_infinity || method == MaskMethod::large_negative;
  }
  /// Returns a mask of the same method that masks nothing.
  Mask with_nothing_masked() const;
  /// Returns whether anything can mask a key, or anything but cells set by hand.
  bool masks_keys() const;
  bool masks_keys_by_rule() const;
  friend bool operator==(const Mask&, const Mask&) = default;
};

/// PyTorch's two streams of random numbers for dropout.
enum class DropoutStream { mt19937, mkl };

/// Target of dropout. A dropped weight is a missing key; a dropped score is a score of 0.
enum class DropoutPlace {
  weights,
  scaled_scores,  ///< before the mask
  masked_scores   ///< between mask and softmax, where −∞ · 0 is NaN
};

struct Dropout {
  double rate = 0;  ///< 0 … 1; 1 drops everything
  bool training = true;
  std::uint64_t seed = 123;
  DropoutStream stream = DropoutStream::mt19937;
  /// Given mask instead of a sampled one: [sequence · n_heads + head], each n_tokens × n_keys of 0 and 1.
  std::vector<SharedMatrix> given;
  bool rescale = true;  ///< whether kept weights are multiplied by 1/(1 − rate)
  DropoutPlace place = DropoutPlace::weights;
  /// Returns whether any weight can be dropped.
  bool active() const { return training && rate > 0; }
  friend bool operator==(const Dropout&, const Dropout&) = default;
};

/// How the heads' context vectors are combined; the second rule is a common bug.
enum class CombineRule { concatenate, reshape_without_transpose };

/// Rounding of intermediate results; float64 rounds nothing.
struct Arithmetic {
  Precision precision = Precision::float64;       ///< of every computed stage
  Precision product_inputs = Precision::float64;  ///< of both factors of a matrix product
  bool sums_rounded = false;  ///< round products and partial sums of matrix products like stages
  Precision softmax_precision = Precision::float64;  ///< of the softmax's input and output
  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

/// Bug in a softmax that processes the keys block by block, with a running maximum.
enum class BlockRule {
  whole,                  ///< none: as if all keys were one block
  not_rescaled,           ///< neither the sum nor the context vectors are rescaled to a larger maximum
  sum_not_rescaled,       ///< the sum is not rescaled
  contexts_not_rescaled,  ///< the context vectors are not rescaled
  last_dropped            ///< the last block, complete or not, is skipped
};
struct Blocks {
  BlockRule rule = BlockRule::whole;
  std::size_t size = 1;  ///< in keys, at least 1
};

/// Everything that the user can edit and that attend() needs.
struct Model {
  std::vector<Sequence> sequences;         ///< batch of at least one, all of one shape
  std::optional<Projections> projections;  ///< without them Q = K = V = X
  std::size_t n_heads = 1;
  /// Number of KV heads, which query heads share; if not set, each head has its own.
  std::optional<std::size_t> n_kv_heads;
  ScoreRule scores = ScoreRule::query_key;
  Scale scale;
  Mask mask;
  Dropout dropout;
  CombineRule merge = CombineRule::concatenate;
  std::optional<std::size_t> context_length;
  Additions additions;
  Arithmetic arithmetic;
  std::vector<bugs::BugCase> bugs;  ///< each bug once, in the order of the table: see core/graph/bugs.hpp
  Given given;
  /// Ablated heads, sorted: their context vectors count as zero when heads are combined. Source: Michel, Levy
  /// and Neubig 2019.
  std::vector<std::size_t> heads_off;

  /// Returns the number of query tokens, one row each: all tokens, unless keys are other ones.
  std::size_t n_tokens() const { return sequences.front().embeddings.n_rows(); }
  /// Returns the number of keys: of the encoder states or of given stages, else n_tokens.
  std::size_t n_keys() const;
  /// Returns the number of KV heads: n_kv_heads, or one for each head.
  std::size_t kv_heads() const { return n_kv_heads.value_or(n_heads); }
  /// Returns the KV head of a head.
  std::size_t kv_head_of(std::size_t head) const;
  /// Returns whether keys and values are projected from encoder states.
  bool has_key_embeddings() const { return sequences.front().key_embeddings.n_rows() > 0; }
  /// Returns the columns of the source of keys and values.
  std::size_t d_source() const {
    return has_key_embeddings() ? sequences.front().key_embeddings.n_cols() : d_model();
  }
  bool has_embeddings() const { return d_model() > 0; }
  std::size_t d_model() const { return sequences.front().embeddings.n_cols(); }
  /// Returns the columns of the projections, without them of the embeddings, or of all given values; 0 if
  /// unknown.
  std::size_t d_out() const;
  /// Returns the columns of the output: of its projection, or of all context vectors; 0 if unknown.
  std::size_t d_output() const;
  /// Returns the columns of one head's queries and keys; 0 if unknown.
  std::size_t d_head() const;
  /// Returns the columns of one head's values and context vectors; 0 if unknown.
  std::size_t d_value() const;
  bool is_ablated(std::size_t head) const;
  /// Returns whether the model lists the bug of that name.
  bool has_bug(std::string_view bug) const;
  friend bool operator==(const Model&, const Model&) = default;
};

/// Removes entries of the mask for keys and queries that the model no longer has.
void trim_mask(Model& model);

/// Returns "0", "1", …: names of tokens that have none.
std::vector<std::string> numbered_tokens(std::size_t n_tokens);

/// Returns the position of a query or key for RoPE and position biases: the last query is at the last key.
std::int64_t position_of_query(const Model& model, std::size_t query);
std::int64_t position_of_key(const Model& model, std::size_t key);

/// Returns the rotary embedding of a model at its length, see positions::at_length(); nothing if it has none.
std::optional<positions::Rotary> rotary_of(const Model& model);

/// Returns how many matrices a stage has for one sequence, and which of them a head uses: one for all heads,
/// one for each head, or one for each KV head.
std::size_t n_matrices(const Model& model, Stage stage);
std::size_t matrix_of_head(const Model& model, Stage stage, std::size_t head);
/// Returns the first head that uses the nth of those matrices.
std::size_t head_of_matrix(const Model& model, Stage stage, std::size_t nth);

/// Returns the factor of the scores.
double scale_factor(const Model& model);

/// Returns the factor of kept weights: 1/(1 − rate), or 1 if dropout is not active or does not rescale; 0 at
/// rate 1.
double dropout_scale(const Dropout& dropout);

/// Returns the column of a projection that is column k of a head or KV head, in queries, keys or values where
/// heads are transposed.
std::size_t column_of_head(const Model& model, Stage stage, std::size_t head, std::size_t k);

}  // namespace core::attention
