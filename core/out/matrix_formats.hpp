#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/out/labelled_matrix.hpp"

namespace core::formats {

/// A format that a single matrix can be written in.
struct MatrixFormat {
  const char* name;   ///< as on the command line and as the ending of the file: "csv"
  const char* about;  ///< one line for people
  std::string (*bytes)(const LabelledMatrix&, bool labels);
};

/// All formats for a matrix; the first is the default.
std::span<const MatrixFormat> matrix_formats();

/// The format of that name, or nullptr.
const MatrixFormat* find_matrix_format(std::string_view name);

}  // namespace core::formats
