#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/graph/model.hpp"

/// Consistency of models, and limits of their size.
namespace core::attention {

/// First problem that keeps a model from being computed.
struct Problem {
  std::string path;     ///< where, in the notation of the session file: "projections.key.weight"
  std::string message;  ///< what was expected and what was found, in one line
};

/// Returns the first inconsistency of a model, or nothing if attend() can compute it.
std::optional<Problem> check(const Model& model);

/// Throws core::Error, "PLACEpath: message", if check() finds a problem.
void require(const Model& model, const std::string& place = "");

/// Throws core::Error if check() finds a problem or there is no such sequence.
void require(const Model& model, std::size_t sequence);

/// Limits of a model; larger ones are refused before anything is allocated.
constexpr std::size_t max_sequences = 16384, max_tokens = 16384, max_columns = 16384;
constexpr std::uint64_t max_bytes = std::uint64_t{8} << 30;

/// Dimensions that determine the memory of a model and its trace.
struct ModelSize {
  std::size_t n_sequences = 1, n_tokens = 1, d_model = 1, d_out = 1, n_heads = 1;
  bool projections = false, output_projection = false, given_dropout_mask = false;
  std::size_t n_keys = 0;           ///< if different from n_tokens
  std::uint64_t given_numbers = 0;  ///< in all given stages, attention biases and encoder states
  std::size_t d_source = 0;         ///< columns of the encoder states, if any
  std::size_t d_output = 0;         ///< if the output projection does not have d_out columns
};

/// Returns the size of a model, consistent or not; without sequences it has no tokens and no columns.
ModelSize model_size(const Model& model);

/// Returns the bytes of one sequence's trace at its largest, with the mask renormalized, for sizes within the
/// limits above; n_keys = 0 stands for n_tokens.
std::uint64_t trace_bytes(std::size_t n_tokens, std::size_t d_model, std::size_t d_out, std::size_t n_heads,
                          std::size_t n_keys = 0);

/// Returns the first limit that a model of this size breaks: a count, or max_bytes for its own numbers.
///
/// Whether its trace fits depends on the machine: compare trace_bytes() with the free memory.
std::optional<Problem> check_size(const ModelSize& size);

/// Throws core::Error if check_size() finds a broken limit.
void require_size(const ModelSize& size, const std::string& place = "");

/// Throws core::Error, "PLACEpath: message", if a model cannot be computed or breaks a limit.
void require_within_limits(const Model& model, const std::string& place = "");

}  // namespace core::attention
