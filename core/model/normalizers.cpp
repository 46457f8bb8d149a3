#include "core/model/normalizers.hpp"

#include <utility>

#include "core/base/utf8.hpp"

namespace core::tokenizers {
namespace {

/// What put(character, its bytes, end in the source, result) makes of every character.
template <class Put>
AlignedText mapped(const AlignedText& source, Put put) {
  AlignedText result{{}, {}, source.begin};
  for (const text::CodePoint& c : text::code_points(source.text))
    put(c.value, std::string_view(source.text).substr(c.at, c.size), source.ends[c.at + c.size - 1], result);
  return result;
}

/// Without the characters that are such marks: is_mark(c).
AlignedText without_marks(const AlignedText& source, bool (*is_of_those)(char32_t)) {
  return mapped(source, [=](char32_t c, std::string_view bytes, std::size_t end, AlignedText& result) {
    if (!is_of_those(c)) result.append(bytes, end);
  });
}

AlignedText lowered(const AlignedText& source) {
  return mapped(source, [](char32_t c, std::string_view, std::size_t end, AlignedText& result) {
    std::string lower;
    for (const char32_t part : lower_of(c)) text::append_character(lower, part);
    result.append(lower, end);
  });
}

AlignedText cleaned(const AlignedText& source) {
  return mapped(source, [](char32_t c, std::string_view bytes, std::size_t end, AlignedText& result) {
    if (c == 0 || c == 0xFFFD || is_control(c)) return;
    result.append(text::is_space(c) ? " " : bytes, end);
  });
}

AlignedText with_chinese_apart(const AlignedText& source) {
  return mapped(source, [](char32_t c, std::string_view bytes, std::size_t end, AlignedText& result) {
    const std::string blank = is_chinese(c) ? " " : "";
    result.append(blank + std::string(bytes) + blank, end);
  });
}

struct Step {
  AlignedText text;

  void operator()(const ToForm& step) { text = normalised(text, step.form); }
  void operator()(const ToLower&) { text = lowered(text); }
  void operator()(const StripAccents&) { text = without_marks(text, is_mark); }
  void operator()(const CleanForBert& step) {
    if (step.clean) text = cleaned(text);
    if (step.chinese) text = with_chinese_apart(text);
    if (step.accents) text = without_marks(normalised(text, NormalForm::nfd), is_nonspacing_mark);
    if (step.lower) text = lowered(text);
  }
  void operator()(const Prepend& step) {
    if (text.empty()) return;
    AlignedText longer{{}, {}, text.begin};
    longer.append(step.text, text.begin);
    longer.text += text.text;
    longer.ends.insert(longer.ends.end(), text.ends.begin(), text.ends.end());
    text = std::move(longer);
  }
  void operator()(const ReplaceAll& step) {
    AlignedText result{{}, {}, text.begin};
    std::size_t at = 0;
    const auto keep = [&](std::size_t end) {
      for (; at < end; ++at) result.append(std::string_view(text.text).substr(at, 1), text.ends[at]);
    };
    for (const Span& match : step.pattern.matches(text.text)) {
      keep(match.begin);
      result.append(step.by, text.ends[match.end - 1]);
      at = match.end;
    }
    keep(text.text.size());
    text = std::move(result);
  }
  void operator()(const StripBlanks& step) {
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

AlignedText normalised(const std::vector<Normalizer>& steps, AlignedText text) {
  Step step{std::move(text)};
  for (const Normalizer& each : steps) std::visit(step, each);
  return std::move(step.text);
}

}  // namespace core::tokenizers
