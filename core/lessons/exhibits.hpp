#pragma once

#include <armadillo>
#include <string>
#include <vector>

#include "core/lessons/lessons.hpp"

namespace core::lessons {

/// How the numbers of a picture are shaded.
enum class ExhibitShading {
  signed_values,  ///< symmetric around 0
  weights,        ///< 0 … 1
  mask,           ///< gray, 0 or 1
  bars            ///< one column, 0 … 1, as lengths
};

/// A small matrix with labels, drawn next to others.
struct ExhibitPicture {
  std::string title = {}, note = {};                 ///< the note is below, with the numbers that matter
  std::vector<std::string> rows = {}, columns = {};  ///< names of rows and columns; columns may be empty
  std::vector<std::string> ends = {};                ///< text after each row, or empty
  arma::mat numbers = {};
  ExhibitShading shading = ExhibitShading::weights;
};

/// Returns the pictures of an exhibit for the current model, from left to right; none for Exhibit::none, or
/// when any number of the model is given.
std::vector<ExhibitPicture> pictures(Exhibit exhibit, const StepState& state);

/// Returns how far each row of the output moves when 1 is added to every number of the last token, in the
/// first sequence.
arma::vec rows_moved_by_last_token(const attention::Model& model);

}  // namespace core::lessons
