#include "core/graph/gradients.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/lazy_stages.hpp"

/// The loop from a target back to everything that it depends on.
namespace core::graph {
namespace {

mat& nth_of(std::vector<mat>& matrices, std::size_t nth, const mat& shape) {
  if (matrices.size() <= nth) matrices.resize(nth + 1);
  if (matrices[nth].empty()) matrices[nth].zeros(arma::size(shape));
  return matrices[nth];
}

/// Returns the place among the matrices of a name of one sequence.
std::size_t place_of(attention::MatrixRef ref) {
  return ref.name == MatrixName::score_bias ? ref.nth : 0;
}

bool has_overridden(const Model& m, Stage stage) {
  return std::ranges::any_of(m.given.cells, [=](const auto& cell) { return cell.place.stage == stage; });
}

/// Returns a gradient with zeros at overridden cells, which nothing determines.
mat without_overridden(mat gradient, const Model& m, Stage stage, std::size_t sequence, std::size_t nth) {
  for (const attention::GivenCell& cell : m.given.cells)
    if (cell.place.stage == stage && cell.place.sequence == sequence && cell.place.head == nth)
      gradient(cell.place.row, cell.place.column) = 0;
  return gradient;
}

using explain::CellAddress;
using explain::SourceCell;

/// Returns the gradient of a number, zero if nothing was added to it.
double number_of(const std::vector<mat>& matrices, std::size_t nth, const SourceCell& at) {
  return nth < matrices.size() && !matrices[nth].empty() ? matrices[nth](at.row, at.column) : 0;
}

/// Passes gradients from the results of operations to their inputs.
class BackwardPass {
 public:
  BackwardPass(const Graph& graph, const Model& model, LazyStages& stages, std::size_t sequence)
      : graph_(graph), model_(model), sequence_(sequence), stages_(stages) {}

  /// Sets the gradients of a stage, [nth matrix].
  void begin(Stage stage, std::vector<mat> gradients) { sums_.stages[index(stage)] = std::move(gradients); }

  /// Passes the gradients of a node on.
  void pass(const Node& node, const VisitGradient& visit = {}) {
    std::vector<mat>& gradients = sums_.stages[index(node.stage)];
    static const RowSelection all_rows;
    for (std::size_t nth = 0; nth < gradients.size(); ++nth) {
      if (gradients[nth].empty()) continue;
      if (visit) visit(node.stage, nth, gradients[nth]);
      if (stages_.is_given(node.stage)) continue;
      const OperationInputs in{graph_, node, model_, stages_, sequence_, nth, all_rows};
      if (has_overridden(model_, node.stage)) {
        const mat y = node.operation->matrix(in),
                  dy = without_overridden(gradients[nth], model_, node.stage, sequence_, nth);
        node.operation->backward({in, y, dy, sums_});
      } else {
        node.operation->backward({in, *stages_.matrix(node.stage, sequence_, nth), gradients[nth], sums_});
      }
    }
  }

  /// Computes the derivatives of a cell with respect to the numbers that it is directly computed from.
  GradientSums local(const CellAddress& cell) {
    sums_ = {};
    const std::size_t nth = nth_matrix(graph_, *graph_.find(cell.stage), cell.head);
    nth_of(sums_.stages[index(cell.stage)], nth, *stages_.matrix(cell.stage, sequence_, nth))(
        cell.row, cell.column) = 1;
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node)
      if (is_internal(node->stage) || node->stage == cell.stage) pass(*node);
    return std::move(sums_);
  }

  Gradients result() {
    Gradients all{0, Trace(model_.n_heads), std::move(sums_.matrices)};
    all.stages.sequence = sequence_;
    const NodeSet present = existing_nodes(graph_, model_);
    for (const Node& node : graph_.nodes) {
      if (is_internal(node.stage) || !present[index(node.stage)]) continue;
      std::vector<SharedMatrix> matrices;
      for (std::size_t nth = 0; nth < n_matrices(node, model_); ++nth)
        matrices.emplace_back(std::move(
            nth_of(sums_.stages[index(node.stage)], nth, *stages_.matrix(node.stage, sequence_, nth))));
      for (std::size_t h = 0; h < (node.heads == NodeHeads::shared ? 1 : model_.n_heads); ++h)
        all.stages.at(node.stage, h) = matrices[nth_matrix(graph_, node, h)];
    }
    return all;
  }

