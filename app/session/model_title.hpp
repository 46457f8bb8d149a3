#pragma once

#include <filesystem>
#include <string>

namespace app {

/// Returns the title of the whole model in a folder or file: its name, or that of the example in words.
inline std::string model_title(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name == "tiny_gpt" ? "Tiny GPT (4 layers, Austen)" : name;
}

}  // namespace app
