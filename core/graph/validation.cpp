#include "core/graph/validation.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/stages.hpp"

namespace core::attention {
namespace {

using std::to_string;

std::optional<Problem> check_matrix(const std::string& path, const SharedMatrix& m, std::size_t rows,
                                    std::size_t columns, const char* meaning) {
  if (m.n_rows() != rows || m.n_cols() != columns)
    return Problem{path, "expected " + text::shape_text(rows, columns) + " (" + meaning + "), got " +
                             text::shape_text(m.n_rows(), m.n_cols())};
  if (m.is_finite()) return std::nullopt;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      if (!std::isfinite(m.at(i, j)))
        return Problem{fmt::format("{}[{}][{}]", path, i, j), "expected a finite number"};
  return std::nullopt;
}

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
    const std::string place = model.sequences.size() > 1 ? fmt::format("[{}]", s) : "";
    if (auto p = check_matrix("embeddings" + place, sequence.embeddings, model.n_tokens(), model.d_model(),
                              "as the first sequence"))
      return p;
    if (sequence.tokens.size() != model.n_tokens())
      return Problem{"tokens" + place,
                     fmt::format("expected {} tokens, one for each row of the embeddings, got {}",
                                 model.n_tokens(), sequence.tokens.size())};
    const bool other_keys = !model.sequences.front().key_tokens.empty() || model.has_key_embeddings() ||
                            model.n_keys() != model.n_tokens();
    if (sequence.key_tokens.size() != (other_keys ? model.n_keys() : 0))
      return Problem{"key_tokens" + place, other_keys
                                               ? fmt::format("expected {} tokens, one for each key, got {}",
                                                             model.n_keys(), sequence.key_tokens.size())
                                               : "expected names of keys in every sequence or in none"};
  }
  if (model.context_length && model.n_tokens() > *model.context_length)
    return Problem{"context_length", fmt::format("expected at most {} tokens (context_length), got {}",
                                                 *model.context_length, model.n_tokens())};
  return std::nullopt;
}

std::optional<Problem> check_heads(const Model& model) {
  if (model.n_heads == 0) return Problem{"n_heads", "expected at least one head"};
  if (model.d_out() % model.n_heads == 0) return std::nullopt;
  return Problem{"n_heads", fmt::format("expected a number of heads that divides d_out = {}, got {}",
                                        model.d_out(), model.n_heads)};
}

std::optional<Problem> check_projections(const Model& model) {
  if (!model.projections) return std::nullopt;
  const Projections& p = *model.projections;
  const std::size_t d_out = model.d_out(),
                    d_in = model.has_embeddings() ? model.d_model() : p.query.weight.n_rows();
  if (d_out == 0) return Problem{"projections.query.weight", "expected at least one column (d_out)"};
  const char* meaning = "d_in × d_out, as the embeddings and the query projection have it";
  if (auto q = check_linear("projections.query", p.query, d_in, d_out, meaning)) return q;
  std::size_t d_source = d_in, d_keys = d_out;
  if (model.has_key_embeddings()) d_source = model.d_source(), meaning = "d_source × d_out";
  if (model.kv_heads() != model.n_heads) {
    if (auto q = check_heads(model)) return q;
    d_keys = d_out / model.n_heads * model.kv_heads();
    meaning = model.has_key_embeddings() ? "d_source × n_kv_heads·d_head" : "d_in × n_kv_heads·d_head";
  }
  if (auto q = check_linear("projections.key", p.key, d_source, d_keys, meaning)) return q;
  if (auto q = check_linear("projections.value", p.value, d_source, d_keys, meaning)) return q;
  if (!p.output) return std::nullopt;
  const std::size_t d_output = p.output->weight.n_cols();
  if (d_output == 0) return Problem{"projections.output.weight", "expected at least one column"};
  return check_linear("projections.output", *p.output, d_out, d_output, "d_out rows");
}

