#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "core/model/blocks.hpp"
#include "core/model/weights.hpp"
#include "core/model/whole_model.hpp"

namespace core::transformer {

/// One layer on a text. A whole pass does not keep contexts and output of the last layer: they are computed
/// for single rows on demand.
struct LayerRun {
  SharedRows residual;          ///< before the layer
  Heads queries, keys, values;  ///< after QK norm and RoPE, if any; empty where the output is given
  SharedRows contexts;          ///< of all heads, concatenated, before ablation
  SharedRows output;            ///< of attention, before residual_factor and its norm
};

/// Edits by layer.
struct EditSet {
  std::set<std::pair<std::size_t, std::size_t>> heads_off;  ///< layer and head
  std::map<std::size_t, std::shared_ptr<const arma::fmat>> outputs;
};

/// Rows of a layer after its heads.
struct LayerEnd {
  Rows contexts;  ///< see LayerRun
  Rows output;    ///< see LayerRun
  Rows next;      ///< the residual stream after the layer
  bool is_finite = true;
};

/// A pass of our own engine, in float32.
class OwnPass : public Pass {
 public:
  std::shared_ptr<const void> computed(std::size_t layer) const override { return layers[layer]; }
  EditSet edits;
  std::vector<std::shared_ptr<const LayerRun>> layers;
  SharedRows last;  ///< residual stream after the last layer, of a pass that ends before the model

  /// Rows after the last layer of the model, as computed on demand.
  struct Ends {
    std::mutex mutex;
    std::map<std::size_t, std::shared_ptr<const LayerEnd>> rows;  ///< of one row each
  };
  std::shared_ptr<Ends> ends = std::make_shared<Ends>();
};

/// A whole model in our own engine.
class Transformer : public WholeModel {
 public:
  Transformer(std::filesystem::path path, Architecture architecture, std::shared_ptr<const Weights> weights,
              std::shared_ptr<const tokenizers::Tokenizer> tokenizer);

  const Description& description() const override { return description_; }
  std::vector<tokenizers::TextToken> tokenize(std::string_view text) const override;
  VocabularyToken token(std::size_t id) const override;
  PassRef run(const std::vector<std::size_t>& ids, const std::vector<Edit>& edits, const Means& means,
              std::size_t n_layers = static_cast<std::size_t>(-1)) const override;
  arma::fmat input(const Pass& pass, std::size_t layer, const Token& progress = {}) const override;
  attention::Model parameters(std::size_t layer, const Pass* pass, const Token& progress = {}) const override;
  LayerHeads maps(const Pass& pass, std::size_t layer, std::size_t block, std::size_t row,
                  const Means& means) const override;
  arma::frowvec next(const Pass& pass, std::size_t row, const Means& means) const override;
  arma::fmat lens(const Pass& pass, std::size_t row, const Means& means) const override;
  Contributions contributions(const Pass& pass, std::size_t row, std::size_t token,
                              const std::vector<arma::fmat>& added, const Means& means) const override;
  StreamNumber stream(const Pass& pass, std::size_t layer, std::size_t row, std::size_t column,
                      const Means& means) const override;

  const Architecture& architecture() const { return architecture_; }
  const Weights& weights() const { return *weights_; }
  const tokenizers::Tokenizer& tokenizer() const { return *tokenizer_; }

  /// Returns the residual stream before the first layer, of tokens at positions from `first` on.
  Rows embedded(const std::vector<std::size_t>& ids, std::size_t first, const Means& means) const;
  /// Returns the input of attention of a layer.
  Rows attention_input(std::size_t layer, const RowsView& residual, const Means& means) const;
  /// Returns the residual stream of a whole text after a layer without edits.
  Rows after_layer(std::size_t layer, const RowsView& residual, const Means& means) const;
  /// Returns the residual stream of a pass after n_layers layers.
  arma::fmat residual(const Pass& pass, std::size_t n_layers, const Means& means) const;
  /// Applies the last norm, if there is one.
  arma::fmat before_prediction(const arma::fmat& last, const Means& means) const;
  /// Returns the logits of rows of the residual stream after the last layer. Throws as next() does.
  arma::fmat logits_of(const RowsView& last, const Means& means) const;
  arma::fmat logits_of(const arma::fmat& last, const Means& means) const {
    return logits_of(Rows(last), means);
  }
  /// Returns the attention weights of a head, n_tokens × n_tokens.
  arma::fmat weights_of(const Pass& pass, std::size_t layer, std::size_t head) const;

 private:
  /// Computes a layer up to its heads; before: the same layer of the tokens before these.
  std::shared_ptr<LayerRun> heads_of(std::size_t layer, const RowsView& residual, const LayerRun* before,
                                     const EditSet& edits, const LayerRotations& rotations,
                                     const Means& means) const;
  /// Computes `count` rows after the heads; contexts that run has are reused.
  LayerEnd end_of(std::size_t layer, const LayerRun& run, std::size_t first, std::size_t count,
                  const EditSet& edits, const Means& means) const;
  /// Adds a layer to a pass; returns the residual stream after its last n_rows rows, empty at the last layer.
  Rows add_layer(OwnPass& pass, std::shared_ptr<LayerRun> run, std::size_t n_rows, const Means& means) const;
  /// Returns a row after the last layer of the model.
  std::shared_ptr<const LayerEnd> last_row(const OwnPass& pass, std::size_t row, const Means& means) const;
  arma::frowvec residual_row(const OwnPass& pass, std::size_t n_layers, std::size_t row,
                             const Means& means) const;
  arma::frowvec output_row(const OwnPass& pass, std::size_t layer, std::size_t row, const Means& means) const;
  bool is_whole(const OwnPass& pass) const { return pass.layers.size() == architecture_.sizes.n_layers; }
  std::shared_ptr<OwnPass> begun(const std::vector<std::size_t>& ids, const EditSet& edits,
                                 std::size_t n_layers, const Means& means) const;
  void read_on(OwnPass& pass, const OwnPass* before, std::size_t n_layers, const Means& means) const;
  arma::fmat added_by_heads(const OwnPass& pass, std::size_t layer, std::size_t row,
                            const Means& means) const;
  [[noreturn]] void refuse_layer(const OwnPass& pass, std::size_t layer, const RowsView& residual,
                                 const Means& means) const;
  [[noreturn]] void refuse_numbers(const std::string& place, const std::vector<std::string>& tensors,
                                   const Means& means) const;

  Architecture architecture_;
  std::shared_ptr<const Weights> weights_;
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer_;
  Description description_;
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<const OwnPass>> kept_;  // guarded by mutex_
};

/// Opens a GGUF file, or a Hugging Face folder: config.json, tensors in one file or several, a tokenizer.
///
/// Reads only headers. At most keep_at_most bytes of the weights stay in memory once they were read. Throws
/// core::Error, one line, when a file is missing or damaged, the family is unknown, or the tokenizer has
/// tokens that the model lacks.
std::shared_ptr<const Transformer> open_transformer(const std::filesystem::path& path,
                                                    std::uint64_t keep_at_most);

/// Returns whether a path looks like a whole model and not like tensors alone: a GGUF file, or a folder with
/// a configuration and a tokenizer.
bool is_transformer(const std::filesystem::path& path);

}  // namespace core::transformer
