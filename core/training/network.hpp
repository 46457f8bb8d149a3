#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/model.hpp"
#include "core/training/setup.hpp"
#include "core/training/task.hpp"

namespace core::training {

using arma::mat;
using attention::SharedMatrix;

/// LayerNorm or RMSNorm of rows; without factors there is none.
struct NetworkNorm {
  std::optional<SharedMatrix> weight, bias;  ///< 1 × d_model
  friend bool operator==(const NetworkNorm&, const NetworkNorm&) = default;
};

struct NetworkLayer {
  NetworkNorm attention_norm;
  /// With a sequence of the task's length. All options of attention can be trained, and every bug.
  attention::Model attention;
  NetworkNorm mlp_norm;
  std::optional<attention::Linear> up, down;  ///< of the MLP, with the exact GELU between them
  friend bool operator==(const NetworkLayer&, const NetworkLayer&) = default;
};

/// A learned matrix of a network, for reading and writing.
struct NetworkParameter {
  std::string name;  ///< "layers.0.query_weight"; see Network::parameters()
  SharedMatrix* numbers;
};

/// A decoder: embeddings, pre-norm layers of attention and an MLP, a norm, the unembedding. A value, whose
/// copies share matrices.
struct Network {
  TrainingSetup setup;
  SharedMatrix token_embedding;                    ///< n_vocabulary × d_model
  std::optional<SharedMatrix> position_embedding;  ///< n_tokens × d_model
  std::vector<NetworkLayer> layers;
  NetworkNorm final_norm;
  SharedMatrix unembedding;  ///< d_model × n_vocabulary

  /// Initializes a network from the seed of its setup, as torch.randn after torch.manual_seed(seed), in the
  /// order of parameters(): embeddings N(0, 1), weights N(0, 1/d_in), biases zeros, factors ones.
  ///
  /// Throws core::Error for a setup that cannot be trained, and for a bug that cannot be made in it.
  Network(const TrainingSetup& setup, std::size_t n_vocabulary, std::size_t n_tokens);

  /// Returns the learned matrices: token_embedding, position_embedding; of each layer those of
  /// attention_norm, query, key, value and output, which end in _weight and _bias, of options that its
  /// attention has (query_norm, sink …), of mlp_norm, up and down; final_norm, unembedding. Those that it
  /// lacks are left out.
  std::vector<NetworkParameter> parameters();

  /// Returns the network with the options of a setup that learns_on(), and its own numbers and ablated heads.
  /// Throws core::Error as the constructor does.
  Network with_options(const TrainingSetup& other) const;

  std::size_t n_tokens() const { return layers.front().attention.n_tokens(); }
  std::size_t n_vocabulary() const { return token_embedding.n_rows(); }
  friend bool operator==(const Network&, const Network&) = default;
};

/// The forward pass of a batch, and its backward.
class NetworkPass {
 public:
  /// The network must outlive this. With a dropout seed, dropout is active as in training, and masks are
  /// sampled as by PyTorch after manual_seed(seed + layer).
  NetworkPass(const Network& network, std::span<const Sample> samples,
              std::optional<std::uint64_t> dropout_seed = {});
  ~NetworkPass();
  NetworkPass(const NetworkPass&) = delete;
  NetworkPass& operator=(const NetworkPass&) = delete;

  /// Returns the mean cross-entropy over all targets, in nats.
  double loss() const { return loss_; }
  /// Returns the share of targets that are the most probable token, 0 to 1.
  double accuracy() const { return accuracy_; }
  /// Returns the logits of a sample, n_tokens × n_vocabulary.
  mat logits(std::size_t sample) const;
  /// Returns the attention weights of a head on a sample, before dropout.
  const mat& weights(std::size_t layer, std::size_t head, std::size_t sample);
  /// Returns the gradients of the loss in the order of Network::parameters(); empty where it does not depend
  /// on one.
  std::vector<mat> gradients();

 private:
  struct LayerPass;

  void add_attention(std::size_t layer, std::optional<std::uint64_t> dropout_seed);
  void compute_loss();

  const Network& network_;
  std::span<const Sample> samples_;
  std::size_t n_tokens_;
  std::vector<std::unique_ptr<LayerPass>> layers_;
  mat x_;                  ///< residual stream, the samples below one another
  mat logits_, d_logits_;  ///< of all samples; the gradient of the loss
  double loss_ = 0, accuracy_ = 0;
};

/// The patterns of a task in the heads of a network: [pattern][layer][head], the mean share of attention, 0
/// to 1, that goes to the keys of the pattern.
using PatternScores = std::vector<std::vector<std::vector<double>>>;
PatternScores pattern_scores(NetworkPass& pass, const Network& network, std::span<const Sample> samples,
                             std::size_t n_patterns);

}  // namespace core::training
