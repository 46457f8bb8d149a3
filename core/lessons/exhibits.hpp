#pragma once

#include <armadillo>
#include <string>
#include <vector>

#include "core/lessons/lessons.hpp"

namespace core::lessons {

/// How the numbers of a picture are to be shown.
enum class Shading {
  signed_values,  ///< symmetric around 0
  weights,        ///< 0 … 1
  mask,           ///< grey, 0 or 1
  bars            ///< one column, 0 … 1, as lengths
};

/// A small matrix with its words, to be drawn beside others.
struct Picture {
  std::string title = {}, note = {};                 ///< the note stands below, with the numbers that matter
  std::vector<std::string> rows = {}, columns = {};  ///< names of rows and columns; columns may be empty
  std::vector<std::string> ends = {};                ///< what stands after each row, or nothing
  arma::mat numbers = {};
  Shading shading = Shading::weights;
};

/// The pictures of an exhibit for the model as it is, side by side; none for Exhibit::none, or when
/// something in it is given.
std::vector<Picture> pictures(Exhibit exhibit, const Moment& moment);

/// How far each row of the output moves when 1 is added to every number of the last token, in the first
/// sequence.
arma::vec rows_moved_by_last_token(const attention::Model& model);

}  // namespace core::lessons
