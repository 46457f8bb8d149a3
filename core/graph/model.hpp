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
#include "core/graph/given.hpp"
#include "core/graph/rounding.hpp"

namespace core::mistakes {
struct Mistake;
}

namespace core::attention {

/// A learned projection, used as x·weight + bias.
struct Linear {
  SharedMatrix weight;               ///< d_in × d_out
  std::optional<SharedMatrix> bias;  ///< 1 × d_out
  friend bool operator==(const Linear&, const Linear&) = default;
};

/// The learned matrices: queries, keys and values of all heads side by side, and perhaps an output
/// projection.
struct Projections {
  /// d_in × d_out, keys and values with the columns of their groups; column_of_head() says whose a column is.
  Linear query, key, value;
  std::optional<Linear> output;  ///< d_out × d_output
  friend bool operator==(const Projections&, const Projections&) = default;
};

/// One sequence of a batch: a token and a row of numbers for each position.
struct Sequence {
  std::vector<std::string> tokens;  ///< n_tokens names in UTF-8
  SharedMatrix embeddings;          ///< n_tokens × d_model; without columns when they are not known
  /// n_keys names of the tokens that are asked, when they are others than those that ask; else empty.
  std::vector<std::string> key_tokens = {};
  /// n_keys × d_source: what keys and values are projected from, when it is not the embeddings; else empty.
  SharedMatrix key_embeddings = {};
  /// The names of the tokens that are asked.
  const std::vector<std::string>& keys() const { return key_tokens.empty() ? tokens : key_tokens; }
  friend bool operator==(const Sequence&, const Sequence&) = default;
};

/// Where the scores come from.
enum class ScoreRule { query_key, uniform };

/// The factor between scores and scaled scores.
enum class ScaleRule { inverse_sqrt_d_head, none, inverse_sqrt_d_model, factor };

struct Scale {
  ScaleRule rule = ScaleRule::inverse_sqrt_d_head;
  double factor = 1;  ///< multiplies the scores when rule is ScaleRule::factor; any finite number
  friend bool operator==(const Scale&, const Scale&) = default;
};

/// How hidden cells are kept out: before the softmax (negative_infinity, large_negative) or after it.
enum class MaskMethod { negative_infinity, renormalise, zero_after_softmax, large_negative };

/// What the weights of a query are that may see no key at all: 0/0 by the formula, or zeros on request.
enum class EmptyRows { nan, zeros };

/// One cell of the mask that was switched by hand.
struct MaskCell {
  std::size_t row = 0, column = 0;
  bool visible = true;
  std::pair<std::size_t, std::size_t> place() const { return {row, column}; }
  friend auto operator<=>(const MaskCell&, const MaskCell&) = default;
};

/// Which keys queries stand at when there are not as many of both: the last, as with a cache of keys, or the
/// first. Query i then stands at i + n_keys − n_tokens, or at i.
enum class MaskAlignment { last, first };

/// The keys that a query sees around its place; without a number there is no limit on that side.
struct MaskWindow {
  std::optional<std::size_t> left, right;
  friend bool operator==(const MaskWindow&, const MaskWindow&) = default;
};

/// The edge of the causal rule; PyTorch's tril(diagonal), or triu(-diagonal) where it is transposed.
struct MaskEdge {
  int diagonal = 0;         ///< a query sees the keys up to its own position plus this
  bool transposed = false;  ///< queries and keys are in each other's place
  friend bool operator==(const MaskEdge&, const MaskEdge&) = default;
};

struct Mask {
  bool causal = true;  ///< whether a query sees the keys up to its own position alone
  MaskMethod method = MaskMethod::negative_infinity;
  EmptyRows empty_rows = EmptyRows::nan;
  std::vector<MaskCell> cells;  ///< each cell once, sorted by row, then column
  MaskAlignment align = MaskAlignment::last;
  MaskEdge edge;
  double large_negative = -1e9;  ///< what MaskMethod::large_negative writes; finite
  MaskWindow window;
  std::size_t prefix = 0;  ///< keys that every query sees, whatever rule and window say
  /// The document of each token, or none; a query sees keys of its own document alone.
  std::vector<std::size_t> documents;
  /// [sequence]: keys that no query sees, as of padding, each once and sorted; no lists where all are empty.
  std::vector<std::vector<std::size_t>> hidden_keys;
  /// The cell that was switched by hand there, or nullptr.
  const MaskCell* find(std::size_t row, std::size_t column) const;
  /// Whether anything but the causal rule and cells by hand is said: a place of the queries, a window, a
  /// prefix, documents, padding.
  bool says_more() const;
  /// Whether the causal rule is all that hides a key, and queries are the last of the keys.
  bool is_plainly_causal() const;
  /// Whether scores are masked, not weights.
  bool is_before_softmax() const {
    return method == MaskMethod::negative_infinity || method == MaskMethod::large_negative;
  }
  /// A mask of the same method that hides nothing.
  Mask hiding_nothing() const;
  /// Whether anything can hide a key, and whether anything but cells by hand can.
  bool hides() const;
  bool hides_by_rule() const;
  friend bool operator==(const Mask&, const Mask&) = default;
};

/// Which of PyTorch's two streams of random numbers dropout is drawn from.
enum class DropoutStream { mt19937, mkl };

/// What dropout is applied to. A dropped weight is a missing key; a dropped score is a score of 0.
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
  /// A given mask instead of a drawn one: [sequence · n_heads + head], each n_tokens × n_keys of 0 and 1.
  std::vector<SharedMatrix> given;
  bool rescale = true;  ///< whether kept weights are multiplied by 1/(1 − rate)
  DropoutPlace place = DropoutPlace::weights;
  /// Whether any weight can be dropped.
  bool active() const { return training && rate > 0; }
  friend bool operator==(const Dropout&, const Dropout&) = default;
};

