#pragma once

#include <armadillo>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
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

/// Facts about a model that are known before it reads a text.
struct Description {
  std::filesystem::path path;  ///< where it was opened; the name of an attached model
  std::filesystem::path file;  ///< with its weights, by which a saved experiment recognizes it; or ""
  bool is_attached = false;    ///< in another process, so calls take longer than a frame
  std::string address = {};    ///< of an attached model, else ""
  std::string source = {};     ///< what its process opened: a folder or a name; else ""
  std::string family;
  Sizes sizes;
  bool causal = true;
  std::string layer_input = {};         ///< input of attention: "LayerNorm(residual)"; "" if unknown
  std::string no_prediction_reason;     ///< for a model without an unembedding, else ""
  bool has_logit_attributions = false;  ///< logits are sums of the outputs of heads and MLPs
  bool reads_text = true;               ///< if false, a text is token IDs separated by spaces
  std::size_t n_tokens = 0;             ///< in its tokenizer; rows of the unembedding beyond it are padding
  std::optional<std::size_t> mask_token = {};
  double n_parameters = 0;
};

/// A token of the vocabulary.
struct VocabularyToken {
  std::string piece;  ///< as the vocabulary spells it
  std::string bytes;  ///< its text, possibly only a part of a character
  bool is_special = false;
};

/// An ablated head: its context vectors count as zero.
struct AblatedHead {
  std::size_t layer = 0, head = 0;
};
/// Attention output of a layer, computed elsewhere, n_tokens × d_model. Any other edit takes this form.
struct SetOutput {
  std::size_t layer = 0;
  std::shared_ptr<const arma::fmat> output;
};
/// A part of a layer that can be taken from a pass over another text.
enum class PatchedPart { head, pattern, queries, keys, values, attention, mlp, residual };
/// A part by its name: "head", "mlp".
struct NamedPart {
  const char* name;
  PatchedPart part;
};
std::span<const NamedPart> patched_parts();
/// Returns the part of this name, or nullptr.
const NamedPart* find_part(std::string_view name);

/// A part of a layer in whose place a pass has that of another text, in the rows that are aligned.
struct Patch {
  std::size_t layer = 0;
  PatchedPart part = PatchedPart::head;
  std::size_t index = 0;                     ///< the head, of keys and values the KV head; else 0
  std::optional<std::size_t> position = {};  ///< the only patched row; nothing: all rows

  bool is_of_attention() const { return part != PatchedPart::mlp && part != PatchedPart::residual; }
  friend auto operator<=>(const Patch&, const Patch&) = default;
};
/// Returns the number of such parts in a layer.
std::size_t n_parts(const Sizes& sizes, PatchedPart part);
/// Returns a patch in words: "head 2.0", "MLP 1, position 3".
std::string patch_name(const Patch& patch);

class Pass;
using PassRef = std::shared_ptr<const Pass>;

/// For each position of a text the one of another text that it is aligned with, or nothing.
using TokenAlignment = std::vector<std::optional<std::size_t>>;
/// Returns how a text is aligned with a first one: by pairs, a position in the first and one in the text, in
/// order; without pairs one by one where both have as many tokens, else where they begin and end alike.
///
/// Throws core::Error, "align: …", when pairs are not in order or there are no such positions.
TokenAlignment align(const std::vector<std::size_t>& first, const std::vector<std::size_t>& text,
                     const std::vector<std::pair<std::size_t, std::size_t>>& pairs = {});
/// Returns the pairs of an alignment with one more, without those that it excludes, or without this one.
std::vector<std::pair<std::size_t, std::size_t>> toggle_pair(const TokenAlignment& rows, std::size_t first,
                                                             std::size_t place);
/// Returns whether texts of as many tokens are aligned one by one.
bool is_one_by_one(const TokenAlignment& rows, std::size_t n_first);

/// The MLP's output of a layer, or the residual stream before it, of another pass of the model.
struct SetStream {
  Patch patch;
  PassRef source;
  TokenAlignment rows;  ///< of the source's text
};
/// A change of the computation. Edits are the same when they ablate the same head or share the output.
using PassEdit = std::variant<AblatedHead, SetOutput, SetStream>;

