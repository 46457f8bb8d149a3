#include "core/graph/python.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"

namespace core::formats::python {
namespace {

constexpr std::size_t widest_line = 100;

template <class Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return "float('nan')";
  if (std::isinf(value)) return value > 0 ? "float('inf')" : "-float('inf')";
  std::array<char, 40> digits;
  std::string text(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  if (text.find_first_of(".e") == text.npos)
    text += '.';  // a whole number would be an int, and lose the sign of -0
  return text;
}

/// Returns whether PyTorch reads the decimal back: it rounds a float64, which in rare cases is not the
/// float32 closest to the decimal.
bool reads_back(float value) {
  if (!std::isfinite(value)) return true;
  const auto read = static_cast<float>(text::parse_number(shortest(value)).value());
  return std::bit_cast<std::uint32_t>(read) == std::bit_cast<std::uint32_t>(value);
}

std::string element(double value, bool at_float32) {
  return at_float32 ? shortest(static_cast<float>(value)) : shortest(value);
}

/// Returns "[a, b, c]", continued on a new line where it would get too wide.
std::string list(const std::vector<std::string>& items, const std::string& indent) {
  std::string text = "[";
  std::size_t width = indent.size() + 1;
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (k > 0 && width + items[k].size() + 3 > widest_line) {
      text += ",\n" + indent + " ";
      width = indent.size() + 1;
    } else if (k > 0) {
      text += ", ";
      width += 2;
    }
    text += items[k];
    width += items[k].size();
  }
  return text + "]";
}

/// Returns a character as written between quotes, in printable ASCII only.
std::string escaped(char32_t c) {
  if (c == U'"' || c == U'\\') return {'\\', static_cast<char>(c)};
  if (c == U'\n') return "\\n";
  if (c == U'\t') return "\\t";
  if (c >= U' ' && c < 0x7F) return {static_cast<char>(c)};
  if (c < 0x100) return "\\x" + text::hexadecimal(c, 2);
  return c < 0x10000 ? "\\u" + text::hexadecimal(c, 4) : "\\U" + text::hexadecimal(c, 8);
}

std::string row_text(const arma::mat& m, std::size_t i, const std::string& indent, bool at_float32) {
  std::vector<std::string> items;
  for (std::size_t j = 0; j < m.n_cols; ++j) items.push_back(element(m(i, j), at_float32));
  return list(items, indent);
}

}  // namespace

std::string number(double value) {
  return shortest(value);
}

std::string rows(const arma::mat& matrix, const std::string& indent, bool at_float32) {
  std::string text = "[";
  for (std::size_t i = 0; i < matrix.n_rows; ++i) {
    if (i > 0) text += ",\n" + indent + " ";
    text += row_text(matrix, i, indent + " ", at_float32);
  }
  return text + "]";
}

std::string row(const arma::mat& matrix, bool at_float32) {
  return row_text(matrix, 0, "", at_float32);
}

bool is_float32(const arma::mat& matrix) {
  return std::all_of(matrix.begin(), matrix.end(), [](double v) {
    const auto rounded = static_cast<float>(v);
    return std::bit_cast<std::uint64_t>(static_cast<double>(rounded)) == std::bit_cast<std::uint64_t>(v) &&
           reads_back(rounded);
  });
}

std::string string(const std::string& text) {
  std::string literal = "\"";
  for (const char32_t c : text::decode_utf8_lossy(text)) literal += escaped(c);
  return literal + "\"";
}

std::string strings(const std::vector<std::string>& texts, const std::string& indent) {
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(string(text));
  return list(items, indent);
}

std::string line(const std::string& text) {
  return "        " + text + "\n";
}

}  // namespace core::formats::python
