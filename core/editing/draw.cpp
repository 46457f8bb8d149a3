#include "core/editing/draw.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/graph/matrices.hpp"
#include "core/graph/validation.hpp"

namespace core::editing {

using attention::Linear;
using attention::Projections;
using attention::Sequence;

arma::mat filled(const std::vector<float>& numbers, std::size_t rows, std::size_t columns) {
  return arma::conv_to<arma::mat>::from(arma::fmat(numbers.data(), columns, rows)).t();
}

Linear sample_linear(random::Generator& g, std::size_t d_in, std::size_t d_out, bool bias) {
  Linear linear;
  linear.weight = arma::mat(filled(g.linear_weight(d_in, d_out), d_out, d_in).t());
  if (bias) linear.bias = filled(g.linear_bias(d_in, d_out), 1, d_out);
  return linear;
}

Projections sample_projections(random::Generator& g, std::size_t d_in, std::size_t d_out, bool bias,
                               LayerOrder order) {
  Projections p;
  const bool query_first = order == LayerOrder::query_key_value;
  (query_first ? p.query : p.key) = sample_linear(g, d_in, d_out, bias);
  (query_first ? p.key : p.query) = sample_linear(g, d_in, d_out, bias);
  p.value = sample_linear(g, d_in, d_out, bias);
  return p;
}

std::vector<Sequence> sample_batch(random::Generator& g, std::size_t n_sequences, std::size_t n_tokens,
                                   std::size_t d_model) {
  const arma::mat all = filled(g.normal(n_sequences * n_tokens * d_model), n_sequences * n_tokens, d_model);
  std::vector<Sequence> batch;
  for (std::size_t s = 0; s < n_sequences; ++s)
    batch.push_back(
        {attention::numbered_tokens(n_tokens), arma::mat(all.rows(s * n_tokens, (s + 1) * n_tokens - 1))});
  return batch;
}

Sequence your_journey() {
  const std::vector<float> features{0.43f, 0.15f, 0.89f, 0.55f, 0.87f, 0.66f, 0.57f, 0.85f, 0.64f,
                                    0.22f, 0.58f, 0.33f, 0.77f, 0.25f, 0.10f, 0.05f, 0.80f, 0.55f};
  return {{"Your", "journey", "starts", "with", "one", "step"}, filled(features, 6, 3)};
}

namespace {

using attention::Model;
using random::Generator;
using random::RandomOp;
using random::RandomOpKind;
using random::SampledMatrix;

bool is_uniform(EmbeddingsInit draw) {
  return draw == EmbeddingsInit::rand_first || draw == EmbeddingsInit::rand_last;
}

/// Returns the index of a layer: 0 for queries … 3 for the output.
std::size_t part_index(InitializedPart layer) {
  return static_cast<std::size_t>(layer) - static_cast<std::size_t>(InitializedPart::query);
}

/// Order and form in which a notebook samples a model.
struct SamplingScheme {
  std::vector<RandomOp> before = {};
  EmbeddingsInit embeddings = EmbeddingsInit::none;
  bool repeated = false;  // all sequences have the same embeddings
  LayerOrder order = LayerOrder::query_key_value;
  RandomOpKind kind = RandomOpKind::linear;
  bool by_head = false, has_layers = true, has_output = false;
  std::array<bool, 4> bias = {};  // of query, key, value and output
};

/// Returns the op that samples a layer: nn.Linear, or a plain tensor.
RandomOp layer_op(RandomOpKind kind, std::size_t d_in, std::size_t d_out, bool bias) {
  RandomOp op;
  op.kind = kind;
  op.bias = kind == RandomOpKind::linear && bias;
  op.shape = {d_in, d_out};
  if (kind == RandomOpKind::linear) std::swap(op.shape[0], op.shape[1]);
  return op;
}

/// Returns the draws of a layout, in order, in the shapes of a model.
std::vector<RecipeDraw> draws_of(const Model& model, const SamplingScheme& scheme) {
  std::vector<RecipeDraw> draws;
  for (const RandomOp& op : scheme.before) draws.push_back({op});
  const RecipeDraw embeddings{embeddings_op(model, scheme.embeddings, scheme.repeated),
                              InitializedPart::embeddings,
                              {},
                              scheme.repeated};
  if (is_sampled_first(scheme.embeddings)) draws.push_back(embeddings);
  const std::size_t heads = scheme.by_head ? model.n_heads : 1,
                    kv_width = model.d_out() / model.n_heads * model.kv_heads();
  std::array parts{InitializedPart::query, InitializedPart::key, InitializedPart::value};
  if (scheme.order == LayerOrder::key_query_value) std::swap(parts[0], parts[1]);
  for (std::size_t h = 0; h < heads && scheme.has_layers; ++h)
    for (const InitializedPart part : parts) {
      const bool is_query = part == InitializedPart::query;
      RecipeDraw draw{layer_op(scheme.kind, is_query ? model.d_model() : model.d_source(),
                               (is_query ? model.d_out() : kv_width) / heads, scheme.bias[part_index(part)]),
                      part};
      if (scheme.by_head) draw.head = h;
      draws.push_back(draw);
    }
  if (scheme.has_output) {
    const bool has_one = model.projections && model.projections->output;
    draws.push_back(
        {layer_op(scheme.kind, model.d_out(), has_one ? model.d_output() : model.d_out(), scheme.bias[3]),
         InitializedPart::output});
  }
  if (is_sampled_last(scheme.embeddings)) draws.push_back(embeddings);
  return draws;
}

SamplingScheme scheme_of(const ModelInit& draw) {
  SamplingScheme scheme{draw.before, draw.embeddings, false, draw.order};
  scheme.has_output = draw.output != OutputLayer::none;
  scheme.bias = {draw.bias, draw.bias, draw.bias, draw.output == OutputLayer::with_bias};
  return scheme;
}

arma::mat matrix_of(const SampledMatrix& block) {
  return filled(std::get<std::vector<float>>(block.numbers), block.rows, block.columns);
}

/// Returns the input width of the layer that a bias belongs to.
std::size_t layer_input(const attention::Model& model, MatrixName bias) {
  if (bias == MatrixName::output_bias) return model.d_out();
  return bias == MatrixName::query_bias ? model.d_model() : model.d_source();
}

}  // namespace

bool is_sampled_first(EmbeddingsInit draw) {
  return draw == EmbeddingsInit::rand_first || draw == EmbeddingsInit::randn_first;
}

bool is_sampled_last(EmbeddingsInit draw) {
  return draw == EmbeddingsInit::rand_last || draw == EmbeddingsInit::randn_last;
}

RandomOp embeddings_op(const Model& model, EmbeddingsInit draw, bool repeated) {
  RandomOp op;
  op.kind = is_uniform(draw) ? RandomOpKind::rand : RandomOpKind::randn;
  if (model.sequences.size() > 1 && !repeated) op.shape.push_back(model.sequences.size());
  op.shape.insert(op.shape.end(), {model.n_tokens(), model.d_model()});
  return op;
}

ModelInit matching_init(const Model& model) {
  ModelInit draw;
  if (!model.projections) return draw;
  const auto& p = *model.projections;
  draw.bias = p.query.bias || p.key.bias || p.value.bias;
  if (p.output) draw.output = p.output->bias ? OutputLayer::with_bias : OutputLayer::without_bias;
  return draw;
}

Model initialized_model(const Model& model, const ModelInit& draw) {
  Model sampled = model;
  sampled.projections.emplace();
  if (draw.output != OutputLayer::none) sampled.projections->output.emplace();
  Generator generator(draw.seed);
  for (const auto& [op, part, head, repeated] : draws_of(model, scheme_of(draw))) {
    const std::vector<SampledMatrix> blocks = random::run(generator, op);
    if (part == InitializedPart::nothing) continue;
    const arma::mat numbers = matrix_of(blocks.front());
    if (part == InitializedPart::embeddings) {
      const std::size_t n = model.n_tokens();
      for (std::size_t s = 0; s < model.sequences.size(); ++s)
        sampled.sequences[s].embeddings = arma::mat(numbers.rows(s * n, (s + 1) * n - 1));
      continue;
    }
    Linear& layer = *find_linear(sampled, attention::all_parts[part_index(part)]);
    layer.weight = arma::mat(numbers.t());
    if (op.bias) layer.bias = matrix_of(blocks[1]);
  }
  return sampled;
}

std::string torch_lines(const Model& model, const ModelInit& draw) {
  std::string lines = fmt::format("import torch\nfrom torch import nn\n\ntorch.manual_seed({})\n", draw.seed);
  for (const auto& [op, part, head, repeated] : draws_of(model, scheme_of(draw))) {
    if (part == InitializedPart::embeddings) lines += "x = ";
    if (part > InitializedPart::embeddings) lines += std::string("W_") + "qkvo"[part_index(part)] + " = ";
    lines += random::torch_line(op) + "\n";
  }
  return lines;
}

arma::mat filled(const attention::Model& model, MatrixRef place, const Fill& fill) {
  const arma::mat& old = **find_matrix(model, place);
  const std::size_t rows = old.n_rows, columns = old.n_cols;
  random::Generator generator(fill.seed);
  if (fill.draws())
    for (const random::RandomOp& op : fill.before) random::run(generator, op);
  switch (fill.rule) {
    case FillRule::zeros:
      break;
    case FillRule::ones:
      return arma::mat(rows, columns, arma::fill::ones);
    case FillRule::identity:
      return arma::mat(rows, columns, arma::fill::eye);
    case FillRule::rand:
      return filled(generator.rand(rows * columns), rows, columns);
    case FillRule::randn:
    case FillRule::embedding:
      return filled(generator.normal(rows * columns), rows, columns);
    case FillRule::linear: {
      if (is_bias(place.name))
        return *sample_linear(generator, layer_input(model, place.name), columns, true).bias;
      return sample_linear(generator, rows, columns).weight;
    }
  }
  return arma::mat(rows, columns, arma::fill::zeros);
}

}  // namespace core::editing

