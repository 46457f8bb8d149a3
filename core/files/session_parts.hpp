#pragma once

#include <algorithm>
#include <armadillo>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/shared_matrix.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"
#include "core/graph/limits.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

// The words of a session file for the choices of a model; reading and writing share them.

inline constexpr std::array score_words{
    Word{"query_key", attention::ScoreRule::query_key},
    Word{"uniform", attention::ScoreRule::uniform},
};
inline constexpr std::array scale_words{
    Word{"inverse_sqrt_d_head", attention::ScaleRule::inverse_sqrt_d_head},
    Word{"none", attention::ScaleRule::none},
    Word{"inverse_sqrt_d_model", attention::ScaleRule::inverse_sqrt_d_model},
};
inline constexpr std::array method_words{
    Word{"negative_infinity", attention::MaskMethod::negative_infinity},
    Word{"renormalise", attention::MaskMethod::renormalise},
    Word{"zero_after_softmax", attention::MaskMethod::zero_after_softmax},
    Word{"large_negative", attention::MaskMethod::large_negative},
};
inline constexpr std::array empty_row_words{
    Word{"nan", attention::EmptyRows::nan},
    Word{"zeros", attention::EmptyRows::zeros},
};
inline constexpr std::array alignment_words{
    Word{"last", attention::MaskAlignment::last},
    Word{"first", attention::MaskAlignment::first},
};
inline constexpr std::array norm_words{
    Word{"rms", attention::NormRule::rms},
    Word{"layer", attention::NormRule::layer},
};
inline constexpr std::array norm_over_words{
    Word{"head", attention::NormOver::head},
    Word{"each_head", attention::NormOver::own_head},
    Word{"all_heads", attention::NormOver::all_heads},
};
inline constexpr std::array pair_words{
    Word{"halves", positions::Pairs::halves},
    Word{"neighbours", positions::Pairs::neighbours},
};
inline constexpr std::array scaling_words{
    Word{"linear", positions::ScalingRule::linear},     Word{"llama3", positions::ScalingRule::llama3},
    Word{"yarn", positions::ScalingRule::yarn},         Word{"dynamic", positions::ScalingRule::dynamic},
    Word{"longrope", positions::ScalingRule::longrope},
};
inline constexpr std::array stream_words{
    Word{"mt19937", attention::DropoutStream::mt19937},
    Word{"mkl", attention::DropoutStream::mkl},
};
inline constexpr std::array combine_words{
    Word{"concatenate", attention::CombineRule::concatenate},
    Word{"reshape_without_transpose", attention::CombineRule::reshape_without_transpose},
};

inline constexpr std::array dropout_place_words{
    Word{"weights", attention::DropoutPlace::weights},
    Word{"scaled_scores", attention::DropoutPlace::scaled_scores},
    Word{"masked_scores", attention::DropoutPlace::masked_scores},
};
inline constexpr std::array precision_words{
    Word{"float64", attention::Precision::float64}, Word{"float32", attention::Precision::float32},
    Word{"float16", attention::Precision::float16}, Word{"bfloat16", attention::Precision::bfloat16},
    Word{"tf32", attention::Precision::tf32},
};

/// The word for a choice, in quotation marks.
template <class Meaning, std::size_t n>
std::string quoted_word(const std::array<Word<Meaning>, n>& words, Meaning meaning) {
  const auto found = std::ranges::find(words, meaning, &Word<Meaning>::meaning);
  return "\"" + std::string(found->text) + "\"";
}

// Lists of numbers as a session file has them, one row a line.

