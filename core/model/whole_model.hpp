#pragma once

#include <armadillo>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/random.hpp"
#include "core/base/thread_pool.hpp"
#include "core/base/token.hpp"
#include "core/graph/model.hpp"
#include "core/model/architecture.hpp"
#include "core/model/tokenizer.hpp"

namespace core::transformer {

/// What is known of a model before it reads anything.
struct Description {
  std::filesystem::path path;  ///< where it was opened; the name of an attached one
  std::filesystem::path file;  ///< with its weights, by which a saved experiment recognizes it; or ""
  bool is_attached = false;    ///< it is in another process: nothing of it is known within a frame
  std::string address = {};    ///< of an attached one, else ""
  std::string family;
  Sizes sizes;
  bool causal = true;
  std::string layer_input = {};   ///< what attention reads: "LayerNorm(residual)"; "" where that is not known
  std::string why_no_prediction;  ///< of a model without an unembedding, else ""
  bool has_contributions = false;  ///< logits are sums of what heads and MLPs write to the residual stream
  bool reads_text = true;          ///< else a text is token IDs with spaces between them
  std::size_t n_tokens = 0;        ///< of its tokenizer; rows of the unembedding beyond it are padding
  std::optional<std::size_t> mask_token = {};
  double n_parameters = 0;
};

/// A token of the vocabulary.
struct VocabularyToken {
  std::string piece;  ///< as the vocabulary spells it
  std::string bytes;  ///< of text; possibly a part of a character
  bool is_special = false;
};

/// The context vectors of a head count as zero.
struct HeadOff {
  std::size_t layer = 0, head = 0;
};
/// Attention of a layer, computed elsewhere: n_tokens × d_model. Any edit of a layer flows on as this.
struct SetOutput {
  std::size_t layer = 0;
  std::shared_ptr<const arma::fmat> output;
};
/// A change of the computation. Edits are the same when they are of the same head, or share the output.
using Edit = std::variant<HeadOff, SetOutput>;

/// What work is done with; progress counts layers.
struct Means {
  ThreadPool& pool;
  const Token& progress;
};

/// A text that a model has read, kept as long as this lives.
class Pass {
 public:
  virtual ~Pass() = default;
  /// The identity of the computation of a layer, which passes share that took it over.
  virtual std::shared_ptr<const void> computed(std::size_t layer) const = 0;
  /// Another number, other parameters of the model, which those of an attached one may become.
  virtual std::uint64_t state() const { return 0; }
  std::vector<std::size_t> ids;
};
using PassRef = std::shared_ptr<const Pass>;

/// Mean attention weights, 0 … 1, by what the key is to its query. Source of the last two shares: Olsson et
/// al. 2022.
struct HeadRoles {
  double previous = 0;  ///< on the previous token; of queries from the second on
  double first = 0;     ///< on the first token; of queries from the third on
  double itself = 0;
  std::optional<double> same_token;  ///< on earlier occurrences of the query's token, where there are some
  std::optional<double> induction;   ///< on the tokens after them
  double entropy_bits = 0;           ///< of a row of weights
};

/// The roles of a head by its weights on a text, n_tokens × n_tokens, a query a row.
HeadRoles roles_of(const arma::fmat& weights, const std::vector<std::size_t>& ids);

/// The weights of a head on a text.
struct HeadMap {
  arma::mat map;  ///< the largest weight of each block
  HeadRoles roles;
};

/// The heads of a layer on a text.
struct LayerHeads {
  std::vector<HeadMap> heads;
  /// What each head writes to the residual stream at a row, n_heads × d_model, the output's bias not counted;
  /// empty where that is not known, as in a layer whose heads are not just concatenated.
  arma::fmat added;
  std::shared_ptr<const arma::mat> visible;  ///< in blocks, 0 = masked; nullptr when nothing is
  bool is_edited = false;                    ///< computed in float64, by its edited numbers
  bool is_known() const { return !heads.empty(); }
};

/// The largest number of each block.
arma::mat pooled(const arma::mat& numbers, std::size_t block);

/// Direct logit attribution: a logit as the sum of what each part of the model adds past all later ones, the
/// last norm's scale held fixed. Source: Elhage et al. 2021.
struct Contributions {
  std::vector<std::vector<double>> heads;  ///< [layer][head]
  std::vector<double> besides;             ///< [layer]: of attention what no head adds: the output's bias
  std::vector<double> mlps;                ///< [layer]
  double embedding = 0;                    ///< of the token and its position
  double constant = 0;                     ///< of biases after the last layer
  double sum() const;
};

/// The norm before attention, for one number: (stream − mean) / divisor · factor + bias.
struct NormOfNumber {
  double mean = 0;  ///< 0 of an RMSNorm
  double divisor = 1, factor = 1, bias = 0;
};

/// A number of the residual stream through a layer, in the float32 of the pass.
struct StreamNumber {
  double entering = 0;               ///< before the layer
  double input = 0;                  ///< the number as attention reads it
  double attention = 0;              ///< what attention adds
  double mlp = 0;                    ///< what the MLP adds
  double leaving = 0;                ///< after the layer
  std::optional<NormOfNumber> norm;  ///< from entering to input; nothing where they are the same
  /// "" where leaving is entering + attention + mlp; else why not, and these two say nothing.
  std::string why_no_sum = {};
};

/// How a token is chosen among those that may follow.
struct Sampling {
  double temperature = 0;  ///< 0 for the most probable one; else logits are divided by it
  std::size_t top = 0;     ///< only the most probable ones, as in top-k sampling; 0 for all
};

/// A model that reads texts: our own engine, or one in another process.
///
/// Calls block, may come from any thread, and throw core::Error, one line, or Stopped.
class WholeModel {
 public:
  virtual ~WholeModel() = default;
  virtual const Description& description() const = 0;
  /// Another number, other parameters, as far as is known at once; see Pass::state().
  virtual std::uint64_t state() const { return 0; }
  /// The tokens of a text, with those that the model wants around it. Throws core::Error when it is not
  /// UTF-8.
  virtual std::vector<tokenizers::TextToken> tokenize(std::string_view text) const = 0;
  virtual VocabularyToken token(std::size_t id) const = 0;