std::optional<Problem> check_mask_rules(const Model& model) {
  const Mask& mask = model.mask;
  const std::size_t n_keys = model.n_keys();
  constexpr std::size_t max_window = std::size_t{1}
                                     << 31;  // far above any number of tokens, and safe to add up
  for (const auto& side : {mask.window.left, mask.window.right})
    if (side && *side > max_window)
      return Problem{"mask.window", fmt::format("expected at most {} keys to a side, or no limit, got {}",
                                                max_window, *side)};
  if (mask.prefix > n_keys)
    return Problem{"mask.prefix", fmt::format("expected at most {} keys, got {}", n_keys, mask.prefix)};
  if (!mask.documents.empty() && model.n_tokens() != n_keys)
    return Problem{"mask.documents",
                   fmt::format("expected as many queries as keys, got {} and {}", model.n_tokens(), n_keys)};
  if (!mask.documents.empty() && mask.documents.size() != n_keys)
    return Problem{"mask.documents", fmt::format("expected {} numbers, one for each token, got {}", n_keys,
                                                 mask.documents.size())};
  if (!mask.hidden_keys.empty() && mask.hidden_keys.size() != model.sequences.size())
    return Problem{"mask.hidden_keys", fmt::format("expected {} lists of keys, one for each sequence, got {}",
                                                   model.sequences.size(), mask.hidden_keys.size())};
  if (!mask.hidden_keys.empty() && std::ranges::all_of(mask.hidden_keys, &std::vector<std::size_t>::empty))
    return Problem{"mask.hidden_keys", "expected a key in one of the lists, or no list"};
  for (const auto& keys : mask.hidden_keys)
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (keys[k] >= n_keys)
        return Problem{"mask.hidden_keys", fmt::format("expected keys below {}, got {}", n_keys, keys[k])};
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
    const std::string path = fmt::format("mask.cells[{}]", c);
    if (cells[c].row >= n_queries || cells[c].column >= n_keys) {
      const std::string limits = n_queries == n_keys
                                     ? "a row and a column below " + to_string(n_queries)
                                     : fmt::format("a row below {} and a column below {}", n_queries, n_keys);
      return Problem{path, fmt::format("expected {}, got {} and {}", limits, cells[c].row, cells[c].column)};
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
    return Problem{"dropout.mask",
                   fmt::format("expected {} matrices, one for each head of each sequence, got {}", expected,
                               dropout.given.size())};
  for (std::size_t k = 0; k < expected; ++k) {
    const std::string place = model.sequences.size() > 1 ? fmt::format("[{}]", k / model.n_heads) : "";
    const std::string path = fmt::format("dropout.mask{}[{}]", place, k % model.n_heads);
    if (auto p = check_matrix(path, dropout.given[k], model.n_tokens(), model.n_keys(), "n_tokens × n_keys"))
      return p;
    const arma::mat& m = dropout.given[k];
    for (std::size_t i = 0; i < m.n_rows; ++i)
      for (std::size_t j = 0; j < m.n_cols; ++j)
        if (m(i, j) != 0 && m(i, j) != 1)
          return Problem{fmt::format("{}[{}][{}]", path, i, j), "expected 0 (dropped) or 1 (kept)"};
  }
  return std::nullopt;
}

std::optional<Problem> check_heads_off(const Model& model) {
  const auto& off = model.heads_off;
  for (std::size_t k = 0; k < off.size(); ++k) {
    const std::string path = fmt::format("heads_off[{}]", k);
    if (off[k] >= model.n_heads)
      return Problem{path, fmt::format("expected a head below {}, got {}", model.n_heads, off[k])};
    if (k > 0 && off[k - 1] >= off[k]) return Problem{path, "expected each head once, sorted"};
  }
  return std::nullopt;
}

std::optional<Problem> check_scale(const Model& model) {
  if (!std::isfinite(model.scale.factor)) return Problem{"scale", "expected a finite number"};
  if (!std::isfinite(model.mask.large_negative))
    return Problem{"departures.large_negative", "expected a finite number"};
  const bool by_head = model.scale.rule == ScaleRule::inverse_sqrt_d_head && model.d_head() == 0;
  const bool by_model = model.scale.rule == ScaleRule::inverse_sqrt_d_model && model.d_model() == 0;
  if ((!by_head && !by_model) || !is_computed(model, Stage::scaled_scores)) return std::nullopt;
  return Problem{"scale", std::string("expected \"none\" or a number, as what is given does not tell ") +
                              (by_head ? "d_head" : "d_model")};
}

// Additions.

std::string at(const std::string& path, std::size_t row, std::size_t column) {
  return fmt::format("{}[{}][{}]", path, row, column);
}

bool is_positive(double number) {
  return number > 0 && std::isfinite(number);
}

std::optional<Problem> check_norm(const Model& m) {
  if (!m.additions.normalize) return std::nullopt;
  const QueryKeyNorm& norm = *m.additions.normalize;
  const char* meaning = norm.over == NormScope::head ? "one number for each column of a head"
                                                     : "one number for each column of all heads";
  if (m.d_head() == 0) return Problem{"normalise", "expected queries and keys of known width"};
  if (!(norm.epsilon >= 0) || !std::isfinite(norm.epsilon))
    return Problem{"normalise.epsilon", "expected a finite number that is not negative"};
  if (auto p = check_matrix("normalise.query", norm.query, 1, norm.n_factors(m.n_heads, m.d_head()), meaning))
    return p;
  return check_matrix("normalise.key", norm.key, 1, norm.n_factors(m.kv_heads(), m.d_head()), meaning);
}

std::optional<Problem> check_scaling(const positions::Rotary& rotary, std::size_t n_pairs) {
  const positions::Scaling& s = rotary.scaling;
  if (s.rule == positions::ScalingRule::none) return std::nullopt;
  const std::string path = "positions.rotary.scaling";
  constexpr const char* positive = "expected a finite number above 0";
  using enum positions::ScalingRule;
  const bool is_yarn = s.rule == yarn;
  if (s.rule != longrope && !is_positive(s.factor)) return Problem{path + ".factor", positive};
  if (s.rule == linear) return std::nullopt;
  if (is_yarn || s.rule == llama3) {
    if (!is_positive(s.low)) return Problem{path + (is_yarn ? ".beta_slow" : ".low"), positive};
    if (!is_positive(s.high) || s.high <= s.low)
      return is_yarn ? Problem{path + ".beta_fast", "expected a finite number above beta_slow"}
                     : Problem{path + ".high", "expected a finite number above low"};
  }
  if (!is_positive(s.original)) return Problem{path + ".original", positive};
  if ((is_yarn || s.rule == longrope) && !is_positive(s.attention))
    return Problem{path + ".attention_factor", positive};
  if (s.rule == dynamic && s.factor < 1) return Problem{path + ".factor", "expected a number of at least 1"};
  if (is_yarn && rotary.base <= 1)
    return Problem{"positions.rotary.base", "expected a number above 1, as YaRN divides by its logarithm"};
  if (s.rule != longrope) return std::nullopt;
  if (!s.factors) return Problem{path + ".short_factor", "expected factors"};
  for (const std::size_t row : {0, 1}) {
    const std::string factors = path + (row == 0 ? ".short_factor" : ".long_factor");
    if (s.factors->n_rows() != 2 || s.factors->n_cols() != n_pairs)
      return Problem{factors, fmt::format("expected a factor for each of {} pairs, got {}", n_pairs,
                                          s.factors->n_cols())};
    for (std::size_t p = 0; p < n_pairs; ++p)
      if (!is_positive(s.factors->at(row, p))) return Problem{fmt::format("{}[{}]", factors, p), positive};
  }
  return std::nullopt;
}

std::optional<Problem> check_rotary(const Model& m) {
  if (!m.additions.positions.rotary) return std::nullopt;
  const positions::Rotary& rotary = *m.additions.positions.rotary;
  const std::string path = "positions.rotary";
  const std::size_t d_head = m.d_head();
  if (!is_positive(rotary.base)) return Problem{path + ".base", "expected a finite number above 0"};
  if (d_head == 0) return Problem{path, "expected queries and keys of known width"};
  const std::size_t n_rotated = positions::rotated_columns(rotary, d_head);
  if (n_rotated == 0 || n_rotated > d_head || n_rotated % 2 != 0)
    return Problem{path + ".dimensions",
                   fmt::format("expected an even number from 2 to d_head = {}, got {}", d_head, n_rotated)};
  constexpr std::int64_t max_position = std::int64_t{1} << 40;
  if (rotary.first < -max_position || rotary.first > max_position)
    return Problem{path + ".first", "expected a position between −2⁴⁰ and 2⁴⁰"};
  if (auto p = check_scaling(rotary, n_rotated / 2)) return p;
  if (!rotary.inverse_frequencies) return std::nullopt;
  return check_matrix(path + ".inverse_frequencies", *rotary.inverse_frequencies, 1, n_rotated / 2,
                      "one number for each pair");
}

std::optional<Problem> check_position_bias(const Model& m) {
  const Positions& positions = m.additions.positions;
  if (positions.alibi && positions.relative)
    return Problem{"positions", "expected one of \"alibi\" and \"relative\", got both"};
  if (positions.alibi && positions.alibi->slopes)
    return check_matrix("positions.alibi.slopes", *positions.alibi->slopes, 1, m.n_heads,
                        "one number for each head");
  if (!positions.relative) return std::nullopt;
  const auto& [table, max_distance, bidirectional] = *positions.relative;
  const std::size_t n = table.n_cols(), least = bidirectional ? 4 : 2;
  if (n < least || (bidirectional && n % 2 != 0))
    return Problem{"positions.relative.table",
                   bidirectional ? "expected an even number of buckets, at least 4, got " + to_string(n)
                                 : "expected at least 2 buckets, got " + to_string(n)};
  if (auto p = check_matrix("positions.relative.table", table, m.n_heads, n, "n_heads × n_buckets")) return p;
  const std::size_t near = (bidirectional ? n / 2 : n) / 2;
  if (max_distance > near) return std::nullopt;
  return Problem{"positions.relative.max_distance",
                 fmt::format("expected more than {}, got {}", near, max_distance)};
}

std::optional<Problem> check_score_bias(const Model& m) {
  const auto& bias = m.additions.score_bias;
  if (bias.empty()) return std::nullopt;
  if (bias.size() != 1 && bias.size() != m.n_heads)
    return Problem{"score_bias", fmt::format("expected one matrix, or {}, one for each head, got {}",
                                             m.n_heads, bias.size())};
  for (std::size_t h = 0; h < bias.size(); ++h) {
    const std::string path = "score_bias" + (bias.size() > 1 ? fmt::format("[{}]", h) : "");
    const arma::mat& b = bias[h];
    if (b.n_rows != m.n_tokens() || b.n_cols != m.n_keys())
      return Problem{path, "expected " + text::shape_text(m.n_tokens(), m.n_keys()) +
                               " (n_tokens × n_keys), got " + text::shape_text(b.n_rows, b.n_cols)};
    if (bias[h].is_finite()) continue;
    for (std::size_t i = 0; i < b.n_rows; ++i)
      for (std::size_t j = 0; j < b.n_cols; ++j)
        if (!std::isfinite(b(i, j)) && b(i, j) != -std::numeric_limits<double>::infinity())
          return Problem{at(path, i, j), "expected a finite number or −inf"};
  }
  return std::nullopt;
}

std::optional<Problem> check_kv_heads(const Model& m) {
  if (!m.n_kv_heads) return std::nullopt;
  const std::size_t groups = *m.n_kv_heads;
  if (groups == 0 || m.n_heads % groups != 0)
    return Problem{"n_kv_heads",
                   fmt::format("expected a number that divides n_heads = {}, got {}", m.n_heads, groups)};
  if (!m.projections && groups != m.n_heads && m.has_embeddings())
    return Problem{"n_kv_heads",
                   fmt::format("expected {}, one for each head, as there are no projections", m.n_heads)};
  return std::nullopt;
}

std::optional<Problem> check_encoder_states(const Model& m) {
  const std::size_t n_rows = m.sequences.front().key_embeddings.n_rows();
  if (n_rows == 0 && m.sequences.size() == 1) return std::nullopt;  // the usual case
  for (std::size_t s = 0; s < m.sequences.size(); ++s) {
    const SharedMatrix& encoder_states = m.sequences[s].key_embeddings;
    const std::string path = "key_embeddings" + (m.sequences.size() > 1 ? fmt::format("[{}]", s) : "");
    if (n_rows == 0 && encoder_states.n_rows() > 0)
      return Problem{path, "expected them in every sequence or in none"};
    if (n_rows > 0 && encoder_states.n_cols() == 0)
      return Problem{path, "expected at least one number for each key"};
    if (auto p = check_matrix(path, encoder_states, n_rows, m.sequences.front().key_embeddings.n_cols(),
                              "as the first sequence"))
      return p;
  }
  if (n_rows == 0 || m.projections) return std::nullopt;
  if (m.has_embeddings() && m.d_source() != m.d_model())
    return Problem{"key_embeddings",
                   fmt::format("expected {} columns, as the embeddings have, or projections, got {}",
                               m.d_model(), m.d_source())};
  return std::nullopt;
}

std::optional<Problem> check_additions(const Model& m) {
  if (auto p = check_norm(m)) return p;
  if (auto p = check_rotary(m)) return p;
  if (auto p = check_position_bias(m)) return p;
  const Additions& a = m.additions;
  if (a.softcap && !is_positive(*a.softcap)) return Problem{"score_cap", "expected a finite number above 0"};
  if (auto p = check_score_bias(m)) return p;
  if (!a.sink) return std::nullopt;
  return check_matrix("sink", *a.sink, 1, m.n_heads, "one number for each head");
}

// Given stages and cells.

std::string meaning(const StageInfo& stage) {
  const std::string rows = stage.rows == RowTokens::keys ? "n_keys" : "n_tokens";
  if (stage.columns == Columns::tokens) return rows + " × n_keys";
  return rows + (stage.stage == Stage::values ? " × d_value" : " × d_head");
}

std::optional<Problem> check_stage(const Model& model, const GivenStage& given) {
  const StageInfo& stage = info(given.stage);
  const std::string path = "given." + std::string(stage.name);
  if (!can_be_given(given.stage))
    return Problem{path, "expected one of " + text::joined(givable_stages(), ", ", &StageInfo::name)};
  const std::size_t n_heads = n_matrices(model, given.stage), expected = model.sequences.size() * n_heads;
  if (given.matrices.size() != expected)
    return Problem{
        path, fmt::format("expected {}{}{}", expected,
                          model.sequences.size() > 1 ? " matrices, one for each head of each sequence, got "
                          : n_heads < model.n_heads  ? " matrices, one for each group of heads, got "
                                                     : " matrices, one for each head, got ",
                          given.matrices.size())};
  const StageShape wanted = shape_of(model, given.stage);
  for (std::size_t k = 0; k < expected; ++k) {
    const SharedMatrix& m = given.matrices[k];
    const std::string place = model.sequences.size() > 1 ? fmt::format("[{}]", k / n_heads) : "";
    if (m.n_rows() != wanted.n_rows || m.n_cols() != wanted.n_cols || m.n_rows() * m.n_cols() == 0)
      return Problem{fmt::format("{}{}[{}]", path, place, k % n_heads),
                     "expected " + text::shape_text(wanted.n_rows, wanted.n_cols) + " (" + meaning(stage) +
                         "), got " + text::shape_text(m.n_rows(), m.n_cols())};
  }
  return std::nullopt;
}

/// Returns a problem if given stages do not fit the width of computed ones.
std::optional<Problem> check_widths(const Model& model) {
  const auto misfit = [](Stage stage, std::size_t columns, const char* other_stage, std::size_t wanted) {
    return Problem{"given." + std::string(info(stage).name),
                   fmt::format("expected {} columns, as {} have, got {}", wanted, other_stage, columns)};
  };
  const std::size_t head_width = model.d_out() / model.n_heads;
  if (is_computed(model, Stage::keys) && model.d_head() != head_width)
    return misfit(Stage::queries, model.d_head(), "the keys", head_width);
  if (is_computed(model, Stage::queries) && model.d_head() != head_width)
    return misfit(Stage::keys, model.d_head(), "the queries", head_width);
  const bool projected =
      model.projections && model.projections->output && contains(existing_stages(model), Stage::output);
  if (projected && model.d_value() != head_width)
    return misfit(Stage::values, model.d_value(), "the heads' rows of the output projection", head_width);
  return std::nullopt;
}

std::optional<Problem> check_cells(const Model& model) {
  const StageSet shown = existing_stages(model);
  for (std::size_t k = 0; k < model.given.cells.size(); ++k) {
    const GivenCellAddress& place = model.given.cells[k].place;
    const StageInfo& stage = info(place.stage);
    const std::string path = fmt::format("given.cells[{}]", k);
    if (place.stage == Stage::embeddings || place.stage == Stage::key_embeddings)
      return Problem{path, "expected another stage, as embeddings are typed where they stand"};
    if (place.stage == Stage::mask)
      return Problem{path, "expected another stage, as cells of the mask stand in mask.cells"};
    if (!contains(shown, place.stage))
      return Problem{path, "expected a stage that the model has, got " + std::string(stage.name)};
    const StageShape size = shape_of(model, place.stage);
    const std::size_t n_heads = n_matrices(model, place.stage);
    if (place.sequence >= model.sequences.size() || place.head >= n_heads || place.row >= size.n_rows ||
        place.column >= size.n_cols)
      return Problem{path, "expected a cell of " + to_string(model.sequences.size()) + " sequences, " +
                               to_string(n_heads) + " heads, " + text::shape_text(size.n_rows, size.n_cols) +
                               " " + stage.name + ", got sequence " + to_string(place.sequence) + ", head " +
                               to_string(place.head) + ", row " + to_string(place.row) + ", column " +
                               to_string(place.column)};
    if (k > 0 && model.given.cells[k - 1].place >= place)
      return Problem{path, "expected each cell once, sorted by stage, sequence, head, row and column"};
  }
  return std::nullopt;
}

std::optional<Problem> check_given(const Model& model) {
  const auto& given = model.given.stages;
  if (given.empty() && model.given.cells.empty()) return std::nullopt;  // the usual case
  for (std::size_t k = 0; k < given.size(); ++k) {
    if (auto p = check_stage(model, given[k])) return p;
    if (k > 0 && given[k - 1].stage >= given[k].stage)
      return Problem{"given." + std::string(info(given[k].stage).name),
                     "expected each stage once, in the order of the computation"};
  }
  if (auto p = check_widths(model)) return p;
  if (!contains(existing_stages(model), Stage::weights))
    return Problem{"given",
                   "expected weights, scores, or queries and keys: what is given does not lead to weights"};
  return check_cells(model);
}

// Sizes.

using std::uint64_t;

// Matrices of the scores' shape per head: scores, scaled, masked, unmasked, zeroed, weights, dropout mask,
// dropped, one being computed.
constexpr uint64_t squares_per_head = 9;
// Matrices as wide as the output: queries, keys, values, context vectors, concatenated, output.
constexpr uint64_t wide_matrices = 6;

std::size_t keys(const ModelSize& s) {
  return s.n_keys > 0 ? s.n_keys : s.n_tokens;
}

uint64_t model_bytes(const ModelSize& s) {
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
  return Problem{path, fmt::format("expected at most {} {}, got {}", limit, things, count)};
}

}  // namespace

