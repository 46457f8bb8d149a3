#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/model/regex.hpp"

#include <pcre2.h>

#include "core/base/error.hpp"

namespace core::tokenizers {

Regex::Regex(const std::string& pattern, const std::string& place, Dialect dialect) {
  const std::string translated = for_pcre2(pattern, dialect);
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
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where it cannot, the pattern is interpreted
  code_ = std::shared_ptr<const void>(code, [](pcre2_code* owned) { pcre2_code_free(owned); });
}

std::vector<Span> Regex::matches(std::string_view text) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
      pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
  std::vector<Span> found;
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

}  // namespace core::tokenizers
