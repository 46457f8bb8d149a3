#pragma once

#include <functional>
#include <limits>
#include <string>

#include "core/graph/additions.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/rounding.hpp"

/// Operations that attention consists of, one type each: how it computes, the derivation of a cell, the
/// formula and the PyTorch code.
namespace core::graph {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Matrix of the model.
struct Parameter : Operation {
  MatrixName name;
  Parameter(MatrixName matrix, bool exists) : Operation({{matrix}}), name(matrix) {
    rounded = false, known = exists;
  }
  mat matrix(const OperationInputs& in) const override { return in[0]; }
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  bool uses(const Cell&, std::size_t) const override { return false; }
  std::string formula(bool, const std::string&) const override { return symbol(name); }
  TorchCode torch_code(const InputNames& in) const override { return {in[0]}; }
};

/// Copy of the input; may need another stage without reading it.
struct Copy : Operation {
  std::string brief_words, words, cell_formula;
  Copy(Source x, std::string brief, std::string text)
      : Operation({{x}}), brief_words(std::move(brief)), words(std::move(text)), cell_formula(words) {}
  Copy(Source x, std::string brief, std::string text, Stage needed)
      : Copy(x, std::move(brief), std::move(text)) {
    inputs.push_back({needed, ""});
  }
  mat matrix(const OperationInputs& in) const override { return in[0]; }
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string& hidden) const override {
    return hidden + (brief ? brief_words : words);
  }
  TorchCode torch_code(const InputNames& in) const override { return {in[0]}; }
};

/// Concatenated heads without an output projection.
struct Unprojected : Copy {
  explicit Unprojected(Stage concatenated) : Copy(concatenated, "", "no projection") {
    cell_formula = "no output projection";
    rounded = false;
  }
};

/// Base of all matrix products: Σ first · second, with optional rounding of factors and partial sums.
struct Product : Operation {
  Precision factors = Precision::float64;
  std::optional<Precision> sums;  ///< precision of products and partial sums; plain float64 if not set
  bool truncates = false;         ///< truncates factors to TF32 instead of rounding
  explicit Product(std::vector<Input> from) : Operation(std::move(from)) {}
  std::size_t n_products(const OperationInputs& in) const override { return in[0].n_cols; }

 protected:
  bool has_reduced_precision() const { return factors != Precision::float64 || sums || truncates; }
  /// Writes Σ first · second, each term with a label.
  void write_products(const Cell& cell, Derivation& steps,
                      const std::function<Label(std::size_t)>& label) const;
  /// Returns a factor as the product uses it.
  mat rounded_factor(mat factor) const;
  mat reduced_product(mat a, mat b) const {
    for (mat* each : {&a, &b})
      if (truncates) each->transform(attention::truncate_to_tf32);
    return attention::reduced_precision_product(std::move(a), std::move(b), factors, sums);
  }
  /// Returns the rounding for the long formula: ", factors in tf32".
  std::string precision_text(bool brief) const;
};

/// x·W + b.
struct Project : Product {
  std::string x_symbol;
  Project(Stage x, std::string symbol_of_x, MatrixName weight, MatrixName bias, const Model& m);
  bool has_bias() const { return inputs.size() > 2; }
  bool is_transposed() const { return inputs[1].cells[0] == 'j'; }  ///< a bug: x·Wᵀ
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  /// Returns some columns of the matrix.
  mat columns(const OperationInputs& in, const arma::uvec& which) const;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::optional<std::size_t> previous_operand(const Cell& cell) const override;
  std::string formula(bool brief, const std::string&) const override;
  TorchCode torch_code(const InputNames& in) const override { return {"self." + in[1] + "(" + in[0] + ")"}; }
};

/// a·bᵀ.
struct DotProducts : Product {
  std::optional<double> pre_scale;  ///< a bug: scale of the first factor
  bool is_swapped = false;          ///< a bug: K·Qᵀ
  DotProducts(Stage a, Stage b) : Product({{a, "i:"}, {b, "j:"}}) {}
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override;
  TorchCode torch_code(const InputNames& in) const override {
    return {in[0] + " @ " + in[1] + ".transpose(-2, -1)"};
  }
};

/// weights·V.
struct WeightedSum : Product {
  WeightedSum(Stage weights, Stage values) : Product({{weights, "i:"}, {values, ":j"}}) {}
  mat matrix(const OperationInputs& in) const override {
    return has_reduced_precision() ? reduced_product(in[0], in[1]) : mat(in[0] * in[1]);
  }
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override {
    return "weights·V" + precision_text(brief);
  }
  TorchCode torch_code(const InputNames& in) const override { return {in[0] + " @ " + in[1]}; }
};

