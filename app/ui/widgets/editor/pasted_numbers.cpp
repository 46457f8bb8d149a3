#include "app/ui/widgets/editor/pasted_numbers.hpp"

#include <cmath>
#include <string>

#include "core/base/error.hpp"
#include "core/files/table.hpp"

namespace app::widgets {
namespace {

namespace formats = core::formats;

const std::string place = "pasted text: ";

/// A decimal comma is understood where a comma that separates would make no table of the text.
formats::Tensor numbers_of(std::string_view text) {
  try {
    return formats::readers::parse_numbers(text, place);
  } catch (const core::Error& error) {
    try {
      return formats::readers::parse_numbers(text, place, true);
    } catch (const core::Error&) {
      throw error;
    }
  }
}

}  // namespace

formats::Tensor pasted_tensor(std::string_view text) {
  return numbers_of(text);
}

arma::mat pasted_numbers(std::string_view text) {
  const formats::Tensor tensor = numbers_of(text);
  if (tensor.numbers.empty()) throw core::Error(place + "expected numbers, got nothing");
  if (tensor.shape.size() > 2)
    throw core::Error(place + "expected a matrix, got a tensor of shape " +
                      formats::shape_text(tensor.shape));
  arma::mat numbers = formats::matrix(tensor);
  for (std::size_t i = 0; i < numbers.n_rows; ++i)
    for (std::size_t j = 0; j < numbers.n_cols; ++j)
      if (!std::isfinite(numbers(i, j)))
        throw core::Error(place + "row " + std::to_string(i + 1) + ", column " + std::to_string(j + 1) +
                          ": expected a finite number, got " +
                          (std::isnan(numbers(i, j)) ? "nan" : "an infinite one"));
  return numbers;
}

}  // namespace app::widgets
