#pragma once

#include <optional>
#include <string>

#include "app/session/situation.hpp"
#include "core/out/tables.hpp"

namespace app {

/// A matrix of which something is to be copied, and the cell that is meant.
struct CopySource {
  core::formats::LabelledMatrix matrix;
  std::string words;  ///< "Weights, head 0"
  std::size_t row = 0, column = 0;
  bool has_cell = false;  ///< else only the whole matrix can be meant
};

/// The matrix under the edit cursor, else that of the given, the pinned or the hovered cell, else the weights
/// of the shown head.
CopySource copy_source(const Situation& situation, const std::optional<CellRef>& cell = {});

/// What that is in words, "Weights, head 0", without a look at its numbers; and whether a cell is meant.
std::string copied_words(const Situation& situation, const std::optional<CellRef>& cell = {});
bool names_a_cell(const Situation& situation, const std::optional<CellRef>& cell = {});

/// The number under the edit cursor, else that of the pinned or the hovered cell, to the last bit.
std::optional<std::string> copied_number(const Situation& situation);

/// What of it is copied in a form, with the decimals of the view.
std::string copied_as(const Situation& situation, const CopySource& source, CopyChoice choice);

/// The whole model as a PyTorch program; the seed of the view's form of draws is tried as well.
std::string program_of(const core::attention::Model& model, const Forms& forms, const std::string& title);

}  // namespace app
