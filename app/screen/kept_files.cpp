// In files.
#include <system_error>

#include "app/screen/kept.hpp"
#include "core/base/error.hpp"
#include "core/system/file.hpp"

namespace app::platform {

std::string read_kept(const std::filesystem::path& path) {
  constexpr std::size_t max_bytes = std::size_t{1} << 20;
  try {
    return core::system::read_file(path, max_bytes);
  } catch (const core::Error&) {  // settings must not keep the window from opening
    return "";
  }
}

void write_kept(const std::filesystem::path& path, std::string_view text) {
  std::error_code failure;  // write_atomically() says why
  std::filesystem::create_directories(path.parent_path(), failure);
  core::system::write_atomically(path, text);
}

}  // namespace app::platform
