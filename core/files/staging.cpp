#include "core/files/staging.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>
#include <string>
#include <system_error>

#include "core/base/error.hpp"
#include "core/files/file.hpp"

namespace core::formats {

namespace fs = std::filesystem;

Staging::Leftovers::~Leftovers() {
  std::error_code ignored;
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) fs::remove(*path, ignored);
}

void Staging::Leftovers::make_directory(const fs::path& path, const fs::path& shown) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  make_directory(path.parent_path(), shown);
  if (!path.has_filename()) return;  // "a/b/" is the directory "a/b"
  fs::path made = path;
  paths.reserve(paths.size() + 1);  // what was made is taken down whatever memory there is
  if (fs::create_directory(path, error))
    paths.push_back(std::move(made));
  else if (error)
    throw Error(cannot_be_written(shown, error.value() == EEXIST ? ENOTDIR : error.value()));
  else if (!fs::is_directory(path, error))
    throw Error(cannot_be_written(shown, ENOTDIR));
}

Staging::Staging(const fs::path& directory) : directory_(directory) {
  leftovers_.make_directory(directory_, directory_);
  sweep(directory_);
  waiting_.emplace(directory_, Unfinished::Kind::folder, directory_);
}

void Staging::add(const fs::path& name, std::string_view content) {
  held_.check();
  const fs::path path = waiting_->path() / name;
  inside_.make_directory(path.parent_path(), directory_);
  inside_.paths.push_back(path);
  write_new_file(path, content, directory_ / name);
  names_.push_back(name);
}

std::vector<fs::path> Staging::keep() {
  std::error_code error;
  std::vector<fs::path> sources, targets;
  std::set<fs::path> folders;
  for (const fs::path& name : names_) {
    held_.check();
    sources.push_back(waiting_->path() / name);
    targets.push_back(directory_ / name);
    const fs::path folder = targets.back().parent_path();
    leftovers_.make_directory(folder, directory_);
    folders.insert(folder);
    if (fs::is_directory(targets.back(), error)) throw Error(cannot_be_written(targets.back(), EISDIR));
    const Descriptor file(::open(sources.back().c_str(), O_RDONLY | O_CLOEXEC));
    // What replaces a file is for those who could read that.
    struct stat old;
    if (file.number() >= 0 && ::stat(targets.back().c_str(), &old) == 0) {
      // Where neither owner nor group can be given, its mode would be for others than it was.
      const bool is_theirs = has_owner_of(file.number(), old) ||
                             ::fchown(file.number(), static_cast<uid_t>(-1), old.st_gid) == 0;
      if (is_theirs && ::fchmod(file.number(), old.st_mode & 0777) != 0)
        throw Error(cannot_be_written(targets.back(), errno));
    }
    if (file.number() < 0 || ::fsync(file.number()) != 0)
      throw Error(cannot_be_written(targets.back(), errno));
  }
  std::vector<Descriptor> open_folders;
  for (const fs::path& folder : folders) open_folders.push_back(open_folder(folder));
  // From here on nothing takes memory, which might end between two files.
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (::rename(sources[k].c_str(), targets[k].c_str()) == 0) continue;
    throw Error(cannot_be_written(targets[k], errno) +
                (k == 0 ? ""
                        : "; " + std::to_string(k) + " of " + std::to_string(targets.size()) +
                              " files are there, up to " + targets[k - 1].filename().string()));
  }
  for (const Descriptor& folder : open_folders) ::fsync(folder.number());
  return targets;
}

}  // namespace core::formats
