#include "core/files/unfinished.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/list_folder.hpp"

namespace core::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view hidden_prefix = ".attnscope-";
constexpr std::size_t random_bytes = 8;

bool is_hidden_name(std::string_view name) {
  return name.size() == hidden_prefix.size() + 2 * random_bytes && name.starts_with(hidden_prefix) &&
         name.find_first_not_of(text::hexadecimal_digits, hidden_prefix.size()) == name.npos;
}

/// "." where a path names no folder.
fs::path folder_or_here(const fs::path& folder) {
  return folder.empty() ? fs::path(".") : folder;
}

/// Whether the file that is open still has a name.
bool has_a_name(int descriptor) {
  struct stat about;
  return ::fstat(descriptor, &about) == 0 && about.st_nlink > 0;
}

void remove_when_left(const fs::path& path) {
  const Descriptor left(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat about;
  if (left.number() < 0 || ::fstat(left.number(), &about) != 0 || about.st_uid != ::geteuid()) return;
  if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return;
  if (::flock(left.number(), LOCK_EX | LOCK_NB) != 0) return;  // somebody writes it
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace

std::string random_name() {
  char bytes[random_bytes];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw Error("the system gives no random numbers");
  return text::hexadecimal(std::string_view(bytes, sizeof bytes));
}

Unfinished::Unfinished(const fs::path& folder, Kind kind, const fs::path& shown) : Unfinished() {
  for (;;) {
    fs::path path = folder / (std::string(hidden_prefix) + random_name());
    const bool is_folder = kind == Kind::folder;
    if (is_folder && ::mkdir(path.c_str(), 0700) != 0) throw Error(cannot_be_written(shown, errno));
    if (is_folder) path_ = std::move(path);
    const fs::path& open_at = is_folder ? path_ : path;
    const int flags = is_folder ? O_RDONLY | O_DIRECTORY : O_WRONLY | O_CREAT | O_EXCL;
    Descriptor made(::open(open_at.c_str(), flags | O_CLOEXEC, 0666));
    if (made.number() < 0) throw Error(cannot_be_written(shown, errno));
    if (!is_folder) path_ = std::move(path);
    // Where a file system has no locks nothing is swept either.
    if (::flock(made.number(), LOCK_EX) != 0 || has_a_name(made.number())) {
      descriptor_.reset(made.release());
      return;
    }  // else somebody swept it in the moment before it was locked
  }
}

Unfinished::~Unfinished() {
  if (path_.empty()) return;
  std::error_code error;
  if (fs::remove(path_, error)) return;  // which takes no memory: there may be none
  try {
    fs::remove_all(path_, error);    // somebody has put something into it
  } catch (const std::exception&) {  // it is swept at the next write
  }
}

int Unfinished::move_to(const fs::path& target) {
  if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
  path_.clear();
  return 0;
}

void sweep(const fs::path& folder) {
  for (const fs::path& path : list_folder(folder).paths)
    if (is_hidden_name(path.filename().native())) remove_when_left(path);
}

Descriptor open_folder(const fs::path& folder) {
  return Descriptor(::open(folder_or_here(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace core::formats
