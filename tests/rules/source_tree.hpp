#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tests::rules {

/// A file of the project; path counts from the project root: "core/error.hpp".
struct File {
  std::string path;
  std::string text;
};

/// An #include line; line counts from 1.
struct Include {
  std::string path;
  std::size_t line = 0;
  bool quoted = false;
};

/// All files below the named folders of the project root with one of the endings, sorted by path.
std::vector<File> read_files(const std::string& root, const std::vector<std::string>& folders,
                             const std::vector<std::string>& endings);

/// C++ text with every comment and every character within literals turned into spaces; lines stay where they
/// are.
std::string without_comments_and_literals(std::string_view text);

/// The #include lines of C++ text, those in comments left out.
std::vector<Include> includes(std::string_view text);

/// How many lines a text has.
std::size_t count_lines(std::string_view text);

/// Whether the path begins with the folder or file name; "" begins every path.
bool is_below(std::string_view path, std::string_view folder);

}  // namespace tests::rules
