#include "core/explain/reach.hpp"

#include <utility>

#include "core/attention/rules.hpp"

namespace core::explain {
namespace {

using attention::info;
using attention::rules_of;

const attention::StageMatrix& numbers_of(const Trace& trace, const CellAddress& cell) {
  return info(cell.stage).matrix(trace, cell.head);
}

/// Rows and columns of a source, where the model has it.
std::optional<std::pair<std::size_t, std::size_t>> size_of(const Model& model, const Trace& trace,
                                                           Source source, std::size_t head) {
  if (const auto* stage = std::get_if<Stage>(&source)) {
    const attention::StageMatrix& numbers = info(*stage).matrix(trace, head);
    return std::pair{numbers.n_rows(), numbers.n_cols()};
  }
  const arma::mat* numbers = find_numbers(model, trace, source, head);
  if (!numbers) return std::nullopt;
  return std::pair<std::size_t, std::size_t>{numbers->n_rows, numbers->n_cols};
}

bool is_per_head(Source source) {
  const auto* stage = std::get_if<Stage>(&source);
  return stage && info(*stage).per_head;
}

Reach line_of_softmax(const Model& model) {
  return rules_of(model).softmax->over_keys ? Reach::row : Reach::column;
}

/// The rows of the heads that a row of the matrix of all heads is split into.
std::vector<Cells> split_of_row(const Model& model, Stage stage, std::size_t row) {
  const attention::Layout& layout = splitting(model, stage).layout;
  const attention::HeadSizes sizes = split_sizes(model);
  std::vector<Cells> all;
  for (std::size_t column = 0; column < sizes.n_heads * sizes.d_head; ++column) {
    const attention::HeadCell to = layout.parted({row, column}, sizes);
    if (to.column == 0) all.push_back({stage, to.head, to.row, to.row + 1, 0, sizes.d_head});
  }
  return all;
}

Cells one_cell(Source source, std::size_t head, std::size_t row, std::size_t column) {
  return {source, head, row, row + 1, column, column + 1};
}

}  // namespace

Place before_merge(const Model& model, std::size_t row, std::size_t column) {
  const attention::HeadCell from = rules_of(model).merge->layout.parted({row, column}, merged_sizes(model));
  return {Stage::contexts, from.head, from.row, from.column};
}

attention::JoinedCell before_split(const Model& model, const CellAddress& cell) {
  return splitting(model, cell.stage).layout.joined({cell.head, cell.row, cell.column}, split_sizes(model));
}

const arma::mat* find_numbers(const Model& model, const Trace& trace, Source source, std::size_t head) {
  if (const auto* stage = std::get_if<Stage>(&source)) return &*info(*stage).matrix(trace, head);
  const auto* numbers = attention::find_matrix(model, {std::get<Input>(source), trace.sequence});
  return numbers ? &**numbers : nullptr;
}

double number_at(const Model& model, const Trace& trace, const Place& place) {
  const auto* stage = std::get_if<Stage>(&place.source);
  if (stage && info(*stage).columns == attention::Columns::tokens)
    return info(*stage).matrix(trace, place.head)(place.row, place.column);
  return (*find_numbers(model, trace, place.source, place.head))(place.row, place.column);
}

std::optional<Cells> reached(const Model& model, const Trace& trace, const Part& part,
                             const CellAddress& cell) {
  const std::size_t head = is_per_head(part.source) ? cell.head : 0;
  const auto size = size_of(model, trace, part.source, head);
  if (!size) return std::nullopt;
  const auto [rows, columns] = *size;
  const attention::JoinedCell joined =
      info(cell.stage).per_head ? before_split(model, cell) : attention::JoinedCell{cell.row, cell.column};
  switch (part.reach == Reach::softmax_line ? line_of_softmax(model) : part.reach) {
    case Reach::softmax_line:
    case Reach::nothing:
      return std::nullopt;
    case Reach::same_cell:
      return one_cell(part.source, head, cell.row, cell.column);
    case Reach::row:
      return Cells{part.source, head, cell.row, cell.row + 1, 0, columns};
    case Reach::projected_row:
      return Cells{part.source, head, joined.row, joined.row + 1, 0, columns};
    case Reach::key_row:
      return Cells{part.source, head, cell.column, cell.column + 1, 0, columns};
    case Reach::column:
      return Cells{part.source, head, 0, rows, cell.column, cell.column + 1};
    case Reach::row_total:
      return one_cell(part.source, head, cell.row, 0);
    case Reach::projection:
      return Cells{part.source, head, 0, rows, joined.column, joined.column + 1};
    case Reach::banded_cell:
      return one_cell(part.source, head, joined.row, joined.column);
    case Reach::merged_cell: {
      const Place from = before_merge(model, cell.row, cell.column);
      return one_cell(part.source, from.head, from.row, from.column);
    }
  }
  return std::nullopt;
}

std::vector<Cells> reached_by(const Model& model, const Trace& trace, const Rule& rule, const Part& part,
                              const CellAddress& cell) {
  if (part.source != Source(cell.stage)) return {};
  const std::size_t head = is_per_head(part.source) ? cell.head : 0;
  const std::size_t row = cell.row, column = cell.column;
  const attention::StageMatrix& numbers = numbers_of(trace, {rule.stage, head, 0, 0});
  Cells cells{rule.stage, head, 0, numbers.n_rows(), 0, numbers.n_cols()};
  const auto only_row = [&](std::size_t i) { cells.row0 = i, cells.row1 = i + 1; };
  const auto only_column = [&](std::size_t j) { cells.column0 = j, cells.column1 = j + 1; };
  if (part.reach == Reach::projected_row) return split_of_row(model, rule.stage, row);
  bool in_every_head = is_per_head(rule.stage) && !is_per_head(part.source);
  switch (part.reach == Reach::softmax_line ? line_of_softmax(model) : part.reach) {
    case Reach::softmax_line:
    case Reach::nothing:
    case Reach::projected_row:
    case Reach::projection:
      return {};
    case Reach::same_cell:
      only_row(row), only_column(column);
      break;
    case Reach::row:
    case Reach::row_total:
      only_row(row);
      break;
    case Reach::key_row:
      only_column(row);
      break;
    case Reach::column:
      only_column(column);
      break;
    case Reach::banded_cell: {
      const attention::HeadCell of =
          splitting(model, rule.stage).layout.parted({row, column}, split_sizes(model));
      in_every_head = false;
      cells.head = of.head;
      only_row(of.row), only_column(of.column);
      break;
    }
    case Reach::merged_cell: {
      const attention::JoinedCell to =
          rules_of(model).merge->layout.joined({head, row, column}, merged_sizes(model));
      cells.head = 0;
      only_row(to.row), only_column(to.column);
      break;
    }
  }
  std::vector<Cells> all;
  for (std::size_t h = 0; h < (in_every_head ? model.n_heads : 1); ++h) {
    all.push_back(cells);
    if (in_every_head) all.back().head = h;
  }
  return all;
}

}  // namespace core::explain
