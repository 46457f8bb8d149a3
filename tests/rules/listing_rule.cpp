#include "tests/rules/listing_rule.hpp"

#include <regex>
#include <set>

namespace tests::rules {
namespace {

/// Every word of every CMake list that could be a source, as a path from the project root.
std::set<std::string> named_sources(const std::vector<File>& lists) {
  static const std::regex comment(R"(#[^\n]*)"), source(R"([\w./-]+\.cpp)");
  std::set<std::string> named;
  for (const File& list : lists) {
    const std::string folder = list.path.substr(0, list.path.rfind('/') + 1);
    const std::string text = std::regex_replace(list.text, comment, "");
    for (std::sregex_iterator word(text.begin(), text.end(), source), end; word != end; ++word)
      named.insert(folder + word->str());
  }
  return named;
}

}  // namespace

std::vector<std::string> unlisted_sources(const std::vector<File>& sources, const std::vector<File>& lists) {
  const std::set<std::string> named = named_sources(lists);
  std::vector<std::string> unlisted;
  for (const File& file : sources)
    if (!named.contains(file.path)) unlisted.push_back(file.path);
  return unlisted;
}

std::vector<std::string> longer_than(const std::vector<File>& files, std::size_t max_lines) {
  std::vector<std::string> found;
  for (const File& file : files) {
    const std::size_t lines = count_lines(file.text);
    if (lines > max_lines) found.push_back(file.path + ": " + std::to_string(lines) + " lines");
  }
  return found;
}

}  // namespace tests::rules
