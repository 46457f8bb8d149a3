#include "core/model/file_mark.hpp"

#include <system_error>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/file.hpp"

namespace core::experiment {

namespace fs = std::filesystem;

constexpr std::size_t hashed_bytes = std::size_t{1} << 20;

FileMark mark_of(const fs::path& file) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(file, error);
  if (error) throw Error(file.string() + ": the model's file cannot be read: " + error.message());
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : formats::read_begin(file, hashed_bytes))
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return {bytes, text::hexadecimal(hash, 16)};
}

}  // namespace core::experiment
