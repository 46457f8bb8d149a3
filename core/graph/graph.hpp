#pragma once

#include <armadillo>
#include <bitset>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/explain.hpp"

/// Attention as a graph: every stage is one operation on earlier stages and learned matrices.
///
/// An operation holds everything about one step: its math, the derivation of a cell, its formula and its line
/// of PyTorch. A new stage is an operation, a line of attention() and a row of the table of stages.
namespace core::graph {

using arma::mat;
using attention::MatrixName;
using attention::Model;
using attention::Precision;
using attention::SharedMatrix;
using attention::Stage;
using attention::Trace;
using explain::Label;
using explain::LineForm;
using explain::Operand;
using explain::Source;
using explain::SourceCell;
using explain::SourceRect;

/// Hidden stages, computed but not shown: the projections of all heads, and which weights dropout keeps.
/// Edits of a graph may add more.
inline constexpr Stage all_queries{attention::n_stages}, all_keys{attention::n_stages + 1},
    all_values{attention::n_stages + 2}, kept_weights{attention::n_stages + 3};
inline constexpr std::size_t max_stages = 64;

constexpr std::size_t index(Stage stage) {
  return static_cast<std::size_t>(stage);
}
constexpr bool is_internal(Stage stage) {
  return index(stage) >= attention::n_stages;
}
using NodeSet = std::bitset<max_stages>;

/// Number of matrices of a stage.
enum class NodeHeads { shared, per_kv_head, per_head };

/// Layout of the heads in one matrix, in both directions.
struct HeadCell {
  std::size_t head = 0, row = 0, column = 0;
};
struct CombinedCell {
  std::size_t row = 0, column = 0;
};
struct HeadSizes {
  std::size_t n_heads = 1, n_rows = 0, width = 0;
};
struct HeadLayout {
  CombinedCell (*combine)(HeadCell, HeadSizes);
  HeadCell (*split)(CombinedCell, HeadSizes);
};
extern const HeadLayout contiguous;    ///< head h has d_head neighboring columns
extern const HeadLayout interleaved;   ///< head h has columns h, h + n_heads, …
extern const HeadLayout untransposed;  ///< [token][d_out] read as [head][token][d_head]

/// Returns the sizes of queries, keys or values before they are split, and of the concatenated context
/// vectors.
HeadSizes split_sizes(const Model& model, Stage stage);
HeadSizes combined_sizes(const Model& model);

/// Input, and which of its cells enter cell (i, j) of head h: a letter for the row and one for the column, as
/// in an einsum. i, j: as in the cell; h: its head; 0: the first; ':': all; p: the other column of its pair;
/// b: the bucket of its distance; c: its column among those of all heads. An input without letters is needed
/// but not read.
struct Input {
  Source source;
  const char* cells = "ij";
  const HeadLayout* layout = nullptr;  ///< instead of letters: layout of the cells among all heads
  // Edits:
  std::shared_ptr<const std::vector<std::size_t>> heads = {};  ///< [head]: matrix of the source that it reads
  std::optional<SharedMatrix> numbers = {};                    ///< read by all heads instead of the source

  bool is_read() const { return layout || *cells; }
  /// Returns whether rows of the result need only the same rows of the input.
  bool is_row_wise() const { return layout ? layout != &untransposed : cells[0] == 'i'; }
  const Stage* stage() const { return std::get_if<Stage>(&source); }
  /// Returns the symbol of a learned matrix: "W_q".
  std::string symbol() const { return attention::symbol(std::get<MatrixName>(source)); }
};

struct Graph;
struct Node;
struct OperationGradient;
class LazyStages;

/// All rows of a matrix, or a list of some.
using RowSelection = std::optional<std::vector<std::size_t>>;

/// Inputs of an operation while it computes rows of one head of one sequence.
struct OperationInputs {
  const Graph& graph;
  const Node& node;
  const Model& model;
  LazyStages& stages;
  std::size_t sequence, head;
  const RowSelection& rows;
  mutable std::vector<std::unique_ptr<mat>> copies = {};  ///< rows taken from matrices of the model

  /// Returns input k for this head, or for another one, also of another sequence; only the wanted rows if it
  /// is read by rows.
  const mat& operator[](std::size_t k) const { return of_head(k, head); }
  const mat& of_head(std::size_t k, std::size_t other) const { return of_sequence(k, sequence, other); }
  const mat& of_sequence(std::size_t k, std::size_t other_sequence, std::size_t other) const;
  /// Returns which matrix of a stage that is input k a head reads.
  std::size_t nth_of_head(std::size_t k, std::size_t other) const;
  std::size_t n_rows() const;
  /// Returns the row of the stage that is computed row a.
  std::size_t row(std::size_t a) const { return rows ? (*rows)[a] : a; }
  /// Returns the wanted rows of a matrix that has all of them.
  mat selected(mat all) const;
};

/// Derivation of a cell, as operations write it; the result is that of the last line.
struct Derivation {
  explain::CellAddress cell;
  std::vector<explain::Step> steps = {};