/// Scores that are equal for all keys.
struct UniformScores : Operation {
  UniformScores(Stage q, Stage k) : Operation({{q, ""}, {k, ""}}) {}
  mat matrix(const OperationInputs& in) const override { return arma::zeros(in.n_rows(), in.model.n_keys()); }
  void backward(const OperationGradient&) const override {}
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool, const std::string&) const override { return "all zero"; }
  TorchCode torch_code(const InputNames& in) const override {
    return {"torch.zeros_like(" + in[0] + " @ " + in[1] + ".transpose(-2, -1))  # every key counts the same"};
  }
};

/// Columns of one head, taken from those of all heads.
struct SplitHeads : Operation {
  std::size_t n_heads, d_head;
  SplitHeads(Stage all, std::size_t n, std::size_t d)
      : Operation({{all, "", &contiguous}}), n_heads(n), d_head(d) {}
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string& hidden) const override;
  TorchCode torch_code(const InputNames& in) const override;
};

/// Concatenated heads; ablated heads are zero.
struct CombineHeads : Operation {
  std::size_t n_heads, n_enabled;
  CombineHeads(Stage contexts, const Model& m)
      : Operation(
            {{contexts, "", m.merge == attention::CombineRule::concatenate ? &contiguous : &untransposed}}),
        n_heads(m.n_heads),
        n_enabled(m.n_heads - m.heads_off.size()) {
    rounded = false;
  }
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  bool uses(const Cell& cell, std::size_t k) const override;
  Label label(const Model& m, std::size_t k) const override;
  std::string formula(bool brief, const std::string&) const override;
  TorchCode torch_code(const InputNames& in) const override;
};

/// RMSNorm (Zhang and Sennrich 2019) or LayerNorm without its shift (Ba, Kiros and Hinton 2016) of each row,
/// over one head or all heads, times a factor for each column.
struct Normalize : Operation {
  bool is_centered;
  double epsilon;
  attention::NormScope over;
  std::size_t n_heads, d_head;
  bool is_after_rotation = false;  ///< a bug
  Normalize(Stage x, MatrixName factors, const attention::QueryKeyNorm& norm, std::size_t n, std::size_t d)
      : Operation({{x, "i:"}, {factors, norm.over == attention::NormScope::head ? "0j" : "0c"}}),
        is_centered(norm.rule == attention::NormRule::layer),
        epsilon(norm.epsilon),
        over(norm.over),
        n_heads(n),
        d_head(d) {}
  bool is_over_all_heads() const { return over == attention::NormScope::all_heads && n_heads > 1; }
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::optional<std::size_t> previous_operand(const Cell& cell) const override { return cell.j; }
  std::string formula(bool brief, const std::string&) const override;
  TorchCode torch_code(const InputNames& in) const override;
};

/// RoPE: pairs of columns rotated by the position of their row.
struct Rotate : Operation {
  positions::Rotary rotary;
  std::int64_t first;         ///< position of row 0
  std::int64_t more_keys;     ///< n_keys − n_tokens where queries are rotated, else 0
  int offset = 0;             ///< a bug: added to first
  bool is_backwards = false;  ///< a bug
  Rotate(Stage x, const positions::Rotary& by, std::int64_t first_position)
      : Operation({{x}, {x, "ip"}, {MatrixName::frequencies, ""}}),
        rotary(by),
        first(first_position),
        more_keys(first_position - by.first) {}
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  bool uses(const Cell& cell, std::size_t k) const override;
  /// Returns the other column of the pair.
  std::size_t column(const Model& m, std::size_t i, std::size_t j) const override;
  std::string formula(bool brief, const std::string& hidden) const override;
  TorchCode torch_code(const InputNames& in) const override;
};

/// Scores divided by the square root of a width, or times a factor.
struct ScaleScores : Operation {
  attention::ScaleRule rule;
  double factor;      ///< multiplies the scores
  std::size_t width;  ///< under the square root, for rules that have one
  ScaleScores(Stage x, const Model& m);
  mat matrix(const OperationInputs& in) const override { return in[0] * factor; }
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override;
  TorchCode torch_code(const InputNames& in) const override;
};

