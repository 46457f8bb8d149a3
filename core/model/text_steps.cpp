#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/model/text_steps.hpp"

#include <fmt/core.h>
#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"

namespace core::tokenizers {
namespace {

constexpr std::size_t max_text_bytes = std::size_t{1} << 22;

void require_length(std::size_t n_bytes) {
  if (n_bytes > max_text_bytes)
    throw Error(fmt::format(
        "the text cannot be cut into tokens: the steps of the tokenizer make more than {} bytes of it",
        max_text_bytes));
}

}  // namespace

void AlignedText::append(std::string_view bytes, std::size_t end) {
  require_length(text.size() + bytes.size());
  text += bytes;
  ends.insert(ends.end(), bytes.size(), end);
}

AlignedText AlignedText::part(std::size_t from, std::size_t count) const {
  const auto first = ends.begin() + static_cast<std::ptrdiff_t>(from);
  return {text.substr(from, count),
          {first, first + static_cast<std::ptrdiff_t>(count)},
          from == 0 ? begin : ends[from - 1]};
}

AlignedText align_text(std::string_view text, std::size_t begin) {
  AlignedText result{std::string(text), {}, begin};
  result.ends.reserve(text.size());
  for (std::size_t k = 1; k <= text.size(); ++k) result.ends.push_back(begin + k);
  return result;
}

namespace {

// Each ends in a property, so that a "-" after it begins no range.

/// Unicode's White_Space; PCRE2's \s also has U+180E, which is no white space since Unicode 6.3.
constexpr const char* white_space = R"(\x09-\x0d\x85\p{Z})";
/// Unicode's Alphabetic, which includes circled letters unlike \p{L}, with marks, digits and connectors.
/// PCRE2's own \w has marks only from 10.43 on.
constexpr const char* word_pattern =
    R"(\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})";

class PatternTranslation {
 public:
  PatternTranslation(std::string_view pattern, Dialect dialect)
      : pattern_(pattern), in_brackets_(word_pattern), alone_(word_pattern) {
    // Rust adds the zero-width non-joiner and joiner; Oniguruma adds ², ³, ¹, ¼, ½ and ¾, except in brackets.
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
    const std::pair<char, std::string> spelled_out[]{
        {'w', word},
        {'W', "[^" + alone_ + "]"},
        {'s', "[" + std::string(white_space) + "]"},
        {'S', "[^" + std::string(white_space) + "]"},
        {'b', "(?:" + before + not_behind + "|" + not_before + behind + ")"},
        {'B', "(?:" + before + behind + "|" + not_before + not_behind + ")"}};
    const auto* found =
        std::ranges::find(spelled_out, pattern_[at_ + 1], &std::pair<char, std::string>::first);
    result_ += found == std::end(spelled_out) ? pattern_.substr(at_, 2) : std::string_view(found->second);
    at_ += 2;
  }

