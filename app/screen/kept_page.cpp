// The storage of the browser, which all pages of this address share.
#include <emscripten.h>

#include <cstdlib>
#include <memory>

#include "app/screen/kept.hpp"

// clang-format off
EM_JS(char*, page_read_kept, (const char* path), { return stringToNewUTF8(Module.page.readKept(UTF8ToString(path))); });
EM_JS(void, page_write_kept, (const char* path, const char* text), { Module.page.writeKept(UTF8ToString(path), UTF8ToString(text)); });
// clang-format on

namespace app::platform {

std::string read_kept(const std::filesystem::path& path) {
  const std::unique_ptr<char, void (*)(void*)> text(page_read_kept(path.c_str()), std::free);
  return text.get();
}

void write_kept(const std::filesystem::path& path, std::string_view text) {
  page_write_kept(path.c_str(), std::string(text).c_str());
}

}  // namespace app::platform
