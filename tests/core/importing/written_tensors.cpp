#include "tests/core/importing/written_tensors.hpp"

#include <bit>
#include <cstdint>

#include "tests/support/temporary_directory.hpp"

namespace support {
namespace {

std::string bytes_of(const Written& tensor) {
  const std::string dtype = tensor.dtype;
  std::string bytes;
  for (const float number : tensor.numbers) {
    const auto bits = dtype == "F32" ? std::bit_cast<std::uint32_t>(number)
                                     : static_cast<std::uint32_t>(static_cast<std::int32_t>(number));
    const int n = dtype == "F32" || dtype == "I32" ? 4 : 1;
    for (int k = 0; k < n; ++k) bytes += static_cast<char>(bits >> 8 * k & 0xff);
  }
  return bytes;
}

}  // namespace

void write(const std::filesystem::path& path, const std::vector<Written>& tensors) {
  std::string header = "{", numbers;
  for (const Written& tensor : tensors) {
    const std::size_t begin = numbers.size();
    numbers += bytes_of(tensor);
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"" + tensor.dtype +
              "\",\"shape\":" + core::formats::shape_text(tensor.shape) + ",\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(numbers.size()) + "]}";
  }
  header += "}";
  std::string length;
  for (int k = 0; k < 8; ++k) length += static_cast<char>(header.size() >> 8 * k & 0xff);
  put_bytes(path, length + header + numbers);
}

Written rows_of_two(const std::string& name, core::formats::TensorShape shape, float step) {
  Written tensor{name, std::move(shape), {}};
  const std::size_t n = core::formats::count_of(tensor.shape).value();
  for (std::size_t k = 0; k < n / 2; ++k) {
    const float first = step * static_cast<float>(k);
    tensor.numbers.insert(tensor.numbers.end(), {first, 1 - first});
  }
  return tensor;
}

}  // namespace support
