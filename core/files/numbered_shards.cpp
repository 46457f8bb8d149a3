#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/files/config.hpp"
#include "core/files/readers.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/system/file.hpp"

/// Meta's checkpoints, which model parallelism divides among files.
namespace core::formats::readers {
namespace {

namespace fs = std::filesystem;

/// The first two axes of a matrix [out, in], or no division.
enum class ShardAxis { outputs, inputs, none };

/// A tensor of all shards.
struct ShardedTensor {
  TensorInfo info;
  std::vector<std::shared_ptr<const TensorFile>> files;  ///< one if it is not divided
  ShardAxis axis = ShardAxis::none;
};

/// Returns the numbers of matrices one after the other, or row by row.
Tensor read(const ShardedTensor& tensor, std::span<const std::size_t> leading, const StopToken& progress) {
  if (tensor.axis == ShardAxis::none) return tensor.files.front()->read(tensor.info.name, leading, progress);
  std::vector<Tensor> parts;
  for (const auto& file : tensor.files) parts.push_back(file->read(tensor.info.name, {}, progress));
  Tensor whole;
  static_cast<TensorInfo&>(whole) = tensor.info;
  const std::size_t n_rows = tensor.axis == ShardAxis::inputs ? tensor.info.shape[0] : 1;
  for (std::size_t row = 0; row < n_rows; ++row)
    for (const Tensor& part : parts) {
      const auto width = static_cast<std::ptrdiff_t>(part.numbers.size() / n_rows);
      const auto begin = part.numbers.begin() + static_cast<std::ptrdiff_t>(row) * width;
      whole.numbers.insert(whole.numbers.end(), begin, begin + width);
    }
  return slice_tensor(whole, leading);
}

/// Returns the axis along which a tensor is divided, or nothing if it is not known.
std::optional<ShardAxis> axis_of(const TensorInfo& tensor, std::optional<std::size_t> d_model,
                                 std::size_t n_shards) {
  constexpr const char* by_outputs = " .wq. .wk. .wv. .w1. .w3. ";
  const std::string name = "." + tensor.name;
  if (tensor.shape.size() < 2) return ShardAxis::none;
  if (tensor.shape.size() > 2) return std::nullopt;
  if (text::contains_any_word(name, by_outputs) || name.ends_with(".output.weight"))
    return ShardAxis::outputs;
  if (text::contains_any_word(name, " .wo. .w2. ")) return ShardAxis::inputs;
  if (!name.ends_with(".tok_embeddings.weight")) return std::nullopt;
  return d_model == tensor.shape[1] * n_shards ? ShardAxis::inputs : ShardAxis::outputs;
}

/// Returns the first query weight, or nullptr.
const TensorInfo* query_weight(const TensorFile& file) {
  const auto found = std::ranges::find_if(file.tensors(), [](const TensorInfo& info) {
    return info.name.ends_with(".wq.weight") && info.shape.size() == 2;
  });
  return found == file.tensors().end() ? nullptr : &*found;
}

/// Throws core::Error unless the query weights have the outputs that params.json asks for.
void require_whole(const TensorFile& file, std::size_t n_shards) {
  const TensorInfo* query = query_weight(file);
  if (!query) return;
  const auto params = checkpoints::sibling_config(file.path());
  const std::string last = fmt::format("consolidated.{:02}", n_shards);
  if (!params || !params->member("n_heads")) {
    if (query->shape[0] != query->shape[1])
      throw Error(
          fmt::format("{}{}: expected params.json next to it, which tells whether {} is the whole "
                      "weight or part of it, got none",
                      file.place(), query->name, shape_text(query->shape)));
    return;
  }
  const std::size_t n_heads = params->required("n_heads").whole(1);
  const auto width = params->given("head_dim");
  const std::size_t expected =
      width ? n_heads * width->whole(1) : static_cast<std::size_t>(params->required("dim").whole(1));
  if (query->shape[0] != expected)
    throw Error(
        fmt::format("{}{}: expected {} outputs, as params.json says, got {}: {} too few, {} is "
                    "missing",
                    file.place(), query->name, expected, query->shape[0],
                    text::counted(n_shards, "shard") + (n_shards == 1 ? " is" : " are"), last));
}

}  // namespace

std::optional<std::size_t> shard_number(const fs::path& path) {
  constexpr std::string_view begin = "consolidated.";
  const std::string stem = path.stem().string();
  const std::string ending = path.extension().string();
  if (!stem.starts_with(begin) || (ending != ".pth" && ending != ".pt" && ending != ".safetensors"))
    return std::nullopt;
  return text::parse_unsigned(std::string_view(stem).substr(begin.size()));
}

std::vector<std::string> list_numbered_shards(const fs::path& path) {
  std::map<std::size_t, std::string> names;
  for (const fs::path& each : system::list_folder(path.has_parent_path() ? path.parent_path() : ".").paths)
    if (const auto number = shard_number(each); number && each.extension() == path.extension())
      names.emplace(*number, each.filename().string());
  std::vector<std::string> all;
  for (const auto& [number, name] : names) all.push_back(name);
  return all;
}

TensorFile open_numbered_shards(const fs::path& path, const StopToken& progress) {
  const std::vector<std::string> names = list_numbered_shards(path);
  std::vector<std::shared_ptr<const TensorFile>> files;
  for (const std::string& name : names) {
    const fs::path shard = path.parent_path() / name;
    if (shard_number(shard) != files.size())
      throw Error(fmt::format("{}: expected all shards in its folder, consolidated.{:02}{} is missing",
                              path.string(), files.size(), path.extension().string()));
    files.push_back(std::make_shared<const TensorFile>(
        tensor_format_of(shard).open(shard, progress, DecimalMark::point)));
  }
  const TensorFile& first = *files.front();
  if (files.size() == 1) {
    require_whole(first, 1);
    return first;
  }
  const TensorInfo* query = query_weight(first);
  const auto d_model = query ? std::optional(query->shape[1]) : std::nullopt;
  std::vector<TensorEntry> entries;
  SkipNotes skipped(path.string() + ": ");
  for (const TensorInfo& info : first.tensors()) {
    const auto axis = axis_of(info, d_model, files.size());
    if (!axis) {
      skipped.note(info.name + ": its division among shards is not known");
      continue;
    }
    ShardedTensor whole{info, files, *axis};
    for (std::size_t k = 1; k < files.size(); ++k) {
      const TensorInfo* part = files[k]->find(info.name);
      if (!part || part->shape != info.shape)
        throw Error(fmt::format("{}: {}: expected {} as in {}, got {}", files[k]->path().string(), info.name,
                                shape_text(info.shape), names.front(),
                                part ? shape_text(part->shape) : "none"));
    }
    if (*axis != ShardAxis::none) whole.info.shape[*axis == ShardAxis::inputs ? 1 : 0] *= files.size();
    entries.push_back({whole.info, [shared = std::make_shared<const ShardedTensor>(std::move(whole))](
                                       std::span<const std::size_t> leading, const StopToken& p) {
                         return read(*shared, leading, p);
                       }});
  }
  for (const std::string& note : first.notes()) skipped.add(names.front() + ": " + note);
  TensorFile joined(path, first.format(), std::move(entries), skipped.notes());
  require_whole(joined, files.size());
  return joined;
}

}  // namespace core::formats::readers
