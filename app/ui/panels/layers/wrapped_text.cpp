#include "app/ui/panels/layers/wrapped_text.hpp"

namespace app::panels {

std::string wrapped(const std::string& plain, const std::function<bool(const std::string&)>& fits) {
  std::string lines;
  std::size_t begin = 0, blank = std::string::npos;  // of the last line; its last blank
  const auto wrap = [&] {
    if (blank == std::string::npos || fits(lines.substr(begin))) return;
    lines[blank] = '\n';
    begin = blank + 1, blank = std::string::npos;
  };
  for (const char c : plain) {
    if (c == ' ' || c == '\n') wrap();
    if (c == '\n') {
      lines += "\r\n";
      begin = lines.size(), blank = std::string::npos;
      continue;
    }
    if (c == ' ') blank = lines.size();
    lines += c;
  }
  wrap();
  return lines;
}

std::string plain_of(const std::string& lines) {
  std::string plain;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (lines[k] == '\r') {
      plain += '\n';
      if (k + 1 < lines.size() && lines[k + 1] == '\n') ++k;
    } else {
      plain += lines[k] == '\n' ? ' ' : lines[k];
    }
  }
  return plain;
}

std::size_t place_in_lines(const std::string& lines, std::size_t place_in_text) {
  std::size_t k = 0;
  for (; k < lines.size() && place_in_text > 0; --place_in_text)
    k += lines[k] == '\r' && k + 1 < lines.size() && lines[k + 1] == '\n' ? 2 : 1;
  return k;
}

}  // namespace app::panels
