#include "core/graph/reach.hpp"

#include <algorithm>
#include <utility>

namespace core::explain {
namespace {

using attention::info;

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

bool is_per_head(const Model& model, Source source) {
  const auto* stage = std::get_if<Stage>(&source);
  if (!stage) return source == Source(Input::score_bias) && model.additions.score_bias.size() > 1;
  return info(*stage).per_head;
}

/// The heads that have the matrix of a stage that a head has.
std::vector<std::size_t> heads_with(const Model& model, Source source, std::size_t head) {
  const auto* stage = std::get_if<Stage>(&source);
  if (!stage || !info(*stage).per_head || n_matrices(model, *stage) == model.n_heads) return {head};
  std::vector<std::size_t> heads;
  for (std::size_t h = 0; h < model.n_heads; ++h)
    if (model.group_of(h) == model.group_of(head)) heads.push_back(h);
  return heads;
}

Reach line_of_softmax(const Model& model) {
  return model.departures.softmax_over == attention::SoftmaxOver::keys ? Reach::row : Reach::column;
}

/// The rows of the heads that a row of the matrix of all heads is split into.
std::vector<Cells> split_of_row(const Model& model, Stage stage, std::size_t row) {
  const graph::Layout& layout = graph::split_layout(model, stage);
  const graph::HeadSizes sizes = graph::split_sizes(model, stage);
  std::vector<Cells> all;
  for (std::size_t column = 0; column < sizes.n_heads * sizes.width; ++column) {
    const graph::HeadCell to = layout.split({row, column}, sizes);
    for (std::size_t h = 0; h < model.n_heads && to.column == 0; ++h)
      if (matrix_of_head(model, stage, h) == to.head)
        all.push_back({stage, h, to.row, to.row + 1, 0, sizes.width});
  }
  return all;
}

/// The other column of the pair that a turned column belongs to; the column itself when it does not turn.
std::size_t partner_of(const Model& model, std::size_t column) {
  const positions::Rotary& rotary = *model.additions.positions.rotary;
  const auto pair = pair_of(rotary, column, model.d_head());
  if (!pair) return column;
  const auto [first, second] = columns_of(rotary, *pair, model.d_head());
  return first + second - column;
}

Cells one_cell(Source source, std::size_t head, std::size_t row, std::size_t column) {
  return {source, head, row, row + 1, column, column + 1};
}

}  // namespace

std::size_t bucket_of_cell(const Model& model, std::size_t query, std::size_t key) {
  const std::int64_t distance = position_of_key(model, key) - position_of_query(model, query);
  return positions::bucket_of(distance, *model.additions.positions.relative);
}

Place before_merge(const Model& model, std::size_t row, std::size_t column) {
  const graph::HeadCell from =
      graph::combine_layout(model).split({row, column}, graph::combined_sizes(model));
  return {Stage::contexts, from.head, from.row, from.column};
}

graph::JoinedCell before_split(const Model& model, const CellAddress& cell) {
  const std::size_t head = matrix_of_head(model, cell.stage, cell.head);
  return graph::split_layout(model, cell.stage)
      .joined({head, cell.row, cell.column}, graph::split_sizes(model, cell.stage));
}

attention::GivenPlace given_place(const Model& model, std::size_t sequence, const CellAddress& cell) {
  return {cell.stage, sequence, matrix_of_head(model, cell.stage, cell.head), cell.row, cell.column};
}

const arma::mat* find_numbers(const Model& model, const Trace& trace, Source source, std::size_t head) {
  if (const auto* stage = std::get_if<Stage>(&source)) return &*info(*stage).matrix(trace, head);
  const auto* numbers =
      attention::find_matrix(model, place_of(model, std::get<Input>(source), trace.sequence, head));
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
  const std::size_t head = is_per_head(model, part.source) ? cell.head : 0;
  const auto size = size_of(model, trace, part.source, head);
  if (part.reach == Reach::nothing || !size || size->first == 0) return std::nullopt;
  const auto [rows, columns] = *size;
  const graph::JoinedCell joined =
      info(cell.stage).per_head ? before_split(model, cell) : graph::JoinedCell{cell.row, cell.column};
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
    case Reach::partner: {
      const std::size_t column = partner_of(model, cell.column);
      return one_cell(part.source, head, cell.row, column);
    }
    case Reach::column_factor:
      return one_cell(part.source, head, 0, cell.column);
    case Reach::head_number:
      return one_cell(part.source, head, 0, cell.head);
    case Reach::bucket:
      return one_cell(part.source, head, cell.head, bucket_of_cell(model, cell.row, cell.column));
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
  const std::size_t head = is_per_head(model, part.source) ? cell.head : 0;
  const std::size_t row = cell.row, column = cell.column;
  const CellAddress first{rule.stage, head, 0, 0};
  const attention::StageMatrix& numbers = numbers_of(trace, first);
  Cells cells{rule.stage, head, 0, numbers.n_rows(), 0, numbers.n_cols()};
  const auto only_row = [&](std::size_t i) { cells.row0 = i, cells.row1 = i + 1; };
  const auto only_column = [&](std::size_t j) { cells.column0 = j, cells.column1 = j + 1; };
  if (part.reach == Reach::projected_row) return split_of_row(model, rule.stage, row);
  bool in_every_head = is_per_head(model, rule.stage) && !is_per_head(model, part.source);
  if (part.reach == Reach::partner && partner_of(model, column) == column) return {};
  switch (part.reach == Reach::softmax_line ? line_of_softmax(model) : part.reach) {
    case Reach::softmax_line:
    case Reach::nothing:
    case Reach::projected_row:
    case Reach::projection:
    case Reach::column_factor:
    case Reach::head_number:
    case Reach::bucket:
      return {};
    case Reach::partner:
      only_row(row), only_column(partner_of(model, column));
      break;
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
      const graph::HeadCell of =
          graph::split_layout(model, rule.stage).split({row, column}, graph::split_sizes(model, rule.stage));
      in_every_head = false;
      cells.head = of.head;
      only_row(of.row), only_column(of.column);
      break;
    }
    case Reach::merged_cell: {
      const graph::JoinedCell to =
          graph::combine_layout(model).joined({head, row, column}, graph::combined_sizes(model));
      cells.head = 0;
      only_row(to.row), only_column(to.column);
      break;
    }
  }
  std::vector<Cells> all;
  if (!in_every_head && !is_per_head(model, rule.stage)) return {cells};
  for (std::size_t h = 0; h < model.n_heads; ++h) {
    const auto with = in_every_head ? std::vector{h} : heads_with(model, part.source, cells.head);
    if (std::find(with.begin(), with.end(), h) == with.end()) continue;
    all.push_back(cells);
    all.back().head = h;
  }
  return all;
}

}  // namespace core::explain
