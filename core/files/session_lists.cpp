#include "core/files/session_lists.hpp"

#include <cmath>
#include <numeric>

#include "core/base/number.hpp"

namespace core::formats {
namespace {

std::vector<std::size_t> indices(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

std::string json_number(double value) {
  return std::isfinite(value) ? text::number_text(value) : "\"" + text::number_text(value) + "\"";
}

std::string row_text(const arma::mat& m, std::size_t i) {
  std::string text = "[";
  for (std::size_t j = 0; j < m.n_cols; ++j) {
    if (j > 0) text += ", ";
    if (std::isfinite(m(i, j)))
      text::append_number(text, m(i, j));
    else
      text += json_number(m(i, j));
  }
  return text + "]";
}

std::string matrix_text(const arma::mat& m, const std::string& indent) {
  return list_text(indices(m.n_rows), indent, true,
                   [&](std::size_t i, const std::string&) { return row_text(m, i); });
}

std::string heads_text(const std::vector<attention::SharedMatrix>& matrices, std::size_t n_heads,
                       std::size_t n_sequences) {
  const auto heads_of = [&](std::size_t sequence, const std::string& indent) {
    return list_text(indices(n_heads), indent, true, [&](std::size_t head, const std::string& inner) {
      return matrix_text(matrices[sequence * n_heads + head], inner);
    });
  };
  return n_sequences == 1 ? heads_of(0, "  ") : list_text(indices(n_sequences), "  ", true, heads_of);
}

}  // namespace core::formats
