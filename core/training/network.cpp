#include "core/training/network.hpp"

#include <cmath>
#include <map>
#include <numbers>

#include "core/base/error.hpp"
#include "core/files/read_layer.hpp"
#include "core/graph/dropout.hpp"
#include "core/graph/gradients.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/lazy_stages.hpp"
#include "core/graph/validation.hpp"

namespace core::training {
namespace {

using arma::rowvec;
using arma::vec;
using attention::Linear;
using attention::MatrixName;
using graph::Stage;

constexpr std::array trained_matrices{
    MatrixName::query_weight, MatrixName::query_bias, MatrixName::key_weight,    MatrixName::key_bias,
    MatrixName::value_weight, MatrixName::value_bias, MatrixName::output_weight, MatrixName::output_bias,
    MatrixName::query_norm,   MatrixName::key_norm,   MatrixName::relative_bias, MatrixName::sink};

// Initialization.

SharedMatrix normal(random::Generator& generator, std::size_t n_rows, std::size_t n_columns, double scale) {
  const std::vector<float> numbers = generator.normal(n_rows * n_columns);
  mat row_major(n_columns, n_rows);
  for (std::size_t k = 0; k < numbers.size(); ++k) row_major[k] = scale * static_cast<double>(numbers[k]);
  return mat(row_major.t());
}

Linear initial_linear(random::Generator& generator, std::size_t d_in, std::size_t d_out, bool has_bias) {
  Linear linear{normal(generator, d_in, d_out, 1 / std::sqrt(static_cast<double>(d_in))), std::nullopt};
  if (has_bias) linear.bias = mat(1, d_out, arma::fill::zeros);
  return linear;
}

NetworkNorm initial_norm(const TrainingSetup& s) {
  NetworkNorm norm;
  if (s.norm != NormChoice::none) norm.weight = mat(1, s.d_model, arma::fill::ones);
  if (s.norm == NormChoice::layer && s.has_biases()) norm.bias = mat(1, s.d_model, arma::fill::zeros);
  return norm;
}

attention::Model initial_attention(const TrainingSetup& s, std::size_t n_tokens,
                                   random::Generator& generator) {
  const std::size_t d = s.d_model, d_keys = s.kv_heads() * s.d_head();
  attention::Model m;
  m.sequences.push_back({attention::numbered_tokens(n_tokens), mat(n_tokens, d, arma::fill::zeros)});
  const auto linear = [&](std::size_t d_out) { return initial_linear(generator, d, d_out, s.has_biases()); };
  attention::Projections projections{linear(d), linear(d_keys), linear(d_keys), std::nullopt};
  projections.output = linear(d);
  m.projections = std::move(projections);
  m.n_heads = s.n_heads;
  if (s.kv_heads() != s.n_heads) m.n_kv_heads = s.kv_heads();
  m.mask.causal = s.causal;
  m.dropout.rate = s.dropout;
  m.dropout.training = false;
  if (s.positions == PositionChoice::rotary) m.additions.positions.rotary.emplace();
  if (s.positions == PositionChoice::alibi)
    m.additions.positions.alibi =
        formats::checkpoints::make_alibi({formats::checkpoints::AlibiSlopes::mpt, 8}, s.n_heads, s.d_head());
  if (s.mistake.empty()) return m;
  const bugs::Bug& bug = *bugs::find_offered_bug(s.mistake);
  if (!bugs::has_effect(bug, m)) throw Error("--mistake " + s.mistake + ": cannot be made in this model");
  return bugs::injected(bug, m);
}

/// Returns kept weights as ones, [sequence · n_heads + head], in PyTorch's order for the whole batch.
std::vector<SharedMatrix> sampled_masks(const attention::Model& m) {
  const std::size_t n = m.n_tokens(), n_masks = m.sequences.size() * m.n_heads;
  random::Generator generator(m.dropout.seed);
  const random::Bits kept = attention::kept(generator, m.dropout, n_masks * n * n);
  std::vector<SharedMatrix> masks;
  for (std::size_t k = 0; k < n_masks; ++k) {
    mat ones(n, n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) ones(i, j) = kept[(k * n + i) * n + j];
    masks.emplace_back(std::move(ones));
  }
  return masks;
}

// Parts of a layer.

/// Returns rows divided by their root mean square, centered first in LayerNorm, and the inverse of the roots.
mat normalized(mat x, NormChoice rule, vec& inverse_roots) {
  const double epsilon = rule == NormChoice::rms ? 1e-6 : 1e-5;  // of Llama and GPT-2
  if (rule == NormChoice::layer) x.each_col() -= vec(arma::mean(x, 1));
  inverse_roots = 1 / arma::sqrt(arma::mean(arma::square(x), 1) + epsilon);
  x.each_col() %= inverse_roots;
  return x;
}

mat apply(const NetworkNorm& norm, NormChoice rule, const mat& x) {
  if (!norm.weight) return x;
  vec inverse_roots;
  mat y = normalized(x, rule, inverse_roots);
  y.each_row() %= norm.weight->row(0);
  if (norm.bias) y.each_row() += norm.bias->row(0);
  return y;
}

mat apply(const Linear& linear, const mat& x) {
  mat y = x * *linear.weight;
  if (linear.bias) y.each_row() += linear.bias->row(0);
  return y;
}

/// Returns x·Φ(x).
mat gelu(mat x) {
  return x.transform([](double u) { return u / 2 * std::erfc(-u / std::numbers::sqrt2); });
}

/// Returns its derivative, Φ(x) + x·φ(x).
mat gelu_slope(mat x) {
  return x.transform([](double u) {
    return std::erfc(-u / std::numbers::sqrt2) / 2 +
           u * std::exp(-u * u / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  });
}

/// Gradients of matrices of a network, by their address.
struct GradientsByMatrix {
  std::map<const SharedMatrix*, mat> of;
  void add(const SharedMatrix& numbers, const mat& gradient) {
    mat& sum = of[&numbers];
    if (sum.empty())
      sum = gradient;
    else
      sum += gradient;
  }

  /// Adds to the gradients of a part; returns that of its input x, given that of its result.
  mat pass(const NetworkNorm& norm, NormChoice rule, const mat& x, const mat& dy) {
    if (!norm.weight) return dy;
    vec inverse_roots;
    const mat y = normalized(x, rule, inverse_roots);
    add(*norm.weight, arma::sum(dy % y, 0));
    if (norm.bias) add(*norm.bias, arma::sum(dy, 0));
    mat dx = dy;
    dx.each_row() %= norm.weight->row(0);
    mat along = y;
    along.each_col() %= vec(arma::mean(dx % y, 1));
    if (rule == NormChoice::layer) dx.each_col() -= vec(arma::mean(dx, 1));
    dx -= along;
    dx.each_col() %= inverse_roots;
    return dx;
  }
  mat pass(const Linear& linear, const mat& x, const mat& dy) {
    add(linear.weight, x.t() * dy);
    if (linear.bias) add(*linear.bias, arma::sum(dy, 0));
    return dy * linear.weight->t();
  }
};

}  // namespace

Network::Network(const TrainingSetup& s, std::size_t n_vocabulary, std::size_t n_tokens) : setup(s) {
  require(s);
  random::Generator generator(s.seed);
  token_embedding = normal(generator, n_vocabulary, s.d_model, 1);
  if (s.positions == PositionChoice::learned) position_embedding = normal(generator, n_tokens, s.d_model, 1);
  for (std::size_t l = 0; l < s.n_layers; ++l) {
    NetworkLayer layer{initial_norm(s), initial_attention(s, n_tokens, generator), {}, {}, {}};
    if (s.d_mlp > 0) {
      layer.mlp_norm = initial_norm(s);
      layer.up = initial_linear(generator, s.d_model, s.d_mlp, s.has_biases());
      layer.down = initial_linear(generator, s.d_mlp, s.d_model, s.has_biases());
    }
    attention::require(layer.attention);
    layers.push_back(std::move(layer));
  }
  final_norm = initial_norm(s);
  unembedding = normal(generator, s.d_model, n_vocabulary, 1 / std::sqrt(static_cast<double>(s.d_model)));
}

Network Network::with_options(const TrainingSetup& other) const {
  Network next(other, n_vocabulary(), n_tokens()), now = *this;
  for (const NetworkParameter& parameter : now.parameters())
    for (const NetworkParameter& of_next : next.parameters())
      if (of_next.name == parameter.name) *of_next.numbers = *parameter.numbers;
  for (std::size_t l = 0; l < layers.size(); ++l)
    next.layers[l].attention.heads_off = layers[l].attention.heads_off;
  return next;
}

std::vector<NetworkParameter> Network::parameters() {
  std::vector<NetworkParameter> all{{"token_embedding", &token_embedding}};
  const auto add = [&](const std::string& name, std::optional<SharedMatrix>& numbers) {
    if (numbers) all.push_back({name, &*numbers});
  };
  const auto add_norm = [&](const std::string& name, NetworkNorm& norm) {
    add(name + "_weight", norm.weight), add(name + "_bias", norm.bias);
  };
  const auto add_linear = [&](const std::string& name, Linear& linear) {
    all.push_back({name + "_weight", &linear.weight}), add(name + "_bias", linear.bias);
  };
  add("position_embedding", position_embedding);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::string at = "layers." + std::to_string(l) + ".";
    NetworkLayer& layer = layers[l];
    add_norm(at + "attention_norm", layer.attention_norm);
    for (const MatrixName name : trained_matrices)
      if (SharedMatrix* numbers = attention::find_matrix(layer.attention, {name, 0}))
        all.push_back({at + graph::gradient_name(name), numbers});
    add_norm(at + "mlp_norm", layer.mlp_norm);
    if (layer.up) add_linear(at + "up", *layer.up), add_linear(at + "down", *layer.down);
  }
  add_norm("final_norm", final_norm);
  all.push_back({"unembedding", &unembedding});
  return all;
}

/// One layer of a pass. The stages refer to the model and the graph.
struct NetworkPass::LayerPass {
  LayerPass(mat entering, attention::Model of_batch)
      : input(std::move(entering)),
        model(std::move(of_batch)),
        graph(graph::attention(model)),
        stages(graph, model) {}