  /// Returns the title of steps whose operation has no other name for them: "Query", "Scaled".
  std::string title() const;
  void begin(std::string title, std::string formula);
  void line(LineForm form, Operand a, Operand b, double value, std::string words = {});
  void note(std::string words, double value) { line(LineForm::words, {}, {}, value, std::move(words)); }
  /// Writes a term of a sum, and the sum.
  void term(LineForm form, Operand a, Operand b, double value, Label label = {});
  void sum(double value);
  double result() const { return steps.back().result; }
};

/// Cell of a node, while it or its operands are derived.
struct Cell {
  const Graph& graph;
  const Node& node;
  const Model& model;
  const Trace& trace;
  std::size_t head, i, j;

  /// Returns the cells of input k that enter this one; none if there is no such matrix.
  SourceRect cells(std::size_t k) const;
  /// Returns their numbers. Those of a hidden stage are derived and have no place; their lines are written to
  /// `lines` if it is set.
  std::vector<Operand> operands(std::size_t k, Derivation* lines = nullptr) const;
  Operand operand(std::size_t k, Derivation* lines = nullptr) const { return operands(k, lines).front(); }
  bool is_internal(std::size_t k) const;
  /// Returns the nth cell of input k, which is a hidden stage.
  Cell inner(std::size_t k, std::size_t nth = 0) const;
  /// Writes the derivation of the cell, including its rounding.
  void derive(Derivation& steps) const;
};

/// Line of PyTorch, with the lines needed before and after it.
using InputNames = std::vector<std::string>;
struct TorchCode {
  std::string expression;
  std::vector<std::string> before = {}, after = {};
};

/// How a matrix is computed from others. The parameters are fields of the derived types.
struct Operation {
  std::vector<Input> inputs;
  bool rounded = true;  ///< whether the result is computed, and so rounded to the precision of the graph
  bool known = true;    ///< whether its inputs are all that it needs

  explicit Operation(std::vector<Input> from = {}) : inputs(std::move(from)) {}
  virtual ~Operation() = default;
  /// Returns the wanted rows of one head.
  virtual mat matrix(const OperationInputs& in) const = 0;
  /// Returns how many products each number sums.
  virtual std::size_t n_products(const OperationInputs&) const { return 0; }
  /// Writes the derivation of a cell.
  virtual void terms(const Cell& cell, Derivation& steps) const = 0;
  /// Returns whether a cell depends on input k: a row of zeros does not depend on weights. The same for all
  /// cells of a row.
  virtual bool uses(const Cell& cell, std::size_t k) const;
  /// Returns whether cells of the first input that are −∞ add nothing to others.
  virtual bool ignores_negative_infinity() const { return false; }
  /// Returns which cell of the first input is explained before a cell, if any: by default the only one that
  /// enters it.
  virtual std::optional<std::size_t> previous_operand(const Cell& cell) const;
  /// Returns the column that the letters p and b stand for.
  virtual std::size_t column(const Model&, std::size_t /*i*/, std::size_t j) const { return j; }
  /// Returns the label of column k of the result in a sum.
  virtual Label label(const Model&, std::size_t k) const { return {Label::column, k}; }
  /// Returns the formula in the field's notation, the brief one for a narrow window; `hidden` is the formula
  /// of a first input that is not shown.
  virtual std::string formula(bool brief, const std::string& hidden) const = 0;
  /// Returns the PyTorch expression; `in` are the names of the inputs.
  virtual TorchCode torch_code(const InputNames& in) const = 0;
  /// Adds to the gradients of the inputs, given that of the result; constants add nothing. By default
  /// computed by central differences, for functions whose derivative is not known.
  virtual void backward(const OperationGradient& gradient) const;
};

/// Operation that copies of a graph share until one of them edits it.
class SharedOperation {
 public:
  SharedOperation() = default;
  template <class NewOperation>
  explicit SharedOperation(NewOperation operation)
      : operation_(std::make_shared<NewOperation>(std::move(operation))), copy_(copy<NewOperation>) {}

  const Operation* get() const { return operation_.get(); }
  const Operation* operator->() const { return get(); }
  const Operation& operator*() const { return *operation_; }
  explicit operator bool() const { return operation_ != nullptr; }
  /// Returns the operation for editing, a copy of its own if it is shared.
  Operation& edit() {
    if (operation_.use_count() > 1) operation_ = copy_(*operation_);
    return *operation_;
  }

 private:
  template <class NewOperation>
  static std::shared_ptr<Operation> copy(const Operation& operation) {
    return std::make_shared<NewOperation>(static_cast<const NewOperation&>(operation));
  }

  std::shared_ptr<Operation> operation_;
  std::shared_ptr<Operation> (*copy_)(const Operation&) = nullptr;
};

struct Node {
  Stage stage;
  NodeHeads heads;
  bool has_key_rows;  ///< one row per key, else per query
  SharedOperation operation;
  std::optional<Precision> precision = {};  ///< of the result, instead of the graph's
};

/// Attention of one model: its nodes, each after its inputs; the precision of every result; the KV head of
/// each head.
struct Graph {
  std::vector<Node> nodes;
  Stage result = Stage::output;  ///< stages that it does not need do not exist
  Precision precision = Precision::float64;
  std::vector<std::size_t> kv_head;

