#pragma once

#include <string_view>
#include <vector>

namespace tests::rules {

/// A folder of the project and what its files may include, beside each other.
struct Room {
  std::string_view folder;
  std::vector<std::string_view> uses;  ///< rooms, all of which stand before it in the table
  std::vector<std::string_view>
      libraries;  ///< of those that not everybody may include; see guarded_libraries()
};

/// Every room, from the ground up: what stands above can be used by nobody below.
const std::vector<Room>& rooms();

/// The beginnings of includes that a room has to be allowed: "GLFW/".
const std::vector<std::string_view>& guarded_libraries();

/// The room that a file or a folder is in, or nullptr.
const Room* room_of(std::string_view path);

}  // namespace tests::rules
