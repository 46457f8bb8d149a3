#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace app::platform {

/// Pixels, 4 bytes each (red, green, blue, alpha), top row first.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;
};

/// Writes a PNG file under a temporary name and renames it. Throws core::Error that names the file.
void save_png(const std::filesystem::path& path, const Image& image);

}  // namespace app::platform
