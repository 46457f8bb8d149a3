#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace core::experiment {

/// What tells a model's file from another: its size, and a hash of its first MiB, where headers stand.
struct FileMark {
  std::uint64_t bytes = 0;
  std::string begin;  ///< 16 digits, FNV-1a of 64 bits
  friend bool operator==(const FileMark&, const FileMark&) = default;
};
/// Throws core::Error when the file cannot be read.
FileMark mark_of(const std::filesystem::path& file);

}  // namespace core::experiment
