#include "app/platform/screenshot.hpp"

#include <stb_image_write.h>

#include <system_error>

#include "core/error.hpp"

namespace app::platform {

void save_png(const std::filesystem::path& path, const Image& image) {
  std::filesystem::path unfinished = path;
  unfinished += ".part";
  const bool written = stbi_write_png(unfinished.c_str(), image.width, image.height, 4, image.rgba.data(),
                                      image.width * 4) != 0;
  std::error_code failure;
  if (written) std::filesystem::rename(unfinished, path, failure);
  if (written && !failure) return;
  std::filesystem::remove(unfinished, failure);
  throw core::Error(path.string() + ": the picture cannot be written there");
}

}  // namespace app::platform
