#pragma once

#include <filesystem>

namespace core::system {

/// Thrown by a job whose files are not here yet; the job is called again in a later frame.
struct NotHere {};

/// Returns whether nothing of that folder has to be fetched.
bool is_here(const std::filesystem::path& folder);

/// Waits, within a job, for the files of a folder, which a page fetches when they are needed: throws NotHere
/// meanwhile, and core::Error when they do not come. A native program has them.
void require_here(const std::filesystem::path& folder);

}  // namespace core::system
