#pragma once

#include <filesystem>
#include <limits>

namespace app {

class Store;

/// Writes what is done in a store to a new file from now on: the program's version, the commands that lead to
/// this view, then every command, a line each, which is in the file before the command is carried out. Throws
/// core::Error when the file cannot be made.
void record(Store& store, const std::filesystem::path& path);

/// Does what this version of the program has recorded, up to a line of the file. Where the recording updated
/// the store, waits until everything is read, written and computed. Saves and exports write no files, and
/// nothing quits. Throws core::Error, with the line that cannot be done.
void replay(Store& store, const std::filesystem::path& path,
            std::size_t last_line = std::numeric_limits<std::size_t>::max());

}  // namespace app
