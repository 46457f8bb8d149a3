#include "core/files/session_given.hpp"

#include <algorithm>

#include "core/files/session_files.hpp"
#include "core/files/session_parts.hpp"
#include "core/graph/limits.hpp"
#include "core/graph/stages.hpp"

namespace core::formats {
namespace {

using attention::GivenCell;
using attention::GivenPlace;
using attention::Stage;

/// How many lists stand one in the other before the first number.
std::size_t levels_of(const Json& json) {
  const auto first = json.first();
  return first ? 1 + levels_of(*first) : 0;
}

/// Matrices of one stage: [sequence][head], one after the other.
struct Matrices {
  std::size_t n_sequences = 0, n_heads = 0;
  std::vector<attention::SharedMatrix> all;
};

void add_sequence(const Json& place, Matrices& matrices) {
  const JsonItems heads = place.items("a list of matrices, one for each head");
  if (matrices.n_sequences > 0 && heads.size() != matrices.n_heads)
    place.fail(std::to_string(matrices.n_heads) + " matrices as in the first sequence",
               std::to_string(heads.size()));
  require_count(place, heads.size(), attention::max_columns, "heads");
  require_bytes(place, (matrices.all.size() + heads.size()) * bytes_of_a_matrix, "matrices");
  ++matrices.n_sequences, matrices.n_heads = heads.size();
  for (const Json& head : heads) matrices.all.emplace_back(head.matrix(Numbers::any));
}

Matrices listed_matrices(const Json& place) {
  const std::size_t levels = levels_of(place);
  if (levels < 3) return {1, 1, {attention::SharedMatrix(place.matrix(Numbers::any))}};
  Matrices matrices;
  if (levels == 3)
    add_sequence(place, matrices);
  else {
    const JsonItems sequences = place.items("a list of sequences");
    require_count(place, sequences.size(), attention::max_sequences, "sequences");
    for (const Json& sequence : sequences) add_sequence(sequence, matrices);
  }
  return matrices;
}

Matrices matrices_in_file(const Json& place, const SessionFolder& folder, Stage stage) {
  TensorStage read = stage_in_file(place, folder, stage);
  return {read.n_sequences, read.given.matrices.size() / read.n_sequences, std::move(read.given.matrices)};
}

attention::GivenStage read_stage(const Json& place, const SessionFolder& folder, Stage stage,
                                 ReadGiven& read) {
  Matrices matrices = is_in_file(place) ? matrices_in_file(place, folder, stage) : listed_matrices(place);
  // Keys and values may be fewer than heads, which share them: how many there are to be is for check() to
  // say.
  const bool may_be_fewer = attention::info(stage).rows == attention::Rows::keys;
  const bool other_heads = !may_be_fewer && read.n_heads > 0 && read.n_heads != matrices.n_heads;
  const bool other_sequences = read.n_sequences > 0 && read.n_sequences != matrices.n_sequences;
  if (other_heads || other_sequences)
    fail_of(place, folder,
            std::to_string(read.n_sequences * read.n_heads) + " matrices as of the stage before",
            std::to_string(matrices.all.size()));
  (may_be_fewer ? read.n_shared : read.n_heads) = matrices.n_heads, read.n_sequences = matrices.n_sequences;
  return {stage, std::move(matrices.all)};
}

GivenCell read_cell(const Json& place) {
  place.expect_keys({"stage", "sequence", "head", "row", "column", "value"});
  const Json name = place.required("stage");
  const attention::StageInfo* stage = attention::find_stage(name.text());
  if (!stage) name.fail("the name of a stage");
  const auto index = [&](const char* key) {
    const auto found = place.member(key);
    return found ? static_cast<std::size_t>(found->whole(0)) : 0;
  };
  const std::size_t row = place.required("row").whole(0), column = place.required("column").whole(0);
  return {{stage->stage, index("sequence"), index("head"), row, column},
          place.required("value").number(Numbers::any)};
}

void read_cells(const Json& place, std::vector<GivenCell>& cells) {
  for (const Json& cell : place.items_if_any("a list of cells")) cells.push_back(read_cell(cell));
  std::ranges::sort(cells, {}, &GivenCell::place);
  const auto twice = std::ranges::adjacent_find(cells, {}, &GivenCell::place);
  if (twice == cells.end()) return;
  place.fail("each cell once", std::string(attention::info(twice->place.stage).name) + " [" +
                                   std::to_string(twice->place.row) + ", " +
                                   std::to_string(twice->place.column) + "] of head " +
                                   std::to_string(twice->place.head) + " twice");
}

std::string cell_text(const GivenCell& cell, std::size_t n_sequences) {
  const GivenPlace& p = cell.place;
  const attention::StageInfo& stage = attention::info(p.stage);
  return "{\"stage\": \"" + std::string(stage.name) + "\"" +
         (n_sequences > 1 ? ", \"sequence\": " + std::to_string(p.sequence) : "") +
         (stage.per_head ? ", \"head\": " + std::to_string(p.head) : "") +
         ", \"row\": " + std::to_string(p.row) + ", \"column\": " + std::to_string(p.column) +
         ", \"value\": " + json_number(cell.value) + "}";
}

}  // namespace

ReadGiven read_given(const Json& place, const SessionFolder& folder) {
  place.expect_keys({"queries", "keys", "values", "scores", "scaled_scores", "masked_scores", "weights",
                     "dropout_mask", "cells"});
  ReadGiven read;
  std::uint64_t bytes = 0;
  for (const attention::StageInfo& stage : attention::stages())
    if (const auto found = attention::can_be_given(stage.stage) ? place.member(stage.name) : std::nullopt) {
      read.given.stages.push_back(read_stage(*found, folder, stage.stage, read));
      for (const attention::SharedMatrix& m : read.given.stages.back().matrices) bytes += matrix_bytes(m);
      require_bytes(*found, bytes, "stages");
    }
  if (read.n_heads == 0) read.n_heads = read.n_shared;
  if (const auto cells = place.member("cells")) read_cells(*cells, read.given.cells);
  return read;
}

std::string given_text(const attention::Model& model) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += (text.empty() ? "{\n  \"" : ",\n  \"") + std::string(key) + "\": " + value;
  };
  for (const attention::GivenStage& stage : model.given.stages)
    add(attention::info(stage.stage).name,
        heads_text(stage.matrices, n_matrices(model, stage.stage), model.sequences.size()));
  if (!model.given.cells.empty())
    add("cells", list_text(model.given.cells, "  ", true, [&](const GivenCell& cell, const std::string&) {
          return cell_text(cell, model.sequences.size());
        }));
  return text + "}";
}

}  // namespace core::formats
