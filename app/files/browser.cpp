#include "app/files/browser.hpp"

#include <algorithm>
#include <system_error>

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
  for (fs::directory_iterator it(browser.directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    BrowserEntry entry{it->path().filename().string(), it->is_directory(ignored), 0};
    if (const auto size = entry.is_directory ? 0 : it->file_size(ignored); !ignored) entry.size = size;
    browser.entries.push_back(std::move(entry));
  }
  if (error) browser.error = browser.directory.string() + ": " + error.message();
  std::sort(browser.entries.begin(), browser.entries.end(), [](const BrowserEntry& a, const BrowserEntry& b) {
    return a.is_directory != b.is_directory ? a.is_directory : a.name < b.name;
  });
  return browser;
}

}  // namespace app
