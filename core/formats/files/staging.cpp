#include "core/formats/files/staging.hpp"

#include <cerrno>
#include <cstdlib>
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
  std::string name = (directory_ / ".attnscope-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw Error(cannot_be_written(directory_, errno));
  waiting_ = name;
  leftovers_.paths.push_back(waiting_);
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
  make_directory((waiting_ / name).parent_path());
  leftovers_.paths.push_back(waiting_ / name);
  write_new_file(waiting_ / name, content, directory_ / name);
  names_.push_back(name);
}

std::vector<fs::path> Staging::keep() {
  std::error_code error;
  std::vector<fs::path> kept;
  for (const fs::path& name : names_) {
    make_directory((directory_ / name).parent_path());
    if (fs::is_directory(directory_ / name, error)) throw Error(cannot_be_written(directory_ / name, EISDIR));
  }
  for (const fs::path& name : names_) {
    fs::rename(waiting_ / name, directory_ / name, error);
    if (error) throw Error(cannot_be_written(directory_ / name, error.value()));
    kept.push_back(directory_ / name);
  }
  return kept;
}

}  // namespace core::formats
