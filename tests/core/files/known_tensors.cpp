#include "tests/core/files/known_tensors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "core/files/json.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats::readers {
namespace {

Tensor tensor_of(const std::string& name, const Json& json) {
  Tensor tensor;
  tensor.name = name;
  for (const auto& [key, value] : json.members()) {
    if (key == "dtype") tensor.dtype = find_dtype(value.text(), &DtypeNames::name).value();
    if (key == "shape") tensor.shape = value.whole_numbers("a list");
    if (key == "numbers")
      for (const std::string& text : value.texts("a list"))
        tensor.numbers.push_back(std::strtod(text.c_str(), nullptr));
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

std::string reading_error(const std::filesystem::path& path) {
  return support::error_of([&] {
    const TensorFile file = open_tensors(path);
    for (const TensorInfo& info : file.tensors()) file.read(info.name);
  });
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

std::string difference(const TensorFile& file, const std::map<std::string, Tensor>& known,
                       std::size_t n_tensors) {
  if (file.tensors().size() != n_tensors) return std::to_string(file.tensors().size()) + " tensors";
  for (const TensorInfo& info : file.tensors()) {
    if (!known.contains(info.name)) return "no tensor should be called " + info.name;
    const Tensor& whole = known.at(info.name);
    if (info != whole) return info.name + " is not what the file says before it is read";
    const bool has_parts = std::ranges::find(info.shape, 0u) == info.shape.end();
    std::vector<std::size_t> last;
    for (std::size_t n = 0; n <= (has_parts ? info.shape.size() : 0); ++n) {
      const std::string words =
          difference(file.read(info.name, last), n == 0 ? whole : slice_tensor(whole, last));
      if (!words.empty()) return info.name + " at " + shape_text(last) + ": " + words;
      if (n < info.shape.size()) last.push_back(info.shape[n] - 1);
    }
  }
  return "";
}

}  // namespace core::formats::readers