namespace core::text {

namespace {

std::vector<CodePoint> checked_points(std::string_view text) {
  if (text.size() > max_sentence_bytes)
    throw Error(fmt::format("text: expected at most {} bytes, got {}", max_sentence_bytes, text.size()));
  return code_points(text);
}

std::vector<std::string> checked_tokens(std::vector<std::string> tokens) {
  if (tokens.empty()) throw Error("text: expected at least one token");
  if (tokens.size() > max_sentence_tokens)
    throw Error(fmt::format("text: expected at most {} tokens, got {}", max_sentence_tokens, tokens.size()));
  return tokens;
}

bool is_letter(char32_t c) {
  return !is_space(c) && !is_punctuation(c);
}

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}

/// Returns whether a mark between two letters belongs to their word.
bool joins(char32_t before, char32_t mark, char32_t after) {
  if (mark == '.' || mark == ',') return is_digit(before) && is_digit(after);
  const bool joiner = mark == '\'' || mark == U'’' || mark == '-' || mark == U'‐' || mark == U'‑';
  return joiner && is_letter(before) && is_letter(after);
}

std::string character_token(const CodePoint& c, std::string_view text) {
  if (c.value == '\t') return "⇥";
  if ((c.value >= 0x0A && c.value <= 0x0D) || c.value == 0x85 || c.value == 0x2028 || c.value == 0x2029)
    return "↵";
  return is_space(c.value) ? "␣" : std::string(text.substr(c.at, c.size));
}

}  // namespace