  /// Reads a text up to the end of n_layers.
  ///
  /// Takes over from kept passes what is the same computation: layers before the first different edit, or, of
  /// a causal model, the tokens that a pass with the same edits has read. Throws core::Error when there is no
  /// token, there are too many, one is not in the vocabulary, or numbers cease to be finite, with the place.
  virtual PassRef run(const std::vector<std::size_t>& ids, const std::vector<Edit>& edits, const Means& means,
                      std::size_t n_layers = static_cast<std::size_t>(-1)) const = 0;

  /// What enters attention of a layer, n_tokens × d_model; of a pass that has read at least the layers
  /// before.
  virtual arma::fmat input(const Pass& pass, std::size_t layer, const Token& progress = {}) const = 0;
  /// Attention of a layer as a model without a text: its projections, heads, mask and positions; of a pass,
  /// which an attached model needs. Where projections are not known it has given stages.
  virtual attention::Model parameters(std::size_t layer, const Pass* pass,
                                      const Token& progress = {}) const = 0;
  /// Why a layer that parameters() gave cannot be edited, or "".
  virtual std::string why_not_editable(std::size_t) const { return ""; }
  /// The heads of a layer that no edit replaced, in blocks of block rows and columns; row: see
  /// LayerHeads::added.
  virtual LayerHeads maps(const Pass& pass, std::size_t layer, std::size_t block, std::size_t row,
                          const Means& means) const = 0;
  /// The logits of all tokens after a row, 1 × n_vocabulary. Throws core::Error when the model predicts
  /// nothing, or finite rows give other logits.
  virtual arma::frowvec next(const Pass& pass, std::size_t row, const Means& means) const = 0;
  /// The logit lens: the same if the model ended after each of its layers, n_layers × n_vocabulary; the last
  /// row is next(). Source: nostalgebraist 2020.
  virtual arma::fmat lens(const Pass& pass, std::size_t row, const Means& means) const = 0;
  /// The parts of the logit of a token after a row, of a model that has contributions; added: [layer] those
  /// of LayerHeads.
  virtual Contributions contributions(const Pass& pass, std::size_t row, std::size_t token,
                                      const std::vector<arma::fmat>& added, const Means& means) const = 0;
  virtual StreamNumber stream(const Pass& pass, std::size_t layer, std::size_t row, std::size_t column,
                              const Means& means) const = 0;
  /// Continues a text by n_more tokens. Throws core::Error when the model is not causal, or takes fewer.
  std::vector<std::size_t> generate(const std::vector<std::size_t>& ids, const std::vector<Edit>& edits,
                                    std::size_t n_more, const Sampling& sampling,
                                    random::Generator& generator, const Means& means) const;
};
using ModelRef = std::shared_ptr<const WholeModel>;

/// Names of tokens for people: their text, the bytes of parts of characters as "<E2><80>", and the piece of
/// tokens that were put in.
std::vector<std::string> token_names(const WholeModel& model,
                                     const std::vector<tokenizers::TextToken>& tokens);
std::string token_name(const WholeModel& model, std::size_t id);

/// Throws core::Error when there is no such layer.
void require_layer(const WholeModel& model, std::size_t layer);

/// Throws core::Error when there is no token, a model takes fewer, or one is not in its vocabulary.
void require_tokens(const Description& model, const std::vector<std::size_t>& ids, std::size_t n_before = 0);

/// Attention of a layer in float64 as a model that can be displayed. Its numbers are the layer's float32;
/// what it computes differs from the pass by rounding alone.
attention::Model layer_model(const WholeModel& model, const Pass& pass, std::size_t layer,
                             const std::vector<std::string>& tokens,
                             const std::vector<std::size_t>& heads_off, const Token& progress = {});

/// A position whose token is predicted, and the row that predicts it.
struct Place {
  std::size_t position, row;
};
/// After the last token, or, of a model that is not causal, the mask tokens.
struct Places {
  std::vector<Place> all = {};
  std::string why_none = {};
};
Places find_places(const WholeModel& model, const std::vector<std::size_t>& ids);

/// A token and its logit; its probability among all tokens of the model.
struct TokenScore {
  std::size_t id = 0;
  double logit = 0, probability = 0;
};
/// The most probable of the first n_tokens, the lowest id first among equal ones.
std::vector<TokenScore> top_tokens(const arma::frowvec& logits, std::size_t n_listed, std::size_t n_tokens);

/// Softmax over a row of logits, token by token.
class Probabilities {
 public:
  /// Logits are divided by the temperature, above 0.
  explicit Probabilities(const arma::frowvec& logits, double temperature = 1);
  double of(std::size_t token) const;

 private:
  arma::frowvec logits_;
  double temperature_, largest_, sum_ = 0;
};

/// Samples one of the first n_tokens.
std::size_t sampled(const arma::frowvec& logits, std::size_t n_tokens, const Sampling& sampling,
                    random::Generator& generator);

}  // namespace core::transformer
