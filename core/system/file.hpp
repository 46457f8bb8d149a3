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

/// Files of the operating system. Every function throws core::Error, one line "PATH: what is wrong".
namespace core::system {

/// Returns "PATH: not readable: why" for an error number of the system.
std::string read_error_message(const std::filesystem::path& path, int error);

/// Returns "PATH: cannot be written: why" for an error number of the system.
std::string write_error_message(const std::filesystem::path& path, int error);

/// Owner of the descriptor of an open file, which is negative if there is none.
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
std::optional<int> descriptor_from_path(const std::filesystem::path& path);

/// Reads a pipe of this process, such as /dev/stdin, to its end and replaces its descriptor by a regular file
/// with the same content. Ignores every other path.
void buffer_pipe_to_file(const std::filesystem::path& path, std::size_t limit = std::size_t{4} << 30);

/// Returns whether there is a regular file, or a link to one; false also if that is unknown. Throws nothing.
bool is_file(const std::filesystem::path& path);

/// Returns whether there is a folder, or a link to one; false also if that is unknown. Throws nothing.
bool is_folder(const std::filesystem::path& path);

/// Returns the content of a regular file of at most limit bytes.
std::string read_file(const std::filesystem::path& path, std::size_t limit);

/// Returns the first bytes of a regular file, fewer if it is shorter; none for a folder.
std::string read_prefix(const std::filesystem::path& path, std::size_t count);

/// A regular file for random access; several threads may read it at once.
///
/// It is never mapped into memory: access to a page that was truncated meanwhile would end the program.
class OpenFile {
 public:
  /// Whether the file stays open, or is opened for each read: an export has more files than a process may
  /// have open.
  enum class BetweenReads { open, closed };

  explicit OpenFile(const std::filesystem::path& path, BetweenReads between_reads = BetweenReads::open);

  const std::filesystem::path& path() const { return path_; }
  /// Returns its size in bytes when it was opened.
  std::uint64_t size() const { return size_; }

  /// Reads the bytes from … from + count − 1, which must be within size(), into buffer. Throws core::Error
  /// when the file has become shorter or was replaced since it was opened.
  void read(std::uint64_t from, std::uint64_t count, std::string& buffer) const;
  /// Reads the same bytes into existing memory.
  void read(std::uint64_t from, std::uint64_t count, char* to) const;
  std::string bytes(std::uint64_t from, std::uint64_t count) const;

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0, device_ = 0, inode_ = 0;
};

/// Replaces the content of a file, new or old, so that it holds either the old content or all of the new,
/// also after a power failure.
///
/// Follows links and keeps the permissions of an old file. Writes directly to a device, a pipe or a file that
/// this process has open, such as /dev/stdout. Throws core::Error, or Stopped on a signal to end; then the
/// old file is unchanged and no temporary file is left.
void write_atomically(const std::filesystem::path& path, std::string_view content);

/// Files to be written into a directory, all or none.
///
/// Staged in a hidden directory inside it; the destructor removes everything that was made and not kept. Only
/// if the program is killed while the files are renamed can new and old ones be mixed.
class Staging {
 public:
  /// Creates the directory if there is none.
  explicit Staging(const std::filesystem::path& directory);
  ~Staging();

  /// Stages a file with a name relative to the directory. Throws core::Error, or Stopped on a signal to end.
  void add(const std::filesystem::path& name, std::string_view content);

  /// Moves every file to its place, replacing old ones, and returns their paths. Throws core::Error, which
  /// says how many are there if not all of them could be moved.
  std::vector<std::filesystem::path> commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Removes the temporary files and folders that killed processes have left in a folder.
void remove_stale(const std::filesystem::path& folder);

/// A file that one process at a time can lock; the lock ends with the process.
class LockFile {
 public:
  /// Creates and locks a file; nothing if there is one or another process was faster. Throws core::Error
  /// about shown.
  static std::optional<LockFile> create(const std::filesystem::path& path,
                                        const std::filesystem::path& reported_path);
  /// Locks an old file; nothing if another process holds it or has just removed it.
  static std::optional<LockFile> try_lock(const std::filesystem::path& path);

 private:
  explicit LockFile(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

/// Returns 16 random hexadecimal digits.
std::string random_name();

/// Returns a text that changes whenever a file is written: its inode, length and times; "" if there is none.
std::string file_stamp(const std::filesystem::path& path);

/// Content of a folder.
struct Listing {
  std::vector<std::filesystem::path> paths;  ///< of its entries, sorted by name
  int error = 0;                             ///< of the system, which ended it early, or 0
};

/// Returns the entries of a folder; an empty path is the current folder.
Listing list_folder(const std::filesystem::path& folder);

}  // namespace core::system
