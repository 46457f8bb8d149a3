#include "core/files/tensor_file.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"

namespace core::formats {
namespace {

void check_part(const TensorInfo& info, std::span<const std::size_t> leading, const std::string& place) {
  if (leading.size() > info.shape.size())
    throw Error(place + "expected at most " + std::to_string(info.shape.size()) + " indices into " +
                shape_text(info.shape) + ", got " + std::to_string(leading.size()));
  for (std::size_t k = 0; k < leading.size(); ++k) {
    if (leading[k] >= info.shape[k])
      throw Error(place + "expected index " + std::to_string(k) + " of " + shape_text(info.shape) +
                  " to be below " + std::to_string(info.shape[k]) + ", got " + std::to_string(leading[k]));
  }
  const auto count = count_of(std::span(info.shape).subspan(leading.size()));
  if (!count || *count > most_numbers)
    throw Error(place + "expected at most " + std::to_string(most_numbers) + " numbers at once, got " +
                shape_text(info.shape));
}

/// Places of tensors in the order of their names, of which two that differ in what cannot be shown may be
/// one when it is escaped.
std::vector<std::size_t> places_by_name(const std::vector<TensorInfo>& infos, const std::string& place) {
  std::vector<std::size_t> places(infos.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto name_at = [&](std::size_t k) -> const std::string& { return infos[k].name; };
  std::ranges::sort(places, {}, name_at);
  if (const auto twice = std::ranges::adjacent_find(places, {}, name_at); twice != places.end())
    throw Error(place + "two tensors are called " + quoted_briefly(name_at(*twice)));
  return places;
}

}  // namespace

TensorFile::TensorFile(std::filesystem::path path, const char* format, std::vector<Entry> entries,
                       std::vector<std::string> notes)
    : path_(std::move(path)), format_(format), notes_(std::move(notes)) {
  for (std::string& note : notes_) note = text::printable(note);
  for (Entry& entry : entries) {
    entry.info.name = text::printable(entry.info.name);
    infos_.push_back(std::move(entry.info));
    reads_.push_back(std::move(entry.read));
  }
  by_name_ = places_by_name(infos_, place());
}

const TensorInfo* TensorFile::find(std::string_view name) const {
  const auto name_at = [&](std::size_t k) { return std::string_view(infos_[k].name); };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_at);
  return found != by_name_.end() && name_at(*found) == name ? &infos_[*found] : nullptr;
}

const TensorInfo& TensorFile::info(std::string_view name) const {
  if (const TensorInfo* found = find(name)) return *found;
  throw Error(place() + "there is no tensor " + quoted_briefly(name) + " in it" +
              (notes_.empty() ? "" : " (" + text::joined(notes_, " ") + ")"));
}

Tensor TensorFile::read(std::string_view name, std::span<const std::size_t> leading,
                        const Token& progress) const {
  const TensorInfo& wanted = info(name);
  check_part(wanted, leading, place() + wanted.name + ": ");
  return reads_[static_cast<std::size_t>(&wanted - infos_.data())](leading, progress);
}

Tensor TensorFile::read(std::string_view name, std::span<const std::size_t> leading) const {
  Token progress;
  return read(name, leading, progress);
}

}  // namespace core::formats
