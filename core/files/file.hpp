#pragma once

#include <sys/stat.h>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/signals.hpp"

namespace core::formats {

/// The number of a descriptor of this process, when a path is a name of one: /dev/stdin, /dev/stdout,
/// /dev/stderr, /dev/fd/3, /proc/self/fd/3, or of a link to one.
std::optional<int> own_descriptor(const std::filesystem::path& path);

/// The bytes that come through a pipe, which are kept on the disk, or in memory.
constexpr std::size_t longest_pipe = std::size_t{4} << 30;

/// Reads a pipe that this process was given, such as /dev/stdin, to its end, so that from then on its name is
/// that of a regular file of all that came. Leaves every other path alone.
///
/// Throws core::Error, "PATH: what is wrong", when it cannot be read, has more bytes than the limit or
/// there is no room for it.
void read_pipe_whole(const std::filesystem::path& path, std::size_t limit = longest_pipe);

/// The descriptor of an open file, which is closed with its owner; negative when there is none.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  int number() const { return number_; }
  /// Gives it to somebody else, who closes it.
  int release();
  /// 0, or the error that only closing brought to light.
  int close();
  /// Closes it and owns another.
  void reset(int number);

 private:
  int number_;
};

/// A regular file, opened to be read.
///
/// Throws core::Error, "PATH: what is wrong", when there is none or it is a folder, a device or a pipe.
Descriptor open_regular(const std::filesystem::path& path);

/// Everything that is in a regular file.
///
/// Throws core::Error, "PATH: what is wrong", when it cannot be read or holds more than limit bytes.
std::string read_file(const std::filesystem::path& path, std::size_t limit);

/// The first bytes of a file, fewer when it is shorter; none of a folder. Throws core::Error as read_file
/// does.
std::string read_begin(const std::filesystem::path& path, std::size_t count);

/// Puts content into a file, new or old, so that it holds either the old content or all of the new, also
/// after a power cut.
///
/// A link is followed; an old file keeps its permissions and owner, and its other names: one that has some,
/// or whose owner cannot be kept, is written over once all of the content is safe beside it. A device or pipe
/// is written to as it is, and so is what this process has open, such as /dev/stdout. Throws core::Error,
/// "PATH: cannot be written: why", or Stopped when the program is asked to end; then the old file is as it
/// was and nothing is left beside it.
void write_atomically(const std::filesystem::path& path, std::string_view content);

/// Writes content to a file that must not exist yet; what is there after an error is the caller's to remove.
///
/// shown stands for the path in the message of the core::Error that it throws.
void write_new_file(const std::filesystem::path& path, std::string_view content,
                    const std::filesystem::path& shown);

/// Whether what is open has the owner and the group of an old file, or could be given them.
bool has_owner_of(int descriptor, const struct stat& old);

/// Writes all of the content to what is open: 0, or the error that stopped it. Throws Stopped when held has a
/// signal that asks to end.
int write_all(int descriptor, std::string_view content, const SignalBlocker* held = nullptr);

/// "PATH: not readable: why" for an error of the system.
std::string cannot_be_read(const std::filesystem::path& path, int error);

/// "PATH: cannot be written: why" for an error of the system.
std::string cannot_be_written(const std::filesystem::path& path, int error);

/// A regular file that is open, of which any part can be read; several threads may read it at once.
///
/// It is read and never mapped: a look at a page that somebody has cut off would end the program.
class OpenFile {
 public:
  /// Whether it is open from now on, or only while something is read: of an export there are more files than
  /// a process may have open.
  enum class Keeps { open, closed };

  /// Throws core::Error when the path is no regular file that can be read.
  explicit OpenFile(const std::filesystem::path& path, Keeps keeps = Keeps::open);

  const std::filesystem::path& path() const { return path_; }
  /// Bytes that it had when it was opened.
  std::uint64_t size() const { return size_; }

  /// Puts the bytes from … from + count − 1, which must lie within size(), into buffer.
  ///
  /// Throws core::Error when the file has become shorter since it was opened, is another by now, or cannot be
  /// read.
  void read(std::uint64_t from, std::uint64_t count, std::string& buffer) const;

  /// The same bytes.
  std::string bytes(std::uint64_t from, std::uint64_t count) const;

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0, device_ = 0, number_ = 0;
};

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

/// What a folder holds.
struct Listing {
  std::vector<std::filesystem::path> paths;  ///< of its entries, in the order of their names
  int error = 0;                             ///< of the system, which broke it off, or 0
};

/// The entries of a folder; an empty path is the folder in which the program runs.
///
/// Throws std::bad_alloc where the iterators of std::filesystem would end the program.
Listing list_folder(const std::filesystem::path& folder);

/// Whether a path that a file of a folder names is relative and leads into that folder, once links are
/// followed; a folder that holds a link elsewhere, itself or in a folder in it, does not.
///
/// What does not exist leads nowhere else. Beside a snapshot of Hugging Face's cache, whose files are links,
/// lies all of the model.
bool lies_beside(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Where a path that does not lie beside leads, in words to put behind its name: ", which leads to
/// \"/srv/x.npy\","; "" where its name says so.
std::string leading_words(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Where core::Error was caught of a file that may lie elsewhere: throws it on, or, where the file does, an
/// error that quotes nothing of what the file holds. place: what stands before its name.
[[noreturn]] void throw_without_contents(const std::string& place, const std::filesystem::path& path,
                                         const std::filesystem::path& folder);

}  // namespace core::formats
