#include "core/model/dialect.hpp"

#include <algorithm>
#include <string_view>

namespace core::tokenizers {
namespace {

// Each ends in a property, so that a "-" behind it begins no range.

/// Unicode's White_Space; PCRE2's own \s has U+180E besides, which is none since Unicode 6.3.
constexpr const char* white_space = R"(\x09-\x0d\x85\p{Z})";
/// Unicode's Alphabetic, of which circled letters are no letters, with marks, digits and what joins words.
/// PCRE2's own \w has marks from 10.43 on alone.
constexpr const char* words =
    R"(\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})";

class Translation {
 public:
  Translation(std::string_view pattern, Dialect dialect)
      : pattern_(pattern), in_brackets_(words), alone_(words) {
    // Rust has what joins or parts letters; Oniguruma ², ³, ¹, ¼, ½ and ¾, by a table that brackets do not
    // ask.
    if (dialect == Dialect::rust)
      in_brackets_ = alone_ = R"(\x{200c}\x{200d})" + alone_;
    else
      alone_ = R"(\xb2\xb3\xb9\xbc-\xbe)" + alone_;
  }

  std::string all() {
    while (at_ < pattern_.size())
      if (pattern_[at_] == '[')
        brackets();
      else if (pattern_[at_] == '\\' && at_ + 1 < pattern_.size())
        escape();
      else
        result_ += pattern_[at_++];
    return result_;
  }

 private:
  void escape() {
    const std::string word = "[" + alone_ + "]", before = "(?<=" + word + ")", behind = "(?=" + word + ")",
                      not_before = "(?<!" + word + ")", not_behind = "(?!" + word + ")";
    switch (pattern_[at_ + 1]) {
      case 'w':
        result_ += word;
        break;
      case 'W':
        result_ += "[^" + alone_ + "]";
        break;
      case 's':
        result_ += "[" + std::string(white_space) + "]";
        break;
      case 'S':
        result_ += "[^" + std::string(white_space) + "]";
        break;
      case 'b':
        result_ += "(?:" + before + not_behind + "|" + not_before + behind + ")";
        break;
      case 'B':
        result_ += "(?:" + before + behind + "|" + not_before + not_behind + ")";
        break;
      default:
        result_ += pattern_.substr(at_, 2);
    }
    at_ += 2;
  }

  /// Sets in brackets; what is not in a set has no place among them and stands beside.
  void brackets() {
    const std::size_t begin = at_++;
    const bool is_negated = at_ < pattern_.size() && pattern_[at_] == '^';
    if (is_negated) ++at_;
    std::string inside, opposites;
    for (bool is_first = true; at_ < pattern_.size() && (is_first || pattern_[at_] != ']'); is_first = false)
      inside += part_of_brackets(is_negated, opposites);
    if (at_++ >= pattern_.size()) {  // without an end, which PCRE2 says
      result_ += pattern_.substr(begin);
    } else if (opposites.empty()) {
      result_ += (is_negated ? "[^" : "[") + inside + "]";
    } else if (is_negated) {
      result_ += "(?:" + (inside.empty() ? "" : "(?![" + inside + "])") + opposites + "(?s:.))";
    } else {
      result_ += "(?:" + (inside.empty() ? "" : "[" + inside + "]|") + opposites.substr(1) + ")";
    }
  }

  std::string part_of_brackets(bool is_negated, std::string& opposites) {
    const std::size_t begin = at_;
    if (pattern_.substr(at_, 2) == "[:") {  // [:alpha:], [:^alpha:]
      const std::size_t end = pattern_.find_first_not_of("^abcdefghijklmnopqrstuvwxyz", at_ + 2);
      if (pattern_.substr(std::min(end, pattern_.size()), 2) == ":]") {
        at_ = end + 2;
        return std::string(pattern_.substr(begin, at_ - begin));
      }
    }
    if (pattern_[at_] != '\\' || at_ + 1 == pattern_.size()) return std::string(1, pattern_[at_++]);
    at_ += 2;
    switch (pattern_[begin + 1]) {
      case 'w':
        return in_brackets_;
      case 's':
        return white_space;
      case 'W':
        opposites += opposite(in_brackets_, is_negated);
        return "";
      case 'S':
        opposites += opposite(white_space, is_negated);
        return "";
      default:
        return std::string(pattern_.substr(begin, 2));
    }
  }

  /// One that is not in the set, as one of several; or, where the brackets are negated, the condition that it
  /// is in it.
  static std::string opposite(const std::string& set, bool is_negated) {
    return is_negated ? "(?=[" + set + "])" : "|[^" + set + "]";
  }

  std::string_view pattern_;
  std::string in_brackets_, alone_, result_;
  std::size_t at_ = 0;
};

}  // namespace

std::string for_pcre2(const std::string& pattern, Dialect dialect) {
  return Translation(pattern, dialect).all();
}

}  // namespace core::tokenizers
