#pragma once

#include <string>
#include <string_view>

#include "core/files/tensor.hpp"

namespace core::formats::readers {

/// The dictionary at the beginning of a .npy file.
struct NpyHeader {
  std::string descr;  ///< '<f8'; of records, the whole list as it is written
  bool fortran_order = false;
  Shape shape;
};

/// Reads the Python literal {'descr': …, 'fortran_order': …, 'shape': (…)} without evaluating it.
///
/// Throws core::Error, "PLACEwhat was expected", when it is anything else.
NpyHeader parse_npy_header(std::string_view text, const std::string& place);

}  // namespace core::formats::readers
