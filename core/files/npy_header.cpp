#include "core/files/npy_header.hpp"

#include <optional>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/json.hpp"

namespace core::formats::readers {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& place) : rest_(text), place_(place) {}

  NpyHeader header() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr)
        descr = type();
      else if (key == "fortran_order" && !fortran_order)
        fortran_order = boolean();
      else if (key == "shape" && !shape)
        shape = lengths();
      else
        fail("the keys 'descr', 'fortran_order' and 'shape', each once");
      if (!accept(',') && !next_is('}')) fail("',' or '}'");
    }
    skip_blanks();
    if (!rest_.empty()) fail("nothing after '}'");
    if (!descr || !fortran_order || !shape) fail("the keys 'descr', 'fortran_order' and 'shape'");
    return {*descr, *fortran_order, *shape};
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(place_ + "header: expected " + expected + ", got " +
                (rest_.empty() ? "its end" : quoted_briefly(rest_.substr(0, 20))));
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool next_is(char c) {
    skip_blanks();
    return rest_.starts_with(c);
  }
  bool accept(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "'");
  }

  std::string quoted() {
    skip_blanks();
    const char quote = next_is('"') ? '"' : '\'';
    if (!next_is(quote)) fail("a text in quotes");
    const std::size_t end = rest_.find(quote, 1);
    if (end == rest_.npos) fail("a text in quotes");
    const std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  /// A text, or a list (of a record's fields) that is kept as it is, so that it can be shown.
  std::string type() {
    if (!next_is('[')) return quoted();
    int depth = 0;
    for (std::size_t k = 0; k < rest_.size(); ++k) {
      depth += rest_[k] == '[' ? 1 : rest_[k] == ']' ? -1 : 0;
      if (depth > 0) continue;
      const std::string text(rest_.substr(0, k + 1));
      rest_.remove_prefix(k + 1);
      return text;
    }
    fail("a ']'");
  }

  bool boolean() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("True or False");
  }

  Shape lengths() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      const auto length = text::take_whole_number(rest_);
      if (!length) fail("a length of at most 2^64 - 1");
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // as Python 2 wrote it
      shape.push_back(*length);
      if (shape.size() > most_dimensions) fail("at most 32 dimensions");
      if (!accept(',') && !next_is(')')) fail("',' or ')'");
    }
    return shape;
  }

  std::string_view rest_;
  const std::string& place_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& place) {
  return Reader(text, place).header();
}

}  // namespace core::formats::readers
