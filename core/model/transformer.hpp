#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "core/model/blocks.hpp"
#include "core/model/full_model.hpp"
#include "core/model/weights.hpp"

namespace core::transformer {

/// One layer on a text. A whole pass does not keep contexts and output of the last layer: they are computed
/// for single rows on demand.
struct LayerActivations {
  SharedRows residual;             ///< before the layer
  HeadRows queries, keys, values;  ///< after QK norm and RoPE, if any; empty where the output is given
  SharedRows contexts;             ///< of all heads, concatenated, before ablation
  SharedRows output;               ///< of attention, before residual_factor and its norm
};

/// Edits by layer.
struct EditSet {
  std::set<std::pair<std::size_t, std::size_t>> heads_off;  ///< layer and head
  std::map<std::size_t, std::shared_ptr<const arma::fmat>> outputs;
  std::vector<SetStream> streams;
};

/// Rows of a layer after its heads.
struct LayerOutput {
  RowBuffer contexts;  ///< see LayerActivations
  RowBuffer output;    ///< see LayerActivations
  RowBuffer mlp;       ///< what the MLP adds
  RowBuffer next;      ///< the residual stream after the layer
  bool is_finite = true;
};

/// A pass of our own engine, in float32.
class LocalPass : public Pass {
 public:
  std::shared_ptr<const void> computation_id(std::size_t layer) const override { return layers[layer]; }
  EditSet edits;
  std::vector<std::shared_ptr<const LayerActivations>> layers;
  SharedRows last;  ///< residual stream after the last layer, of a pass that ends before the model

  /// Rows after the last layer of the model, as computed on demand.
  struct FinalRows {
    std::mutex mutex;
    std::map<std::size_t, std::shared_ptr<const LayerOutput>> rows;  ///< of one row each
  };
  std::shared_ptr<FinalRows> final_rows = std::make_shared<FinalRows>();
};

/// A whole model in our own engine.
class Transformer : public FullModel {
 public:
  Transformer(std::filesystem::path path, Architecture architecture, std::shared_ptr<const Weights> weights,
              std::shared_ptr<const tokenizers::Tokenizer> tokenizer);

  const Description& description() const override { return description_; }
  std::vector<tokenizers::TextToken> tokenize(std::string_view text) const override;
  VocabularyToken token(std::size_t id) const override;
  std::vector<std::string> characters_without_token(std::string_view text) const override {
    return tokenizer_->characters_without_token(text);
  }
  PassRef run(const std::vector<std::size_t>& ids, const std::vector<PassEdit>& edits,
              const CallContext& context, std::size_t n_layers = static_cast<std::size_t>(-1)) const override;
  arma::fmat input(const Pass& pass, std::size_t layer, const StopToken& progress = {}) const override;
  attention::Model parameters(std::size_t layer, const Pass* pass,
                              const StopToken& progress = {}) const override;
  LayerHeads maps(const Pass& pass, std::size_t layer, std::size_t block, std::size_t row,
                  const CallContext& context) const override;
  void for_each_pattern(const std::vector<std::vector<std::size_t>>& texts, const UsePattern& use,
                        const CallContext& context) const override;
  arma::frowvec next(const Pass& pass, std::size_t row, const CallContext& context) const override;
  arma::fmat lens(const Pass& pass, std::size_t row, const CallContext& context) const override;
  LogitAttributions logit_attributions(const Pass& pass, std::size_t row, std::size_t token,
                                       const std::vector<arma::fmat>& added,
                                       const CallContext& context) const override;
  ResidualElement stream(const Pass& pass, std::size_t layer, std::size_t row, std::size_t column,
                         const CallContext& context) const override;

  arma::fmat residual_points(const Pass& pass, std::size_t row, const CallContext& context) const override;
  arma::fmat unembed(const arma::fmat& rows, const CallContext& context) const override {
    return compute_logits(rows, context);
  }
  TorchNames torch_names() const override;

  const Architecture& architecture() const { return architecture_; }
  const Weights& weights() const { return *weights_; }
  const tokenizers::Tokenizer& tokenizer() const { return *tokenizer_; }

