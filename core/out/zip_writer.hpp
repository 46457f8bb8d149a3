#pragma once

#include <functional>
#include <string>
#include <vector>

namespace core::formats {

/// A file to be put into an archive; its content is made when its turn comes, and let go of after it.
struct ZipContent {
  std::string name;
  std::function<std::string()> make;
};

/// A zip archive of these files, each deflated.
///
/// The same files give the same bytes: times are the earliest that the format knows, as NumPy writes them.
/// Throws what make throws, and core::Error when two files have one name.
std::string zip_bytes(const std::vector<ZipContent>& files);

}  // namespace core::formats
