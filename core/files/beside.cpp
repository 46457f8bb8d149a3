#include "core/files/beside.hpp"

#include <algorithm>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/token.hpp"
#include "core/files/json.hpp"
#include "core/files/list_folder.hpp"

namespace core::formats {
namespace {

namespace fs = std::filesystem;

/// The folder around a snapshot of Hugging Face's cache, whose files are links to blobs beside it:
/// models--gpt2/snapshots/1a2b/model.safetensors leads to models--gpt2/blobs/3c4d. Else the folder itself.
fs::path with_blobs(const fs::path& folder) {
  for (fs::path snapshot = folder; snapshot.has_relative_path(); snapshot = snapshot.parent_path())
    if (const fs::path model = snapshot.parent_path().parent_path();
        snapshot.parent_path().filename() == "snapshots" && model.filename().native().starts_with("models--"))
      return model;
  return folder;
}

bool leads_into(const fs::path& path, const fs::path& home) {
  std::error_code error;
  const fs::path end = fs::weakly_canonical(fs::absolute(path, error), error);
  return !error && std::ranges::mismatch(home, end).in1 == home.end();
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// A link in a folder, or in a folder in it, that leads out of home; the folder itself where it cannot be
/// read; "" without one.
///
/// Of tensors of several sequences each has a folder, sequence0 and so on; no reader looks into others. One
/// that cannot be listed is not read either.
fs::path link_out(const fs::path& folder, const fs::path& home, bool has_folders = true) {
  const Listing listing = list_folder(folder);
  for (const fs::path& entry : listing.paths) {
    std::error_code ignored;
    if (fs::is_symlink(entry, ignored) && !leads_into(entry, home)) return entry;
    if (!has_folders || !entry.filename().native().starts_with("sequence") || !is_folder(entry)) continue;
    if (const fs::path out = link_out(entry, home, false); !out.empty() && out != entry) return out;
  }
  return listing.error != 0 ? folder : fs::path();
}

fs::path home_of(const fs::path& folder, std::error_code& error) {
  return with_blobs(fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, error));
}

}  // namespace

bool lies_beside(const fs::path& path, const fs::path& folder) {
  if (!path.is_relative() || std::ranges::find(path, "..") != path.end()) return false;
  std::error_code error;
  const fs::path home = home_of(folder, error);
  if (error || !leads_into(folder / path, home)) return false;
  return !is_folder(folder / path) || link_out(folder / path, home).empty();
}

std::string leading_words(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path home = home_of(folder, error);
  // "" where the name says it already.
  const auto end_of = [&error](const fs::path& named) {
    const fs::path end = fs::weakly_canonical(fs::absolute(named, error), error);
    return end == fs::absolute(named, error).lexically_normal() ? "" : json_quoted(end.string());
  };
  std::string words;
  if (!leads_into(folder / path, home)) {
    if (const std::string end = end_of(folder / path); !end.empty()) words = ", which leads to " + end + ",";
  } else if (is_folder(folder / path)) {
    const fs::path out = link_out(folder / path, home), within = out.lexically_relative(folder / path);
    if (within == ".")
      words = ", which cannot be looked into,";
    else if (!out.empty())
      words = ", in which " + json_quoted(within.string()) + " leads to " + end_of(out) + ",";
  }
  return error ? "" : words;
}

void throw_without_contents(const std::string& place, const fs::path& path, const fs::path& folder) {
  try {
    throw;
  } catch (const Stopped&) {
    throw;
  } catch (const Outside&) {
    throw;
  } catch (const Error&) {
    std::error_code error;
    if (lies_beside(path, folder) || !fs::exists(folder / path, error)) throw;
    throw Error(
        place + quoted_briefly(path.string()) +
        " cannot be used as the session wants it; it does not lie beside the session, so nothing of what "
        "it holds is quoted: open it by itself to see why");
  }
}

}  // namespace core::formats
