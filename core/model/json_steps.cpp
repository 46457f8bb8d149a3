#include <array>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/model/tokenizer_json.hpp"

namespace core::tokenizers {
namespace {

using formats::Json;
using formats::Word;

bool flag(const Json& place, const char* key, bool otherwise) {
  const auto member = place.member(key);
  return member && !member->is_null() ? member->boolean() : otherwise;
}

std::string type_of_step(const Json& place) {
  return place.required("type").text();
}

/// A "pattern": {"String": TEXT} or {"Regex": PATTERN}.
Regex pattern_of(const Json& place) {
  if (const auto regex = place.member("Regex")) return Regex(regex->text(), regex->place());
  return Regex(escaped_pattern(place.required("String").text()), place.place());
}

CutAt cut_at(const char* pattern, Delimiters delimiters) {
  return {Regex(pattern, ""), delimiters};
}

Delimiters delimiters_of(const Json& place) {
  static constexpr std::array words{
      Word{"Removed", Delimiters::removed}, Word{"Isolated", Delimiters::isolated},
      Word{"MergedWithPrevious", Delimiters::merged_with_previous},
      Word{"MergedWithNext", Delimiters::merged_with_next}, Word{"Contiguous", Delimiters::contiguous}};
  const auto behaviour = place.member("behavior");
  return behaviour ? behaviour->word(words) : Delimiters::isolated;
}

ToMetaspace metaspace_of(const Json& place) {
  using enum ToMetaspace::InFront;
  static constexpr std::array words{Word{"always", always}, Word{"never", never}, Word{"first", first}};
  const Json replacement = place.required("replacement");
  if (text::character_count(replacement.text()) != 1) replacement.fail("one character");
  ToMetaspace step{replacement.text()};
  if (const auto scheme = place.member("prepend_scheme"))
    step.in_front = scheme->word(words);
  else
    step.in_front = flag(place, "add_prefix_space", true) ? always : never;
  step.cuts = flag(place, "split", true);
  return step;
}

void add_normalizer(const Json& place, std::vector<Normalizer>& steps) {
  const std::string type = type_of_step(place);
  if (type == "Sequence") {
    for (const Json& item : place.required("normalizers").items_if_any("a list of normalizers"))
      add_normalizer(item, steps);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    static constexpr std::array forms{Word{"NFC", NormalForm::nfc}, Word{"NFD", NormalForm::nfd},
                                      Word{"NFKC", NormalForm::nfkc}, Word{"NFKD", NormalForm::nfkd}};
    steps.push_back(ToForm{place.required("type").word(forms)});
  } else if (type == "Lowercase") {
    steps.push_back(ToLower{});
  } else if (type == "StripAccents") {
    steps.push_back(StripAccents{});
  } else if (type == "BertNormalizer") {
    const bool lower = flag(place, "lowercase", true);
    steps.push_back(CleanForBert{flag(place, "clean_text", true), flag(place, "handle_chinese_chars", true),
                                 flag(place, "strip_accents", lower), lower});
  } else if (type == "Prepend") {
    steps.push_back(Prepend{place.required("prepend").text()});
  } else if (type == "Replace") {
    steps.push_back(ReplaceAll{pattern_of(place.required("pattern")), place.required("content").text()});
  } else if (type == "Strip") {
    steps.push_back(StripBlanks{flag(place, "strip_left", true), flag(place, "strip_right", true)});
  } else {
    place.required("type").fail("a normalizer that is known here");
  }
}

void add_pre_tokenizer(const Json& place, std::vector<PreTokenizer>& steps) {
  const std::string type = type_of_step(place);
  if (type == "Sequence") {
    for (const Json& item : place.required("pretokenizers").items_if_any("a list of pre-tokenizers"))
      add_pre_tokenizer(item, steps);
  } else if (type == "ByteLevel") {
    const bool adds_blank = flag(place, "add_prefix_space", true);
    if (flag(place, "use_regex", true)) {
      if (adds_blank) steps.push_back(ToMetaspace{" ", ToMetaspace::InFront::always, false});
      steps.push_back(cut_at(gpt2_pattern, Delimiters::isolated));
      steps.push_back(ToBytes{});
    } else {
      steps.push_back(ToBytes{adds_blank});
    }
  } else if (type == "Split") {
    steps.push_back(
        CutAt{pattern_of(place.required("pattern")), delimiters_of(place), flag(place, "invert", false)});
  } else if (type == "Digits") {
    steps.push_back(
        cut_at(flag(place, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", Delimiters::isolated));
  } else if (type == "Whitespace") {
    steps.push_back(CutAt{Regex(R"(\w+|[^\w\s]+)", "", Dialect::rust), Delimiters::removed, true});
  } else if (type == "WhitespaceSplit") {
    steps.push_back(cut_at(R"(\s)", Delimiters::removed));
  } else if (type == "Punctuation") {
    steps.push_back(CutAt{Regex(R"([!-/:-@\[-`{-~]|\p{P})", ""), delimiters_of(place)});
  } else if (type == "BertPreTokenizer") {
    steps.push_back(CutForBert{});
  } else if (type == "Metaspace") {
    steps.push_back(metaspace_of(place));
  } else {
    place.required("type").fail("a pre-tokenizer that is known here");
  }
}

}  // namespace

std::vector<Normalizer> normalizers_of(const Json& place) {
  std::vector<Normalizer> steps;
  if (!place.is_null()) add_normalizer(place, steps);
  return steps;
}

std::vector<PreTokenizer> pre_tokenizers_of(const Json& place) {
  std::vector<PreTokenizer> steps;
  if (!place.is_null()) add_pre_tokenizer(place, steps);
  return steps;
}

}  // namespace core::tokenizers