std::vector<std::string> words(std::string_view text) {
  const std::vector<CodePoint> points = checked_points(text);
  std::vector<std::string> found;
  bool inside = false;  // of a word
  for (std::size_t k = 0; k < points.size(); ++k) {
    const char32_t c = points[k].value;
    const std::string_view bytes = text.substr(points[k].at, points[k].size);
    const bool part = is_letter(c) ||
                      (inside && k + 1 < points.size() && joins(points[k - 1].value, c, points[k + 1].value));
    if (part && inside)
      found.back() += bytes;
    else if (!is_space(c))
      found.emplace_back(bytes);
    inside = part;
  }
  return checked_tokens(std::move(found));
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> found;
  for (const CodePoint& c : checked_points(text)) found.push_back(character_token(c, text));
  return checked_tokens(std::move(found));
}

std::vector<std::string> tokens(std::string_view text, TokenRule rule) {
  return rule == TokenRule::words ? words(text) : characters(text);
}

std::vector<std::string> vocabulary(const std::vector<std::string>& tokens) {
  std::vector<std::string> distinct;
  for (const std::string& token : tokens)
    if (std::find(distinct.begin(), distinct.end(), token) == distinct.end()) distinct.push_back(token);
  return distinct;
}

attention::Model with_sentence(const attention::Model& base, const std::vector<std::string>& tokens,
                               std::uint64_t seed) {
  const std::vector<std::string> distinct = vocabulary(tokens);
  const std::size_t n = tokens.size(), d_model = base.d_model();
  const arma::mat table =
      editing::filled(random::Generator(seed).normal(distinct.size() * d_model), distinct.size(), d_model);
  arma::mat embeddings(n, d_model);
  for (std::size_t i = 0; i < n; ++i)
    embeddings.row(i) = table.row(std::ranges::find(distinct, tokens[i]) - distinct.begin());
  attention::Model model = base;
  model.sequences = {{tokens, embeddings}};
  model.dropout.given.clear();
  attention::trim_mask(model);
  attention::require_within_limits(model);
  return model;
}

}  // namespace core::text