 private:
  const Graph& graph_;
  const Model& model_;
  std::size_t sequence_;
  LazyStages& stages_;
  GradientSums sums_;
};

/// Adds to the gradient of the numbers that a target is computed from; returns the target's value.
double add_target(const Target& target, const mat& numbers, mat& gradient) {
  const SourceRect cells = cells_of(target, {numbers.n_rows, numbers.n_cols});
  const std::size_t n = cells.count();
  if (!target.expected.empty() && target.expected.size() != n)
    throw Error(fmt::format("{}: expected {}, got {}", text_of(target), text::counted(n, "target number"),
                            target.expected.size()));
  double value = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const SourceCell at = cells.at(k);
    const double number = numbers(at.row, at.column);
    const double error = target.expected.empty() ? 0 : number - target.expected[k];
    gradient(at.row, at.column) += target.expected.empty() ? 1 : 2 * error / static_cast<double>(n);
    value += target.expected.empty() ? number : error * error / static_cast<double>(n);
  }
  return value;
}

}  // namespace

void require_stage(const Graph& graph, const Model& model, const Target& target) {
  const attention::StageInfo& stage = attention::info(target.stage);
  const attention::StageSet existing = attention::existing_stages(graph, model);
  if (!contains(existing, target.stage)) {
    std::vector<const attention::StageInfo*> present;
    for (const attention::StageInfo& other : attention::stages())
      if (contains(existing, other.stage)) present.push_back(&other);
    throw Error("stage \"" + std::string(stage.name) + "\": this model does not have it; it has " +
                text::joined(present, ", ", &attention::StageInfo::name));
  }
  if (target.head >= stage.count(model.n_heads))
    throw Error(fmt::format("{}: expected a head below {}, got {}", stage.name, stage.count(model.n_heads),
                            target.head));
}

SourceRect cells_of(const Target& target, attention::StageShape shape) {
  const auto [stage, head, row, column, expected] = target;
  if (row.value_or(0) >= shape.n_rows || column.value_or(0) >= shape.n_cols)
    throw Error(fmt::format("{}: expected a row below {} and a column below {}", text_of(target),
                            shape.n_rows, shape.n_cols));
  return {stage,
          head,
          row.value_or(0),
          row ? *row + 1 : shape.n_rows,
          column.value_or(0),
          column ? *column + 1 : shape.n_cols};
}

const char* gradient_name(MatrixName name) {
  constexpr std::array<const char*, attention::n_matrix_names> names{
      nullptr,      nullptr,    "query_weight",  "key_weight",  "value_weight", "output_weight",
      "query_bias", "key_bias", "value_bias",    "output_bias", "query_norm",   "key_norm",
      nullptr,      "slopes",   "relative_bias", "score_bias",  "sink"};
  return names[static_cast<std::size_t>(name)];
}

std::vector<attention::MatrixRef> learned_matrices(const Model& model) {
  std::vector<attention::MatrixRef> learned;
  for (std::size_t k = 0; k < attention::n_matrix_names; ++k) {
    const auto name = static_cast<MatrixName>(k);
    const std::size_t n = name == MatrixName::score_bias ? model.additions.score_bias.size() : 1;
    for (std::size_t nth = 0; gradient_name(name) && nth < n; ++nth)
      if (find_matrix(model, {name, nth})) learned.push_back({name, nth});
  }
  return learned;
}

const mat& Gradients::of(attention::MatrixRef place) const {
  static const mat nothing;
  const std::vector<mat>& all = matrices[static_cast<std::size_t>(place.name)];
  return place_of(place) < all.size() ? all[place_of(place)] : nothing;
}

Gradients gradients(const Graph& graph, const Model& model, std::size_t sequence, const Target& target,
                    const StopToken* progress) {
  require_stage(graph, model, target);
  LazyStages stages(graph, model);
  const Node& node = *graph.find(target.stage);
  std::vector<mat> of_heads;  // zeros flow into the other heads, where 0 · NaN is NaN, as in PyTorch
  for (std::size_t nth = 0; nth < n_matrices(node, model); ++nth)
    nth_of(of_heads, nth, *stages.matrix(target.stage, sequence, nth));
  const std::size_t nth = nth_matrix(graph, node, target.head);
  const double value = add_target(target, *stages.matrix(target.stage, sequence, nth), of_heads[nth]);
  Gradients all = gradients_from(graph, model, stages, sequence, target.stage, std::move(of_heads),
                                 [progress](Stage, std::size_t, mat&) {
                                   if (progress) progress->add(1);
                                 });
  all.value = value;
  return all;
}

