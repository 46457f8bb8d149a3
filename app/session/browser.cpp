#include "app/session/browser.hpp"

#include <algorithm>
#include <system_error>

#include "core/files/file.hpp"

namespace app {

namespace fs = std::filesystem;

Browser browse(const fs::path& directory, std::string name) {
  std::error_code error;
  Browser browser;
  browser.name = std::move(name);
  const fs::path wanted = directory.empty() ? fs::current_path(error) : directory;
  browser.directory = fs::weakly_canonical(wanted, error);
  if (error) browser.directory = wanted;
  if (browser.directory.empty()) browser.directory = "/";
  const core::formats::Listing listing = core::formats::list_folder(browser.directory);
  for (const fs::path& path : listing.paths) {
    std::error_code ignored, sizeless;
    BrowserEntry entry{path.filename().string(), fs::is_directory(path, ignored), 0};
    if (const auto size = fs::file_size(path, sizeless); !entry.is_directory && !sizeless) entry.size = size;
    browser.entries.push_back(std::move(entry));
  }
  if (listing.error != 0)
    browser.error = browser.directory.string() + ": " + std::generic_category().message(listing.error);
  std::sort(browser.entries.begin(), browser.entries.end(), [](const BrowserEntry& a, const BrowserEntry& b) {
    return a.is_directory != b.is_directory ? a.is_directory : a.name < b.name;
  });
  return browser;
}

}  // namespace app