  mat input;               ///< residual stream before the layer
  attention::Model model;  ///< with a sequence for each sample
  graph::Graph graph;
  graph::LazyStages stages;
  mat middle, up;  ///< residual stream before the MLP; its hidden units before the GELU
};

NetworkPass::~NetworkPass() = default;

NetworkPass::NetworkPass(const Network& network, std::span<const Sample> samples,
                         std::optional<std::uint64_t> dropout_seed)
    : network_(network), samples_(samples), n_tokens_(network.n_tokens()) {
  const mat& embeddings = network.token_embedding;
  x_.set_size(samples.size() * n_tokens_, network.setup.d_model);
  for (std::size_t k = 0; k < x_.n_rows; ++k)
    x_.row(k) = embeddings.row(samples[k / n_tokens_].tokens[k % n_tokens_]);
  if (network.position_embedding) x_ += arma::repmat(**network.position_embedding, samples.size(), 1);
  for (std::size_t l = 0; l < network.layers.size(); ++l) add_attention(l, dropout_seed);
  logits_ = apply(network.final_norm, network.setup.norm, x_) * *network.unembedding;
  compute_loss();
}

void NetworkPass::add_attention(std::size_t l, std::optional<std::uint64_t> dropout_seed) {
  const NetworkLayer& layer = network_.layers[l];
  const NormChoice rule = network_.setup.norm;
  attention::Model model = layer.attention;
  model.sequences.resize(samples_.size(), model.sequences.front());
  const mat normed = apply(layer.attention_norm, rule, x_);
  for (std::size_t b = 0; b < samples_.size(); ++b)
    model.sequences[b].embeddings = mat(normed.rows(b * n_tokens_, (b + 1) * n_tokens_ - 1));
  model.dropout.training = dropout_seed.has_value();
  model.dropout.seed = dropout_seed.value_or(0) + l;
  if (model.dropout.active()) model.dropout.given = sampled_masks(model);
  LayerPass& pass = *layers_.emplace_back(std::make_unique<LayerPass>(x_, std::move(model)));
  for (std::size_t b = 0; b < samples_.size(); ++b)
    x_.rows(b * n_tokens_, (b + 1) * n_tokens_ - 1) += *pass.stages.matrix(Stage::output, b, 0);
  if (!layer.up) return;
  pass.middle = x_;
  pass.up = apply(*layer.up, apply(layer.mlp_norm, rule, x_));
  x_ += apply(*layer.down, gelu(pass.up));
}

void NetworkPass::compute_loss() {
  std::size_t n_targets = 0, n_right = 0;
  d_logits_.zeros(arma::size(logits_));
  for (std::size_t k = 0; k < logits_.n_rows; ++k) {
    const auto& target = samples_[k / n_tokens_].targets[k % n_tokens_];
    if (!target) continue;
    const rowvec logits = logits_.row(k);
    const double largest = logits.max();
    rowvec probabilities = arma::exp(logits - largest);
    const double sum = arma::accu(probabilities);
    probabilities /= sum;
    loss_ += std::log(sum) + largest - logits[*target];
    n_right += logits.index_max() == *target;
    ++n_targets;
    probabilities[*target] -= 1;
    d_logits_.row(k) = probabilities;
  }
  const double n = static_cast<double>(n_targets);
  loss_ /= n, accuracy_ = static_cast<double>(n_right) / n, d_logits_ /= n;
}

mat NetworkPass::logits(std::size_t sample) const {
  return logits_.rows(sample * n_tokens_, (sample + 1) * n_tokens_ - 1);
}

const mat& NetworkPass::weights(std::size_t layer, std::size_t head, std::size_t sample) {
  return *layers_[layer]->stages.matrix(Stage::weights, sample, head);
}

std::vector<mat> NetworkPass::gradients() {
  const NormChoice rule = network_.setup.norm;
  GradientsByMatrix all;
  all.add(network_.unembedding, apply(network_.final_norm, rule, x_).t() * d_logits_);
  mat dx = all.pass(network_.final_norm, rule, x_, d_logits_ * network_.unembedding->t());
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const NetworkLayer& layer = network_.layers[l];
    LayerPass& pass = *layers_[l];
    if (layer.up) {
      const mat d_up = all.pass(*layer.down, gelu(pass.up), dx) % gelu_slope(pass.up);
      dx += all.pass(layer.mlp_norm, rule, pass.middle,
                     all.pass(*layer.up, apply(layer.mlp_norm, rule, pass.middle), d_up));
    }
    mat d_normed(arma::size(dx), arma::fill::zeros);
    for (std::size_t b = 0; b < samples_.size(); ++b) {
      const arma::span rows(b * n_tokens_, (b + 1) * n_tokens_ - 1);
      const auto take_embeddings = [&](Stage stage, std::size_t, const mat& gradient) {
        if (stage == Stage::embeddings) d_normed.rows(rows.a, rows.b) = gradient;
      };
      const graph::Gradients of_sample =
          graph::gradients_from(pass.graph, pass.model, pass.stages, b, Stage::output,
                                {mat(dx.rows(rows.a, rows.b))}, take_embeddings);
      for (const MatrixName name : trained_matrices) {
        const attention::MatrixRef place{name, 0};
        const SharedMatrix* numbers = attention::find_matrix(layer.attention, place);
        if (const mat& gradient = of_sample.of(place); numbers && !gradient.empty())
          all.add(*numbers, gradient);
      }
    }
    dx += all.pass(layer.attention_norm, rule, pass.input, d_normed);
  }
  mat d_tokens(arma::size(*network_.token_embedding), arma::fill::zeros);
  for (std::size_t k = 0; k < dx.n_rows; ++k)
    d_tokens.row(samples_[k / n_tokens_].tokens[k % n_tokens_]) += dx.row(k);
  all.add(network_.token_embedding, d_tokens);
  if (network_.position_embedding)
    for (std::size_t b = 0; b < samples_.size(); ++b)
      all.add(*network_.position_embedding, dx.rows(b * n_tokens_, (b + 1) * n_tokens_ - 1));
  std::vector<mat> in_order;
  for (const NetworkParameter& parameter : const_cast<Network&>(network_).parameters())
    in_order.push_back(std::move(all.of[parameter.numbers]));
  return in_order;
}

PatternScores pattern_scores(NetworkPass& pass, const Network& network, std::span<const Sample> samples,
                             std::size_t n_patterns) {
  const TrainingSetup& setup = network.setup;
  PatternScores scores(n_patterns, {setup.n_layers, std::vector<double>(setup.n_heads)});
  for (std::size_t p = 0; p < n_patterns; ++p)
    for (std::size_t l = 0; l < setup.n_layers; ++l)
      for (std::size_t h = 0; h < setup.n_heads; ++h) {
        std::size_t n_queries = 0;
        double sum = 0;
        for (std::size_t b = 0; b < samples.size(); ++b)
          for (std::size_t i = 0; i < samples[b].keys[p].size(); ++i) {
            const auto& keys = samples[b].keys[p][i];
            if (keys.empty()) continue;
            ++n_queries;
            for (const std::size_t j : keys) sum += pass.weights(l, h, b)(i, j);
          }
        scores[p][l][h] = n_queries == 0 ? 0 : sum / static_cast<double>(n_queries);
      }
  return scores;
}

}  // namespace core::training