std::optional<Problem> check(const Model& model) {
  if (auto p = check_sequences(model)) return p;
  if (auto p = check_kv_heads(model)) return p;
  if (auto p = check_encoder_states(model)) return p;
  if (auto p = check_projections(model)) return p;
  if (auto p = check_heads(model)) return p;
  if (auto p = check_mask(model)) return p;  // bugs read the mask if stages are given
  if (auto p = check_given(model)) return p;
  if (auto p = check_additions(model)) return p;
  if (auto p = check_scale(model)) return p;
  if (auto p = check_heads_off(model)) return p;
  return check_dropout(model);
}

void require(const Model& model, const std::string& place) {
  if (const auto problem = check(model)) throw Error(place + problem->path + ": " + problem->message);
}

void require(const Model& model, std::size_t sequence) {
  require(model);
  if (sequence >= model.sequences.size())
    throw Error(fmt::format("sequence {}: there is no such sequence", sequence));
}

ModelSize model_size(const Model& model) {
  ModelSize s;
  s.n_sequences = model.sequences.size();
  s.n_tokens = model.sequences.empty() ? 0 : model.n_tokens();
  s.d_model = model.sequences.empty() ? 0 : model.d_model();
  s.d_out = model.projections ? model.projections->query.weight.n_cols() : s.d_model;
  s.n_heads = model.n_heads;
  for (const GivenStage& stage : model.given.stages)
    for (const SharedMatrix& m : stage.matrices) s.given_numbers += m.n_rows() * m.n_cols();
  if (model.sequences.empty() || model.n_heads == 0) return s;
  if (model.n_keys() != s.n_tokens) s.n_keys = model.n_keys();
  if (model.has_key_embeddings()) s.d_source = model.d_source();
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

std::optional<Problem> check_size(const ModelSize& s) {
  if (auto p = check_count("embeddings", "sequences", s.n_sequences, max_sequences)) return p;
  if (auto p = check_count("embeddings", "tokens", s.n_tokens, max_tokens)) return p;
  if (auto p = check_count(s.d_source > 0 ? "key_embeddings" : "given", "keys", s.n_keys, max_tokens))
    return p;
  if (auto p = check_count("embeddings", "columns (d_in)", s.d_model, max_columns)) return p;
  if (auto p = check_count("key_embeddings", "columns (d_source)", s.d_source, max_columns)) return p;
  if (auto p = check_count("projections.query.weight", "columns (d_out)", s.d_out, max_columns)) return p;
  if (auto p = check_count("projections.output.weight", "columns", s.d_output, max_columns)) return p;
  if (auto p = check_count("n_heads", "heads", s.n_heads, max_columns)) return p;
  const uint64_t bytes = model_bytes(s);
  if (bytes <= max_bytes) return std::nullopt;
  return Problem{
      "embeddings",
      fmt::format("{} tokens, d_in = {}, d_out = {} and n_heads = {} would need {}, expected at most {}",
                  s.n_tokens, s.d_model, s.d_out, s.n_heads, text::gibibytes(bytes),
                  text::gibibytes(max_bytes))};
}

void require_size(const ModelSize& size, const std::string& place) {
  if (const auto problem = check_size(size)) throw Error(place + problem->path + ": " + problem->message);
}

void require_within_limits(const Model& model, const std::string& place) {
  require(model, place);
  require_size(model_size(model), place);
}

}  // namespace core::attention
