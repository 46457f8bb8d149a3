#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Files as the operating system has them. Every function throws core::Error, one line "PATH: what is wrong".
namespace core::system {

/// "PATH: not readable: why" for an error number of the system.
std::string cannot_be_read(const std::filesystem::path& path, int error);

/// "PATH: cannot be written: why" for an error number of the system.
std::string cannot_be_written(const std::filesystem::path& path, int error);

/// Owns the descriptor of an open file; negative when there is none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

/// Returns the descriptor of this process that a path names: /dev/stdin, /dev/stdout, /dev/stderr, /dev/fd/3,
/// /proc/self/fd/3, or a link to one.
std::optional<int> own_descriptor(const std::filesystem::path& path);

/// Reads a pipe that this process was given, such as /dev/stdin, to its end, so that its name is that of a
/// regular file with all of it from then on. Leaves every other path alone.
void read_pipe_whole(const std::filesystem::path& path, std::size_t limit = std::size_t{4} << 30);

/// Whether there is a regular file, or a link to one; false also where that cannot be known. Throws nothing.
bool is_file(const std::filesystem::path& path);

/// Returns the content of a regular file of at most limit bytes.
std::string read_file(const std::filesystem::path& path, std::size_t limit);

/// Returns the first bytes of a regular file, fewer when it is shorter; none of a folder.
std::string read_begin(const std::filesystem::path& path, std::size_t count);

/// A regular file of which any part can be read; several threads may read it at once.
///
/// It is read and never mapped: touching a page that somebody has cut off would end the program.
class OpenFile {
 public:
  /// Whether the file is open from now on, or only while something is read: an export has more files than a
  /// process may have open.
  enum class Keeps { open, closed };

  explicit OpenFile(const std::filesystem::path& path, Keeps keeps = Keeps::open);

  const std::filesystem::path& path() const { return path_; }
  /// Bytes that it had when it was opened.
  std::uint64_t size() const { return size_; }

  /// Puts the bytes from … from + count − 1, which must lie within size(), into buffer. Throws core::Error
  /// when the file has become shorter or was replaced since it was opened.
  void read(std::uint64_t from, std::uint64_t count, std::string& buffer) const;
  /// The same, for whoever has the memory already.
  void read(std::uint64_t from, std::uint64_t count, char* to) const;
  std::string bytes(std::uint64_t from, std::uint64_t count) const;

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0, device_ = 0, inode_ = 0;
};

/// Replaces the content of a file, new or old, so that it holds either the old content or all of the new,
/// also after a power cut.
///
/// A link is followed; an old file keeps its permissions. A device or pipe is written to as it is, and so is
/// what this process has open, such as /dev/stdout. Throws core::Error, or Stopped when the program is asked
/// to end; then the old file is as it was and nothing is left beside it.
void write_atomically(const std::filesystem::path& path, std::string_view content);

/// Files on their way into a directory: all of them arrive, or none.
///
/// They wait in a hidden directory inside it. Whatever was made and not kept goes away with this object. Only
/// whoever kills the program while the files are renamed may find new files beside old ones.
class Staging {
 public:
  /// Makes the directory when there is none.
  explicit Staging(const std::filesystem::path& directory);
  ~Staging();

  /// Writes a file for name, relative to the directory. Throws core::Error, or Stopped when the program is
  /// asked to end.
  void add(const std::filesystem::path& name, std::string_view content);

  /// Moves every file to its place, over old ones of that name, and returns their paths. Throws core::Error,
  /// which says how many are there when not all of them could be moved.
  std::vector<std::filesystem::path> keep();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Removes the temporary files and folders that killed processes have left in a folder.
void remove_stale(const std::filesystem::path& folder);

/// A file of which one process at a time holds the lock, which ends with the process.
class LockFile {
 public:
  /// Makes a file of that name; nothing when there is one, or another process was faster. Throws core::Error
  /// about shown.
  static std::optional<LockFile> create(const std::filesystem::path& path,
                                        const std::filesystem::path& shown);
  /// Locks an old file; nothing when another process holds it or has just removed it.
  static std::optional<LockFile> take(const std::filesystem::path& path);

 private:
  explicit LockFile(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

/// 16 random hexadecimal digits.
std::string random_name();

/// Returns a text that changes when somebody writes a file: its inode, length and times; "" when there is
/// none.
std::string file_stamp(const std::filesystem::path& path);

/// What a folder holds.
struct Listing {
  std::vector<std::filesystem::path> paths;  ///< of its entries, in the order of their names
  int error = 0;                             ///< of the system, which broke it off, or 0
};

/// The entries of a folder; an empty path is the current folder.
Listing list_folder(const std::filesystem::path& folder);

}  // namespace core::system
