#pragma once

#include <armadillo>
#include <bitset>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/explain.hpp"

/// Attention as a graph: every stage is one operation on earlier stages and learned matrices.
///
/// An operation holds all that is known of one step: its math, how a cell of it is worked out, its formula
/// and its line of PyTorch. A new stage is an operation, a line of attention() and a row of the table of
/// stages.
namespace core::graph {

using arma::mat;
using attention::MatrixName;
using attention::Model;
using attention::Precision;
using attention::SharedMatrix;
using attention::Stage;
using attention::Trace;
using explain::Cells;
using explain::Form;
using explain::Label;
using explain::Operand;
using explain::Place;
using explain::Source;

/// Stages that are computed but not shown: the projections of all heads, and which weights dropout keeps.
/// Edits of a graph may add more.
inline constexpr Stage all_queries{attention::n_stages}, all_keys{attention::n_stages + 1},
    all_values{attention::n_stages + 2}, kept_weights{attention::n_stages + 3};
inline constexpr std::size_t max_stages = 64;

constexpr std::size_t index(Stage stage) {
  return static_cast<std::size_t>(stage);
}
constexpr bool is_hidden(Stage stage) {
  return index(stage) >= attention::n_stages;
}
using Stages = std::bitset<max_stages>;

/// How many matrices a stage has.
enum class Heads { shared, per_kv_head, per_head };

/// How the heads lie in one matrix, both ways.
struct HeadCell {
  std::size_t head = 0, row = 0, column = 0;
};
struct JoinedCell {
  std::size_t row = 0, column = 0;
};
struct HeadSizes {
  std::size_t n_heads = 1, n_rows = 0, width = 0;
};
struct Layout {
  JoinedCell (*joined)(HeadCell, HeadSizes);
  HeadCell (*split)(JoinedCell, HeadSizes);
};
extern const Layout bands;         ///< head h has d_head neighboring columns
extern const Layout interleaved;   ///< head h has columns h, h + n_heads, …
extern const Layout untransposed;  ///< [token][d_out] read as [head][token][d_head]

/// Returns the sizes of queries, keys or values before they are split, and of the concatenated context
/// vectors.
HeadSizes split_sizes(const Model& model, Stage stage);
HeadSizes combined_sizes(const Model& model);

/// An input, and which of its cells enter cell (i, j) of head h: a letter for the row and one for the column,
/// as in an einsum. i, j: as in the cell; h: its head; 0: the first; ':': all; p: the other column of its
/// pair; b: the bucket of its distance; c: its column among those of all heads. An input without letters is
/// needed but not read.
struct Input {
  Source source;
  const char* cells = "ij";
  const Layout* layout = nullptr;  ///< instead of letters: where the cell is among all heads

  bool is_read() const { return layout || *cells; }
  /// Whether rows of the result need only the same rows of the input.
  bool is_by_rows() const { return layout ? layout != &untransposed : cells[0] == 'i'; }
  const Stage* stage() const { return std::get_if<Stage>(&source); }
  /// "W_q": of a learned matrix.
  std::string symbol() const { return attention::symbol(std::get<MatrixName>(source)); }
};

struct Graph;
struct Node;
struct Evaluation;

/// All rows of a matrix, or a list of some.
using RowChoice = std::optional<std::vector<std::size_t>>;

/// The inputs of an operation while it computes rows of one head.
struct Reading {
  const Graph& graph;
  const Node& node;
  const Model& model;
  const Evaluation& stages;
  std::size_t head;
  const RowChoice& rows;
  mutable std::vector<std::unique_ptr<mat>> copies = {};  ///< rows that were taken out of an input

  /// Input k for this head, or for another; only the wanted rows where it is read by rows.
  const mat& operator[](std::size_t k) const { return of_head(k, head); }
  const mat& of_head(std::size_t k, std::size_t other) const;
  std::size_t n_rows() const;
  /// Which row of the stage the ath computed row is.
  std::size_t row(std::size_t a) const { return rows ? (*rows)[a] : a; }
  std::size_t sequence() const;
};

/// The steps in which a cell is worked out, as operations write them; the result is that of the last line.
struct Derivation {
  explain::CellAddress cell;
  std::vector<explain::Step> steps = {};

