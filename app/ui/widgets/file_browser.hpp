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
/// are listed when the name does. An empty name stands for the proposed one.
std::optional<std::filesystem::path> file_browser(const Frame& frame, Listed listed, ImVec2 size,
                                                  const std::string& proposed = "");

/// The browser with what is being typed as its name, or the proposed one where there is none.
Browser as_typed(const Frame& frame, const std::string& proposed = "");

}  // namespace app::widgets