namespace core::editing {

namespace {

/// Largest draw without a match that is sampled to test later ones.
constexpr std::size_t max_skipped_draw = 1 << 16;

double number(const SampledMatrix& block, std::size_t row, std::size_t column) {
  return std::visit([&](const auto& all) { return static_cast<double>(all[row * block.columns + column]); },
                    block.numbers);
}

/// Number of sampled numbers that equal the model's.
struct DrawAgreement {
  std::size_t equal = 0, all = 0;
  void count(double sampled, double own) { equal += sampled == own, ++all; }
  bool is_whole() const { return equal == all; }
};

/// Compares the first rows of a draw with the part of the model that it gives.
DrawAgreement agreement(const Model& model, const RecipeDraw& draw, const std::vector<SampledMatrix>& sampled,
                        std::size_t rows) {
  DrawAgreement result;
  const SampledMatrix& block = sampled.front();
  if (draw.part == InitializedPart::embeddings) {
    const std::size_t n = model.n_tokens();
    for (std::size_t s = 0; s < model.sequences.size(); ++s)
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = draw.repeated ? i : s * n + i;
        for (std::size_t j = 0; row < rows && j < block.columns; ++j)
          result.count(number(block, row, j), (*model.sequences[s].embeddings)(i, j));
      }
    return result;
  }
  const Linear& layer = *find_linear(model, attention::all_parts[part_index(draw.part)]);
  const bool transposed = draw.op.kind == RandomOpKind::linear;
  const std::size_t columns = transposed ? draw.op.shape[0] : draw.op.shape[1],
                    first = draw.head.value_or(0) * columns;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < block.columns; ++column) {
      const std::size_t in = transposed ? column : row, out = transposed ? row : column;
      result.count(number(block, row, column), (*layer.weight)(in, first + out));
    }
  if (sampled.size() > 1)
    for (std::size_t k = 0; k < columns; ++k)
      result.count(number(sampled[1], 0, k), (**layer.bias)(0, first + k));
  return result;
}

/// Returns whether any number in the first row of a draw equals the model's; the row does not depend on the
/// number of rows.
bool first_row_matches(const Model& model, RecipeDraw draw, Generator generator) {
  constexpr std::size_t max_compared = 64;  // at this size normal numbers are sampled as in a longer draw
  draw.op.bias = false;
  const std::size_t columns = draw.op.shape.back(), rows = draw.op.size() / columns;
  draw.op.shape = {std::min(rows, max_compared / columns + 1), columns};
  return agreement(model, draw, run(generator, draw.op), 1).equal > 0;
}

/// Returns the draws of a layout up to the last that gives a part; stops at a layer unlike the model's.
SeededDraws matching_draws(const Model& model, const SamplingScheme& scheme, std::uint64_t seed,
                           const std::vector<InitializedPart>& wanted) {
  SeededDraws seeded_draws{seed, {}};
  Generator generator(seed);
  std::size_t useful = 0;
  for (RecipeDraw draw : draws_of(model, scheme)) {
    const bool layer = draw.part > InitializedPart::embeddings;
    const bool is_match = draw.part != InitializedPart::nothing && first_row_matches(model, draw, generator);
    if (!is_match && (layer || draw.op.size() > max_skipped_draw)) break;
    const std::vector<SampledMatrix> sampled = run(generator, draw.op);
    const bool is_wanted = std::ranges::find(wanted, draw.part) != wanted.end();
    const std::size_t rows = draw.op.kind == RandomOpKind::randint ? 0 : sampled.front().rows;
    if (!is_wanted || !is_match || !agreement(model, draw, sampled, rows).is_whole())
      draw.part = InitializedPart::nothing;
    seeded_draws.draws.push_back(draw);
    if (draw.part != InitializedPart::nothing) useful = seeded_draws.draws.size();
  }
  seeded_draws.draws.resize(useful);
  if (!scheme.by_head) return seeded_draws;
  // A part must match in all its heads.
  for (const InitializedPart part : {InitializedPart::query, InitializedPart::key, InitializedPart::value}) {
    const auto of_part = [part](const RecipeDraw& d) { return d.part == part; };
    if (std::ranges::count_if(seeded_draws.draws, of_part) == static_cast<std::ptrdiff_t>(model.n_heads))
      continue;
    for (RecipeDraw& draw : seeded_draws.draws)
      if (of_part(draw)) draw.part = InitializedPart::nothing, draw.head.reset();
  }
  while (!seeded_draws.draws.empty() && seeded_draws.draws.back().part == InitializedPart::nothing)
    seeded_draws.draws.pop_back();
  return seeded_draws;
}

