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

// Parts of models, filled from the generator in the order in which PyTorch draws them.

/// Row-major numbers as a matrix of rows × columns.
arma::mat filled(const std::vector<float>& numbers, std::size_t rows, std::size_t columns);

/// nn.Linear(d_in, d_out): weight d_in × d_out, the transpose of PyTorch's, and then the bias.
attention::Linear initial_linear(random::Generator& generator, std::size_t d_in, std::size_t d_out,
                                 bool bias = false);

/// The order in which a notebook makes its layers.
enum class LayerOrder { query_key_value, key_query_value };

/// Three linear layers, drawn in that order, without an output projection.
attention::Projections initial_projections(random::Generator& generator, std::size_t d_in, std::size_t d_out,
                                           bool bias = false, LayerOrder order = LayerOrder::query_key_value);

/// torch.randn(n_sequences, n_tokens, d_model) with numbered tokens.
std::vector<attention::Sequence> initial_batch(random::Generator& generator, std::size_t n_sequences,
                                               std::size_t n_tokens, std::size_t d_model);

/// "Your journey starts with one step" in three features, rounded to float32 as the notebooks hold it.
attention::Sequence your_journey();

/// Whether embeddings are drawn along with the layers, and on which side of them.
enum class EmbeddingsDraw { none, rand_first, randn_first, rand_last, randn_last };

bool comes_first(EmbeddingsDraw draw);
bool comes_last(EmbeddingsDraw draw);

/// The op that draws the embeddings of all sequences, or of one that is repeated for each of them.
random::DrawOp embeddings_op(const attention::Model& model, EmbeddingsDraw draw, bool repeated = false);

/// The output projection, which is drawn after the three other layers.
enum class OutputLayer { none, without_bias, with_bias };

/// How a model's learned matrices are drawn after one seed, in the order in which a notebook makes them.
struct ModelDraw {
  std::uint64_t seed = 123;
  std::vector<random::DrawOp> before;  ///< what the notebook drew before all of it
  EmbeddingsDraw embeddings = EmbeddingsDraw::none;
  LayerOrder order = LayerOrder::query_key_value;
  bool bias = false;  ///< of queries, keys and values
  OutputLayer output = OutputLayer::none;
};

/// A draw with the layers and biases that the model has; a single bias among queries, keys and values counts
/// for all.
ModelDraw draw_like(const attention::Model& model);

/// The model with projections, and perhaps embeddings, as PyTorch draws them in the model's shapes; tokens
/// and all else are kept.
///
/// A batch of embeddings is drawn as one tensor.
attention::Model initialized_model(const attention::Model& model, const ModelDraw& draw);

/// The same draw as lines of Python, imports and all, for a model of those shapes.
std::string torch_lines(const attention::Model& model, const ModelDraw& draw);

/// Where the numbers of a whole matrix come from.
enum class FillRule { zeros, ones, identity, rand, randn, linear, embedding };

/// The most numbers that may be drawn before the ones that are wanted.
constexpr std::size_t most_numbers_before = 10'000'000;

/// What a matrix is filled with; seed and ops before it count for rules that draw.
struct Fill {
  FillRule rule = FillRule::zeros;
  std::uint64_t seed = 123;
  std::vector<random::DrawOp> before;  ///< drawn after the same seed and thrown away
  bool draws() const { return rule > FillRule::identity; }
};

/// Numbers for the matrix at a place, which the model must have, in its shape.
///
/// FillRule::linear gives the first values of the nn.Linear that the matrix belongs to: a bias is drawn after
/// the layer's weight; embeddings are taken for a weight of rows → columns.
arma::mat filled(const attention::Model& model, MatrixPlace place, const Fill& fill);

}  // namespace core::editing

namespace core::text {

/// A typed sentence may have so many tokens; longer text is refused before it is taken apart.
constexpr std::size_t max_sentence_tokens = 512, max_sentence_bytes = 65536;

/// What a sentence is taken apart into.
enum class TokenRule { words, characters };

/// The words of a text, punctuation marks as words of their own; an apostrophe, hyphen, point or comma inside
/// a word belongs to it ("I'm", "3.5").
///
/// 1 … max_sentence_tokens words. Throws core::Error for text without a word, with more, longer than
/// max_sentence_bytes or not in UTF-8.
std::vector<std::string> words(std::string_view text);

/// The characters of a text, one for each code point; white space is shown by a sign (␣, ⇥, ↵).
///
/// The same limits and errors as words().
std::vector<std::string> characters(std::string_view text);

/// words() or characters().
std::vector<std::string> tokens(std::string_view text, TokenRule rule);

/// The distinct tokens in the order in which they first appear.
std::vector<std::string> vocabulary(const std::vector<std::string>& tokens);

/// The model with one sequence of these tokens in place of its own; equal tokens get equal embeddings.
///
/// The embeddings are the rows of nn.Embedding(number of distinct tokens, d_model) as PyTorch draws it right
/// after manual_seed(seed). All else stays, but mask cells beyond the sentence and a given dropout mask go.
/// Throws core::Error when the sentence is longer than the model's context_length or than attend() can
/// compute.
attention::Model with_sentence(const attention::Model& base, const std::vector<std::string>& tokens,
                               std::uint64_t seed);

}  // namespace core::text

namespace core::editing {

/// What in a model a draw gave; nothing: its numbers are drawn only so that the next ones come out right.
enum class InitializedPart { nothing, embeddings, query, key, value, output };

/// One op of a recipe.
struct RecipeDraw {
  random::DrawOp op;
  InitializedPart part = InitializedPart::nothing;
  std::optional<std::size_t> head = {};  ///< the layer of one head, whose columns are a band of the part
  bool repeated = false;  ///< embeddings of one sequence, which every sequence of the batch has
};

/// Draws in a row after one manual_seed.
struct RecipePassage {
  std::uint64_t seed = 0;
  std::vector<RecipeDraw> draws;
  bool gives(InitializedPart part) const;
};

/// The seeds that are tried before those that the model names: those of notebooks, books and examples.
std::vector<std::uint64_t> usual_seeds();

/// How PyTorch draws the numbers of a model, as far as they come from one of the seeds: embeddings before or
/// after the layers, layers in either order, as nn.Linear or as bare tensors, all heads at once or head by
/// head.
///
/// A part is named only when every number of it equals the drawn one to the last bit; one that was edited is
/// not. The passages are to be drawn in order; none names a part that another names.
std::vector<RecipePassage> find_recipe(const attention::Model& model,
                                       const std::vector<std::uint64_t>& seeds);

}  // namespace core::editing
