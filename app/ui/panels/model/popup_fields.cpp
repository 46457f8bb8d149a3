#include "app/ui/panels/model/popup_fields.hpp"

#include <algorithm>
#include <cmath>

#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/number.hpp"

namespace app::panels {

std::optional<std::string> PopupFields::field(const char* words, const char* name, const std::string& shown,
                                              const std::string& help) {
  row(words);
  widgets::FieldStyle style;
  style.width = frame.metrics.px(popup_controls), style.font = frame.fonts.mono14;
  style.alignment = widgets::Alignment::left;
  const auto answer = widgets::text_field(frame, name, shown, style);
  widgets::tooltip(help);
  return answer.text;
}

std::optional<std::int64_t> PopupFields::whole(const char* words, const char* name, std::int64_t value,
                                               const std::string& help) {
  const auto typed = field(words, name, std::to_string(value), help);
  if (!typed) return std::nullopt;
  const auto number = widgets::read_number(*typed);
  constexpr double most = 1e15;  // whole numbers up to there are exact
  if (number && std::fabs(*number) <= most && std::floor(*number) == *number)
    return static_cast<std::int64_t>(*number);
  refuse(words, "a whole number", *typed);
  return std::nullopt;
}

std::optional<double> PopupFields::real(const char* words, const char* name, double value,
                                        const std::string& help) {
  const auto typed = field(words, name, core::text::number_text(value), help);
  if (!typed) return std::nullopt;
  const auto number = widgets::read_number(*typed);
  if (!number) refuse(words, "a finite number", *typed);
  return number;
}

void PopupFields::refuse(const char* field, const char* expected, const std::string& found) const {
  frame.commands.add(
      ShowMessage{std::string(field) + ": expected " + expected + ", found \"" + found + "\"", true});
}

std::optional<std::vector<std::size_t>> counts_in(std::string text) {
  for (char& c : text)
    if (c == ',' || c == ';' || c == '[' || c == ']') c = ' ';
  std::vector<std::size_t> counts;
  for (std::size_t at = text.find_first_not_of(' '); at != text.npos; at = text.find_first_not_of(' ', at)) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const auto number = core::text::parse_whole_number(std::string_view(text).substr(at, end - at));
    if (!number) return std::nullopt;
    counts.push_back(*number);
    at = end;
  }
  return counts;
}

}  // namespace app::panels