/// c·tanh(x/c).
struct Softcap : Operation {
  double cap;
  Softcap(Stage x, double c) : Operation({{x}}), cap(c) {}
  mat matrix(const OperationInputs& in) const override { return attention::softcapped(in[0], cap); }
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override {
    return brief ? "c·tanh(s/c)" : "c·tanh(s ÷ c)";
  }
  TorchCode torch_code(const InputNames& in) const override;
};

/// −slope × distance of query and key.
struct AlibiBias : Operation {
  std::vector<double> slopes;  ///< [head]
  explicit AlibiBias(const Model& m);
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override {
    return brief ? "−slope·distance" : "−slope × distance of query and key";
  }
  TorchCode torch_code(const InputNames&) const override;
};

/// Learned bias for each bucket of distances, as in T5.
struct RelativeBias : Operation {
  positions::Relative relative;
  std::size_t n_heads;
  explicit RelativeBias(const Model& m)
      : Operation({{MatrixName::relative_bias, "hb"}}),
        relative(*m.additions.positions.relative),
        n_heads(m.n_heads) {}
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  /// Returns the bucket of the distance.
  std::size_t column(const Model& m, std::size_t i, std::size_t j) const override;
  std::string formula(bool brief, const std::string&) const override {
    return brief ? "by bucket" : "a number for each bucket of distances";
  }
  TorchCode torch_code(const InputNames&) const override;
};

/// x + position bias + attention bias, where they exist.
struct AddBiases : Operation {
  AddBiases(Stage x, std::optional<Stage> position_bias, const Model& m);
  bool has_one() const { return inputs.size() == 2; }
  mat matrix(const OperationInputs& in) const override {
    return has_one() ? mat(in[0] + in[1]) : mat(in[0] + (in[1] + in[2]));
  }
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool, const std::string&) const override {
    return !has_one() ? "+ position bias + bias" : inputs[1].stage() ? "+ position bias" : "+ bias";
  }
  TorchCode torch_code(const InputNames& in) const override {
    return {in[0] + " + " + (has_one() ? in[1] : "(" + in[1] + " + " + in[2] + ")")};
  }
};

/// 1 where a query attends to a key, else 0.
struct AttentionMask : Operation {
  attention::Mask mask;
  bool names_keys, is_shifted, has_own;  ///< its code: n_keys, a shifted diagonal, a mask per sequence
  AttentionMask(const Model& m, attention::Mask rules);
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient&) const override {}
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override {
    return !mask.masks_keys() ? "all 1" : brief ? "1 unmasked" : "1 unmasked, 0 masked";
  }
  TorchCode torch_code(const InputNames&) const override;
};

/// x where the mask is 1, else −∞ or a large negative number.
struct MaskedFill : Operation {
  double fill;
  bool masks_keys, is_only_causal;
  MaskedFill(Stage x, Stage mask, double number, const attention::Mask& rules);
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string& hidden) const override;
  TorchCode torch_code(const InputNames& in) const override;
};

/// Unchanged scores, where the weights are masked later.
struct DeferredMask : Copy {
  DeferredMask(Stage x, Stage mask, const attention::Mask& rules)
      : Copy(x, rules.masks_keys() ? "later" : "all visible",
             rules.masks_keys() ? "masked after the softmax" : "no key is masked", mask) {
    cell_formula = "masked after the softmax";
  }
  TorchCode torch_code(const InputNames& in) const override {
    return {in[0] + "  # masked after the softmax"};
  }
};

/// exp(x − max) / Σ exp(x − max) of each row; a sink joins the sum. A row of −∞ gives NaN.
struct Softmax : Operation {
  Precision precision = Precision::float64;  ///< of its input and output
  std::size_t n_heads;
  Softmax(Stage x, const Model& m);
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  bool ignores_negative_infinity() const override { return !is_internal(*inputs[0].stage()); }
  std::optional<std::size_t> previous_operand(const Cell& cell) const override { return own(cell); }
  std::string formula(bool brief, const std::string& hidden) const override;
  TorchCode torch_code(const InputNames& in) const override;

 protected:
  bool has_sink() const { return inputs.size() > 1; }
  virtual mat weights(mat scores, const OperationInputs& in) const;
  virtual std::string words(bool brief) const;
  /// Returns the index of the cell's own score, a description of the scores that the softmax runs over, and
  /// the blocks they are processed in.
  virtual std::size_t own(const Cell& cell) const { return cell.j; }
  virtual std::string scope_text(const Cell& cell) const;
  virtual attention::Blocks key_blocks() const { return {}; }
};