/// The thread pool and the progress of a call; progress counts layers.
struct CallContext {
  ThreadPool& pool;
  const StopToken& progress;
};

/// The computation of a model on a text, kept while this object lives.
class Pass {
 public:
  virtual ~Pass() = default;
  /// Returns the identity of the computation of a layer; passes that reuse a computation share it.
  virtual std::shared_ptr<const void> computation_id(std::size_t layer) const = 0;
  /// Returns a number that changes with the model's parameters, as those of an attached model may change.
  virtual std::uint64_t state() const { return 0; }
  std::vector<std::size_t> ids;
};

/// Mean attention weights, 0 … 1, by the relation of key and query. Source of same_token and induction:
/// Olsson et al. 2022.
struct HeadRoles {
  double previous = 0;  ///< on the previous token, over queries from the second on
  double first = 0;     ///< on the first token, over the same queries
  double itself = 0;
  std::optional<double> same_token;  ///< on earlier occurrences of the query's token, if there are any
  std::optional<double> induction;   ///< on the tokens after them
  double entropy_bits = 0;           ///< mean entropy of a row of weights
};

struct RowsView;  // in matrix.hpp

/// Returns the roles of a head from its weights on a text, n_tokens × n_tokens, a query per row.
HeadRoles roles_of(const RowsView& weights, const std::vector<std::size_t>& ids);

/// The weights of a head on a text.
struct HeadMap {
  arma::mat map;  ///< the largest weight of each block
  HeadRoles roles;
};

/// The heads of a layer on a text.
struct LayerHeads {
  std::vector<HeadMap> heads;
  /// The addition of each head to the residual stream at a row, n_heads × d_model, without the output bias;
  /// empty if unknown, as in a layer whose heads are not simply concatenated.
  arma::fmat added;
  std::shared_ptr<const arma::mat> visible;  ///< by block, 0 = masked; nullptr when nothing is
  bool is_edited = false;                    ///< computed in float64, from its edited numbers
  bool is_known() const { return !heads.empty(); }
};

/// Returns the largest number of each block.
arma::mat max_pool(const arma::mat& numbers, std::size_t block);

/// Direct logit attribution: a logit as the sum of the direct effects of all parts of the model, with the
/// scale of the last norm held fixed. Source: Elhage et al. 2021.
struct LogitAttributions {
  std::vector<std::vector<double>> heads;  ///< [layer][head]
  std::vector<double> output_biases;       ///< [layer]: of attention but of no head: the output bias
  std::vector<double> mlps;                ///< [layer]
  double embedding = 0;                    ///< of the token and its position
  double constant = 0;                     ///< of biases after the last layer
  double sum() const;
};

/// The norm before attention, for one number: (stream − mean) / divisor · factor + bias.
struct ElementNorm {
  double mean = 0;  ///< 0 for RMSNorm
  double divisor = 1, factor = 1, bias = 0;
};

/// One number of the residual stream on its way through a layer, in the float32 of the pass.
struct ResidualElement {
  double entering = 0;              ///< before the layer
  double input = 0;                 ///< of attention
  double attention = 0;             ///< added by attention
  double mlp = 0;                   ///< added by the MLP
  double leaving = 0;               ///< after the layer
  std::optional<ElementNorm> norm;  ///< from entering to input; empty where they are the same
  /// "" where leaving is entering + attention + mlp; else why not, and attention and mlp mean nothing.
  std::string no_sum_reason = {};
};

/// A projection of attention in PyTorch: its module, and the first of `width` features of each head there:
/// outputs, or inputs of the output projection.
struct TorchProjection {
  std::string module = {};
  std::vector<std::size_t> heads = {};
  std::size_t width = 0;
};

/// The modules of a layer in PyTorch, by name; "" for those that are unknown.
struct TorchLayer {
  std::array<TorchProjection, 4> projections = {};  ///< query, key, value, output
  std::string block = {}, mlp = {};                 ///< reads the residual stream; returns what the MLP adds
  std::string query_norm = {}, key_norm = {};       ///< those over all heads
};

