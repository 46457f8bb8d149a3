#pragma once

#include <filesystem>
#include <string>

namespace core::formats {

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