  /// Returns the residual stream before the first layer, of tokens at positions from `first` on.
  RowBuffer embed(const std::vector<std::size_t>& ids, std::size_t first, const CallContext& context) const;
  /// Returns the input of attention of a layer.
  RowBuffer attention_input(std::size_t layer, const RowsView& residual, const CallContext& context) const;
  /// Returns the residual stream of a whole text after a layer without edits.
  RowBuffer run_layer(std::size_t layer, const RowsView& residual, const CallContext& context) const;
  /// Returns the residual stream of a pass after n_layers layers.
  arma::fmat residual(const Pass& pass, std::size_t n_layers, const CallContext& context) const;
  /// Applies the last norm, if there is one.
  arma::fmat apply_final_norm(const arma::fmat& last, const CallContext& context) const;
  /// Returns the logits of rows of the residual stream after the last layer. Throws as next() does.
  arma::fmat compute_logits(const RowsView& last, const CallContext& context) const;
  arma::fmat compute_logits(const arma::fmat& last, const CallContext& context) const {
    return compute_logits(RowBuffer(last), context);
  }
  /// Returns the attention weights of a head, n_tokens × n_tokens.
  arma::fmat attention_weights(const Pass& pass, std::size_t layer, std::size_t head) const;

 private:
  RowBuffer pattern(const LayerActivations& of, std::size_t layer, std::size_t head) const;
  /// Computes a layer up to its heads; before: the same layer of the tokens before these.
  std::shared_ptr<LayerActivations> compute_heads(std::size_t layer, const RowsView& residual,
                                                  const LayerActivations* before, const EditSet& edits,
                                                  const LayerRotaryTables& rotations,
                                                  const CallContext& context) const;
  /// Computes `count` rows after the heads; contexts that run has are reused.
  LayerOutput finish_layer(std::size_t layer, const LayerActivations& run, std::size_t first,
                           std::size_t count, const EditSet& edits, const CallContext& context) const;
  /// Adds a layer to a pass; returns the residual stream after its last n_rows rows, empty at the last layer.
  RowBuffer add_layer(LocalPass& pass, std::shared_ptr<LayerActivations> run, std::size_t n_rows,
                      const CallContext& context) const;
  /// Returns a row after the last layer of the model.
  std::shared_ptr<const LayerOutput> last_row(const LocalPass& pass, std::size_t row,
                                              const CallContext& context) const;
  arma::frowvec residual_row(const LocalPass& pass, std::size_t n_layers, std::size_t row,
                             const CallContext& context) const;
  arma::frowvec output_row(const LocalPass& pass, std::size_t layer, std::size_t row,
                           const CallContext& context) const;
  bool is_complete(const LocalPass& pass) const { return pass.layers.size() == architecture_.sizes.n_layers; }
  std::shared_ptr<LocalPass> build_pass(const std::vector<std::size_t>& ids, const EditSet& edits,
                                        std::size_t n_layers, const CallContext& context) const;
  void compute_missing_layers(LocalPass& pass, const LocalPass* before, std::size_t n_layers,
                              const CallContext& context) const;
  arma::fmat head_additions(const LocalPass& pass, std::size_t layer, std::size_t row,
                            const CallContext& context) const;
  [[noreturn]] void throw_non_finite_layer(const LocalPass& pass, std::size_t layer, const RowsView& residual,
                                           const CallContext& context) const;
  [[noreturn]] void throw_non_finite(const std::string& place, const std::vector<std::string>& tensors,
                                     const CallContext& context) const;

  Architecture architecture_;
  std::shared_ptr<const Weights> weights_;
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer_;
  Description description_;
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<const LocalPass>> live_passes_;  // guarded by mutex_
};

/// Opens a GGUF file, or a Hugging Face folder: config.json, tensors in one file or several, a tokenizer.
///
/// Reads only headers. At most max_cached_bytes bytes of the weights stay in memory once they were read.
/// Throws core::Error, one line, when a file is missing or damaged, the family is unknown, or the tokenizer
/// has tokens that the model lacks.
std::shared_ptr<const Transformer> open_transformer(const std::filesystem::path& path,
                                                    std::uint64_t max_cached_bytes);

/// Returns whether a path looks like a whole model and not like tensors alone: a GGUF file, or a folder with
/// a configuration and a tokenizer.
bool is_transformer(const std::filesystem::path& path);

}  // namespace core::transformer
