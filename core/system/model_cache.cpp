#include "core/system/model_cache.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/error.hpp"
#include "core/system/file.hpp"
#include "core/system/process.hpp"

namespace core::system {

namespace {

namespace fs = std::filesystem;

fs::path model_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (fs::path cache = environment_variable(name); !cache.empty()) return cache;
  if (const fs::path home = environment_variable("HF_HOME"); !home.empty()) return home / "hub";
  fs::path cache = environment_variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = fs::path(environment_variable("HOME")) / ".cache";
  return cache / "huggingface" / "hub";
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// Returns whether a part of a name has only characters that Hugging Face allows.
bool is_part_of_name(std::string_view part) {
  return !part.empty() && is_letter_or_digit(part.front()) && std::ranges::all_of(part, [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  });
}

/// Returns the folder of the revision that was downloaded as "main", or of any other; "" if there is none.
fs::path snapshot_of(const fs::path& model) {
  const fs::path snapshots = model / "snapshots";
  if (is_file(model / "refs" / "main")) {
    std::string commit = read_file(model / "refs" / "main", 256);
    while (!commit.empty() && !is_letter_or_digit(commit.back())) commit.pop_back();
    if (is_part_of_name(commit) && is_folder(snapshots / commit)) return snapshots / commit;
  }
  const Listing listing = list_folder(snapshots);
  const auto found = std::ranges::find_if(listing.paths, is_folder);
  return found == listing.paths.end() ? fs::path() : *found;
}

}  // namespace

fs::path resolve_model_name(const fs::path& path) {
  const std::string name = path.string();
  const std::size_t slash = name.find('/');
  const std::string_view owner = std::string_view(name).substr(0, slash),
                         model = slash == std::string::npos ? "" : std::string_view(name).substr(slash + 1);
  if (!is_part_of_name(owner) || (slash != std::string::npos && !is_part_of_name(model))) return path;
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) return path;
  const fs::path cache = model_cache();
  std::string folder = "models--" + name;
  if (slash != std::string::npos) folder.replace(folder.find('/'), 1, "--");
  if (const fs::path snapshot = snapshot_of(cache / folder); !snapshot.empty()) return snapshot;
  // A missing file of a folder, or with an ending, is reported where it is opened.
  const std::string ending = fs::path(model).extension().string();
  const bool has_ending =
      ending.size() > 2 && std::ranges::all_of(ending.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
  if (slash == std::string::npos || has_ending || is_folder(owner)) return path;
  throw Error(name + ": there is no such file, and no model of this name in " + cache.string() +
              "; hf download " + name + " fetches it");
}

}  // namespace core::system
