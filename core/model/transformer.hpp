#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "core/model/blocks.hpp"
#include "core/model/weights.hpp"
#include "core/model/whole_model.hpp"

namespace core::transformer {

/// One layer on a text. Of the last layer of a whole pass contexts and output are not kept: they are computed
/// for the rows that are asked for.
struct LayerRun {
  SharedRows residual;          ///< before the layer
  Heads queries, keys, values;  ///< after QK norm and RoPE, where the model has them; none of a given output
  SharedRows contexts;          ///< of all heads, concatenated, none of them ablated
  SharedRows output;            ///< what attention adds
};

/// Edits by layer.
struct EditSet {
  std::set<std::pair<std::size_t, std::size_t>> heads_off;  ///< layer and head
  std::map<std::size_t, std::shared_ptr<const arma::fmat>> outputs;
};

/// Rows of a layer behind its heads.
struct LayerEnd {
  Rows contexts;  ///< see LayerRun
  Rows output;    ///< what attention adds
  Rows next;      ///< the residual stream after the layer
  bool is_finite = true;
};

/// A pass of our own engine, in float32.
class OwnPass : public Pass {
 public:
  std::shared_ptr<const void> computed(std::size_t layer) const override { return layers[layer]; }
  EditSet edits;
  std::vector<std::shared_ptr<const LayerRun>> layers;
  SharedRows last;  ///< after the last layer, of a pass that ends before the model does

  /// Rows after the last layer of a model, as far as they were asked for.
  struct Ends {
    std::mutex mutex;
    std::map<std::size_t, std::shared_ptr<const LayerEnd>> rows;  ///< of one row each
  };
  std::shared_ptr<Ends> ends = std::make_shared<Ends>();
};

/// A whole model in our own engine.
class Transformer : public WholeModel {
 public:
  /// Throws core::Error when the tokenizer has tokens that the model has not.
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

  /// The steps of a pass. The residual stream before the first layer, of tokens at positions from first on.
  Rows embedded(const std::vector<std::size_t>& ids, std::size_t first, const Means& means) const;
  /// What enters attention of a layer.
  Rows attention_input(std::size_t layer, const RowsView& residual, const Means& means) const;
  /// The residual stream of a whole text after a layer that no edit changes.
  Rows after_layer(std::size_t layer, const RowsView& residual, const Means& means) const;
  /// The same of a pass, after n_layers.
  arma::fmat residual(const Pass& pass, std::size_t n_layers, const Means& means) const;
  /// The last norm, where there is one.
  arma::fmat before_prediction(const arma::fmat& last, const Means& means) const;
  /// Rows of logits of rows of the residual stream after the last layer. Throws as next() does.
  arma::fmat logits_of(const RowsView& last, const Means& means) const;
  arma::fmat logits_of(const arma::fmat& last, const Means& means) const {
    return logits_of(Rows(last), means);
  }
  /// The attention weights of a head, n_tokens × n_tokens.
  arma::fmat weights_of(const Pass& pass, std::size_t layer, std::size_t head) const;

 private:
  /// A layer up to its heads; before: the same of the tokens before these.
  std::shared_ptr<LayerRun> heads_of(std::size_t layer, const RowsView& residual, const LayerRun* before,
                                     const EditSet& edits, const LayerRotations& rotations,
                                     const Means& means) const;
  /// Some rows behind them; contexts: theirs, where they are known.
  LayerEnd end_of(std::size_t layer, const LayerRun& run, std::size_t first, std::size_t count,
                  const EditSet& edits, const Means& means) const;
  /// Ends a layer of a pass for its last rows, and adds it; the residual stream after them.
  Rows add_layer(OwnPass& pass, std::shared_ptr<LayerRun> run, std::size_t n_rows, const Means& means) const;
  /// A row after the last layer of a model.
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
  mutable std::vector<std::weak_ptr<const OwnPass>> kept_;  // by mutex_
};

/// Opens a GGUF file, or a folder of Hugging Face's: config.json, tensors in one file or several, a
/// tokenizer.
///
/// Reads headers alone. At most keep_at_most bytes of the weights are kept as float32 once they were read.
/// Throws core::Error, one line, when a file is missing or damaged, the family is unknown, or the tokenizer
/// has tokens that the model has not.
std::shared_ptr<const Transformer> open_transformer(const std::filesystem::path& path,
                                                    std::uint64_t keep_at_most);

/// Whether a path looks like a whole model, not like tensors alone: a GGUF file, or a folder with a
/// configuration and a tokenizer.
bool is_transformer(const std::filesystem::path& path);

}  // namespace core::transformer
