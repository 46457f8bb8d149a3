#include "core/model/added_tokens.hpp"

#include <algorithm>
#include <array>

#include "core/base/utf8.hpp"

namespace core::tokenizers {
namespace {

/// Whether a word goes on from one side of a place in a text to the other.
bool is_word_at(const Regex& word, std::string_view text, std::size_t at) {
  const std::size_t end = std::min(text.size(), at + 4);
  const auto first = text::first_character(text.substr(at, end - at));
  return first && !word.matches(text.substr(at, first->size)).empty();
}

std::size_t begin_of_last_character(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && !text::starts_character(text[end]));
  return end;
}

bool stands_alone(std::string_view text, const Span& span) {
  static const Regex word(R"(\w)", "", Dialect::rust);
  const bool before = span.begin > 0 && is_word_at(word, text, begin_of_last_character(text, span.begin));
  return !before && !is_word_at(word, text, span.end);
}

bool is_blank_at(std::string_view text, std::size_t at) {
  const auto c = text::first_character(text.substr(at));
  return c && text::is_space(c->value);
}

void take_blanks(const AddedToken& token, std::string_view text, std::size_t least, Span& span) {
  while (token.takes_blanks_left && span.begin > least) {
    const std::size_t before = begin_of_last_character(text, span.begin);
    if (!is_blank_at(text, before)) break;
    span.begin = before;
  }
  while (token.takes_blanks_right && is_blank_at(text, span.end))
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
  std::size_t least = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto& list = by_first_byte[static_cast<unsigned char>(text[at])];
    const auto match = std::ranges::find_if(
        list, [&](const AddedToken* token) { return text.substr(at).starts_with(token->text); });
    if (match == list.end()) {
      ++at;
      continue;
    }
    Span span{at, at + (*match)->text.size()};
    at = span.end;
    if ((*match)->is_single_word && !stands_alone(text, span)) continue;
    take_blanks(**match, text, least, span);
    found.push_back({span, (*match)->id});
    at = least = span.end;
  }
  return found;
}

}  // namespace core::tokenizers
