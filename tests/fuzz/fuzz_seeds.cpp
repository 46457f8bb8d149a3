// fuzz_seeds FOLDER FOUND: writes the seeds of every target to FOLDER/NAME and its libFuzzer dictionary to
// FOLDER/NAME.words, and creates FOUND/NAME.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/targets.hpp"

namespace {

std::string escaped(const std::string& word) {
  std::string text;
  for (const char c : word) {
    std::array<char, 5> code{};
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\')
      text += c;
    else
      std::snprintf(code.data(), code.size(), "\\x%02X", static_cast<unsigned char>(c));
    text += code.data();
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (const fuzz::Target& target : fuzz::targets()) {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / target.name;
    std::filesystem::create_directories(folder);
    std::filesystem::create_directories(std::filesystem::path(argv[2]) / target.name);
    std::size_t k = 0;
    for (const std::string& seed : target.seeds())
      std::ofstream(folder / ("seed" + std::to_string(k++)), std::ios::binary) << seed;
    std::ofstream words(std::filesystem::path(argv[1]) / (std::string(target.name) + ".words"));
    words << "# " << target.name << "\n";  // libFuzzer refuses an empty file
    for (const std::string word : target.words) words << '"' << escaped(word) << "\"\n";
  }
}
