#include "core/model/pre_tokenizers.hpp"

#include <algorithm>
#include <utility>

#include "core/base/utf8.hpp"
#include "core/model/byte_level.hpp"
#include "core/model/unicode.hpp"

namespace core::tokenizers {

const char* const gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

/// A stretch of a text, and whether it is what the text is cut at.
struct Stretch {
  Span span;
  bool is_delimiter;
};

std::vector<Stretch> stretches_of(const CutAt& cut, const std::string& text) {
  std::vector<Stretch> all;
  std::size_t at = 0;
  for (const Span& match : cut.pattern.matches(text)) {
    if (match.begin > at) all.push_back({{at, match.begin}, cut.inverted});
    all.push_back({match, !cut.inverted});
    at = match.end;
  }
  if (at < text.size()) all.push_back({{at, text.size()}, cut.inverted});
  return all;
}

std::vector<Span> spans_of(const std::vector<Stretch>& all, Delimiters delimiters) {
  std::vector<Span> spans;
  bool before = false;  // whether what came last was a delimiter
  bool opened = false;  // of merged_with_next: a delimiter waits for what follows it
  for (const auto& [span, is_delimiter] : all) {
    const bool joins =
        !spans.empty() && ((delimiters == Delimiters::merged_with_previous && is_delimiter && !before) ||
                           (delimiters == Delimiters::merged_with_next && !is_delimiter && opened) ||
                           (delimiters == Delimiters::contiguous && is_delimiter == before));
    if (joins)
      spans.back().end = span.end;
    else if (delimiters != Delimiters::removed || !is_delimiter)
      spans.push_back(span);
    before = opened = is_delimiter;
  }
  return spans;
}

struct Cutting {
  std::vector<AlignedText> words;

  template <class Cut>
  void replace_each(Cut cut) {
    std::vector<AlignedText> next;
    for (const AlignedText& word : words) cut(word, next);
    words = std::move(next);
  }

  void operator()(const CutAt& step) {
    replace_each([&](const AlignedText& word, std::vector<AlignedText>& next) {
      for (const Span& span : spans_of(stretches_of(step, word.text), step.delimiters))
        next.push_back(word.part(span.begin, span.end - span.begin));
    });
  }
  void operator()(const ToBytes& step) {
    replace_each([&](const AlignedText& word, std::vector<AlignedText>& next) {
      AlignedText bytes{{}, {}, word.begin};
      if (step.adds_blank && !word.text.starts_with(' '))
        bytes.append(characters_of_bytes()[' '], word.begin);
      for (std::size_t k = 0; k < word.text.size(); ++k)
        bytes.append(characters_of_bytes()[static_cast<unsigned char>(word.text[k])], word.ends[k]);
      next.push_back(std::move(bytes));
    });
  }
  void operator()(const ToMetaspace& step) {
    replace_each([&](const AlignedText& word, std::vector<AlignedText>& next) {
      AlignedText written{{}, {}, word.begin};
      using enum ToMetaspace::InFront;
      const bool asks = step.in_front == always || (step.in_front == first && word.begin == 0);
      if (asks && !word.text.starts_with(' ') && !word.text.starts_with(step.character))
        written.append(step.character, word.begin);
      for (std::size_t k = 0; k < word.text.size(); ++k)
        written.append(word.text[k] == ' ' ? step.character : word.text.substr(k, 1), word.ends[k]);
      if (!step.cuts) return next.push_back(std::move(written));
      std::size_t at = 0;
      for (std::size_t k = 1; k <= written.text.size(); ++k)
        if (k == written.text.size() || written.text.compare(k, step.character.size(), step.character) == 0) {
          next.push_back(written.part(at, k - at));
          at = k;
        }
    });
  }
  void operator()(const CutForBert&) {
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

std::vector<AlignedText> words_of(const std::vector<PreTokenizer>& steps, AlignedText text) {
  Cutting cutting;
  if (!text.empty()) cutting.words.push_back(std::move(text));
  for (const PreTokenizer& step : steps) {
    std::visit(cutting, step);
    std::erase_if(cutting.words, [](const AlignedText& word) { return word.empty(); });
    std::size_t n_bytes = 0;
    for (const AlignedText& word : cutting.words) n_bytes += word.text.size();
    require_length(n_bytes);
  }
  return std::move(cutting.words);
}

}  // namespace core::tokenizers