std::vector<SamplingScheme> candidate_schemes(const Model& model) {
  using enum EmbeddingsInit;
  SamplingScheme scheme;
  scheme.has_layers = model.projections.has_value();
  scheme.has_output = scheme.has_layers && model.projections->output;
  for (const attention::ProjectionName part : attention::all_parts)
    if (const Linear* linear = find_linear(model, part))
      scheme.bias[static_cast<std::size_t>(part)] = linear->bias.has_value();
  std::vector<SamplingScheme> all;
  for (const bool starts_before : {false, true}) {
    // Notebook 002 samples six tokens first.
    if (starts_before) scheme.before = random::parse_random_ops("randint(0,10,6)");
    for (const EmbeddingsInit e : {none, rand_first, randn_first, rand_last, randn_last})
      for (const bool repeated : {false, true}) {
        if (repeated && (e == none || model.sequences.size() == 1)) continue;
        scheme.embeddings = e, scheme.repeated = repeated;
        if (!model.projections) {
          all.push_back(scheme);
          continue;
        }
        for (const RandomOpKind kind : {RandomOpKind::linear, RandomOpKind::rand, RandomOpKind::randn})
          for (const LayerOrder order : {LayerOrder::query_key_value, LayerOrder::key_query_value})
            for (const bool by_head : {false, true}) {
              if (by_head && (model.n_heads == 1 || model.n_kv_heads)) continue;
              scheme.kind = kind, scheme.order = order, scheme.by_head = by_head;
              all.push_back(scheme);
            }
      }
  }
  return all;
}

std::size_t count_parts(const SeededDraws& seeded_draws) {
  std::size_t count = 0;
  for (const InitializedPart part : {InitializedPart::embeddings, InitializedPart::query,
                                     InitializedPart::key, InitializedPart::value, InitializedPart::output})
    count += seeded_draws.initializes(part);
  return count;
}

/// Returns the passage that gives the most wanted parts; of equal ones, the shortest.
SeededDraws best_draws(const Model& model, const std::vector<std::uint64_t>& seeds,
                       const std::vector<InitializedPart>& wanted) {
  SeededDraws best;
  for (const SamplingScheme& scheme : candidate_schemes(model))
    for (const std::uint64_t seed : seeds) {
      SeededDraws seeded_draws = matching_draws(model, scheme, seed, wanted);
      const std::size_t more = count_parts(seeded_draws), most = count_parts(best);
      if (more > most || (more == most && more > 0 && seeded_draws.draws.size() < best.draws.size()))
        best = std::move(seeded_draws);
      if (count_parts(best) == wanted.size()) return best;
    }
  return best;
}

}  // namespace

bool SeededDraws::initializes(InitializedPart part) const {
  return std::ranges::any_of(draws, [part](const RecipeDraw& draw) { return draw.part == part; });
}

std::vector<std::uint64_t> usual_seeds() {
  return {123, 42, 1337, 789, 0, 1, 2, 3, 7, 2024};
}

std::vector<SeededDraws> find_recipe(const Model& model, const std::vector<std::uint64_t>& seeds) {
  std::vector<InitializedPart> wanted{InitializedPart::embeddings};
  if (model.projections)
    wanted.insert(wanted.end(), {InitializedPart::query, InitializedPart::key, InitializedPart::value});
  if (model.projections && model.projections->output) wanted.push_back(InitializedPart::output);
  std::vector<SeededDraws> recipe;
  while (!wanted.empty()) {
    SeededDraws seeded_draws = best_draws(model, seeds, wanted);
    if (seeded_draws.draws.empty()) break;
    std::erase_if(wanted, [&](InitializedPart part) { return seeded_draws.initializes(part); });
    recipe.push_back(std::move(seeded_draws));
  }
  return recipe;
}

}  // namespace core::editing
