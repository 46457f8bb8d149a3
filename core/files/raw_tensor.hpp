#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/files/tensor_file.hpp"

namespace core::formats::readers {

/// Gives the bytes from … from + count − 1 of a tensor; they stay until the buffer is used again.
using Fetch = std::function<std::string_view(std::uint64_t from, std::uint64_t count, std::string& buffer,
                                             const Token& progress)>;

/// By how many items a step of each index goes on.
using Strides = std::vector<std::uint64_t>;

/// How a tensor lies in a binary file.
struct RawTensor {
  TensorInfo info;
  std::size_t item_bytes = 8;  ///< of one number, or of one text
  bool big_endian = false;
  Strides strides;        ///< of none, the last index runs fastest and without a gap
  bool deflated = false;  ///< what was fetched before can be fetched again only from the beginning
  std::string place;      ///< "FILE: TENSOR: ", for messages
  Fetch fetch;
};

/// Bytes of all numbers, or nothing when they are beyond 2^62.
std::optional<std::uint64_t> byte_count(const RawTensor& tensor);

/// Of a tensor whose first index runs fastest, as in Fortran.
Strides columns_first(const Shape& shape);

/// Items from the first to the last that a tensor has, none of an empty one, or nothing beyond 2^62.
std::optional<std::uint64_t> span_of(const Shape& shape, const Strides& strides);

/// The entry that reads this tensor; only the bytes of the asked part are fetched where the file lets it.
TensorFile::Entry entry_of(RawTensor tensor);

}  // namespace core::formats::readers
