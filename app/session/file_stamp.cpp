#include "app/session/file_stamp.hpp"

#include <sys/stat.h>

#include <system_error>

#include "core/files/own_descriptor.hpp"

namespace app {

std::string file_stamp(const std::filesystem::path& path) {
  struct stat about;
  if (::stat(path.c_str(), &about) != 0) return "";
  return std::to_string(about.st_ino) + " " + std::to_string(about.st_size) + " " +
         std::to_string(about.st_mtim.tv_sec) + "." + std::to_string(about.st_mtim.tv_nsec) + " " +
         std::to_string(about.st_ctim.tv_sec) + "." + std::to_string(about.st_ctim.tv_nsec);
}

std::optional<std::filesystem::path> lasting_path(const std::filesystem::path& path) {
  if (core::formats::own_descriptor(path)) return std::nullopt;
  std::error_code nowhere;
  const std::filesystem::path whole = std::filesystem::absolute(path, nowhere);
  return nowhere ? path : whole;
}

}  // namespace app
