#include "core/graph/check_given.hpp"

#include "core/base/text.hpp"
#include "core/graph/stages.hpp"

namespace core::attention {
namespace {

using std::to_string;

std::string meaning(const StageInfo& stage) {
  const std::string rows = stage.rows == Rows::keys ? "n_keys" : "n_tokens";
  if (stage.columns == Columns::tokens) return rows + " × n_keys";
  return rows + (stage.stage == Stage::values ? " × d_value" : " × d_head");
}

std::optional<Problem> check_stage(const Model& model, const GivenStage& given) {
  const StageInfo& stage = info(given.stage);
  const std::string path = "given." + std::string(stage.name);
  if (!can_be_given(given.stage))
    return Problem{path, "expected one of " + text::joined(givable_stages(), ", ", &StageInfo::name)};
  const std::size_t n_heads = n_matrices(model, given.stage), expected = model.sequences.size() * n_heads;
  if (given.matrices.size() != expected)
    return Problem{path,
                   "expected " + to_string(expected) +
                       (model.sequences.size() > 1 ? " matrices, one for each head of each sequence, got "
                        : n_heads < model.n_heads  ? " matrices, one for each group of heads, got "
                                                   : " matrices, one for each head, got ") +
                       to_string(given.matrices.size())};
  const StageShape wanted = shape_of(model, given.stage);
  for (std::size_t k = 0; k < expected; ++k) {
    const SharedMatrix& m = given.matrices[k];
    const std::string place = model.sequences.size() > 1 ? "[" + to_string(k / n_heads) + "]" : "";
    if (m.n_rows() != wanted.n_rows || m.n_cols() != wanted.n_cols || m.n_rows() * m.n_cols() == 0)
      return Problem{path + place + "[" + to_string(k % n_heads) + "]",
                     "expected " + text::shape_text(wanted.n_rows, wanted.n_cols) + " (" + meaning(stage) +
                         "), got " + text::shape_text(m.n_rows(), m.n_cols())};
  }
  return std::nullopt;
}

/// Whether what is given fits the width of what is computed beside it.
std::optional<Problem> check_widths(const Model& model) {
  const auto misfit = [](Stage stage, std::size_t columns, const char* beside, std::size_t wanted) {
    return Problem{
        "given." + std::string(info(stage).name),
        "expected " + to_string(wanted) + " columns, as " + beside + " have, got " + to_string(columns)};
  };
  const std::size_t band = model.d_out() / model.n_heads;
  if (is_computed(model, Stage::keys) && model.d_head() != band)
    return misfit(Stage::queries, model.d_head(), "the keys", band);
  if (is_computed(model, Stage::queries) && model.d_head() != band)
    return misfit(Stage::keys, model.d_head(), "the queries", band);
  const bool projected =
      model.projections && model.projections->output && contains(shown_stages(model), Stage::output);
  if (projected && model.d_value() != band)
    return misfit(Stage::values, model.d_value(), "the heads' rows of the output projection", band);
  return std::nullopt;
}

std::optional<Problem> check_cells(const Model& model) {
  const StageSet shown = shown_stages(model);
  for (std::size_t k = 0; k < model.given.cells.size(); ++k) {
    const GivenPlace& place = model.given.cells[k].place;
    const StageInfo& stage = info(place.stage);
    const std::string path = "given.cells[" + to_string(k) + "]";
    if (place.stage == Stage::embeddings || place.stage == Stage::key_embeddings)
      return Problem{path, "expected another stage, as embeddings are typed where they stand"};
    if (place.stage == Stage::mask)
      return Problem{path, "expected another stage, as cells of the mask stand in mask.cells"};
    if (!contains(shown, place.stage))
      return Problem{path, "expected a stage that the model has, got " + std::string(stage.name)};
    const StageShape size = shape_of(model, place.stage);
    const std::size_t n_heads = n_matrices(model, place.stage);
    if (place.sequence >= model.sequences.size() || place.head >= n_heads || place.row >= size.n_rows ||
        place.column >= size.n_cols)
      return Problem{path, "expected a cell of " + to_string(model.sequences.size()) + " sequences, " +
                               to_string(n_heads) + " heads, " + text::shape_text(size.n_rows, size.n_cols) +
                               " " + stage.name + ", got sequence " + to_string(place.sequence) + ", head " +
                               to_string(place.head) + ", row " + to_string(place.row) + ", column " +
                               to_string(place.column)};
    if (k > 0 && model.given.cells[k - 1].place >= place)
      return Problem{path, "expected each cell once, sorted by stage, sequence, head, row and column"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> check_given(const Model& model) {
  const auto& given = model.given.stages;
  if (given.empty() && model.given.cells.empty()) return std::nullopt;  // as nearly always
  for (std::size_t k = 0; k < given.size(); ++k) {
    if (auto p = check_stage(model, given[k])) return p;
    if (k > 0 && given[k - 1].stage >= given[k].stage)
      return Problem{"given." + std::string(info(given[k].stage).name),
                     "expected each stage once, in the order of the computation"};
  }
  if (auto p = check_widths(model)) return p;
  if (!contains(shown_stages(model), Stage::weights))
    return Problem{"given",
                   "expected weights, scores, or queries and keys: what is given does not lead to weights"};
  return check_cells(model);
}

}  // namespace core::attention
