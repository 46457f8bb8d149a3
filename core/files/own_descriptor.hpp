#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

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

}  // namespace core::formats
