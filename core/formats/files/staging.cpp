#include "core/formats/files/staging.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "core/formats/files/file.hpp"

namespace core::formats {

namespace fs = std::filesystem;

Staging::Leftovers::~Leftovers() {
  std::error_code ignored;
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) fs::remove(*path, ignored);
}

Staging::Staging(const fs::path& directory) : directory_(directory) {
  make_directory(directory_);
  sweep(directory_);
  waiting_.emplace(directory_, Unfinished::Kind::folder, directory_);
}

void Staging::make_directory(const fs::path& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  make_directory(path.parent_path());
  if (!path.has_filename()) return;  // "a/b/" is the directory "a/b"
  if (fs::create_directory(path, error))
    leftovers_.paths.push_back(path);
  else if (error)
    throw Error(cannot_be_written(directory_, error.value() == EEXIST ? ENOTDIR : error.value()));
  else if (!fs::is_directory(path, error))
    throw Error(cannot_be_written(directory_, ENOTDIR));
}

void Staging::add(const fs::path& name, std::string_view content) {
  held_.check();
  make_directory((waiting_->path() / name).parent_path());
  write_new_file(waiting_->path() / name, content, directory_ / name);
  names_.push_back(name);
}

std::vector<fs::path> Staging::keep() {
  std::error_code error;
  std::set<fs::path> folders;
  for (const fs::path& name : names_) {
    held_.check();
    make_directory((directory_ / name).parent_path());
    folders.insert((directory_ / name).parent_path());
    if (fs::is_directory(directory_ / name, error)) throw Error(cannot_be_written(directory_ / name, EISDIR));
    const Descriptor file(::open((waiting_->path() / name).c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0 || ::fsync(file.number()) != 0)
      throw Error(cannot_be_written(directory_ / name, errno));
  }
  std::vector<fs::path> kept;
  for (const fs::path& name : names_) {
    fs::rename(waiting_->path() / name, directory_ / name, error);
    if (error)
      throw Error(cannot_be_written(directory_ / name, error.value()) +
                  (kept.empty() ? ""
                                : "; " + std::to_string(kept.size()) + " of " +
                                      std::to_string(names_.size()) + " files are there"));
    kept.push_back(directory_ / name);
  }
  for (const fs::path& folder : folders) sync_folder(folder);
  return kept;
}

}  // namespace core::formats