/// Names of a model and its modules in PyTorch, for programs.
struct TorchNames {
  std::string source = {};   ///< argument of from_pretrained(); "" where only the attached process knows it
  std::string variant = {};  ///< another argument, or ""
  std::string dtype = "float32";
  std::vector<TorchLayer> layers = {};
};

/// How the next token is chosen.
struct Sampling {
  double temperature = 0;  ///< 0 for the most probable token; else logits are divided by it
  std::size_t top = 0;     ///< top-k: sample only from this many most probable tokens; 0 for all
};

/// A model that reads texts: our own engine, or one in another process.
///
/// Calls block, may come from any thread, and throw core::Error with one line, or Stopped.
class FullModel {
 public:
  virtual ~FullModel() = default;
  virtual const Description& description() const = 0;
  /// Returns the last known state of the parameters, without waiting; see Pass::state().
  virtual std::uint64_t state() const { return 0; }
  /// Returns why the process of an attached model cannot be reached any more, or "", without waiting.
  virtual std::string lost() const { return ""; }
  /// Returns the tokens of a text, with those that the model adds around it. Throws core::Error when it is
  /// not UTF-8.
  virtual std::vector<tokenizers::TextToken> tokenize(std::string_view text) const = 0;
  virtual VocabularyToken token(std::size_t id) const = 0;
  /// Returns the characters of a text that become no token, each once, as the vocabulary has none for them.
  virtual std::vector<std::string> characters_without_token(std::string_view) const { return {}; }

  /// Reads a text up to the end of n_layers layers.
  ///
  /// Reuses equal computations of kept passes: layers before the first different edit, or, in a causal model,
  /// the tokens of a pass with the same edits. Throws core::Error when there are no tokens or too many, one
  /// is not in the vocabulary, or numbers become non-finite, with the place.
  virtual PassRef run(const std::vector<std::size_t>& ids, const std::vector<PassEdit>& edits,
                      const CallContext& context,
                      std::size_t n_layers = static_cast<std::size_t>(-1)) const = 0;

  /// Returns the input of attention of a layer, n_tokens × d_model; the pass must have read all layers before
  /// it.
  virtual arma::fmat input(const Pass& pass, std::size_t layer, const StopToken& progress = {}) const = 0;
  /// Returns attention of a layer as a model without a text: projections, heads, mask and positions. An
  /// attached model needs the pass. Where projections are unknown the model has given stages.
  virtual attention::Model parameters(std::size_t layer, const Pass* pass,
                                      const StopToken& progress = {}) const = 0;
  /// Returns why a layer from parameters() cannot be edited, or "".
  virtual std::string not_editable_reason(std::size_t) const { return ""; }
  /// Returns the heads of a layer whose output no edit replaced, in blocks of `block` rows and columns; row:
  /// see LayerHeads::added.
  virtual LayerHeads maps(const Pass& pass, std::size_t layer, std::size_t block, std::size_t row,
                          const CallContext& context) const = 0;
  /// Returns the logits of all tokens after a row, 1 × n_vocabulary. Throws core::Error when the model has no
  /// unembedding, or a finite row gives non-finite logits.
  virtual arma::frowvec next(const Pass& pass, std::size_t row, const CallContext& context) const = 0;
  /// Returns the logit lens: next() as if the model ended after each of its layers, n_layers × n_vocabulary;
  /// the last row is next(). Source: nostalgebraist 2020.
  virtual arma::fmat lens(const Pass& pass, std::size_t row, const CallContext& context) const = 0;
  /// Returns the parts of the logit of a token after a row, of a model that has contributions; added: [layer]
  /// LayerHeads::added.
  virtual LogitAttributions logit_attributions(const Pass& pass, std::size_t row, std::size_t token,
                                               const std::vector<arma::fmat>& added,
                                               const CallContext& context) const = 0;
  virtual ResidualElement stream(const Pass& pass, std::size_t layer, std::size_t row, std::size_t column,
                                 const CallContext& context) const = 0;
  /// Takes the attention weights of a head on a text, n_tokens × n_tokens, a query per row.
  using UsePattern =
      std::function<void(std::size_t text, std::size_t layer, std::size_t head, const RowsView& weights)>;
  /// Calls `use` for every head on each of some texts, those of a layer possibly from several threads at
  /// once, and keeps nothing. A layer is read for all texts together. Throws core::Error as run() does.
  virtual void for_each_pattern(const std::vector<std::vector<std::size_t>>& texts, const UsePattern& use,
                                const CallContext& context) const;
  /// Returns the residual stream at a row, 2 · n_layers × d_model: between attention and the MLP of each
  /// layer, NaN where they read the same input or the model is attached, and after the layer.
  virtual arma::fmat residual_points(const Pass& pass, std::size_t row, const CallContext& context) const = 0;
  /// Returns the logits of rows of the residual stream after the last layer, n × n_vocabulary. Throws as the
  /// others do.
  virtual arma::fmat unembed(const arma::fmat& rows, const CallContext& context) const = 0;
  /// Throws core::Error, which says why, when no program can name the parts of the model.
  virtual TorchNames torch_names() const;
  /// Tells the process of an attached model the current edits as code; without waiting.
  virtual void publish(const std::string& /*program*/) const {}
  /// Continues a text by n_more tokens. Throws core::Error when the model is not causal, or takes fewer.
  std::vector<std::size_t> generate(const std::vector<std::size_t>& ids, const std::vector<PassEdit>& edits,
                                    std::size_t n_more, const Sampling& sampling,
                                    random::Generator& generator, const CallContext& context) const;
};
using ModelRef = std::shared_ptr<const FullModel>;