  /// Returns what steps of the stage are called where the operation has no other name: "Query", "Scaled".
  std::string title() const;
  void begin(std::string title, std::string formula);
  void line(Form form, Operand a, Operand b, double value, std::string words = {});
  void note(std::string words, double value) { line(Form::words, {}, {}, value, std::move(words)); }
  /// Writes a line that is added up with others, and what they add up to.
  void term(Form form, Operand a, Operand b, double value, Label label = {});
  void sum(double value);
  double result() const { return steps.back().result; }
};

/// A cell of a node while it is worked out, or while what it is made of is looked for.
struct Cell {
  const Graph& graph;
  const Node& node;
  const Model& model;
  const Trace& trace;
  std::size_t head, i, j;

  /// Returns the cells of input k that enter this one; none where there is no such matrix.
  Cells cells(std::size_t k) const;
  /// Returns their numbers. Those of a hidden stage are worked out, and stand nowhere; their lines are
  /// written where a derivation is given.
  std::vector<Operand> operands(std::size_t k, Derivation* lines = nullptr) const;
  Operand operand(std::size_t k, Derivation* lines = nullptr) const { return operands(k, lines).front(); }
  bool is_hidden(std::size_t k) const;
  /// Returns the cell of a hidden stage that is input k.
  Cell inner(std::size_t k, std::size_t nth = 0) const;
  /// Writes how it is worked out, and what it is rounded to.
  void work_out(Derivation& steps) const;
};

/// A line of PyTorch, with what has to come before and after it.
using Names = std::vector<std::string>;
struct Code {
  std::string expression;
  std::vector<std::string> before = {}, after = {};
};

/// How a matrix is made of others. The arguments are the fields of the types derived from it.
struct Operation {
  std::vector<Input> inputs;
  bool rounded = true;  ///< whether it computes, so that its result is rounded to the precision of the graph
  bool known = true;    ///< whether its inputs are all that it needs

  explicit Operation(std::vector<Input> from = {}) : inputs(std::move(from)) {}
  virtual ~Operation() = default;
  /// Returns the wanted rows of one head.
  virtual mat matrix(const Reading& in) const = 0;
  /// Writes how a cell is worked out.
  virtual void terms(const Cell& cell, Derivation& steps) const = 0;
  /// Returns whether a cell is made of input k: a row of zeros is not made of weights. The same for all cells
  /// of a row.
  virtual bool uses(const Cell& cell, std::size_t k) const;
  /// Returns whether cells of the first input that are −∞ add nothing to others.
  virtual bool skips_hidden() const { return false; }
  /// Returns which cell of the first input is explained before a cell, if one is: the only one that enters
  /// it.
  virtual std::optional<std::size_t> continues(const Cell& cell) const;
  /// Returns the column that the letters p and b stand for.
  virtual std::size_t column(const Model&, std::size_t /*i*/, std::size_t j) const { return j; }
  /// Returns what column k of the result is called in a sum.
  virtual Label label(const Model&, std::size_t k) const { return {Label::column, k}; }
  /// Returns the formula in the field's notation, the brief one for a narrow window; hidden is the formula of
  /// a first input that is not shown.
  virtual std::string formula(bool brief, const std::string& hidden) const = 0;
  /// Returns PyTorch's expression; in are the names of the inputs.
  virtual Code torch(const Names& in) const = 0;
};

struct Node {
  Stage stage;
  Heads heads;
  bool has_key_rows;  ///< a row for each key, else for each query
  std::unique_ptr<Operation> operation;
};

/// Attention of one model: its nodes, each after its inputs; what every result is rounded to; the KV head of
/// each head.
struct Graph {
  std::vector<Node> nodes;
  Stage result = Stage::output;  ///< stages that it does not need are not there
  Precision precision = Precision::float64;
  std::vector<std::size_t> kv_head;

