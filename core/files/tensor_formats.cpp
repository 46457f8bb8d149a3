#include "core/files/tensor_formats.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/files/folder.hpp"
#include "core/files/gguf.hpp"
#include "core/files/npy.hpp"
#include "core/files/npz.hpp"
#include "core/files/printed.hpp"
#include "core/files/pytorch.hpp"
#include "core/files/safetensors.hpp"
#include "core/files/shards.hpp"
#include "core/files/strangers.hpp"
#include "core/files/table.hpp"
#include "core/files/zip.hpp"

namespace core::formats {
namespace {

using Path = std::filesystem::path;

constexpr std::size_t longest_begin = 4096;

bool is_text(std::string_view begin) {
  return !begin.empty() && std::ranges::none_of(begin, [](char c) {
    return c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
}

constexpr const char* pytorch_endings = ".pt .pth .bin .pkl .ckpt";

/// Whether the name of a file ends as one of several endings with blanks between them.
bool ends_as(const Path& path, std::string_view endings) {
  const std::string name = path.filename().string();
  while (!endings.empty()) {
    const std::string_view ending = endings.substr(0, endings.find(' '));
    if (name.size() > ending.size() && name.ends_with(ending)) return true;
    endings.remove_prefix(std::min(ending.size() + 1, endings.size()));
  }
  return false;
}

constexpr std::array tensor_format_table{
    TensorFormat{"folder", "", "a folder of such files, such as attnscope exports",
                 [](const Path& path, std::string_view) {
                   std::error_code ignored;
                   return std::filesystem::is_directory(path, ignored);
                 },
                 readers::open_folder},
    TensorFormat{"npy", ".npy", "NumPy's file of one array",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_npy(begin) || path.extension() == ".npy";
                 },
                 readers::open_npy},
    TensorFormat{"npz", ".npz", "NumPy's archive of arrays",
                 [](const Path& path, std::string_view begin) {
                   return (readers::looks_like_zip(begin) && !readers::looks_like_pytorch(begin)) ||
                          path.extension() == ".npz";
                 },
                 readers::open_npz},
    TensorFormat{"gguf", ".gguf", "a model of llama.cpp, quantised or not",
                 [](const Path& path, std::string_view begin) {
                   return looks_like_gguf(begin) || path.extension() == ".gguf";
                 },
                 open_gguf},
    TensorFormat{"safetensors", ".safetensors", "a checkpoint of Hugging Face",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_safetensors(begin) || path.extension() == ".safetensors";
                 },
                 readers::open_safetensors},
    TensorFormat{"index", ".index.json", "a checkpoint of Hugging Face in several files",
                 readers::looks_like_index, readers::open_index},
    TensorFormat{"pytorch", pytorch_endings, "what torch.save wrote, if it holds only tensors",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_pytorch(begin) || ends_as(path, pytorch_endings);
                 },
                 readers::open_pytorch},
    TensorFormat{"table", ".csv .tsv", "a table with or without names of rows and columns",
                 [](const Path& path, std::string_view) {
                   return path.extension() == ".csv" || path.extension() == ".tsv";
                 },
                 readers::open_table},
    TensorFormat{
        "text", ".txt", "what PyTorch or NumPy printed, a JSON list, or numbers in rows",
        [](const Path&, std::string_view begin) { return is_text(begin) && !begin.starts_with('{'); },
        readers::open_text},
};

}  // namespace

std::string tensor_endings() {
  std::string text;
  for (const TensorFormat& f : tensor_format_table)
    if (*f.endings) text += (text.empty() ? "" : " ") + std::string(f.endings);
  return text;
}

bool is_index_of_tensors(const Path& path) {
  return readers::looks_like_index(path, read_begin(path, longest_begin));
}

std::span<const TensorFormat> tensor_formats() {
  return tensor_format_table;
}

const TensorFormat& tensor_format_of(const Path& path) {
  const std::string begin = read_begin(path, longest_begin);
  if (const std::string words = readers::words_on_stranger(path, begin); !words.empty())
    throw Error(path.string() + ": " + words);
  const auto row = std::ranges::find_if(tensor_format_table,
                                        [&](const TensorFormat& f) { return f.is_meant(path, begin); });
  if (row == tensor_format_table.end())
    throw Error(path.string() + ": expected a file of tensors (" + tensor_endings() + ")");
  return *row;
}

bool has_tensor_ending(const Path& path) {
  return std::ranges::any_of(tensor_format_table,
                             [&](const TensorFormat& f) { return ends_as(path, f.endings); });
}

TensorFile open_tensors(const std::filesystem::path& path) {
  Token progress;
  return open_tensors(path, progress);
}

TensorFile open_tensors(const std::filesystem::path& path, const Token& progress) {
  return tensor_format_of(path).open(path, progress);
}

}  // namespace core::formats
