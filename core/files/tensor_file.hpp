#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/token.hpp"
#include "core/files/tensor.hpp"

namespace core::formats {

/// More numbers than these are not read at once; a part of the tensor is to be chosen.
constexpr std::uint64_t most_numbers = std::uint64_t{1} << 28;

/// A file of tensors that has been opened: what is in it is known, its numbers are read when asked for.
class TensorFile {
 public:
  /// Reads the part of a tensor at leading indices, all of it without any.
  using Read = std::function<Tensor(std::span<const std::size_t> leading, const Token& progress)>;
  struct Entry {
    TensorInfo info;
    Read read;
  };

  /// Notes are sentences on what was left out. Names and notes are on one line and do nothing to a terminal:
  /// "\x1b" stands for ESC. Throws core::Error when two entries have one name, or get one by that.
  TensorFile(std::filesystem::path path, const char* format, std::vector<Entry> entries,
             std::vector<std::string> notes = {});

  const std::filesystem::path& path() const { return path_; }
  /// "FILE: ", as every error about it begins.
  std::string place() const { return path_.string() + ": "; }
  /// The name of its format in the table of tensor_formats.
  const char* format() const { return format_; }
  /// All tensors, in the order of the file.
  const std::vector<TensorInfo>& tensors() const { return infos_; }
  /// What of the file is not among the tensors, and why: "Left out: a: expected numbers, got …."
  const std::vector<std::string>& notes() const { return notes_; }
  /// The tensor of that name, or nullptr.
  const TensorInfo* find(std::string_view name) const;
  /// The tensor of that name. Throws core::Error when there is none.
  const TensorInfo& info(std::string_view name) const;

  /// The numbers at leading indices: read("weights", {3}) of [12, 8, 512, 512] is [8, 512, 512], and no more
  /// than that is read.
  ///
  /// Throws core::Error, "FILE: TENSOR: what is wrong", when there is no such tensor or part of it, more than
  /// most_numbers are asked for, the file is damaged, or a 64-bit integer has no float64; Stopped when that
  /// was asked for.
  Tensor read(std::string_view name, std::span<const std::size_t> leading, const Token& progress) const;
  Tensor read(std::string_view name, std::span<const std::size_t> leading = {}) const;

 private:
  std::filesystem::path path_;
  const char* format_;
  std::vector<TensorInfo> infos_;
  std::vector<Read> reads_;
  std::vector<std::size_t> by_name_;  ///< places among infos_, in the order of their names
  std::vector<std::string> notes_;
};

}  // namespace core::formats
