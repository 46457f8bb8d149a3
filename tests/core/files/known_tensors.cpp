#include "tests/core/files/known_tensors.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>

#include "core/files/json.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats::readers {
namespace {

Dtype dtype_named(const std::string& name) {
  for (int k = 0; k <= static_cast<int>(Dtype::text); ++k)
    if (name == dtype_name(static_cast<Dtype>(k))) return static_cast<Dtype>(k);
  throw std::runtime_error("no type is called " + name);
}

Tensor tensor_of(const std::string& name, const Json& json) {
  Tensor tensor;
  tensor.name = name;
  for (const auto& [key, value] : json.members()) {
    if (key == "dtype") tensor.dtype = dtype_named(value.text());
    if (key == "shape")
      for (const Json& length : value.items_if_any("a list")) tensor.shape.push_back(length.whole(0));
    if (key == "numbers")
      for (const Json& text : value.items_if_any("a list"))
        tensor.numbers.push_back(std::strtod(text.text().c_str(), nullptr));
  }
  return tensor;
}

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

}  // namespace

std::map<std::string, Tensor> known_tensors(const std::string& json_path) {
  std::map<std::string, Tensor> known;
  const Json json = parse_json(support::bytes_of(json_path), json_path);
  for (const auto& [name, value] : json.members()) known[name] = tensor_of(name, value);
  return known;
}

std::string difference(const Tensor& tensor, const Tensor& known) {
  if (tensor.name != known.name) return "called " + tensor.name;
  if (tensor.dtype != known.dtype) return std::string("of type ") + dtype_name(tensor.dtype);
  if (tensor.shape != known.shape) return "of shape " + shape_text(tensor.shape);
  if (tensor.numbers.size() != known.numbers.size())
    return std::to_string(tensor.numbers.size()) + " numbers";
  for (std::size_t k = 0; k < known.numbers.size(); ++k)
    if (!same(tensor.numbers[k], known.numbers[k]))
      return "number " + std::to_string(k) + " is " + std::to_string(tensor.numbers[k]);
  return "";
}

}  // namespace core::formats::readers
