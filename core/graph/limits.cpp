#include "core/graph/limits.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace core::attention {
namespace {

using std::to_string;
using std::uint64_t;

// Score-shaped matrices a head: scores, scaled, masked, unmasked, zeroed, weights, dropout mask, dropped, one
// in the making.
constexpr uint64_t squares_per_head = 9;
// Matrices as wide as the output: queries, keys, values, contexts, concatenated, output.
constexpr uint64_t wide_matrices = 6;

std::size_t keys(const Size& s) {
  return s.n_keys > 0 ? s.n_keys : s.n_tokens;
}

uint64_t model_bytes(const Size& s) {
  const uint64_t embeddings = uint64_t{s.n_sequences} * s.n_tokens * s.d_model;
  const uint64_t projections = s.projections ? 3 * uint64_t{s.d_model} * s.d_out : 0;
  const uint64_t output =
      s.output_projection ? uint64_t{s.d_out} * (s.d_output > 0 ? s.d_output : s.d_out) : 0;
  uint64_t masks = 0;
  if (s.given_dropout_mask) {
    const uint64_t squares = uint64_t{s.n_sequences} * s.n_heads, square = uint64_t{s.n_tokens} * keys(s);
    masks = squares * square;  // at most 2^56
  }
  return sizeof(double) * (embeddings + projections + output + masks + s.given_numbers);
}

std::optional<Problem> check_count(const char* path, const char* things, std::size_t count,
                                   std::size_t limit) {
  if (count <= limit) return std::nullopt;
  return Problem{path, "expected at most " + to_string(limit) + " " + things + ", got " + to_string(count)};
}

}  // namespace

Size size_of(const Model& model) {
  Size s;
  s.n_sequences = model.sequences.size();
  s.n_tokens = model.sequences.empty() ? 0 : model.n_tokens();
  s.d_model = model.sequences.empty() ? 0 : model.d_model();
  s.d_out = model.projections ? model.projections->query.weight.n_cols() : s.d_model;
  s.n_heads = model.n_heads;
  for (const GivenStage& stage : model.given.stages)
    for (const SharedMatrix& m : stage.matrices) s.given_numbers += m.n_rows() * m.n_cols();
  if (model.sequences.empty() || model.n_heads == 0) return s;
  if (model.n_keys() != s.n_tokens) s.n_keys = model.n_keys();
  if (model.has_memory()) s.d_memory = model.d_memory();
  s.d_out = std::max(s.d_out, s.n_heads * std::max(model.d_head(), model.d_value()));
  s.projections = model.projections.has_value();
  for (const SharedMatrix& bias : model.additions.score_bias)
    s.given_numbers += bias.n_rows() * bias.n_cols();
  for (const Sequence& sequence : model.sequences)
    s.given_numbers += sequence.key_embeddings.n_rows() * sequence.key_embeddings.n_cols();
  s.output_projection = model.projections && model.projections->output;
  if (s.output_projection && model.d_output() != s.d_out) s.d_output = model.d_output();
  s.given_dropout_mask = !model.dropout.given.empty();
  return s;
}

uint64_t trace_bytes(std::size_t n_tokens, std::size_t d_model, std::size_t d_out, std::size_t n_heads,
                     std::size_t n_keys) {
  if (n_keys == 0) n_keys = n_tokens;
  const uint64_t square = uint64_t{n_tokens} * n_keys;
  return sizeof(double) * ((squares_per_head * n_heads + 1) * square + n_tokens * d_model +
                           wide_matrices * std::max(n_tokens, n_keys) * d_out);
}

std::optional<Problem> check_size(const Size& s) {
  if (auto p = check_count("embeddings", "sequences", s.n_sequences, max_sequences)) return p;
  if (auto p = check_count("embeddings", "tokens", s.n_tokens, max_tokens)) return p;
  if (auto p = check_count(s.d_memory > 0 ? "key_embeddings" : "given", "keys", s.n_keys, max_tokens))
    return p;
  if (auto p = check_count("embeddings", "columns (d_in)", s.d_model, max_columns)) return p;
  if (auto p = check_count("key_embeddings", "columns (d_memory)", s.d_memory, max_columns)) return p;
  if (auto p = check_count("projections.query.weight", "columns (d_out)", s.d_out, max_columns)) return p;
  if (auto p = check_count("projections.output.weight", "columns", s.d_output, max_columns)) return p;
  if (auto p = check_count("n_heads", "heads", s.n_heads, max_columns)) return p;
  const uint64_t bytes = model_bytes(s);
  if (bytes <= max_bytes) return std::nullopt;
  return Problem{"embeddings", to_string(s.n_tokens) + " tokens, d_in = " + to_string(s.d_model) +
                                   ", d_out = " + to_string(s.d_out) + " and n_heads = " +
                                   to_string(s.n_heads) + " would need " + text::gibibytes(bytes) +
                                   ", expected at most " + text::gibibytes(max_bytes)};
}

void require_size(const Size& size, const std::string& place) {
  if (const auto problem = check_size(size)) throw Error(place + problem->path + ": " + problem->message);
}

void require_within_limits(const Model& model, const std::string& place) {
  require(model, place);
  require_size(size_of(model), place);
}

}  // namespace core::attention
