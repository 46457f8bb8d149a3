#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

/// How attention is computed: a function for each step of the paper, with its formula in words beside it.
namespace core::attention {

struct Rules;

/// One head as far as it is computed, for steps that need more than their inputs.
struct HeadSoFar {
  const Model& model;
  const Rules& rules;
  const HeadTrace& stages;
  std::size_t head = 0;
};

/// A way to take one step: what computes it and what it is called.
template <class Function>
struct Rule {
  Function* compute;
  /// In the field's notation; "_q" stands for a subscript q. The brief one fits a narrow window.
  std::string (*formula)(const Model&, bool brief);
};

/// A cell of one head's matrix, and a cell of the matrix of all heads.
struct HeadCell {
  std::size_t head = 0, row = 0, column = 0;
};
struct JoinedCell {
  std::size_t row = 0, column = 0;
};
struct HeadSizes {
  std::size_t n_heads = 1, n_tokens = 0, d_head = 0;
};

/// Which cell of all heads is which head's, both ways round.
struct Layout {
  JoinedCell (*joined)(const HeadCell&, const HeadSizes&);
  HeadCell (*parted)(const JoinedCell&, const HeadSizes&);
};

/// x·W + b, n × d_in to n × d_out.
using Projecting = Rule<arma::mat(const arma::mat& x, const Model&)>;
/// The columns of one head: n × d_out to n × d_head.
struct Splitting : Rule<arma::mat(const arma::mat& x, std::size_t head, std::size_t n_heads)> {
  Layout layout;
};
/// Rows of queries or keys, each divided by what it measures itself, times the factors of its columns.
using Norming = Rule<arma::mat(const arma::mat& rows, const SharedMatrix& factors, const Model&)>;
/// Rows of queries or keys turned by their positions; rows stand for the tokens that ask, or are asked.
using Turning = Rule<arma::mat(const arma::mat& rows, const Model&)>;
/// Scores kept below a number.
using Capping = Rule<arma::mat(const arma::mat& scores, const Model&)>;
/// n_tokens × n_keys: what positions alone say of the scores of a head.
using PlaceBias = Rule<arma::mat(std::size_t head, const Model&)>;
/// Scores and all that is added to them; the position bias is empty where there is none.
using Biasing =
    Rule<arma::mat(const arma::mat& scores, const arma::mat& position_bias, std::size_t head, const Model&)>;
/// n_tokens × n_keys from queries and keys.
struct Scoring : Rule<arma::mat(const arma::mat& queries, const arma::mat& keys, const Model&)> {
  bool swapped = false;  ///< whether the keys come first
};
/// The scores times a number.
struct Scaling : Rule<arma::mat(const arma::mat& scores, const Model&)> {
  double (*factor)(const Model&);                ///< that number
  std::size_t (*width)(const Model&) = nullptr;  ///< by the root of which they are divided, if they are
};
/// Whether a query sees a key, by their places in the sequence.
using Seeing = Rule<bool(std::int64_t query, std::int64_t key, const Model&)>;
/// Scaled scores as the softmax gets them.
struct Masking : Rule<arma::mat(const arma::mat& scaled_scores, const arma::mat& visible, const HeadSoFar&)> {
  double (*fill)(const Model&) = nullptr;  ///< what hidden cells hold; none when they are hidden later
  bool of_dropped = false;                 ///< whether dropout comes before it
};
/// Scores to numbers that sum to 1.
struct Normalising : Rule<arma::mat(const arma::mat& scores, const HeadSoFar&)> {
  bool over_keys = true;    ///< else over queries
  bool of_dropped = false;  ///< whether dropout comes before it
  bool in_blocks = false;   ///< whether the keys are taken block by block
};
/// Weights before the mask times the mask.
using Zeroing = Rule<arma::mat(const arma::mat& weights, const arma::mat& visible)>;
/// Each row's sum.
using Summing = Rule<arma::mat(const arma::mat& weights)>;
/// The weights, from the stages before them.
using Weighing = Rule<arma::mat(const arma::mat& visible, const HeadSoFar&)>;
/// What surviving weights are multiplied by.
using Surviving = Rule<double(const Dropout&)>;
/// Weights after dropout.
using Dropping = Rule<arma::mat(const arma::mat& weights, const arma::mat& dropout_mask)>;
/// weights·V.
using Mixing = Rule<arma::mat(const arma::mat& weights, const arma::mat& values, const Model&)>;
/// The heads' contexts as one matrix, n_tokens × n_heads·d_head.
struct Merging : Rule<arma::mat(const std::vector<arma::mat>& contexts)> {
  Layout layout;
};

/// What matrices are multiplied by.
struct Projectors {
  const Projecting *query, *key, *value, *output;
};

/// How the heads get their parts.
struct Splitters {
  const Splitting *query, *key, *value;
};

/// The steps before the mask, when it comes after the softmax; the last two only when rows are renormalised.
struct Unmasked {
  const Normalising* softmax;
  const Zeroing* zero;
  const Summing* sum;
};

/// The steps that models of today add; none where the model has no such step.
struct Added {
  const Norming* norm;
  const Turning *turn_queries, *turn_keys, *turn_values;
  const Capping* cap;
  const PlaceBias* position_bias;
  const Biasing* add_biases;
};

/// The steps of one model, in the order of the paper; none where the model has no such step.
struct Rules {
  Projectors project;
  Splitters split;
  Added added;
  const Scoring* score;
  const Scaling* scale;
  const Seeing* see;
  const Masking* mask;
  const Normalising* softmax;
  Unmasked unmasked;
  const Weighing* weigh;
  const Surviving* survive;
  const Dropping* drop;
  const Mixing* mix;
  const Merging* merge;
  Precision precision;  ///< what every computed stage is rounded to
};

/// The rules of a model: what its options and departures come to, rows of intended.hpp and mistaken.hpp.
Rules rules_of(const Model& model);

/// A normed or rotated stage of all rows, from the stage that it is made of.
arma::mat prepared(const Model& model, const Rules& rules, Stage stage, const arma::mat& from);

/// That part of them that dropout alone decides.
const Surviving* surviving(const Dropout& dropout);

/// How columns are given to heads, whether or not a matrix is viewed otherwise.
const Splitting& unviewed(const Model& model);
/// How the heads get their part of queries, keys or values.
const Splitting& splitting(const Model& model, Stage stage);

/// How many cells heads have that are split off in queries, keys or values, and that are merged.
HeadSizes split_sizes(const Model& model, Stage stage);
HeadSizes merged_sizes(const Model& model);

}  // namespace core::attention
