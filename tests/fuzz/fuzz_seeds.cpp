// fuzz_seeds FOLDER FOUND: writes the seeds of every target into a folder of its name, and makes those of
// what was found; and a dictionary for libFuzzer, NAME.words, of each that has words.
#include <filesystem>
#include <fstream>

#include "tests/fuzz/targets.hpp"

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
    for (const std::string word : target.words) {
      words << '"';
      for (const char c : word) words << (c == '"' || c == '\\' ? "\\" : "") << c;
      words << "\"\n";
    }
  }
}