/// 0, 1, …, n − 1, as items of such lists.
inline std::vector<std::size_t> indices(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// "[first, second]" on one line.
template <class Items, class ItemText>
std::string list_text(const Items& items, ItemText item_text) {
  return "[" + text::joined(items, ", ", item_text) + "]";
}

/// The same with a line for each item, indented by one step more than the bracket.
template <class Items, class ItemText>
std::string lines_text(const Items& items, const std::string& indent, ItemText item_text) {
  const std::string line = "\n" + indent + "  ";
  return "[" + line +
         text::joined(items, "," + line, [&](const auto& item) { return item_text(item, indent + "  "); }) +
         "\n" + indent + "]";
}

/// A number, in quotes when JSON has none like it.
std::string json_number(double value);

/// Row i of a matrix.
std::string row_text(const arma::mat& m, std::size_t i);

/// A matrix as a list of rows.
std::string matrix_text(const arma::mat& m, const std::string& indent);

/// [sequence · n_heads + head] as a list of a matrix a head, for each sequence when there are several.
std::string heads_text(const std::vector<attention::SharedMatrix>& matrices, std::size_t n_heads,
                       std::size_t n_sequences);

// What a session asks for is counted before its memory is taken: a short one may name much, many times.

/// What a session says once may take so much when it is kept for every sequence, and all names of tokens.
constexpr std::uint64_t max_copied_bytes = std::uint64_t{1} << 30;

/// What a matrix takes beside its numbers, rounded up.
constexpr std::uint64_t bytes_of_a_matrix = 256;

/// What a matrix takes.
inline std::uint64_t matrix_bytes(const attention::SharedMatrix& m) {
  return bytes_of_a_matrix + sizeof(double) * std::uint64_t{m.n_rows()} * m.n_cols();
}

/// Throws core::Error about a place with more things than a limit.
void require_count(const Json& place, std::size_t count, std::size_t limit, const char* things);

/// Throws core::Error about a place whose things would take more memory than a limit.
void require_bytes(const Json& place, std::uint64_t bytes, const char* things,
                   std::uint64_t limit = attention::max_bytes);

/// What the names of tokens take.
std::uint64_t name_bytes(const std::vector<std::string>& names);

/// Throws core::Error when a session is not of version 1.
void require_version(const Json& top);

/// The "view" of a session, a JSON object as text; "" where there is none. Throws core::Error.
std::string read_view(const Json& top);

/// Writes the text of a session atomically. Throws core::Error, which names the file.
void write_session(const std::filesystem::path& path, const std::function<std::string()>& text);

/// The mask of a session with n_sequences and n_keys. Throws core::Error, one line that says what was
/// expected.
attention::Mask read_mask(const Json& place, std::size_t n_sequences, std::size_t n_keys);

/// The mask as JSON on a line, with only those of its newer keys that say something.
std::string mask_text(const attention::Mask& mask);

/// The dropout of a session; heads and sequences of the model are known. Throws core::Error as Json does.
attention::Dropout read_dropout(const Json& place, const attention::Model& model, bool is_batch);
std::string dropout_text(const attention::Model& model);

/// A number of a stage that was overridden. Throws core::Error as Json does.
attention::GivenCell read_cell(const Json& place);
std::string cell_text(const attention::GivenCell& cell, std::size_t n_sequences);

// What models of today add to the paper, as a session file has it: each under a key of its own at the top.

/// Reads "normalise", "positions", "score_cap", "score_bias" and "sink", all of which may be missing, as they
/// are without them then, or null, which is none.
///
/// Throws core::Error as Json does; whether they fit the model is for attention::check() to say.
attention::Additions read_additions(const Json& top, attention::Additions without = {});

/// The keys that say something, each with its JSON.
std::vector<std::pair<const char*, std::string>> additions_text(attention::Additions additions);

/// Reads the "departures" of a session: options that no implementation is meant to have, and the mistakes of
/// files from before these had a list. Throws core::Error as Json does.
void read_departures(const Json& place, attention::Model& model);

/// Returns these options as JSON on a line, only those that are set; empty when none is.
std::string departures_text(attention::Model model);

/// Reads the "mistakes" of a session: names, or {"name": …, "size": …}.
void read_mistakes(const Json& place, attention::Model& model);

/// Returns them as JSON on a line.
std::string mistakes_text(const attention::Model& model);

}  // namespace core::formats