double value_of(const Graph& graph, const Model& model, std::size_t sequence, const Target& target) {
  require_stage(graph, model, target);
  LazyStages stages(graph, model);
  const mat& numbers =
      *stages.matrix(target.stage, sequence, nth_matrix(graph, *graph.find(target.stage), target.head));
  mat unused(arma::size(numbers), arma::fill::zeros);
  return add_target(target, numbers, unused);
}

Gradients gradients_from(const Graph& graph, const Model& model, LazyStages& stages, std::size_t sequence,
                         Stage stage, std::vector<mat> of_stage, const VisitGradient& visit) {
  BackwardPass backward(graph, model, stages, sequence);
  backward.begin(stage, std::move(of_stage));
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) backward.pass(*node, visit);
  return backward.result();
}

std::vector<GradientTerm> gradient_readers(const explain::Computation& of, const Gradients& all,
                                           const CellAddress& cell) {
  LazyStages stages(of.graph, of.model);
  BackwardPass backward(of.graph, of.model, stages, of.trace.sequence);
  const std::size_t nth = nth_matrix(of.graph, *of.graph.find(cell.stage), cell.head);
  std::vector<GradientTerm> terms;
  for (const SourceRect& rect : explain::results(of, cell)) {
    const Stage stage = std::get<Stage>(rect.source);
    const std::size_t own = nth_matrix(of.graph, *of.graph.find(stage), rect.head);
    for (std::size_t k = 0; k < rect.count(); ++k) {
      const SourceCell at = rect.at(k);
      const auto is_same = [&](const GradientTerm& term) {
        const SourceCell& other = term.cell;
        return other.source == at.source && other.row == at.row && other.column == at.column &&
               nth_matrix(of.graph, *of.graph.find(stage), other.head) == own;
      };
      if (std::ranges::any_of(terms, is_same)) continue;  // heads that share a matrix count once
      const GradientSums local = backward.local({stage, at.head, at.row, at.column});
      terms.push_back(
          {at, all.stages.at(stage, at.head)(at.row, at.column),
           number_of(local.stages[index(cell.stage)], nth, {cell.stage, cell.head, cell.row, cell.column})});
    }
  }
  return terms;
}

std::vector<GradientTerm> gradient_inputs(const explain::Computation& of, const Gradients& all,
                                          const CellAddress& cell) {
  LazyStages stages(of.graph, of.model);
  BackwardPass backward(of.graph, of.model, stages, of.trace.sequence);
  const GradientSums local = backward.local(cell);
  std::vector<GradientTerm> terms;
  for (const SourceRect& rect : explain::operands(of, cell))
    for (std::size_t k = 0; k < rect.count(); ++k) {
      const SourceCell at = rect.at(k);
      if (const auto* stage = std::get_if<Stage>(&at.source)) {
        const std::size_t nth = nth_matrix(of.graph, *of.graph.find(*stage), at.head);
        terms.push_back({at, all.stages.at(*stage, at.head)(at.row, at.column),
                         number_of(local.stages[index(*stage)], nth, at)});
        continue;
      }
      const auto ref = matrix_ref(of.model, std::get<MatrixName>(at.source), of.trace.sequence, at.head);
      const mat& gradient = all.of(ref);
      terms.push_back({at, gradient.empty() ? 0 : gradient(at.row, at.column),
                       number_of(local.matrices[static_cast<std::size_t>(ref.name)], place_of(ref), at)});
    }
  std::ranges::stable_sort(terms, std::greater(),
                           [](const GradientTerm& term) { return std::abs(term.derivative); });
  return terms;
}

mat& OperationGradient::of_head(std::size_t k, std::size_t other) const {
  const Input& input = in.node.operation->inputs[k];
  const mat& numbers = in.of_head(k, other);
  if (input.numbers) {  // of an edit
    unused.zeros(arma::size(numbers));
    return unused;
  }
  if (const Stage* stage = input.stage())
    return nth_of(sums.stages[index(*stage)], in.nth_of_head(k, other), numbers);
  const auto name = std::get<MatrixName>(input.source);
  return nth_of(sums.matrices[static_cast<std::size_t>(name)],
                place_of(matrix_ref(in.model, name, in.sequence, other)), numbers);
}

}  // namespace core::graph
