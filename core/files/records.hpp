#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace core::formats::readers {

/// One record of a table: its fields without their quotes, and the line on which it begins, from 1.
struct Record {
  std::vector<std::string> fields;
  std::size_t line = 1;
};

/// The first of tab, semicolon, comma (where it may be one) and blank that cuts the first lines into equally
/// many fields, or else the first that occurs.
char separator_of(std::string_view text, bool comma);

/// Cuts a text into records; lines without anything on them are passed over.
class Records {
 public:
  /// place begins every message. A blank as separator stands for any number of blanks and tabs.
  Records(std::string_view text, char separator, std::string place);

  /// The next record, or nothing at the end. Throws core::Error when a quote does not close or is followed by
  /// more.
  std::optional<Record> next();

 private:
  bool ends_line() const { return rest_.empty() || rest_.front() == '\n' || rest_.starts_with("\r\n"); }
  void pass_blanks();
  void end_line();
  std::string field();
  std::string quoted();
  bool is_separator() const;

  std::string_view rest_;
  char separator_;
  std::string place_;
  std::size_t line_ = 1;
};

}  // namespace core::formats::readers
