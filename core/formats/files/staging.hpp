#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace core::formats {

/// Files on their way into a directory: all of them arrive, or none.
///
/// They wait in a hidden directory inside; whatever was made and not kept goes away with this object.
class Staging {
 public:
  /// Makes the directory when there is none; throws core::Error when it cannot be made or written to.
  explicit Staging(const std::filesystem::path& directory);

  /// Writes a file that will stand at name, relative to the directory. Throws core::Error.
  void add(const std::filesystem::path& name, std::string_view content);

  /// Moves every file to its place, over old ones of that name, and gives their paths. Throws core::Error.
  std::vector<std::filesystem::path> keep();

 private:
  /// Files and directories that go when this goes; directories only when nothing is in them.
  struct Leftovers {
    std::vector<std::filesystem::path> paths;
    Leftovers() = default;
    Leftovers(const Leftovers&) = delete;
    Leftovers& operator=(const Leftovers&) = delete;
    ~Leftovers();
  };

  void make_directory(const std::filesystem::path& path);

  std::filesystem::path directory_, waiting_;
  std::vector<std::filesystem::path> names_;
  Leftovers leftovers_;
};

}  // namespace core::formats