/// How the heads' contexts become one matrix; the second is a mistake that is often made.
enum class CombineRule { concatenate, reshape_without_transpose };

/// What numbers are rounded to on the way; float64 rounds nothing.
struct Arithmetic {
  Precision precision = Precision::float64;       ///< of every computed stage
  Precision product_inputs = Precision::float64;  ///< of both factors of a matrix product
  bool sums_rounded = false;  ///< products and partial sums of matrix products are rounded like stages
  Precision softmax_precision = Precision::float64;  ///< of what the softmax takes and gives
  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

/// What goes wrong in a softmax that takes the keys block by block, each with the largest score so far.
enum class BlockRule {
  whole,                  ///< nothing: as if all keys were one block
  not_rescaled,           ///< neither the sum nor the contexts are brought to a larger maximum
  sum_not_rescaled,       ///< the sum is not
  contexts_not_rescaled,  ///< the contexts are not
  last_dropped            ///< the last block, or what is left of one, is not visited
};
struct Blocks {
  BlockRule rule = BlockRule::whole;
  std::size_t size = 1;  ///< in keys, at least 1
};

/// A mistake in the code that computes a model: a row of the table, and its size where it can have several.
struct MadeMistake {
  const mistakes::Mistake* mistake = nullptr;
  std::int64_t size = 0;  ///< a block's keys, an offset of positions; 0: the usual one
  friend bool operator==(const MadeMistake&, const MadeMistake&) = default;
};

/// Everything that the user can edit and that attend() needs.
struct Model {
  std::vector<Sequence> sequences;         ///< a batch of at least one, all of one shape
  std::optional<Projections> projections;  ///< without them Q = K = V = X
  std::size_t n_heads = 1;
  /// How many different keys and values there are for the heads to share; without it each head has its own.
  std::optional<std::size_t> n_kv_heads;
  ScoreRule scores = ScoreRule::query_key;
  Scale scale;
  Mask mask;
  Dropout dropout;
  CombineRule merge = CombineRule::concatenate;
  std::optional<std::size_t> context_length;
  Additions additions;
  Arithmetic arithmetic;
  std::vector<MadeMistake> mistakes;  ///< each once, in the order of the table: see core/graph/mistakes.hpp
  Given given;
  /// Heads whose contexts count as zero when the heads are merged, sorted. Source: Michel, Levy and Neubig
  /// 2019.
  std::vector<std::size_t> heads_off;

