#include "app/copying.hpp"

#include "core/editing/edit.hpp"
#include "core/formats/export.hpp"
#include "core/formats/writers/program.hpp"

namespace app {
namespace {

using core::formats::CopyExtent;

CopySource edited_matrix(const Situation& s, const core::attention::SharedMatrix& edited) {
  const auto& [model, view] = s.newest;
  const bool is_embeddings = view.edited.name == core::editing::MatrixName::embeddings;
  const auto rows = is_embeddings ? model.sequences[view.sequence].tokens
                                  : core::attention::numbered_tokens(edited->n_rows);
  return {{*edited, rows, core::attention::numbered_tokens(edited->n_cols)},
          "the edited matrix",
          view.cursor->row,
          view.cursor->column,
          true};
}

/// A menu may be open while the model changes.
bool is_there(const Situation& s, const CellRef& cell) {
  const auto& stage = core::attention::info(cell.stage);
  if (!stage.present(s.model) || (stage.per_head && cell.head >= s.trace.heads.size())) return false;
  const arma::mat& numbers = stage.matrix(s.trace, cell.head);
  return cell.row < numbers.n_rows && cell.column < numbers.n_cols;
}

}  // namespace

CopySource copy_source(const Situation& s, const std::optional<CellRef>& cell) {
  const auto& [newest, view] = s.newest;
  if (view.cursor && !cell)
    if (const auto* edited = core::editing::find_matrix(newest, {view.edited.name, view.sequence}))
      return edited_matrix(s, *edited);
  const std::optional<CellRef> meant = cell ? cell : s.view.pinned ? s.view.pinned : s.view.hovered;
  const bool exists = meant && is_there(s, *meant);
  const CellRef from = exists ? *meant : CellRef{Stage::weights, s.view.head, 0, 0};
  const auto& stage = core::attention::info(from.stage);
  const std::string head = stage.per_head ? ", head " + std::to_string(from.head) : "";
  return {core::formats::labelled_stage(s.model, s.trace, stage, from.head, s.view.sequence),
          stage.title + head, from.row, from.column, exists};
}

std::string copied_as(const Situation& s, const CopySource& source, CopyChoice choice) {
  const CopyExtent extent = source.has_cell ? choice.extent : CopyExtent::matrix;
  return core::formats::copy_forms()
      .at(choice.form)
      .text(source.matrix, {extent, source.row, source.column}, s.view.copy_decimals);
}

std::string program_of(const core::attention::Model& model, const View& view, const std::string& title) {
  std::vector<std::uint64_t> seeds = core::editing::usual_seeds();
  seeds.push_back(view.draw.draw.seed);
  return core::formats::program_text(model, title, seeds);
}

}  // namespace app
