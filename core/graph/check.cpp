#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"
#include "core/graph/check_additions.hpp"
#include "core/graph/check_given.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"

namespace core::attention {
namespace {

using std::to_string;

std::optional<Problem> check_linear(const std::string& path, const Linear& linear, std::size_t d_in,
                                    std::size_t d_out, const char* meaning) {
  if (auto p = check_matrix(path + ".weight", linear.weight, d_in, d_out, meaning)) return p;
  if (linear.bias)
    return check_matrix(path + ".bias", *linear.bias, 1, d_out, "one number for each column of the weight");
  return std::nullopt;
}

std::optional<Problem> check_sequences(const Model& model) {
  if (model.sequences.empty()) return Problem{"embeddings", "expected at least one sequence"};
  if (model.n_tokens() == 0 || (!model.has_embeddings() && model.given.stages.empty()))
    return Problem{"embeddings", "expected at least one token with at least one number"};
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const Sequence& sequence = model.sequences[s];
    const std::string place = model.sequences.size() > 1 ? "[" + to_string(s) + "]" : "";
    if (auto p = check_matrix("embeddings" + place, sequence.embeddings, model.n_tokens(), model.d_model(),
                              "as the first sequence"))
      return p;
    if (sequence.tokens.size() != model.n_tokens())
      return Problem{"tokens" + place, "expected " + to_string(model.n_tokens()) +
                                           " tokens, one for each row of the embeddings, got " +
                                           to_string(sequence.tokens.size())};
    const bool other_keys = !model.sequences.front().key_tokens.empty() || model.has_memory() ||
                            model.n_keys() != model.n_tokens();
    if (sequence.key_tokens.size() != (other_keys ? model.n_keys() : 0))
      return Problem{"key_tokens" + place, other_keys
                                               ? "expected " + to_string(model.n_keys()) +
                                                     " tokens, one for each key, got " +
                                                     to_string(sequence.key_tokens.size())
                                               : "expected names of keys in every sequence or in none"};
  }
  if (model.context_length && model.n_tokens() > *model.context_length)
    return Problem{"context_length", "expected at most " + to_string(*model.context_length) +
                                         " tokens (context_length), got " + to_string(model.n_tokens())};
  return std::nullopt;
}

std::optional<Problem> check_heads(const Model& model) {
  if (model.n_heads == 0) return Problem{"n_heads", "expected at least one head"};
  if (model.d_out() % model.n_heads == 0) return std::nullopt;
  return Problem{"n_heads", "expected a number of heads that divides d_out = " + to_string(model.d_out()) +
                                ", got " + to_string(model.n_heads)};
}

std::optional<Problem> check_projections(const Model& model) {
  if (!model.projections) return std::nullopt;
  const Projections& p = *model.projections;
  const std::size_t d_out = model.d_out(),
                    d_in = model.has_embeddings() ? model.d_model() : p.query.weight.n_rows();
  if (d_out == 0) return Problem{"projections.query.weight", "expected at least one column (d_out)"};
  const char* meaning = "d_in × d_out, as the embeddings and the query projection have it";
  if (auto q = check_linear("projections.query", p.query, d_in, d_out, meaning)) return q;
  std::size_t d_memory = d_in, d_keys = d_out;
  if (model.has_memory()) d_memory = model.d_memory(), meaning = "d_memory × d_out";
  if (model.n_groups() != model.n_heads) {
    if (auto q = check_heads(model)) return q;
    d_keys = d_out / model.n_heads * model.n_groups();
    meaning = model.has_memory() ? "d_memory × n_kv_heads·d_head" : "d_in × n_kv_heads·d_head";
  }
  if (auto q = check_linear("projections.key", p.key, d_memory, d_keys, meaning)) return q;
  if (auto q = check_linear("projections.value", p.value, d_memory, d_keys, meaning)) return q;
  if (!p.output) return std::nullopt;
  const std::size_t d_output = p.output->weight.n_cols();
  if (d_output == 0) return Problem{"projections.output.weight", "expected at least one column"};
  return check_linear("projections.output", *p.output, d_out, d_output, "d_out rows");
}

std::optional<Problem> check_mask_rules(const Model& model) {
  const Mask& mask = model.mask;
  const std::size_t n_keys = model.n_keys();
  constexpr std::size_t most = std::size_t{1} << 31;  // far beyond all tokens, and sums of it are numbers
  for (const auto& side : {mask.window.left, mask.window.right})
    if (side && *side > most)
      return Problem{"mask.window", "expected at most " + to_string(most) +
                                        " keys to a side, or no limit, got " + to_string(*side)};
  if (mask.prefix > n_keys)
    return Problem{"mask.prefix",
                   "expected at most " + to_string(n_keys) + " keys, got " + to_string(mask.prefix)};
  if (!mask.documents.empty() && model.n_tokens() != n_keys)
    return Problem{"mask.documents", "expected as many queries as keys, got " + to_string(model.n_tokens()) +
                                         " and " + to_string(n_keys)};
  if (!mask.documents.empty() && mask.documents.size() != n_keys)
    return Problem{"mask.documents", "expected " + to_string(n_keys) + " numbers, one for each token, got " +
                                         to_string(mask.documents.size())};
  if (!mask.hidden_keys.empty() && mask.hidden_keys.size() != model.sequences.size())
    return Problem{"mask.hidden_keys", "expected " + to_string(model.sequences.size()) +
                                           " lists of keys, one for each sequence, got " +
                                           to_string(mask.hidden_keys.size())};
  if (!mask.hidden_keys.empty() && std::ranges::all_of(mask.hidden_keys, &std::vector<std::size_t>::empty))
    return Problem{"mask.hidden_keys", "expected a key in one of the lists, or no list"};
  for (const auto& keys : mask.hidden_keys)
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (keys[k] >= n_keys)
        return Problem{"mask.hidden_keys",
                       "expected keys below " + to_string(n_keys) + ", got " + to_string(keys[k])};
      if (k > 0 && keys[k - 1] >= keys[k])
        return Problem{"mask.hidden_keys", "expected each key once, sorted"};
    }
  return std::nullopt;
}

