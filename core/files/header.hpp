#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/files/blocks.hpp"
#include "core/files/gguf.hpp"
#include "core/files/open_file.hpp"

namespace core::formats {

/// A tensor as the header of a GGUF file describes it.
struct GgufTensor {
  std::string name;
  Shape shape;  ///< the innermost length last
  const GgufType* type;
  std::uint64_t offset;  ///< from where the data begin
};

struct GgufHeader {
  std::map<std::string, GgufValue> metadata;
  std::vector<GgufTensor> tensors;
  std::uint64_t data_at = 0;  ///< bytes of the file before the data
};

/// Throws core::Error as open_gguf() does.
GgufHeader read_gguf_header(const OpenFile& file);

}  // namespace core::formats
