#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/draw_op.hpp"
#include "core/base/random.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/model.hpp"

namespace core::editing {

// Parts of models, sampled from the generator in PyTorch's order.

/// Returns row-major numbers as a matrix of rows × columns.
arma::mat filled(const std::vector<float>& numbers, std::size_t rows, std::size_t columns);

/// Samples nn.Linear(d_in, d_out): weight d_in × d_out, the transpose of PyTorch's, and then the bias.
attention::Linear sample_linear(random::Generator& generator, std::size_t d_in, std::size_t d_out,
                                bool bias = false);

/// Order in which a notebook creates its layers.
enum class LayerOrder { query_key_value, key_query_value };

/// Samples three linear layers in this order, without an output projection.
attention::Projections sample_projections(random::Generator& generator, std::size_t d_in, std::size_t d_out,
                                          bool bias = false, LayerOrder order = LayerOrder::query_key_value);

/// Samples torch.randn(n_sequences, n_tokens, d_model), with numbered tokens.
std::vector<attention::Sequence> sample_batch(random::Generator& generator, std::size_t n_sequences,
                                              std::size_t n_tokens, std::size_t d_model);

/// Returns "Your journey starts with one step" with three features, in float32 as in the notebooks.
attention::Sequence your_journey();

/// Whether embeddings are sampled with the layers, how, and before or after them.
enum class EmbeddingsInit { none, rand_first, randn_first, rand_last, randn_last };

bool is_sampled_first(EmbeddingsInit draw);
bool is_sampled_last(EmbeddingsInit draw);

/// Returns the op that samples the embeddings of all sequences, or of one that is repeated for all.
random::RandomOp embeddings_op(const attention::Model& model, EmbeddingsInit draw, bool repeated = false);

/// Output projection, sampled after the three other layers.
enum class OutputLayer { none, without_bias, with_bias };

/// How a model's learned matrices are sampled from one seed, in the order of a notebook.
struct ModelInit {
  std::uint64_t seed = 123;
  std::vector<random::RandomOp> before;  ///< sampled before all of these
  EmbeddingsInit embeddings = EmbeddingsInit::none;
  LayerOrder order = LayerOrder::query_key_value;
  bool bias = false;  ///< of queries, keys and values
  OutputLayer output = OutputLayer::none;
};

/// Returns a draw with the layers and biases of the model; a single bias of queries, keys and values counts
/// for all.
ModelInit matching_init(const attention::Model& model);

/// Returns the model with projections, and optionally embeddings, initialized as by PyTorch in its shapes;
/// tokens and everything else are kept.
///
/// A batch of embeddings is sampled as one tensor.
attention::Model initialized_model(const attention::Model& model, const ModelInit& draw);

/// Returns the same draw as lines of Python, including imports, for a model of these shapes.
std::string torch_lines(const attention::Model& model, const ModelInit& draw);

/// Source of the numbers of a whole matrix.
enum class FillRule { zeros, ones, identity, rand, randn, linear, embedding };

/// Maximum of numbers that may be sampled before the wanted ones.
constexpr std::size_t max_numbers_before = 10'000'000;

/// Content of a matrix; seed and before matter only for rules that sample.
struct Fill {
  FillRule rule = FillRule::zeros;
  std::uint64_t seed = 123;
  std::vector<random::RandomOp> before;  ///< sampled first from the same seed and discarded
  bool draws() const { return rule > FillRule::identity; }
};

/// Returns numbers for a matrix of the model, in its shape; the model must have that matrix.
///
/// FillRule::linear gives the first values of the nn.Linear that the matrix belongs to: a bias is sampled
/// after the layer's weight; embeddings are treated as a weight of rows → columns.
arma::mat filled(const attention::Model& model, MatrixRef place, const Fill& fill);

}  // namespace core::editing

namespace core::text {

/// Limits of a typed sentence; longer text is rejected before it is split.
constexpr std::size_t max_sentence_tokens = 512, max_sentence_bytes = 65536;

/// Kind of tokens into which a sentence is split.
enum class TokenRule { words, characters };

/// Splits a text into words, with punctuation marks as separate words; an apostrophe, hyphen, dot or comma
/// inside a word belongs to it ("I'm", "3.5").
///
/// Returns 1 … max_sentence_tokens words. Throws core::Error for text without a word, with more words, longer
/// than max_sentence_bytes or not in UTF-8.
std::vector<std::string> words(std::string_view text);

/// Splits a text into characters, one per code point; white space becomes a visible sign (␣, ⇥, ↵).
///
/// Has the same limits and errors as words().
std::vector<std::string> characters(std::string_view text);

/// Returns words() or characters().
std::vector<std::string> tokens(std::string_view text, TokenRule rule);

/// Returns the distinct tokens in order of first appearance.
std::vector<std::string> vocabulary(const std::vector<std::string>& tokens);

/// Returns the model with one sequence of these tokens instead of its own; equal tokens get equal embeddings.
///
/// The embeddings are the rows of nn.Embedding(number of distinct tokens, d_model) as PyTorch initializes it
/// right after manual_seed(seed). Removes mask cells beyond the sentence and a given dropout mask; the rest
/// stays. Throws core::Error when the sentence is longer than the model's context_length or than attend() can
/// compute.
attention::Model with_sentence(const attention::Model& base, const std::vector<std::string>& tokens,
                               std::uint64_t seed);

}  // namespace core::text

namespace core::editing {

/// Part of a model that a draw gives; nothing: it only advances the generator.
enum class InitializedPart { nothing, embeddings, query, key, value, output };

/// One op of a recipe.
struct RecipeDraw {
  random::RandomOp op;
  InitializedPart part = InitializedPart::nothing;
  std::optional<std::size_t> head = {};  ///< for the layer of one head: its columns are a band of the part
  bool repeated = false;                 ///< embeddings of one sequence, the same for the whole batch
};

/// Consecutive draws after one manual_seed.
struct SeededDraws {
  std::uint64_t seed = 0;
  std::vector<RecipeDraw> draws;
  bool initializes(InitializedPart part) const;
};

/// Returns the seeds to try before those of the model: the usual ones of notebooks, books and examples.
std::vector<std::uint64_t> usual_seeds();

/// Returns how PyTorch samples the numbers of a model, for the parts that come from one of the seeds:
/// embeddings before or after the layers, layers in either order, as nn.Linear or plain tensors, all heads at
/// once or head by head.
///
/// A part is included only if each of its numbers equals the sampled one to the last bit, so an edited part
/// is not. The passages must be sampled in order; no part is in two of them.
std::vector<SeededDraws> find_recipe(const attention::Model& model, const std::vector<std::uint64_t>& seeds);

}  // namespace core::editing
