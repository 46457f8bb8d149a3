#include "core/files/counting_line.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/number.hpp"

namespace core::formats {
namespace {

bool is_of_tables(const TensorFile& file) {
  const std::string_view format = file.format();
  return format == "table" || format == "folder";
}

bool can_count(const TensorInfo& info) {
  return info.dtype != Dtype::text && info.shape.size() == 2 && info.shape[0] > 1 && info.shape[1] > 1;
}

bool counts(const Tensor& tensor) {
  if (!can_count(tensor) || !tensor.column_labels.empty()) return false;
  const double first = tensor.numbers.front();
  if (first != 0 && (first != 1 || tensor.shape[1] == 2)) return false;  // 1, 2 may be any numbers
  for (std::size_t k = 0; k < tensor.shape[1]; ++k)
    if (tensor.numbers[k] != first + static_cast<double>(k)) return false;
  return true;
}

Tensor with_names(Tensor tensor) {
  const auto end = tensor.numbers.begin() + static_cast<std::ptrdiff_t>(tensor.shape[1]);
  for (auto number = tensor.numbers.begin(); number != end; ++number)
    tensor.column_labels.push_back(text::number_text(*number));
  tensor.numbers.erase(tensor.numbers.begin(), end);
  if (!tensor.row_labels.empty()) tensor.row_labels.erase(tensor.row_labels.begin());
  --tensor.shape[0];
  return tensor;
}

}  // namespace

bool has_counting_line(const TensorFile& file, const core::Token& progress) {
  return std::string_view(file.format()) == "table" &&
         std::ranges::any_of(file.tensors(), [&](const TensorInfo& info) {
           return can_count(info) && counts(file.read(info.name, {}, progress));
         });
}

TensorFile with_first_line_as_names(const TensorFile& file, const core::Token& progress) {
  bool found = false;
  std::vector<TensorFile::Entry> entries;
  for (const TensorInfo& info : file.tensors()) {
    Tensor tensor;
    if (is_of_tables(file) && can_count(info)) tensor = file.read(info.name, {}, progress);
    if (!counts(tensor)) {
      entries.push_back(
          {info, [file, name = info.name](std::span<const std::size_t> leading, const core::Token& t) {
             return file.read(name, leading, t);
           }});
      continue;
    }
    found = true;
    tensor = with_names(std::move(tensor));
    TensorInfo now = tensor;
    entries.push_back({std::move(now), [whole = std::make_shared<const Tensor>(std::move(tensor))](
                                           std::span<const std::size_t> leading, const core::Token&) {
                         return part_of(*whole, leading);
                       }});
  }
  if (!found)
    throw Error(
        file.place() +
        "expected a table whose first line is 0, 1, 2 … or 1, 2, 3 …, which can be names of its columns");
  return {file.path(), file.format(), std::move(entries), file.notes()};
}

std::string counting_line_words(const TensorFile& file, const Tensor& tensor) {
  if (!is_of_tables(file) || !counts(tensor)) return "";
  return "the first line of " + tensor.name + ", " + text::number_text(tensor.numbers[0]) + ", " +
         text::number_text(tensor.numbers[1]) + " …";
}

}  // namespace core::formats
