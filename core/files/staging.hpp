#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/signals.hpp"
#include "core/files/unfinished.hpp"

namespace core::formats {

/// Files on their way into a directory: all of them arrive, or none.
///
/// They wait in a hidden directory inside; whatever was made and not kept goes away with this object, which
/// ends in the thread that made it. Each file is whole at any time; only whoever kills the program while they
/// are renamed, or cuts the power, may find new files beside old ones.
class Staging {
 public:
  /// Makes the directory when there is none; throws core::Error when it cannot be made or written to.
  explicit Staging(const std::filesystem::path& directory);

  /// Writes a file that will stand at name, relative to the directory. Throws core::Error, or Stopped when
  /// the program is asked to end.
  void add(const std::filesystem::path& name, std::string_view content);

  /// Moves every file to its place, over old ones of that name, and gives their paths.
  ///
  /// Throws core::Error, which says how many are there when not all of them could be moved.
  std::vector<std::filesystem::path> keep();

 private:
  /// Files and directories that go when this goes; directories only when nothing is in them.
  struct Leftovers {
    std::vector<std::filesystem::path> paths;
    /// Makes the directory and those around it, as far as there are none.
    void make_directory(const std::filesystem::path& path, const std::filesystem::path& shown);
    Leftovers() = default;
    Leftovers(const Leftovers&) = delete;
    Leftovers& operator=(const Leftovers&) = delete;
    ~Leftovers();
  };

  SignalBlocker held_;  // the first to begin and the last to end
  std::filesystem::path directory_;
  std::vector<std::filesystem::path> names_;
  Leftovers leftovers_;
  std::optional<Unfinished> waiting_;
  Leftovers inside_;  // what is in there, which goes before it
};

}  // namespace core::formats
