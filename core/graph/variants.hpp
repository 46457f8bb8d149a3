#pragma once

#include <bitset>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/operations.hpp"

/// Operations in all the forms that bugs give them; where they are shown, a sentence stands for their terms.
namespace core::graph {

/// Explains a cell by a sentence and its value, computed from the model.
template <class Right>
struct Variant : Right {
  using Right::Right;
  explicit Variant(const Right& right) : Right(right) {}
  std::string words = "computed with a bug";
  void terms(const Cell& cell, Derivation& steps) const override;
  void backward(const OperationGradient& gradient) const override { Operation::backward(gradient); }
  bool uses(const Cell&, std::size_t k) const override { return this->inputs[k].is_read(); }
  std::optional<std::size_t> previous_operand(const Cell&) const override { return std::nullopt; }
  std::string formula(bool brief, const std::string&) const override { return brief ? "with a bug" : words; }
  TorchCode torch_code(const InputNames& in) const override {
    return {in.empty() ? "" : in[0], {}, {"# the bug, which this line does not have: " + words}};
  }
};

/// Any function of stages. Inputs that it reads by other rows or heads have the letters "::" or ":j".
struct StageFunction : Variant<Operation> {
  using Function = std::function<mat(const OperationInputs&)>;
  Function function;
  StageFunction(std::vector<Input> from, Function f) : Variant(std::move(from)), function(std::move(f)) {}
  mat matrix(const OperationInputs& in) const override { return function(in); }
};

/// Normalize of queries or keys.
struct NormVariant : Variant<Normalize> {
  enum class Divisor { root_mean_square, deviation, length, sample_deviation, deviation_uncentered };
  enum class Over { head, all_heads, tokens };
  enum class Factors { w, one_plus_w, none, before, w_minus_one };
  enum class EpsilonPlace { inside_root, outside_root, none, at_least };
  Divisor divisor;
  Over scope;
  Factors factors = Factors::w;
  EpsilonPlace epsilon_place = EpsilonPlace::inside_root;
  arma::rowvec w;  ///< of one head, or of all heads one after another; ones if empty

  /// A norm without factors where the model has none.
  NormVariant(Stage x, Divisor by, double epsilon, std::size_t n_heads, std::size_t d_head);
  NormVariant(const Normalize& right, arma::rowvec factors_of_it);
  /// Sets what the norm runs over, and with it which rows it reads.
  void run_over(Over what);
  mat matrix(const OperationInputs& in) const override;

 private:
  mat input_of(const OperationInputs& in, std::size_t head) const;
  arma::rowvec factors_of(std::size_t head, std::size_t n_columns) const;
};

/// Rotation of queries or keys by a list of positions and frequencies.
struct RotationVariant : Variant<Rotate> {
  enum class PairRule { halves, neighbors, halves_of_head };
  enum class Form { right, over_heads, no_minus, in_place, other_table, exchanged };
  enum Coarse : std::size_t { of_positions, of_frequencies, of_angles, of_cosines, n_coarse };
  PairRule pair_rule = PairRule::halves;
  Form form = Form::right;
  std::bitset<n_coarse> coarse;  ///< what is rounded
  Precision coarse_precision = Precision::float64;
  std::size_t n_columns = 0, first_column = 0;  ///< rotated
  std::vector<double> frequencies;              ///< [pair]: radians per position
  std::vector<std::vector<double>> places;      ///< [sequence, or one for all][row]
  double base = 10000, sign = 1, attention_factor = 1;

  /// The right rotation, to be changed.
  RotationVariant(const Rotate& right, std::size_t d_head, std::size_t n_rows);
  /// Sets the frequencies of a base over a width, of n columns, scaled by a rule.
  void set_frequencies(double of_base, std::size_t n, double over, const positions::Scaling& scaling);
  mat matrix(const OperationInputs& in) const override;

 private:
  /// Cosines and sines, kept for other heads.
  struct Table {
    std::size_t key;  ///< sequence or head that has them
    RowSelection rows;
    mat cosines, sines;  ///< [row][pair]
  };
  /// Does not survive copying, after which fields are edited.
  struct KeptTable {
    std::optional<Table> kept = {};
    KeptTable() = default;
    KeptTable(const KeptTable&) {}
    KeptTable& operator=(const KeptTable&) = delete;
  };
  const Table& table_of(const OperationInputs& in) const;
  Table make_table(const OperationInputs& in, std::size_t key) const;

  mutable KeptTable table_;
};

/// Softmax along an axis, with a further term of its sums: by head and largest score.
struct SoftmaxVariant : Variant<Softmax> {
  enum class Axis { keys, queries, heads };
  Axis axis = Axis::keys;
  std::function<double(std::size_t head, double largest)> extra = {};
  explicit SoftmaxVariant(const Softmax& right);
  void run_over(Axis which);

 protected:
  mat weights(mat scores, const OperationInputs& in) const override;
};

/// Mask of rules that attention::Mask does not have.
struct MaskVariant : Variant<AttentionMask> {
  /// Positions of the query and of the key, and of the first query: whether the query attends to the key.
  std::function<bool(std::int64_t query, std::int64_t key, std::int64_t first)> also = {};
  explicit MaskVariant(const AttentionMask& right) : Variant(right) {}
  mat matrix(const OperationInputs& in) const override;
};

}  // namespace core::graph
