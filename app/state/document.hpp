#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace app {

/// One line at the foot of the window.
struct Message {
  std::string text;
  bool is_error = false;
};

/// What is open and whether it is saved.
struct Document {
  std::string title;                          ///< the file's name, or the preset's title
  std::optional<std::filesystem::path> path;  ///< where it is saved
  std::string preset;                         ///< the preset it was made from, or ""
  bool modified = false;
  bool is_preset = false;  ///< the model is still the preset's, to the last bit
  bool can_undo = false, can_redo = false;
  std::string undo_words, redo_words;
  std::vector<std::filesystem::path> recent;  ///< newest first
  bool of_tensors = false;                    ///< it was made of a file of tensors, in which is to be chosen
  std::vector<std::string> layers;            ///< of that file, "" for a number alone
  std::size_t layer = 0;                      ///< the one that the model was made of
};

}  // namespace app
