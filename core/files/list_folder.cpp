#include "core/files/list_folder.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

namespace core::formats {
namespace {

struct Closing {
  void operator()(DIR* open) const { ::closedir(open); }
};

}  // namespace

Listing list_folder(const std::filesystem::path& folder) {
  const std::unique_ptr<DIR, Closing> open(::opendir(folder.empty() ? "." : folder.c_str()));
  if (!open) return {{}, errno};
  Listing listing;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") listing.paths.push_back(folder / name);
  }
  listing.error = errno;
  std::ranges::sort(listing.paths);
  return listing;
}

}  // namespace core::formats
