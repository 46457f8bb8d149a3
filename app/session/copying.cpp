#include "app/session/copying.hpp"

#include "app/session/view_bounds.hpp"

#include "core/base/number.hpp"
#include "core/editing/edit.hpp"
#include "core/out/export.hpp"
#include "core/out/program.hpp"

namespace app {
namespace {

using core::formats::CopyExtent;

constexpr const char* edited_words = "the edited matrix";

CopySource edited_matrix(const Situation& s, const core::attention::SharedMatrix& edited) {
  const core::attention::Model& model = s.newest.model;
  const Look& look = s.newest.look;
  const Selection& selection = s.newest.selection;
  using core::editing::MatrixName;
  const auto& sequence = model.sequences[look.sequence];
  const auto rows = look.edited.name == MatrixName::embeddings ? sequence.tokens
                    : look.edited.name == MatrixName::key_embeddings
                        ? sequence.keys()
                        : core::attention::numbered_tokens(edited->n_rows);
  return {{*edited, rows, core::attention::numbered_tokens(edited->n_cols)},
          edited_words,
          selection.cursor->row,
          selection.cursor->column,
          true};
}

/// The matrix under the edit cursor, unless a cell is meant; or nullptr.
const core::attention::SharedMatrix* matrix_at_cursor(const Situation& s,
                                                      const std::optional<CellRef>& cell) {
  const core::attention::Model& model = s.newest.model;
  const Look& look = s.newest.look;
  const Selection& selection = s.newest.selection;
  if (!selection.cursor || cell) return nullptr;
  return core::editing::find_matrix(model, edited_place(look, model));
}

/// A menu may be open while the model changes.
bool is_there(const Situation& s, const CellRef& cell) {
  const auto& stage = core::attention::info(cell.stage);
  if (!stage.present(s.shown.model) || (stage.per_head && cell.head >= s.shown.trace.heads.size()))
    return false;
  const core::attention::StageMatrix& numbers = stage.matrix(s.shown.trace, cell.head);
  return cell.row < numbers.n_rows() && cell.column < numbers.n_cols();
}

/// The given, the pinned or the hovered cell, if it is there.
std::optional<CellRef> meant_cell(const Situation& s, const std::optional<CellRef>& cell) {
  const std::optional<CellRef> meant = cell                       ? cell
                                       : s.shown.selection.pinned ? s.shown.selection.pinned
                                                                  : s.shown.selection.hovered;
  return meant && is_there(s, *meant) ? meant : std::nullopt;
}

std::string stage_words(const CellRef& from) {
  const auto& stage = core::attention::info(from.stage);
  return stage.title + (stage.per_head ? ", head " + std::to_string(from.head) : "");
}

CellRef source_cell(const Situation& s, const std::optional<CellRef>& meant) {
  return meant.value_or(CellRef{Stage::weights, s.shown.look.head, 0, 0});
}

}  // namespace

std::string copied_words(const Situation& s, const std::optional<CellRef>& cell) {
  return matrix_at_cursor(s, cell) ? edited_words : stage_words(source_cell(s, meant_cell(s, cell)));
}

bool names_a_cell(const Situation& s, const std::optional<CellRef>& cell) {
  return matrix_at_cursor(s, cell) || meant_cell(s, cell);
}

CopySource copy_source(const Situation& s, const std::optional<CellRef>& cell) {
  if (const auto* edited = matrix_at_cursor(s, cell)) return edited_matrix(s, *edited);
  const auto meant = meant_cell(s, cell);
  const CellRef from = source_cell(s, meant);
  return {core::formats::labelled_stage(s.shown.model, s.shown.trace, core::attention::info(from.stage),
                                        from.head, s.shown.look.sequence),
          stage_words(from), from.row, from.column, meant.has_value()};
}

std::optional<std::string> copied_number(const Situation& s) {
  if (const auto* edited = matrix_at_cursor(s, {})) {
    const auto& cursor = *s.newest.selection.cursor;
    if (cursor.row < (*edited)->n_rows && cursor.column < (*edited)->n_cols)
      return core::text::number_text((**edited)(cursor.row, cursor.column));
  }
  const auto cell = meant_cell(s, {});
  if (!cell) return std::nullopt;
  const auto& numbers = core::attention::info(cell->stage).matrix(s.shown.trace, cell->head);
  return core::text::number_text(numbers(cell->row, cell->column));
}

std::string copied_as(const Situation& s, const CopySource& source, CopyChoice choice) {
  const CopyExtent extent = source.has_cell ? choice.extent : CopyExtent::matrix;
  return core::formats::copy_forms()
      .at(choice.form)
      .text(source.matrix, {extent, source.row, source.column}, s.settings.copy_decimals);
}

std::string program_of(const core::attention::Model& model, const Forms& forms, const std::string& title) {
  std::vector<std::uint64_t> seeds = core::editing::usual_seeds();
  seeds.push_back(forms.draw.draw.seed);
  return core::formats::program_text(model, title, seeds);
}

}  // namespace app
