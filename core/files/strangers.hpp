#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace core::formats::readers {

/// What a file is that is none of tensors, or packs them in a way that is not read, and how they can be had:
/// "is a Git LFS pointer of 548 MB: run git lfs pull"; "" when its first bytes and its name say nothing of
/// it.
std::string words_on_stranger(const std::filesystem::path& path, std::string_view begin);

}  // namespace core::formats::readers
