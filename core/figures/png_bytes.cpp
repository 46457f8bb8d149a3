#include "core/figures/png_bytes.hpp"

#include <zlib.h>

#include <new>

namespace core::figures {
namespace {

void append_big_endian(std::string& bytes, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
}

void append_chunk(std::string& bytes, const std::string& name, const std::string& content) {
  append_big_endian(bytes, content.size());
  const std::string checked = name + content;
  bytes += checked;
  append_big_endian(bytes, crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size()));
}

}  // namespace

std::string png_bytes(std::size_t rows, std::size_t columns, std::span<const colour::Rgb> pixels) {
  std::string lines;
  lines.reserve(rows * (3 * columns + 1));
  for (std::size_t i = 0; i < rows; ++i) {
    lines += '\0';  // as it is, without a filter
    for (const colour::Rgb c : pixels.subspan(i * columns, columns))
      lines += {static_cast<char>(c.r), static_cast<char>(c.g), static_cast<char>(c.b)};
  }
  uLongf size = compressBound(lines.size());
  std::string packed(size, '\0');
  const int result =
      compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(lines.data()),
                lines.size(), Z_DEFAULT_COMPRESSION);
  if (result != Z_OK) throw std::bad_alloc();
  packed.resize(size);

  std::string header;
  append_big_endian(header, columns);
  append_big_endian(header, rows);
  header += {8, 2, 0, 0, 0};  // 8 bits, red green blue, deflate, filters by line, not interlaced
  std::string bytes("\x89PNG\r\n\x1a\n", 8);
  append_chunk(bytes, "IHDR", header);
  append_chunk(bytes, "IDAT", packed);
  append_chunk(bytes, "IEND", "");
  return bytes;
}

}  // namespace core::figures
