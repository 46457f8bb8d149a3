#pragma once

#include <filesystem>

#include "app/session/command.hpp"

namespace app {

/// What dropping a file means: a dialog takes what it asks for, the comparison checks tensors, and the matrix
/// editor takes the numbers of a file of tensors; anything else is opened.
Command dropped(const std::filesystem::path& path, const View& view, const core::attention::Model& model,
                bool over_editor);

}  // namespace app