/// A bug: the softmax of each column.
struct SoftmaxOverQueries : Softmax {
  explicit SoftmaxOverQueries(const Softmax& right) : Softmax(right) {
    inputs = {{right.inputs[0].source, ":j"}};
  }
  void backward(const OperationGradient& gradient) const override;

 protected:
  mat weights(mat scores, const OperationInputs& in) const override;
  std::string words(bool brief) const override {
    return brief ? "softmax, columns" : "softmax of each column";
  }
  std::size_t own(const Cell& cell) const override { return cell.i; }
  std::string scope_text(const Cell& cell) const override;
};

/// Maxima that a blockwise softmax subtracts from each score before exp(), for the key's own weight and for
/// the sum; ∞ for keys that are skipped.
struct BlockMaxima {
  arma::rowvec own, summed;
  double last;  ///< largest score of the keys that are not skipped
};
BlockMaxima block_maxima(const arma::rowvec& scores, const attention::Blocks& blocks);

/// A bug: a softmax that processes the keys block by block.
struct SoftmaxInBlocks : Softmax {
  attention::Blocks blocks;
  SoftmaxInBlocks(const Softmax& right, attention::Blocks in) : Softmax(right), blocks(in) {}
  void backward(const OperationGradient& gradient) const override;

 protected:
  mat weights(mat scores, const OperationInputs& in) const override;
  std::string words(bool brief) const override;
  std::string scope_text(const Cell&) const override { return formula(false, ""); }
  attention::Blocks key_blocks() const override { return blocks; }
};

/// a × b, elementwise.
struct Multiply : Operation {
  std::string brief_words, words;
  Multiply(Stage a, Stage b, std::string brief, std::string text)
      : Operation({{a}, {b}}), brief_words(std::move(brief)), words(std::move(text)) {}
  mat matrix(const OperationInputs& in) const override { return in[0] % in[1]; }
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override { return brief ? brief_words : words; }
  TorchCode torch_code(const InputNames& in) const override { return {in[0] + " * " + in[1]}; }
};

struct RowSum : Operation {
  explicit RowSum(Stage x) : Operation({{x, "i:"}}) {}
  mat matrix(const OperationInputs& in) const override { return arma::sum(in[0], 1); }
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool, const std::string&) const override { return "Σ"; }
  TorchCode torch_code(const InputNames& in) const override { return {in[0] + ".sum(dim=-1, keepdim=True)"}; }
};

struct DivideByRowSum : Operation {
  DivideByRowSum(Stage x, Stage sums) : Operation({{x}, {sums, "i0"}}) {}
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override {
    return brief ? "÷ row sum" : "each row ÷ its sum";
  }
  TorchCode torch_code(const InputNames& in) const override { return {in[0] + " / " + in[1]}; }
};

/// Zeros instead of 0/0 for queries that attend to no key: all are masked or score −∞.
struct ZeroEmptyRows : Operation {
  ZeroEmptyRows(Stage weights, Stage scores, std::optional<Stage> mask);
  bool reads_mask() const { return inputs.size() > 2; }
  bool is_empty(const Cell& cell) const;
  bool is_empty(const OperationInputs& in, std::size_t row) const;
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient& gradient) const override;
  void terms(const Cell& cell, Derivation& steps) const override;
  bool uses(const Cell& cell, std::size_t k) const override;
  std::string formula(bool, const std::string& hidden) const override { return hidden; }
  TorchCode torch_code(const InputNames& in) const override;
};

/// [head · n_queries + query][key]: 1 for each weight that nn.Dropout keeps after torch.manual_seed(seed).
struct SampleKeepMask : Operation {
  attention::Dropout dropout;
  explicit SampleKeepMask(const Model& m) : dropout(m.dropout) { rounded = false; }
  /// Returns whether random numbers decide which weights are kept.
  static bool is_needed(const attention::Dropout& d) { return d.active() && d.given.empty() && d.rate < 1; }
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient&) const override {}
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool, const std::string&) const override { return ""; }
  TorchCode torch_code(const InputNames&) const override;
};

/// Factor of each weight: 0 if it is dropped, else dropout_scale().
struct DropoutFactors : Operation {
  attention::Dropout dropout;
  DropoutFactors(Stage kept, const Model& m);
  mat matrix(const OperationInputs& in) const override;
  void backward(const OperationGradient&) const override {}
  void terms(const Cell& cell, Derivation& steps) const override;
  std::string formula(bool brief, const std::string&) const override;
  TorchCode torch_code(const InputNames& in) const override;
};

}  // namespace core::graph
