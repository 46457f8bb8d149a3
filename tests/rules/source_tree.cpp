#include "tests/rules/source_tree.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

namespace tests::rules {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void blank(std::string& text, std::size_t from, std::size_t to) {
  for (std::size_t k = from; k < std::min(to, text.size()); ++k)
    if (text[k] != '\n') text[k] = ' ';
}

/// Where a literal that begins with the quote at `from` ends: one past its closing quote.
std::size_t end_of_literal(std::string_view text, std::size_t from) {
  const char quote = text[from];
  if (quote == '"' && from > 0 && text[from - 1] == 'R') {
    const std::size_t open = text.find('(', from);
    if (open == text.npos) return text.size();
    const std::string close = ")" + std::string(text.substr(from + 1, open - from - 1)) + "\"";
    const std::size_t end = text.find(close, open);
    return end == text.npos ? text.size() : end + close.size();
  }
  std::size_t k = from + 1;
  while (k < text.size() && text[k] != quote) k += text[k] == '\\' ? 2 : 1;
  return k + 1;
}

/// A quote between digits, as in 1'000'000, begins no literal.
bool separates_digits(std::string_view text, std::size_t k) {
  return text[k] == '\'' && k > 0 && std::isalnum(static_cast<unsigned char>(text[k - 1])) != 0;
}

std::string blanked(std::string_view text, bool literals) {
  std::string result(text);
  std::size_t k = 0;
  while (k < text.size()) {
    if (text.substr(k, 2) == "//") {
      const std::size_t end = std::min(text.find('\n', k), text.size());
      blank(result, k, end);
      k = end;
    } else if (text.substr(k, 2) == "/*") {
      const std::size_t close = text.find("*/", k + 2);
      const std::size_t end = close == text.npos ? text.size() : close + 2;
      blank(result, k, end);
      k = end;
    } else if ((text[k] == '"' || text[k] == '\'') && !separates_digits(text, k)) {
      const std::size_t end = end_of_literal(text, k);
      if (literals) blank(result, k + 1, end - 1);
      k = end;
    } else {
      ++k;
    }
  }
  return result;
}

}  // namespace

std::vector<File> read_files(const std::string& root, const std::vector<std::string>& folders,
                             const std::vector<std::string>& endings) {
  std::vector<File> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder)) {
      const std::string name = entry.path().filename().string();
      const bool wanted =
          std::any_of(endings.begin(), endings.end(), [&](const auto& e) { return name.ends_with(e); });
      if (!entry.is_regular_file() || !wanted) continue;
      files.push_back({fs::relative(entry.path(), root).generic_string(), read(entry.path())});
    }
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

std::string without_comments_and_literals(std::string_view text) {
  return blanked(text, true);
}

std::vector<Include> includes(std::string_view text) {
  const std::regex line_of_include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::istringstream lines(blanked(text, false));
  std::vector<Include> found;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_match(line, match, line_of_include)) found.push_back({match[2], number, match[1] == "\""});
  }
  return found;
}

std::size_t count_lines(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder);
}

}  // namespace tests::rules