  /// Tokens that ask, a row each; all tokens unless what is given has other keys.
  std::size_t n_tokens() const { return sequences.front().embeddings.n_rows(); }
  /// Tokens that are asked: as many as key embeddings or what is given have, else n_tokens.
  std::size_t n_keys() const;
  /// Groups of heads that share their keys and values: n_kv_heads, or each head alone.
  std::size_t kv_heads() const { return n_kv_heads.value_or(n_heads); }
  /// The group whose keys and values a head asks.
  std::size_t kv_head_of(std::size_t head) const;
  /// Whether keys and values are projected from rows of their own.
  bool has_key_embeddings() const { return sequences.front().key_embeddings.n_rows() > 0; }
  /// Columns of what keys and values are projected from.
  std::size_t d_source() const {
    return has_key_embeddings() ? sequences.front().key_embeddings.n_cols() : d_model();
  }
  bool has_embeddings() const { return d_model() > 0; }
  std::size_t d_model() const { return sequences.front().embeddings.n_cols(); }
  /// Columns of the projections, of the embeddings without them, or of all given values; 0 when none is
  /// known.
  std::size_t d_out() const;
  /// Columns of the output: of its projection, or of all heads' contexts; 0 when not known.
  std::size_t d_output() const;
  /// Columns of one head's queries and keys; 0 when not known.
  std::size_t d_head() const;
  /// Columns of one head's values and contexts; 0 when not known.
  std::size_t d_value() const;
  bool is_off(std::size_t head) const;
  /// Whether a mistake of that name is among the mistakes.
  bool makes(std::string_view mistake) const;
  friend bool operator==(const Model&, const Model&) = default;
};

/// The first thing that keeps a model from being computed.
struct Problem {
  std::string path;     ///< where, in the words of the session file: "projections.key.weight"
  std::string message;  ///< what was expected and what was found, in one line
};

/// Names the first inconsistency of a model, or nothing when attend() can compute it.
std::optional<Problem> check(const Model& model);

/// Throws core::Error, "PLACEpath: message", when check() finds a problem.
void require(const Model& model, const std::string& place = "");

/// Throws core::Error when check() finds a problem or there is no such sequence.
void require(const Model& model, std::size_t sequence);

/// Takes from the mask what speaks of keys and queries that a model has no longer.
void fit_mask(Model& model);

/// "0", "1", …: the names of tokens that have none.
std::vector<std::string> numbered_tokens(std::size_t n_tokens);

/// The position of a query or a key that rotary positions and biases count from: the last query stands at the
/// last key.
std::int64_t position_of_query(const Model& model, std::size_t query);
std::int64_t position_of_key(const Model& model, std::size_t key);

/// The rotary embeddings of a model as its length makes them, see positions::at_length(); nothing without
/// any.
std::optional<positions::Rotary> rotary_of(const Model& model);

/// How many different matrices a stage has for one sequence, and which of them is a head's: one, one for each
/// head, or one for each group of heads.
std::size_t n_matrices(const Model& model, Stage stage);
std::size_t matrix_of_head(const Model& model, Stage stage, std::size_t head);
/// The first head that has the nth of those matrices.
std::size_t head_of_matrix(const Model& model, Stage stage, std::size_t nth);

/// The number that multiplies the scores.
double scale_factor(const Model& model);

/// What a dropped model multiplies its surviving weights by: 1/(1 − rate), or 1 when dropout is not active or
/// does not rescale.
double dropout_scale(const Dropout& dropout);

/// The column of a projection that is column k of a head, or of a KV head, in queries, keys or values where
/// heads are transposed.
std::size_t column_of_head(const Model& model, Stage stage, std::size_t head, std::size_t k);

}  // namespace core::attention
