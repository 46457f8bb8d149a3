#pragma once

#include <filesystem>
#include <vector>

namespace core::formats {

/// What a folder holds.
struct Listing {
  std::vector<std::filesystem::path> paths;  ///< of its entries, in the order of their names
  int error = 0;                             ///< of the system, which broke it off, or 0
};

/// The entries of a folder; an empty path is the folder in which the program runs.
///
/// Throws std::bad_alloc where the iterators of std::filesystem would end the program.
Listing list_folder(const std::filesystem::path& folder);

}  // namespace core::formats
