#pragma once

#include <string_view>
#include <vector>

namespace core::text {

/// A part of a formula that is written in one size.
struct FormulaPiece {
  std::string_view text;
  bool subscript = false;
};

/// "X·W_q + b_12" as "X·W", q, " + b" and 12: behind an underscore a letter or all digits are lowered. No
/// piece is empty; they are parts of the text given.
std::vector<FormulaPiece> formula_pieces(std::string_view formula);

}  // namespace core::text
