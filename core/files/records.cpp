#include "core/files/records.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"

namespace core::formats::readers {

namespace {

constexpr std::size_t most_fields = 1 << 20;  // a field takes many times its bytes

enum class Fit { absent, uneven, even };

/// Whether a separator occurs in the first lines, and cuts them into equally many fields; a header may have
/// one less.
Fit fit_of(std::string_view text, char separator) {
  constexpr int looked_at = 20;
  std::size_t first = 0, n_fields = 0;
  bool occurs = false;
  try {
    Records records(text, separator, "");
    for (int k = 0; k < looked_at; ++k) {
      const auto record = records.next();
      if (!record) break;
      const std::size_t n = record->fields.size();
      occurs = occurs || n > 1;
      if (k == 0) first = n;
      if (k == 1) n_fields = n;
      if (k == 1 ? n != first && n != first + 1 : k > 1 && n != n_fields)
        return occurs ? Fit::uneven : Fit::absent;
    }
  } catch (const Error&) {
    return Fit::uneven;  // its quotes close elsewhere
  }
  return occurs ? Fit::even : Fit::absent;
}

}  // namespace

char separator_of(std::string_view text, bool comma) {
  std::vector<char> candidates{'\t', ';'};
  if (comma) candidates.push_back(',');
  candidates.push_back(' ');
  for (const Fit wanted : {Fit::even, Fit::uneven})
    for (const char c : candidates)
      if (fit_of(text, c) == wanted) return c;
  return ',';
}

Records::Records(std::string_view text, char separator, std::string place)
    : rest_(text::without_byte_order_mark(text)), separator_(separator), place_(std::move(place)) {}

void Records::pass_blanks() {
  const auto end =
      std::ranges::find_if_not(rest_, [&](char c) { return c == ' ' || (c == '\t' && separator_ != '\t'); });
  rest_.remove_prefix(static_cast<std::size_t>(end - rest_.begin()));
}

void Records::end_line() {
  rest_.remove_prefix(std::min<std::size_t>(rest_.starts_with("\r\n") ? 2 : 1, rest_.size()));
  ++line_;
}

bool Records::is_separator() const {
  return !rest_.empty() && (rest_.front() == separator_ || (separator_ == ' ' && rest_.front() == '\t'));
}

std::optional<Record> Records::next() {
  for (;;) {  // pass over empty lines
    const std::string_view before = rest_;
    pass_blanks();
    if (rest_.empty()) return std::nullopt;
    if (!ends_line()) {
      if (separator_ != ' ') rest_ = before;
      break;
    }
    end_line();
  }
  Record record;
  record.line = line_;
  for (;;) {
    if (record.fields.size() == most_fields)
      throw Error(place_ + "line " + std::to_string(line_) + ": expected at most " +
                  std::to_string(most_fields) + " fields, got more");
    record.fields.push_back(field());
    if (separator_ == ' ') pass_blanks();
    if (ends_line()) break;
    if (separator_ != ' ') {
      rest_.remove_prefix(1);  // the separator, which is all that may follow a field
    }
  }
  end_line();
  return record;
}

std::string Records::field() {
  if (rest_.starts_with('"')) return quoted();
  std::size_t length = 0;
  while (length < rest_.size() && rest_[length] != '\n' && !rest_.substr(length).starts_with("\r\n") &&
         rest_[length] != separator_ && !(separator_ == ' ' && rest_[length] == '\t'))
    ++length;
  const std::string_view text = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return std::string(text);
}

std::string Records::quoted() {
  const std::size_t first_line = line_;
  std::string text;
  rest_.remove_prefix(1);
  for (;;) {
    const std::size_t end = rest_.find('"');
    if (end == rest_.npos)
      throw Error(place_ + "line " + std::to_string(first_line) +
                  ": expected a closing quote, got the end of the text");
    text += rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (!rest_.starts_with('"')) break;
    text += '"';
    rest_.remove_prefix(1);
  }
  line_ += static_cast<std::size_t>(std::ranges::count(text, '\n'));
  if (!ends_line() && !is_separator())
    throw Error(place_ + "line " + std::to_string(line_) + ": expected a separator after a closing quote");
  return text;
}

}  // namespace core::formats::readers
