#pragma once

#include <string>
#include <string_view>

#include "core/model/aligned_text.hpp"

/// What tokenizers ask of Unicode's tables.
namespace core::tokenizers {

/// The four normal forms. Source: Unicode Standard Annex 15.
enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// The text in a normal form; every byte of a sequence that is composed or taken apart stands for all of it.
AlignedText normalised(const AlignedText& text, NormalForm form);

/// The small letters of a character, one or two.
std::u32string lower_of(char32_t c);

bool is_nonspacing_mark(char32_t c);
/// Whether it is a mark of any kind.
bool is_mark(char32_t c);
/// Whether it is a control, format, private or unassigned character, but none of tab and line ends.
bool is_control(char32_t c);
/// Whether it is of Unicode's punctuation, or any sign of ASCII.
bool is_punctuation_of_bert(char32_t c);
/// Whether BERT makes a word of the character alone: the blocks of CJK ideographs, as its authors list them.
bool is_chinese(char32_t c);

}  // namespace core::tokenizers
