#include "app/files/file_stamp.hpp"

#include <sys/stat.h>

namespace app {

std::string file_stamp(const std::filesystem::path& path) {
  struct stat about;
  if (::stat(path.c_str(), &about) != 0) return "";
  return std::to_string(about.st_ino) + " " + std::to_string(about.st_size) + " " +
         std::to_string(about.st_mtim.tv_sec) + "." + std::to_string(about.st_mtim.tv_nsec);
}

}  // namespace app