std::optional<Problem> check_mask(const Model& model) {
  const std::size_t n_queries = model.n_tokens(), n_keys = model.n_keys();
  if (auto p = check_mask_rules(model)) return p;
  const auto& cells = model.mask.cells;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const std::string path = "mask.cells[" + to_string(c) + "]";
    if (cells[c].row >= n_queries || cells[c].column >= n_keys) {
      const std::string limits = n_queries == n_keys ? "a row and a column below " + to_string(n_queries)
                                                     : "a row below " + to_string(n_queries) +
                                                           " and a column below " + to_string(n_keys);
      return Problem{path, "expected " + limits + ", got " + to_string(cells[c].row) + " and " +
                               to_string(cells[c].column)};
    }
    if (c > 0 && cells[c - 1].place() >= cells[c].place())
      return Problem{path, "expected each cell once, sorted by row, then column"};
  }
  return std::nullopt;
}

std::optional<Problem> check_dropout(const Model& model) {
  const Dropout& dropout = model.dropout;
  if (!(dropout.rate >= 0 && dropout.rate <= 1))
    return Problem{"dropout.rate", "expected a number from 0 to 1"};
  if (dropout.given.empty()) return std::nullopt;
  const std::size_t expected = model.sequences.size() * model.n_heads;
  if (dropout.given.size() != expected)
    return Problem{"dropout.mask", "expected " + to_string(expected) +
                                       " matrices, one for each head of each sequence, got " +
                                       to_string(dropout.given.size())};
  for (std::size_t k = 0; k < expected; ++k) {
    const std::string place = model.sequences.size() > 1 ? "[" + to_string(k / model.n_heads) + "]" : "";
    const std::string path = "dropout.mask" + place + "[" + to_string(k % model.n_heads) + "]";
    if (auto p = check_matrix(path, dropout.given[k], model.n_tokens(), model.n_keys(), "n_tokens × n_keys"))
      return p;
    const arma::mat& m = dropout.given[k];
    for (std::size_t i = 0; i < m.n_rows; ++i)
      for (std::size_t j = 0; j < m.n_cols; ++j)
        if (m(i, j) != 0 && m(i, j) != 1)
          return Problem{path + "[" + to_string(i) + "][" + to_string(j) + "]",
                         "expected 0 (dropped) or 1 (kept)"};
  }
  return std::nullopt;
}

std::optional<Problem> check_heads_off(const Model& model) {
  const auto& off = model.heads_off;
  for (std::size_t k = 0; k < off.size(); ++k) {
    const std::string path = "heads_off[" + to_string(k) + "]";
    if (off[k] >= model.n_heads)
      return Problem{path,
                     "expected a head below " + to_string(model.n_heads) + ", got " + to_string(off[k])};
    if (k > 0 && off[k - 1] >= off[k]) return Problem{path, "expected each head once, sorted"};
  }
  return std::nullopt;
}

std::optional<Problem> check_scale(const Model& model) {
  if (!std::isfinite(model.scale.factor)) return Problem{"scale", "expected a finite number"};
  if (!std::isfinite(model.departures.large_negative))
    return Problem{"departures.large_negative", "expected a finite number"};
  if (model.departures.blocks.size == 0)
    return Problem{"departures.blocks.size", "expected at least one key"};
  if (model.departures.scores_swapped && model.n_tokens() != model.n_keys())
    return Problem{"departures.scores_swapped", "expected as many keys as queries, got " +
                                                    to_string(model.n_keys()) + " and " +
                                                    to_string(model.n_tokens())};
  const bool by_head = model.scale.rule == ScaleRule::inverse_sqrt_d_head && model.d_head() == 0;
  const bool by_model = model.scale.rule == ScaleRule::inverse_sqrt_d_model && model.d_model() == 0;
  if ((!by_head && !by_model) || !is_computed(model, Stage::scaled_scores)) return std::nullopt;
  return Problem{"scale", std::string("expected \"none\" or a number, as what is given does not tell ") +
                              (by_head ? "d_head" : "d_model")};
}

}  // namespace

std::optional<Problem> check_matrix(const std::string& path, const SharedMatrix& m, std::size_t rows,
                                    std::size_t columns, const char* meaning) {
  if (m.n_rows() != rows || m.n_cols() != columns)
    return Problem{path, "expected " + text::shape_text(rows, columns) + " (" + meaning + "), got " +
                             text::shape_text(m.n_rows(), m.n_cols())};
  if (m.is_finite()) return std::nullopt;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      if (!std::isfinite(m.at(i, j)))
        return Problem{path + "[" + to_string(i) + "][" + to_string(j) + "]", "expected a finite number"};
  return std::nullopt;
}

std::optional<Problem> check(const Model& model) {
  if (auto p = check_sequences(model)) return p;
  if (auto p = check_groups(model)) return p;
  if (auto p = check_memory(model)) return p;
  if (auto p = check_projections(model)) return p;
  if (auto p = check_heads(model)) return p;
  if (auto p = check_given(model)) return p;
  if (auto p = check_additions(model)) return p;
  if (auto p = check_scale(model)) return p;
  if (auto p = check_mask(model)) return p;
  if (auto p = check_heads_off(model)) return p;
  return check_dropout(model);
}

}  // namespace core::attention
