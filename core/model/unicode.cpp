#include "core/model/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "core/base/utf8.hpp"

namespace core::tokenizers {
namespace {

std::string in_form(std::string_view text, NormalForm form) {
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

/// Whether a character begins what is normalised on its own, after what has been gathered before it.
bool begins_sequence(std::string_view gathered, char32_t c, std::string_view character, NormalForm form) {
  if (gathered.empty() || is_ascii(c)) return true;
  if (utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class != 0) return false;
  const std::string together = std::string(gathered) + std::string(character);
  return in_form(together, form) == in_form(gathered, form) + in_form(character, form);
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

}  // namespace

AlignedText normalised(const AlignedText& source, NormalForm form) {
  if (std::ranges::all_of(source.text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return source;
  AlignedText result{{}, {}, source.begin};
  std::string gathered;
  for (std::size_t at = 0; at < source.text.size();) {
    const auto c =
        text::first_character(std::string_view(source.text).substr(at)).value_or(text::Character{});
    const std::string character = source.text.substr(at, c.size);
    if (begins_sequence(gathered, c.value, character, form) && at > 0) {
      result.append(in_form(gathered, form), source.ends[at - 1]);
      gathered.clear();
    }
    gathered += character;
    at += c.size;
  }
  if (!gathered.empty()) result.append(in_form(gathered, form), source.ends.back());
  return result;
}

std::u32string lower_of(char32_t c) {
  if (c == 0x130) return {U'i', char32_t{0x307}};  // the only one that becomes two
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

}  // namespace core::tokenizers
