#include "core/base/formula.hpp"

#include <algorithm>

namespace core::text {

std::vector<FormulaPiece> formula_pieces(std::string_view formula) {
  std::vector<FormulaPiece> pieces;
  const auto take = [&](std::size_t length, bool subscript) {
    if (length > 0) pieces.push_back({formula.substr(0, length), subscript});
    formula.remove_prefix(length);
  };
  while (!formula.empty()) {
    take(std::min(formula.find('_'), formula.size()), false);
    if (formula.size() < 2) break;
    formula.remove_prefix(1);  // the underscore
    const std::size_t digits = std::min(formula.find_first_not_of("0123456789"), formula.size());
    take(std::max<std::size_t>(digits, 1), true);
  }
  return pieces;
}

}  // namespace core::text