  const Node* find(Stage stage) const;
  Node* find(Stage stage);

  /// Adds a stage as the last node.
  template <class NewOperation>
  Stage add(Stage stage, NewOperation operation) {
    return add_node(stage, SharedOperation(std::move(operation)));
  }

  /// Returns the operation of a type that makes a stage, alone or wrapped by others, or nullptr.
  template <class OperationType>
  const OperationType* get(Stage stage) const {
    const Node* node = find_node<OperationType>(stage);
    return node ? dynamic_cast<const OperationType*>(node->operation.get()) : nullptr;
  }

  // Edits; each does nothing if the stage is missing.

  /// Returns an operation for editing; a const graph returns it for reading, which copies nothing.
  template <class OperationType>
  OperationType* get(Stage stage) {
    auto* node = const_cast<Node*>(find_node<OperationType>(stage));
    return node ? &dynamic_cast<OperationType&>(node->operation.edit()) : nullptr;
  }
  /// Returns all operations of a type, for editing.
  template <class OperationType>
  std::vector<OperationType*> all() {
    std::vector<OperationType*> found;
    for (Node& node : nodes)
      if (dynamic_cast<const OperationType*>(node.operation.get()))
        found.push_back(&dynamic_cast<OperationType&>(node.operation.edit()));
    return found;
  }
  /// Replaces an operation by another.
  template <class NewOperation>
  void replace(const Operation* old, NewOperation operation) {
    for (Node& node : nodes)
      if (node.operation.get() == old) return void(node.operation = SharedOperation(std::move(operation)));
  }
  /// Wraps a stage in an operation: it keeps the name, and the wrapped stage becomes hidden.
  template <class NewOperation>
  void wrap(Stage stage, NewOperation wrapper) {
    if (find(stage)) make_internal(stage, SharedOperation(std::move(wrapper)));
  }
  /// Inserts a hidden operation between an operation and its first input.
  template <class NewOperation>
  void insert_before(const Operation* reader, NewOperation operation) {
    for (Node& node : nodes)
      if (node.operation.get() == reader) return insert(node, SharedOperation(std::move(operation)));
  }
  /// Removes a stage: its readers read its first input instead.
  void bypass(Stage stage);
  /// Moves a stage to between another one and the first input of that one.
  void move_before(Stage stage, Stage next);
  /// Makes all readers of a stage read another one instead.
  void redirect_readers(Stage from, const Source& to);
  /// Puts every node behind its inputs.
  void sort();
  /// Returns a hidden stage that does not exist yet.
  Stage next_internal() const;
  /// Returns whether no edit has changed this or the other one since one was copied from the other.
  bool is_copy_of(const Graph& other) const;

 private:
  /// Returns the node with an operation of that type: the stage, or a hidden one that it wraps.
  template <class OperationType>
  const Node* find_node(Stage stage) const {
    const Node* node = find(stage);
    if (!node || dynamic_cast<const OperationType*>(node->operation.get())) return node;
    const auto& inputs = node->operation->inputs;
    const Stage* inner = inputs.empty() ? nullptr : inputs[0].stage();
    return inner && is_internal(*inner) ? find_node<OperationType>(*inner) : nullptr;
  }
  Stage add_node(Stage stage, SharedOperation operation);
  void make_internal(Stage stage, SharedOperation wrapper);
  void insert(Node& reader, SharedOperation operation);
};

/// Returns the graph of a model: scaled dot-product attention, section 3.2 of Vaswani et al. 2017, what
/// models have added since, and the model's bugs.
Graph attention(const Model& model);

/// Applies dropout to the scores instead of the weights: before the mask, or between mask and softmax.
void drop_scores(Graph& graph, attention::DropoutPlace place, bool drops);

/// Returns how many matrices a node has for one sequence, and which of them a head reads.
std::size_t n_matrices(const Node& node, const Model& model);
std::size_t nth_matrix(const Graph& graph, const Node& node, std::size_t head);

/// Returns the stages that exist: given, or known and needed for the result.
NodeSet existing_nodes(const Graph& graph, const Model& model);

/// Returns the formula of a computed stage; empty if the graph does not have it.
std::string formula(const Graph& graph, const Model& model, Stage stage, bool brief);

/// Returns the line of PyTorch that computes a stage: "scores = queries @ keys.transpose(-2, -1)"; "" for
/// embeddings and given stages.
std::string code_line(const Graph& graph, const Model& model, Stage stage);

/// Returns the lines of forward() of a PyTorch program, which returns every stage that is shown; empty lines
/// separate its parts.
std::vector<std::string> forward_lines(const Graph& graph, const Model& model);

}  // namespace core::graph
