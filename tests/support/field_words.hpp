#pragma once

#include <regex>
#include <string>

namespace support {

/// Returns the first phrase of a text for which the field has a standard term, or "".
inline std::string nonstandard_phrase(const std::string& text) {
  static const std::regex words(
      "\\b(positions that turn|turning circle|who listens|who is heard|by rms|by deviation|by distance|asking|is asked|"
      "hidden (cell|key|position)s?|visible (cell|key|position)s?|survivors?|survivor factor|numbers? of your own|"
      "stands? (side by side|beside)|merged? heads|draw anew|drawn anew|resampled anew|anew|head [0-9]+ (on|off)|put here instead|"
      "typed? over|departures?|show a mistake|mend(ed|s)?|adds directly|if switched off|guess after it|one token (more|back)|"
      "likeness|nearness|as spread as|equal keys|what followed it|another A|laboratory rate|left out|throw it away|"
      "keep it for later|look at it|use it|start anew|do not quit|let go|put away|may see|as many .* as keys)\\b",
      std::regex::icase);
  std::smatch found;
  return std::regex_search(text, found, words) ? found.str() : "";
}

}  // namespace support
