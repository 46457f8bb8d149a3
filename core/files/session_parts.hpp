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
#include "core/graph/model.hpp"
#include "core/graph/validation.hpp"

namespace core::formats {

// Words of a session file for the options of a model, for both reading and writing.

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
    Word{"renormalise", attention::MaskMethod::renormalize},
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
    Word{"head", attention::NormScope::head},
    Word{"each_head", attention::NormScope::own_head},
    Word{"all_heads", attention::NormScope::all_heads},
};
inline constexpr std::array pair_words{
    Word{"halves", positions::Pairs::halves},
    Word{"neighbours", positions::Pairs::neighbors},
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

/// Returns the word for an option, in quotation marks.
template <class Meaning, std::size_t n>
std::string quoted_word(const std::array<Word<Meaning>, n>& words, Meaning meaning) {
  const auto found = std::ranges::find(words, meaning, &Word<Meaning>::meaning);
  return "\"" + std::string(found->text) + "\"";
}

// Lists of numbers as in a session file, one row per line.

/// Returns 0, 1, …, n − 1, as items of such lists.
inline std::vector<std::size_t> indices(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// Returns a list with a line for each item, indented one step more than the bracket.
template <class Items, class ItemText>
std::string lines_text(const Items& items, const std::string& indent, ItemText item_text) {
  const std::string line = "\n" + indent + "  ";
  return "[" + line +
         text::joined(items, "," + line, [&](const auto& item) { return item_text(item, indent + "  "); }) +
         "\n" + indent + "]";
}

/// Returns a number as JSON, in quotes if it is not finite.
std::string json_number(double value);

/// Returns row i of a matrix as a list.
std::string row_text(const arma::mat& m, std::size_t i);

/// Returns a matrix as a list of rows.
std::string matrix_text(const arma::mat& m, const std::string& indent);

/// Returns matrices [sequence · n_heads + head] as a list with one per head, for each sequence if several.
std::string heads_text(const std::vector<attention::SharedMatrix>& matrices, std::size_t n_heads,
                       std::size_t n_sequences);

// Sizes are checked before memory is allocated: a short session may request a large value many times.

/// Maximum bytes of a value that is copied to every sequence, and of all token names.
constexpr std::uint64_t max_copied_bytes = std::uint64_t{1} << 30;

/// Bytes of a matrix in addition to its numbers, rounded up.
constexpr std::uint64_t bytes_of_a_matrix = 256;

/// Returns the bytes of a matrix in memory.
inline std::uint64_t matrix_bytes(const attention::SharedMatrix& m) {
  return bytes_of_a_matrix + sizeof(double) * std::uint64_t{m.n_rows()} * m.n_cols();
}

/// Throws core::Error about a place if count exceeds limit; things names the items.
void require_count(const Json& place, std::size_t count, std::size_t limit, const char* item_names);

/// Throws core::Error about a place if its things would take more memory than limit.
void require_bytes(const Json& place, std::uint64_t bytes, const char* item_names,
                   std::uint64_t limit = attention::max_bytes);

/// Returns the bytes of token names in memory.
std::uint64_t name_bytes(const std::vector<std::string>& names);

/// Throws core::Error when a session is not of version 1.
void require_version(const Json& top);

/// Returns the "view" of a session, a JSON object as text, or "". Throws core::Error.
std::string read_view(const Json& top);

/// Writes the text of a session atomically. Throws core::Error, which names the file.
void write_session(const std::filesystem::path& path, const std::function<std::string()>& text);

/// Reads the mask of a session with n_sequences and n_keys. Throws core::Error, one line with the expected
/// value.
attention::Mask read_mask(const Json& place, std::size_t n_sequences, std::size_t n_keys);

/// Returns the mask as JSON on one line; of its newer keys only those that differ from the default.
std::string mask_text(const attention::Mask& mask);

/// Reads the dropout of a session; model already has heads and sequences. Throws core::Error as Json does.
attention::Dropout read_dropout(const Json& place, const attention::Model& model, bool is_batch);
std::string dropout_text(const attention::Model& model);

/// Reads an overridden value of a stage. Throws core::Error as Json does.
attention::GivenCell read_cell(const Json& place);
std::string cell_text(const attention::GivenCell& cell, std::size_t n_sequences);

// Additions of modern models to the original attention: each has its own top-level key.

/// Reads "normalise", "positions", "score_cap", "score_bias" and "sink"; a missing key keeps its value in
/// without, null removes it.
///
/// Throws core::Error as Json does; attention::check() decides whether they fit the model.
attention::Additions read_additions(const Json& top, attention::Additions defaults = {});

/// Returns the keys that are set, each with its JSON.
std::vector<std::pair<const char*, std::string>> additions_text(attention::Additions additions);

/// Reads the "departures" of a session: options that no correct implementation has, and the bugs of
/// older files, which have no list of them. Throws core::Error as Json does.
void read_deviations(const Json& place, attention::Model& model);

/// Returns the deviations that are set as JSON on one line; empty if there are none.
std::string deviations_text(attention::Model model);

/// Reads the "mistakes" of a session: names, or {"name": …, "size": …}.
void read_bugs(const Json& place, attention::Model& model);

/// Returns the mistakes as JSON on one line.
std::string bugs_text(const attention::Model& model);

}  // namespace core::formats
