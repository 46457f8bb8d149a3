#include "core/graph/lazy_stages.hpp"

#include <algorithm>
#include <utility>

#include "core/graph/matrices.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/rounding.hpp"

namespace core::graph {
namespace {

mat select_rows(const mat& all, const std::vector<std::size_t>& rows) {
  mat some(rows.size(), all.n_cols, arma::fill::none);
  for (std::size_t j = 0; j < all.n_cols; ++j)
    for (std::size_t a = 0; a < rows.size(); ++a) some.at(a, j) = all.at(rows[a], j);
  return some;
}

/// Writes the overridden cells of one matrix.
void override_cells(const Model& m, std::size_t sequence, Stage stage, std::size_t nth,
                    const RowSelection& rows, SharedMatrix& numbers) {
  const auto& cells = m.given.cells;
  auto cell = std::ranges::lower_bound(cells, attention::GivenCellAddress{stage, sequence, nth, 0, 0}, {},
                                       &attention::GivenCell::place);
  for (; cell != cells.end(); ++cell) {
    const attention::GivenCellAddress& p = cell->place;
    if (p.stage != stage || p.sequence != sequence || p.head != nth) return;
    const std::size_t row =
        rows ? static_cast<std::size_t>(std::ranges::find(*rows, p.row) - rows->begin()) : p.row;
    if (row < numbers.n_rows()) numbers.edit()(row, p.column) = cell->value;
  }
}

}  // namespace

std::size_t OperationInputs::nth_of_head(std::size_t k, std::size_t other) const {
  // Heads of queries read the KV head that they share; KV heads read their own.
  const Input& input = node.operation->inputs[k];
  const Node& from = *stages.find(*input.stage());
  const bool is_own = node.heads == NodeHeads::per_kv_head && from.heads == NodeHeads::per_kv_head;
  return input.heads ? (*input.heads)[other] : is_own ? other : nth_matrix(graph, from, other);
}

const mat& OperationInputs::of_sequence(std::size_t k, std::size_t other_sequence, std::size_t other) const {
  const Input& input = node.operation->inputs[k];
  const Stage* stage = input.stage();
  const bool by_rows = rows && input.is_row_wise();
  if (stage && !input.numbers) return stages.matrix(*stage, other_sequence, nth_of_head(k, other), by_rows);
  const SharedMatrix& all =
      input.numbers
          ? *input.numbers
          : *find_matrix(model, matrix_ref(model, std::get<MatrixName>(input.source), other_sequence, other));
  return by_rows ? *copies.emplace_back(std::make_unique<mat>(select_rows(all, *rows))) : *all;
}

std::size_t OperationInputs::n_rows() const {
  return rows ? rows->size() : node.has_key_rows ? model.n_keys() : model.n_tokens();
}

mat OperationInputs::selected(mat all) const {
  return rows ? select_rows(all, *rows) : all;
}

LazyStages::LazyStages(const Graph& graph, const Model& model, RowSelection rows)
    : graph_(graph), model_(model), rows_(std::move(rows)) {
  for (const Node& node : graph.nodes) nodes_[index(node.stage)] = &node;
  for (const attention::GivenStage& given : model.given.stages) give(given.stage, given.matrices);
}

LazyStages::LazyStages(const Graph& edited, const Model& model, LazyStages& base)
    : graph_(edited), model_(model), rows_(base.rows_), base_(&base), work_(base.work_) {
  for (const Node& node : edited.nodes) nodes_[index(node.stage)] = &node;
  const bool has_same_heads = edited.kv_head == base.graph_.kv_head;
  const auto is_same_input = [&](const Input& input) {
    const Stage* from = input.stage();
    if (!from || !find(*from)) return true;
    const bool is_by_group = find(*from)->heads == NodeHeads::per_kv_head && !input.heads;
    return same_[index(*from)] == *from && (has_same_heads || !is_by_group);
  };
  for (const Node& node : edited.nodes) {
    const std::size_t at = index(node.stage);
    if (base.given_[at]) {
      given_[at] = base.given_[at], same_[at] = node.stage;
      continue;
    }
    const Node* before = base.nodes_[at];
    if (!before || before->operation.get() != node.operation.get()) {  // it may have been wrapped
      const auto moved = std::ranges::find_if(base.graph_.nodes, [&](const Node& other) {
        return other.operation.get() == node.operation.get();
      });
      before = moved == base.graph_.nodes.end() ? nullptr : &*moved;
    }
    if (before && before->precision == node.precision && before->heads == node.heads &&
        std::ranges::all_of(node.operation->inputs, is_same_input))
      same_[at] = before->stage;
  }
}

void LazyStages::give(Stage stage, const std::vector<SharedMatrix>& matrices) {
  given_[index(stage)] = &matrices;
}

void LazyStages::put(Stage stage, std::size_t sequence, std::size_t nth, SharedMatrix matrix) {
  same_[index(stage)].reset();
  auto& slots = whole_[index(stage)];
  const std::size_t n = n_matrices(stage);
  slots.resize(n * model_.sequences.size());
  slots[sequence * n + nth] = std::move(matrix);
}

const SharedMatrix& LazyStages::matrix(Stage stage, std::size_t sequence, std::size_t nth, bool by_rows) {
  const std::size_t at = index(stage);
  by_rows = by_rows && rows_;
  if (same_[at]) return base_->matrix(*same_[at], sequence, nth, by_rows);
  const std::size_t n = n_matrices(stage), slot = sequence * n + nth;
  if (given_[at] && !by_rows && model_.given.cells.empty()) return (*given_[at])[slot];
  auto& slots = by_rows ? some_[at] : whole_[at];
  if (slots.empty()) slots.resize(n * model_.sequences.size());
  if (!slots[slot]) slots[slot] = compute(stage, sequence, nth, by_rows);  // which may read other slots
  return *slots[slot];
}

mat LazyStages::columns(Stage stage, std::size_t sequence, std::size_t nth, bool by_rows,
                        const arma::uvec& which) {
  if (same_[index(stage)]) return base_->columns(*same_[index(stage)], sequence, nth, by_rows, which);
  const Node& node = *find(stage);
  const auto* project = dynamic_cast<const Project*>(node.operation.get());
  const bool is_known = given_[index(stage)] || computed(stage, sequence, nth) || !model_.given.cells.empty();
  if (!project || is_known) {
    const SharedMatrix& all = matrix(stage, sequence, nth, by_rows);
    return which.max() < all.n_cols() ? mat(all->cols(which)) : mat();
  }
  const RowSelection rows = by_rows ? rows_ : RowSelection();
  const OperationInputs inputs{graph_, node, model_, *this, sequence, nth, rows};
  const mat& weight = inputs[1];
  if (which.max() >= (project->is_transposed() ? weight.n_rows : weight.n_cols)) return {};
  return finished(node, inputs, project->columns(inputs, which));
}

mat LazyStages::finished(const Node& node, const OperationInputs& inputs, mat numbers) {
  if (work_)
    work_->cells += 100 + static_cast<double>(numbers.n_elem) *
                              (1 + static_cast<double>(node.operation->n_products(inputs)) / 16);
  return node.operation->rounded
             ? attention::rounded(node.precision.value_or(graph_.precision), std::move(numbers))
             : std::move(numbers);
}

const SharedMatrix* LazyStages::computed(Stage stage, std::size_t sequence, std::size_t nth) const {
  const auto& slots = whole_[index(stage)];
  if (slots.empty()) return nullptr;
  const auto& matrix = slots[sequence * n_matrices(stage) + nth];
  return matrix ? &*matrix : nullptr;
}

SharedMatrix LazyStages::compute(Stage stage, std::size_t sequence, std::size_t nth, bool by_rows) {
  static const RowSelection all_rows;
  const RowSelection& rows = by_rows ? rows_ : all_rows;
  const Node& node = *find(stage);
  SharedMatrix numbers;
  if (const auto* given = given_[index(stage)]) {
    numbers = (*given)[sequence * n_matrices(stage) + nth];
    if (by_rows) numbers = select_rows(numbers, *rows);
  } else if (const SharedMatrix* whole = by_rows ? computed(stage, sequence, nth) : nullptr) {
    return select_rows(*whole, *rows);
  } else {
    const OperationInputs inputs{graph_, node, model_, *this, sequence, nth, rows};
    numbers = finished(node, inputs, node.operation->matrix(inputs));
  }
  if (!model_.given.cells.empty()) override_cells(model_, sequence, stage, nth, rows, numbers);
  return numbers;
}

}  // namespace core::graph
