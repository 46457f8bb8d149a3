#include "core/formats/readers/tensor_formats.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "core/formats/files/file.hpp"
#include "core/formats/readers/folder.hpp"
#include "core/formats/readers/npy.hpp"
#include "core/formats/readers/npz.hpp"
#include "core/formats/readers/printed.hpp"
#include "core/formats/readers/safetensors.hpp"
#include "core/formats/readers/table.hpp"
#include "core/formats/readers/zip.hpp"

namespace core::formats {
namespace {

using Path = std::filesystem::path;

constexpr std::size_t longest_begin = 4096;

bool is_text(std::string_view begin) {
  return !begin.empty() && std::ranges::none_of(begin, [](char c) {
    return c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
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
                   return readers::looks_like_zip(begin) || path.extension() == ".npz";
                 },
                 readers::open_npz},
    TensorFormat{"safetensors", ".safetensors", "a checkpoint of Hugging Face",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_safetensors(begin) || path.extension() == ".safetensors";
                 },
                 readers::open_safetensors},
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

std::string all_endings() {
  std::string text;
  for (const TensorFormat& f : tensor_format_table)
    if (*f.endings) text += (text.empty() ? "" : " ") + std::string(f.endings);
  return text;
}

}  // namespace

std::span<const TensorFormat> tensor_formats() {
  return tensor_format_table;
}

const TensorFormat& tensor_format_of(const Path& path) {
  const std::string begin = read_begin(path, longest_begin);
  const auto row = std::ranges::find_if(tensor_format_table,
                                        [&](const TensorFormat& f) { return f.is_meant(path, begin); });
  if (row == tensor_format_table.end())
    throw Error(path.string() + ": expected a file of tensors (" + all_endings() + ")");
  return *row;
}

bool has_tensor_ending(const Path& path) {
  const std::string ending = path.extension().string();
  return !ending.empty() && std::ranges::any_of(tensor_format_table, [&](const TensorFormat& f) {
    return (" " + std::string(f.endings) + " ").find(" " + ending + " ") != std::string::npos;
  });
}

TensorFile open_tensors(const std::filesystem::path& path) {
  Token progress;
  return open_tensors(path, progress);
}

TensorFile open_tensors(const std::filesystem::path& path, const Token& progress) {
  return tensor_format_of(path).open(path, progress);
}

}  // namespace core::formats
