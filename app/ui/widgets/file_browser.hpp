#pragma once

#include <filesystem>
#include <optional>

#include "app/ui/frame.hpp"

namespace app::widgets {

/// Which files a browser lists beside the directories.
enum class Listed { sessions, tensors, openable, directories };

/// Where the browser's name field points: the directory joined with the name; "~" is the home directory.
std::filesystem::path chosen_path(const Browser& browser);

/// A list of a directory with a field for a name, in View::browser; asks for other directories with BrowseTo.
///
/// Marks "browser/parent", "browser/home", "browser/name" and "browser/entry/<name>". Gives the path when it
/// was chosen by Enter or a double click; directories are entered instead. Files whose names begin with a dot
/// are listed when the name does.
std::optional<std::filesystem::path> file_browser(const Frame& frame, Listed listed, ImVec2 size);

}  // namespace app::widgets
