#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/graph/model.hpp"

namespace core::attention {

/// Larger models are refused before anything is allocated for them.
constexpr std::size_t max_sequences = 16384, max_tokens = 16384, max_columns = 16384;
constexpr std::uint64_t max_bytes = std::uint64_t{8} << 30;

/// The numbers that decide how much memory a model and its trace take.
struct Size {
  std::size_t n_sequences = 1, n_tokens = 1, d_model = 1, d_out = 1, n_heads = 1;
  bool projections = false, output_projection = false, given_dropout_mask = false;
  std::size_t n_keys = 0;           ///< when they are not as many as the tokens
  std::uint64_t given_numbers = 0;  ///< of all stages, biases and key embeddings that are given
  std::size_t d_source = 0;         ///< columns of the key embeddings, where there are any
  std::size_t d_output = 0;         ///< when the output projection has not d_out columns
};

/// The size of a model, consistent or not; without sequences it has no tokens and no columns of its own.
Size size_of(const Model& model);

/// Bytes of one sequence's trace at its largest, when the mask is renormalised; sizes within the limits
/// above. Without n_keys there are as many keys as tokens.
std::uint64_t trace_bytes(std::size_t n_tokens, std::size_t d_model, std::size_t d_out, std::size_t n_heads,
                          std::size_t n_keys = 0);

/// Names the first limit that a model of this size breaks: a count, or max_bytes for its own numbers.
///
/// Whether there is memory for its trace depends on the machine: compare trace_bytes() with what is free.
std::optional<Problem> check_size(const Size& size);

/// Throws core::Error when check_size() finds a limit that is broken.
void require_size(const Size& size, const std::string& place = "");

/// Throws core::Error, "PLACEpath: message", when a model cannot be computed or breaks a limit.
void require_within_limits(const Model& model, const std::string& place = "");

}  // namespace core::attention
