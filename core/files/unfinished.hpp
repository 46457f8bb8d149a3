#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/files/file.hpp"

namespace core::formats {

/// 16 hexadecimal digits that nothing else is called. Throws core::Error when the system gives none.
std::string random_name();

/// A hidden file or folder in which something waits until it is whole. It goes away with its owner, who has
/// emptied the folder, or, when that is killed, at the next call of sweep for the folder around it.
///
/// Whoever writes holds a lock on it, which ends with the process: that tells what is left from what is in
/// use, whatever the processes' numbers. Its name is random.
class Unfinished {
 public:
  enum class Kind { file, folder };
  /// In a folder that exists. Throws core::Error about shown when it cannot be made.
  Unfinished(const std::filesystem::path& folder, Kind kind, const std::filesystem::path& shown);
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished();

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_.number(); }
  /// Gives the file another name, over an old one. 0, or the error of the system.
  int move_to(const std::filesystem::path& target);

 private:
  Unfinished() = default;  // so that what a constructor has made goes when it fails later

  std::filesystem::path path_;
  Descriptor descriptor_{-1};
};

/// Removes what killed processes have left in a folder.
void sweep(const std::filesystem::path& folder);

/// A folder whose names fsync makes outlast a power cut, where its file system can; negative when it cannot
/// be opened.
Descriptor open_folder(const std::filesystem::path& folder);

}  // namespace core::formats