/// Returns the names of tokens for display: their text, bytes of partial characters as "<E2><80>", and the
/// piece of tokens that the tokenizer inserted.
std::vector<std::string> token_names(const FullModel& model,
                                     const std::vector<tokenizers::TextToken>& tokens);
std::string token_name(const FullModel& model, std::size_t id);

/// Throws core::Error when there is no such layer.
void require_layer(const FullModel& model, std::size_t layer);

/// Throws core::Error when there is no token, the model takes fewer, or one is not in its vocabulary.
void require_tokens(const Description& model, const std::vector<std::size_t>& ids, std::size_t n_before = 0);

/// Returns attention of a layer in float64 as a model for display. Its numbers are the layer's float32; its
/// results differ from the pass only by rounding.
attention::Model layer_model(const FullModel& model, const Pass& pass, std::size_t layer,
                             const std::vector<std::string>& tokens,
                             const std::vector<std::size_t>& heads_off, const StopToken& progress = {});

/// Returns the token whose text is that of an answer.
///
/// Throws core::Error, "OPTION: expected one token, got 2: 'M', 'ary'", when there is none.
std::size_t answer_token(const FullModel& model, const std::string& answer, const std::string& option);

/// A position whose token is predicted, and the row that predicts it.
struct PredictedPosition {
  std::size_t position, row;
};
/// The position after the last token, or, in a bidirectional model, those of the mask tokens.
struct PredictedPositions {
  std::vector<PredictedPosition> all = {};
  std::string no_prediction_reason = {};
};
PredictedPositions find_predicted_positions(const FullModel& model, const std::vector<std::size_t>& ids);

/// A token and its logit; its probability among all tokens of the model.
struct TokenScore {
  std::size_t id = 0;
  double logit = 0, probability = 0;
};
/// Returns the n_listed most probable of the first n_tokens tokens; of equal ones the lowest ID comes first.
std::vector<TokenScore> top_tokens(const arma::frowvec& logits, std::size_t n_listed, std::size_t n_tokens);

/// Softmax over a row of logits, token by token.
class Probabilities {
 public:
  /// Divides the logits by the temperature, above 0.
  explicit Probabilities(const arma::frowvec& logits, double temperature = 1);
  double of(std::size_t token) const;

 private:
  arma::frowvec logits_;
  double temperature_, largest_, sum_ = 0;
};

/// Samples one of the first n_tokens.
std::size_t sample_token(const arma::frowvec& logits, std::size_t n_tokens, const Sampling& sampling,
                         random::Generator& generator);

}  // namespace core::transformer