  const Node* find(Stage stage) const;
  Node* find(Stage stage);

  /// Adds a stage as the last node.
  template <class Made>
  Stage add(Stage stage, Made operation) {
    return add_node(stage, std::make_unique<Made>(std::move(operation)));
  }

  // Edits, of which deviations are made; each does nothing where the stage is missing.

  /// The operation of a type that makes a stage, alone or under one that was put around it.
  template <class Wanted>
  Wanted* get(Stage stage) {
    Node* node = find(stage);
    if (!node) return nullptr;
    if (auto* operation = dynamic_cast<Wanted*>(node->operation.get())) return operation;
    const auto& inputs = node->operation->inputs;
    const Stage* inner = inputs.empty() ? nullptr : inputs[0].stage();
    return inner && is_hidden(*inner) ? get<Wanted>(*inner) : nullptr;
  }
  /// All operations of a type.
  template <class Wanted>
  std::vector<Wanted*> all() {
    std::vector<Wanted*> found;
    for (Node& node : nodes)
      if (auto* operation = dynamic_cast<Wanted*>(node.operation.get())) found.push_back(operation);
    return found;
  }
  /// Puts another operation in the place of one.
  template <class Made>
  void replace(const Operation* old, Made operation) {
    for (Node& node : nodes)
      if (node.operation.get() == old)
        return void(node.operation = std::make_unique<Made>(std::move(operation)));
  }
  /// Puts an operation around a stage: it keeps the name, and what it was before is hidden.
  template <class Made>
  void wrap(Stage stage, Made around) {
    if (find(stage)) hide(stage, std::make_unique<Made>(std::move(around)));
  }
  /// Puts a hidden operation between an operation and its first input.
  template <class Made>
  void insert_before(const Operation* reader, Made operation) {
    for (Node& node : nodes)
      if (node.operation.get() == reader) return insert(node, std::make_unique<Made>(std::move(operation)));
  }
  /// Leaves a stage out: what read it reads its first input.
  void bypass(Stage stage);
  /// Takes a stage out of its place and puts it between another and that one's first input.
  void move_before(Stage stage, Stage next);

 private:
  Stage add_node(Stage stage, std::unique_ptr<Operation> operation);
  Stage next_hidden() const;
  void hide(Stage stage, std::unique_ptr<Operation> around);
  void insert(Node& reader, std::unique_ptr<Operation> operation);
  void sort();
};

/// Returns the graph of a model: scaled dot-product attention, section 3.2 of Vaswani et al. 2017, what
/// models have added since, and the model's mistakes.
Graph attention(const Model& model);

/// The stages of one sequence, by stage and then by matrix; none where there are none.
struct Evaluation {
  std::size_t sequence = 0;
  std::vector<std::vector<SharedMatrix>> stages = std::vector<std::vector<SharedMatrix>>(max_stages);
  Stages partial = {};  ///< those of which only the wanted rows are there
  const std::vector<SharedMatrix>& operator[](Stage stage) const { return stages[index(stage)]; }
};

/// Returns which matrix of a node a head reads.
std::size_t nth_matrix(const Graph& graph, const Node& node, std::size_t head);

/// Returns the stages that are there: given, or known and needed for the result.
Stages shown(const Graph& graph, const Model& model);

/// Computes every stage of a sequence, or those up to the last one that is asked for. With rows: of each
/// stage these rows, or all of it where others need all of it. Stages that are there already in known are
/// taken from it, unless only rows of them are there and all are needed.
Evaluation evaluate(const Graph& graph, const Model& model, std::size_t sequence, const RowChoice& rows = {},
                    Evaluation known = {}, std::optional<Stage> last = {});

/// Returns the formula of a computed stage; empty where the graph does not have it.
std::string formula(const Graph& graph, const Model& model, Stage stage, bool brief);

/// Returns the lines of forward() of a PyTorch program, which returns every stage that is shown; empty ones
/// between its parts.
std::vector<std::string> forward_lines(const Graph& graph, const Model& model);

}  // namespace core::graph
