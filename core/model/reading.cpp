#include "core/model/reading.hpp"

#include <algorithm>
#include <array>

namespace core::transformer {
namespace {

// What is read in float64 before it becomes float32, so that a large tensor is never there twice.
constexpr std::uint64_t most_numbers_at_once = std::uint64_t{1} << 20;

void put_floats(const std::vector<double>& numbers, float* to) {
  std::ranges::transform(numbers, to, [](double number) { return static_cast<float>(number); });
}

}  // namespace

arma::fmat read_rows(const formats::TensorFile& file, const std::string& name, std::size_t first,
                     std::size_t count, const Token& progress) {
  const formats::Shape shape = file.info(name).shape;
  const std::size_t n_columns = shape.empty() ? 1 : shape.back();
  arma::fmat floats(n_columns, count, arma::fill::none);
  const bool at_once =
      shape.size() < 2 || (first == 0 && count == shape[0] && n_columns * count <= most_numbers_at_once);
  if (at_once) {
    put_floats(file.read(name, {}, progress).numbers, floats.memptr());
    return floats;
  }
  for (std::size_t row = 0; row < count; ++row) {
    const std::array leading{first + row};
    put_floats(file.read(name, leading, progress).numbers, floats.colptr(row));
  }
  return floats;
}

arma::fmat read_floats(const formats::TensorFile& file, const std::string& name, const Token& progress) {
  const formats::Shape& shape = file.info(name).shape;
  return read_rows(file, name, 0, shape.size() < 2 ? 1 : shape[0], progress);
}

}  // namespace core::transformer
