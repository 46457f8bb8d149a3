// The files of examples, which the page's server has.
#include <emscripten.h>

#include "core/base/error.hpp"
#include "core/system/fetching.hpp"

// clang-format off
EM_JS(int, page_is_here, (const char* path), { return Module.page.isHere(UTF8ToString(path)); });
EM_JS(int, page_fetch_folder, (const char* path), { return Module.page.fetchFolder(UTF8ToString(path)); });
// clang-format on

namespace core::system {

bool is_here(const std::filesystem::path& folder) {
  return page_is_here(folder.c_str()) != 0;
}

void require_here(const std::filesystem::path& folder) {
  constexpr int is_coming = 1, does_not_come = 2;
  const int answer = page_fetch_folder(folder.c_str());
  if (answer == is_coming) throw NotHere();
  if (answer == does_not_come)
    throw Error(folder.string() + ": the server of this page does not send its files");
}

}  // namespace core::system