  /// Translates sets in brackets; complements of sets cannot be inside and become alternatives.
  void brackets() {
    const std::size_t begin = at_++;
    const bool is_negated = at_ < pattern_.size() && pattern_[at_] == '^';
    if (is_negated) ++at_;
    std::string inside, opposites;
    for (bool is_first = true; at_ < pattern_.size() && (is_first || pattern_[at_] != ']'); is_first = false)
      inside += part_of_brackets(is_negated, opposites);
    if (at_++ >= pattern_.size()) {  // not terminated, which PCRE2 reports
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

  /// Returns an alternative for a character outside the set; or, in negated brackets, a lookahead for one
  /// that is inside.
  static std::string opposite(const std::string& set, bool is_negated) {
    return is_negated ? "(?=[" + set + "])" : "|[^" + set + "]";
  }

  std::string_view pattern_;
  std::string in_brackets_, alone_, result_;
  std::size_t at_ = 0;
};

}  // namespace

Regex::Regex(const std::string& pattern, const std::string& place, Dialect dialect) {
  const std::string translated = PatternTranslation(pattern, dialect).all();
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
  if (!code) {
    PCRE2_UCHAR words[128];
    pcre2_get_error_message(error, words, sizeof words);
    throw Error(place + "expected a regular expression, got \"" + pattern +
                "\": " + reinterpret_cast<const char*>(words));
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // if that fails, the pattern is interpreted
  code_ = std::shared_ptr<const void>(code, [](pcre2_code* owned) { pcre2_code_free(owned); });
}

std::vector<ByteSpan> Regex::matches(std::string_view text) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
      pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
  std::vector<ByteSpan> found;
  for (std::size_t at = 0; at < text.size();) {
    const int count = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  at == 0 ? 0 : PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0) throw Error("the text cannot be cut into words: its pattern takes too long");
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(data.get());
    if (place[1] > place[0]) found.push_back({place[0], place[1]});
    at = place[1];
    if (place[1] == place[0]) do
        ++at;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  }
  return found;
}

std::string escaped_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == ' ' || c == '_' || static_cast<unsigned char>(c) >= 0x80;
    if (!is_plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

namespace {

constexpr bool is_printable_byte(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteTable {
  std::array<std::string, 256> characters;
  std::array<std::int16_t, 512> bytes;  // -1 for a character that represents no byte

  ByteTable() {
    bytes.fill(-1);
    char32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t c = is_printable_byte(byte) ? byte : next++;
      text::append_character(characters[byte], c);
      bytes[c] = static_cast<std::int16_t>(byte);
    }
  }
};

const ByteTable& byte_table() {
  static const ByteTable table;
  return table;
}

std::optional<std::uint8_t> byte_of_character(char32_t c) {
  if (c >= 512 || byte_table().bytes[c] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(byte_table().bytes[c]);
}

}  // namespace

const std::array<std::string, 256>& bytes_to_unicode() {
  return byte_table().characters;
}

std::string bytes_of_piece(std::string_view piece) {
  std::string bytes;
  while (const auto c = text::first_character(piece)) {
    if (const auto byte = byte_of_character(c->value))
      bytes += static_cast<char>(*byte);
    else
      bytes += piece.substr(0, c->size);
    piece.remove_prefix(c->size);
  }
  return bytes;
}

std::optional<std::uint8_t> byte_of_fallback(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const auto end = piece.data() + 5;
  if (std::from_chars(piece.data() + 3, end, byte, 16).ptr != end) return std::nullopt;
  return static_cast<std::uint8_t>(byte);
}

std::string fallback_piece(std::uint8_t byte) {
  constexpr const char* digits = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

namespace {

std::string to_normal_form(std::string_view text, NormalForm form) {
  static constexpr std::array options{UTF8PROC_STABLE | UTF8PROC_COMPOSE,
                                      UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
                                      UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                                      UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &made,
                                 static_cast<utf8proc_option_t>(options[static_cast<std::size_t>(form)]));
  if (size < 0) return std::string(text);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owned(made, std::free);
  return {reinterpret_cast<const char*>(made), static_cast<std::size_t>(size)};
}

bool is_ascii(char32_t c) {
  return c < 0x80;
}

/// Returns whether a character begins a sequence that normalizes independently of the one gathered before.
bool begins_sequence(std::string_view gathered, char32_t c, std::string_view character, NormalForm form) {
  if (gathered.empty() || is_ascii(c)) return true;
  if (utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class != 0) return false;
  const std::string together = std::string(gathered) + std::string(character);
  return to_normal_form(together, form) == to_normal_form(gathered, form) + to_normal_form(character, form);
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

/// Returns the text in a normal form; each byte of a composed or decomposed sequence represents all of it.
AlignedText normalize(const AlignedText& source, NormalForm form) {
  if (std::ranges::all_of(source.text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return source;
  AlignedText result{{}, {}, source.begin};
  std::string gathered;
  for (std::size_t at = 0; at < source.text.size();) {
    const auto c =
        text::first_character(std::string_view(source.text).substr(at)).value_or(text::Character{});
    const std::string character = source.text.substr(at, c.size);
    if (begins_sequence(gathered, c.value, character, form) && at > 0) {
      result.append(to_normal_form(gathered, form), source.ends[at - 1]);
      gathered.clear();
    }
    gathered += character;
    at += c.size;
  }
  if (!gathered.empty()) result.append(to_normal_form(gathered, form), source.ends.back());
  return result;
}

std::u32string lower_of(char32_t c) {
  if (c == 0x130) return {U'i', char32_t{0x307}};  // the only character that becomes two
  return {static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)))};
}

bool is_nonspacing_mark(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_mark(char32_t c) {
  const auto of = category(c);
  return of >= UTF8PROC_CATEGORY_MN && of <= UTF8PROC_CATEGORY_ME;
}

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const auto of = category(c);
  return of == UTF8PROC_CATEGORY_CC || of == UTF8PROC_CATEGORY_CF || of == UTF8PROC_CATEGORY_CO ||
         of == UTF8PROC_CATEGORY_CN || of == UTF8PROC_CATEGORY_CS;
}

bool is_punctuation_of_bert(char32_t c) {
  if (is_ascii(c))
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const auto of = category(c);
  return of >= UTF8PROC_CATEGORY_PC && of <= UTF8PROC_CATEGORY_PO;
}

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/// Returns the results of put(character, its bytes, end in the source, result) for every character.
template <class Put>
AlignedText map_characters(const AlignedText& source, Put put) {
  AlignedText result{{}, {}, source.begin};
  for (const text::CodePoint& c : text::code_points(source.text))
    put(c.value, std::string_view(source.text).substr(c.at, c.size), source.ends[c.at + c.size - 1], result);
  return result;
}

/// Removes the characters for which is_removed() holds.
AlignedText remove_characters(const AlignedText& source, bool (*is_removed)(char32_t)) {
  return map_characters(source,
                        [=](char32_t c, std::string_view bytes, std::size_t end, AlignedText& result) {
                          if (!is_removed(c)) result.append(bytes, end);
                        });
}

AlignedText to_lower(const AlignedText& source) {
  return map_characters(source, [](char32_t c, std::string_view, std::size_t end, AlignedText& result) {
    std::string lower;
    for (const char32_t part : lower_of(c)) text::append_character(lower, part);
    result.append(lower, end);
  });
}

AlignedText remove_controls(const AlignedText& source) {
  return map_characters(source, [](char32_t c, std::string_view bytes, std::size_t end, AlignedText& result) {
    if (c == 0 || c == 0xFFFD || is_control(c)) return;
    result.append(text::is_space(c) ? " " : bytes, end);
  });
}

AlignedText isolate_chinese(const AlignedText& source) {
  return map_characters(source, [](char32_t c, std::string_view bytes, std::size_t end, AlignedText& result) {
    const std::string space = is_chinese(c) ? " " : "";
    result.append(space + std::string(bytes) + space, end);
  });
}

struct NormalizerVisitor {
  AlignedText text;

  void operator()(const UnicodeNormalize& step) { text = normalize(text, step.form); }
  void operator()(const Lowercase&) { text = to_lower(text); }
  void operator()(const StripAccents&) { text = remove_characters(text, is_mark); }
  void operator()(const BertNormalizer& step) {
    if (step.clean) text = remove_controls(text);
    if (step.isolates_chinese) text = isolate_chinese(text);
    if (step.strips_accents) text = remove_characters(normalize(text, NormalForm::nfd), is_nonspacing_mark);
    if (step.lower) text = to_lower(text);
  }
  void operator()(const Prepend& step) {
    if (text.empty()) return;
    AlignedText longer{{}, {}, text.begin};
    longer.append(step.text, text.begin);
    longer.text += text.text;
    longer.ends.insert(longer.ends.end(), text.ends.begin(), text.ends.end());
    text = std::move(longer);
  }
  void operator()(const Replace& step) {
    AlignedText result{{}, {}, text.begin};
    std::size_t at = 0;
    const auto keep = [&](std::size_t end) {
      for (; at < end; ++at) result.append(std::string_view(text.text).substr(at, 1), text.ends[at]);
    };
    for (const ByteSpan& match : step.pattern.matches(text.text)) {
      keep(match.begin);
      result.append(step.by, text.ends[match.end - 1]);
      at = match.end;
    }
    keep(text.text.size());
    text = std::move(result);
  }
  void operator()(const Strip& step) {
    const auto all = text::code_points(text.text);
    std::size_t first = 0, last = all.size();
    while (step.left && first < last && text::is_space(all[first].value)) ++first;
    while (step.right && last > first && text::is_space(all[last - 1].value)) --last;
    if (first == last) {
      text = {{}, {}, text.begin};
      return;
    }
    text = text.part(all[first].at, all[last - 1].at + all[last - 1].size - all[first].at);
  }
};

}  // namespace

AlignedText normalize(const std::vector<Normalizer>& steps, AlignedText text) {
  NormalizerVisitor step{std::move(text)};
  for (const Normalizer& each : steps) std::visit(step, each);
  return std::move(step.text);
}

const char* const gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

/// A part of a text, and whether it is a delimiter.
struct Segment {
  ByteSpan span;
  bool is_delimiter;
};

std::vector<Segment> split_segments(const RegexSplit& split, const std::string& text) {
  std::vector<Segment> all;
  std::size_t at = 0;
  for (const ByteSpan& match : split.pattern.matches(text)) {
    if (match.begin > at) all.push_back({{at, match.begin}, split.inverted});
    all.push_back({match, !split.inverted});
    at = match.end;
  }
  if (at < text.size()) all.push_back({{at, text.size()}, split.inverted});
  return all;
}

std::vector<ByteSpan> merge_segments(const std::vector<Segment>& all, DelimiterBehavior delimiters) {
  std::vector<ByteSpan> spans;
  bool before = false;  // whether the previous stretch was a delimiter
  bool opened = false;  // of merged_with_next: a delimiter may still take the next stretch
  for (const auto& [span, is_delimiter] : all) {
    const bool joins = !spans.empty() &&
                       ((delimiters == DelimiterBehavior::merged_with_previous && is_delimiter && !before) ||
                        (delimiters == DelimiterBehavior::merged_with_next && !is_delimiter && opened) ||
                        (delimiters == DelimiterBehavior::contiguous && is_delimiter == before));
    if (joins)
      spans.back().end = span.end;
    else if (delimiters != DelimiterBehavior::removed || !is_delimiter)
      spans.push_back(span);
    before = opened = is_delimiter;
  }
  return spans;
}

struct PreTokenizerVisitor {
  std::vector<AlignedText> words;

  template <class Split>
  void replace_each(Split split) {
    std::vector<AlignedText> next;
    for (const AlignedText& word : words) split(word, next);
    words = std::move(next);
  }

  void operator()(const RegexSplit& step) {
    replace_each([&](const AlignedText& word, std::vector<AlignedText>& next) {
      for (const ByteSpan& span : merge_segments(split_segments(step, word.text), step.delimiters))
        next.push_back(word.part(span.begin, span.end - span.begin));
    });
  }
  void operator()(const ByteLevel& step) {
    replace_each([&](const AlignedText& word, std::vector<AlignedText>& next) {
      AlignedText bytes{{}, {}, word.begin};
      if (step.adds_space && !word.text.starts_with(' ')) bytes.append(bytes_to_unicode()[' '], word.begin);
      for (std::size_t k = 0; k < word.text.size(); ++k)
        bytes.append(bytes_to_unicode()[static_cast<unsigned char>(word.text[k])], word.ends[k]);
      next.push_back(std::move(bytes));
    });
  }
  void operator()(const Metaspace& step) {
    replace_each([&](const AlignedText& word, std::vector<AlignedText>& next) {
      AlignedText written{{}, {}, word.begin};
      using enum Metaspace::Leading;
      const bool needs_leading = step.leading == always || (step.leading == first && word.begin == 0);
      if (needs_leading && !word.text.starts_with(' ') && !word.text.starts_with(step.character))
        written.append(step.character, word.begin);
      for (std::size_t k = 0; k < word.text.size(); ++k)
        written.append(word.text[k] == ' ' ? step.character : word.text.substr(k, 1), word.ends[k]);
      if (!step.splits) return next.push_back(std::move(written));
      std::size_t at = 0;
      for (std::size_t k = 1; k <= written.text.size(); ++k)
        if (k == written.text.size() || written.text.compare(k, step.character.size(), step.character) == 0) {
          next.push_back(written.part(at, k - at));
          at = k;
        }
    });
  }
  void operator()(const BertPreTokenizer&) {
    replace_each([](const AlignedText& word, std::vector<AlignedText>& next) {
      std::size_t from = 0;
      const auto end_word = [&](std::size_t end) {
        if (end > from) next.push_back(word.part(from, end - from));
      };
      for (const text::CodePoint& c : text::code_points(word.text)) {
        if (!text::is_space(c.value) && !is_punctuation_of_bert(c.value)) continue;
        end_word(c.at);
        from = c.at + c.size;
        if (!text::is_space(c.value)) next.push_back(word.part(c.at, c.size));
      }
      end_word(word.text.size());
    });
  }
};

}  // namespace

std::vector<AlignedText> pre_tokenize(const std::vector<PreTokenizer>& steps, AlignedText text) {
  PreTokenizerVisitor splitting;
  if (!text.empty()) splitting.words.push_back(std::move(text));
  for (const PreTokenizer& step : steps) {
    std::visit(splitting, step);
    std::erase_if(splitting.words, [](const AlignedText& word) { return word.empty(); });
    std::size_t n_bytes = 0;
    for (const AlignedText& word : splitting.words) n_bytes += word.text.size();
    require_length(n_bytes);
  }
  return std::move(splitting.words);
}

namespace {

/// Returns whether the character at a byte of a text is part of a word.
bool is_word_at(const Regex& word, std::string_view text, std::size_t at) {
  const std::size_t end = std::min(text.size(), at + 4);
  const auto first = text::first_character(text.substr(at, end - at));
  return first && !word.matches(text.substr(at, first->size)).empty();
}

std::size_t begin_of_last_character(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && !text::is_character_start(text[end]));
  return end;
}

bool is_whole_word(std::string_view text, const ByteSpan& span) {
  static const Regex word(R"(\w)", "", Dialect::rust);
  const bool before = span.begin > 0 && is_word_at(word, text, begin_of_last_character(text, span.begin));
  return !before && !is_word_at(word, text, span.end);
}

bool is_space_at(std::string_view text, std::size_t at) {
  const auto c = text::first_character(text.substr(at));
  return c && text::is_space(c->value);
}

void absorb_spaces(const AddedToken& token, std::string_view text, std::size_t min_begin, ByteSpan& span) {
  while (token.absorbs_left_space && span.begin > min_begin) {
    const std::size_t before = begin_of_last_character(text, span.begin);
    if (!is_space_at(text, before)) break;
    span.begin = before;
  }
  while (token.absorbs_right_space && is_space_at(text, span.end))
    span.end += text::first_character(text.substr(span.end))->size;
}

}  // namespace

std::vector<FoundToken> find_added(const std::vector<AddedToken>& tokens, std::string_view text) {
  std::array<std::vector<const AddedToken*>, 256> by_first_byte;
  for (const AddedToken& token : tokens)
    if (!token.text.empty()) by_first_byte[static_cast<unsigned char>(token.text[0])].push_back(&token);
  for (auto& list : by_first_byte)
    std::ranges::stable_sort(
        list, [](const AddedToken* a, const AddedToken* b) { return a->text.size() > b->text.size(); });
  std::vector<FoundToken> found;
  std::size_t min_begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto& list = by_first_byte[static_cast<unsigned char>(text[at])];
    const auto match = std::ranges::find_if(
        list, [&](const AddedToken* token) { return text.substr(at).starts_with(token->text); });
    if (match == list.end()) {
      ++at;
      continue;
    }
    ByteSpan span{at, at + (*match)->text.size()};
    at = span.end;
    if ((*match)->is_single_word && !is_whole_word(text, span)) continue;
    absorb_spaces(**match, text, min_begin, span);
    found.push_back({span, (*match)->id});
    at = min_begin = span.end;
  }
  return found;
}

}  // namespace core::tokenizers
