#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/tensor.hpp"
#include "core/model/architecture.hpp"
#include "core/model/full_model.hpp"
#include "core/model/matrix.hpp"

namespace core::transformer {

/// Reads rows first … first + count − 1 of a tensor [rows, columns] as float32. A tensor of one axis is one
/// row. Throws core::Error as TensorFile::read() does.
RowBuffer read_rows(const formats::TensorFile& file, const std::string& name, std::size_t first,
                    std::size_t count, const StopToken& progress);

/// x·weight + bias.
struct Affine {
  Matrix weight;            ///< d_in × d_out
  std::vector<float> bias;  ///< d_out numbers, zero-padded to whole panels, or empty
  bool is_empty() const { return weight.is_empty(); }
};

/// The weight and bias of a norm, by column.
struct NormWeights {
  std::vector<float> factors, bias;  ///< factors are empty where there is no norm, bias where it has none
  bool is_empty() const { return factors.empty(); }
};

/// The parameters of xIELU: for x > 0 positive·x² + beta·x, else negative·(exp(min(x, epsilon)) − 1 − x) +
/// beta·x.
struct Xielu {
  float positive = 0, negative = 0, beta = 0, epsilon = 0;
};

struct MlpWeights {
  Affine up;  ///< in a gated MLP, the gate's outputs followed by those that it multiplies
  Affine down;
  std::optional<Xielu> xielu = {};
};

/// All numbers of one layer.
struct LayerWeights {
  NormWeights attention_norm;
  Affine queries_keys_values;        ///< concatenated, the columns of each head together
  NormWeights query_norm, key_norm;  ///< see Family::norm_over, or empty
  Affine output;
  NormWeights attention_output_norm;  ///< of the output of attention, or empty
  NormWeights mlp_norm;               ///< or empty, where a parallel MLP uses attention_norm
  MlpWeights mlp;
  NormWeights mlp_output_norm;           ///< of the output of the MLP, or empty
  Affine router;                         ///< of a mixture of experts, or empty
  std::vector<float> router_correction;  ///< see TensorRole
  std::vector<MlpWeights> experts;
  MlpWeights shared;          ///< the expert of all tokens, or empty
  Affine shared_expert_gate;  ///< its sigmoid multiplies the output of `shared`; or empty
};

/// The parts between the last layer and the unembedding.
struct PredictionHead {
  NormWeights final_norm;  ///< or empty
  Affine projection;       ///< to the width of the embeddings, or empty
  Affine dense;            ///< of BERT's kind, or empty, followed by `norm`
  NormWeights norm;
  std::vector<float> bias;  ///< one per token, or empty
};

/// What embeddings are made of, a row per token.
struct EmbeddingRows {
  RowBuffer tokens;                          ///< as stored, before Architecture::embedding_factor
  RowBuffer segments, positions;             ///< without rows where the model has none
  std::shared_ptr<const NormWeights> norm;   ///< of their sum, or empty
  std::shared_ptr<const Affine> projection;  ///< to the width of the residual stream, or nullptr
  bool projects_tokens_alone = false;        ///< before the sum, not after the norm
};

/// Names of the tensors in a file, by role.
class TensorNames {
 public:
  /// Takes a file as Hugging Face writes it, with or without a prefix of its names, or a GGUF file.
  ///
  /// Throws core::Error, "FILE: expected …", when it has no embeddings of tokens.
  TensorNames(const formats::TensorFile& file, const Family& family);

  /// Returns a name like "h.3.ln_1.weight" if the file has it.
  std::optional<std::string> find(TensorRole role, const char* ending, std::size_t layer = 0,
                                  std::size_t expert = 0) const;
  /// Returns the same; throws core::Error, "FILE: expected a tensor NAME, …", when there is none.
  std::string require(TensorRole role, const char* ending, std::size_t layer = 0,
                      std::size_t expert = 0) const;

  /// Returns the names of a role in its family, separated by spaces, or "".
  const char* of(TensorRole role) const { return names_->of(role); }
  /// Returns whether a layer has a tensor of a role for each expert or each head.
  bool has_tensor_per_index(TensorRole role) const {
    return std::string_view(of(role)).find('@') != std::string_view::npos;
  }
  bool is_gguf() const { return is_gguf_; }
  /// Returns the beginnings of the names of all tensors of a layer: "model.layers.3.".
  std::set<std::string> layer_prefixes(std::size_t layer) const;

 private:
  /// Returns the names that it may have.
  std::vector<std::string> names(TensorRole role, std::size_t layer, std::size_t expert) const;

  const formats::TensorFile* file_;
  const formats::checkpoints::RoleNames* names_;
  std::string prefix_;
  bool is_gguf_;
};

/// The numbers of a model, read from its file on first use. Safe between threads.
///
/// Matrices in float32, float16, bfloat16 and Q8_0 keep their encoding, others become float32; the rest is
/// float32. Tensors stay in memory while together they take at most max_cached_bytes bytes.
class Weights {
 public:
  /// Finds every tensor and compares its shape with the architecture; reads no numbers.
  ///
  /// Throws core::Error, "FILE: TENSOR: …", when one is missing or has another shape, or when the file has
  /// tensors in a layer, or of a weight that is used, that would change the numbers and are not supported.
  Weights(formats::TensorFile file, Architecture architecture, std::uint64_t max_cached_bytes);
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  /// Returns the numbers of a layer, which are not read again while a caller holds them. Throws core::Error
  /// when the file cannot be read, as TensorFile::read() does.
  std::shared_ptr<const LayerWeights> layer(std::size_t index, const CallContext& context) const;
  /// Returns token embeddings plus segment and position embeddings, for positions from `first` on, after the
  /// embedding norm and in the width of the residual stream, n_tokens × d_model.
  RowBuffer embed(const std::vector<std::size_t>& ids, std::size_t first, const CallContext& context) const;
  /// Returns what embed() is computed from.
  EmbeddingRows read_embeddings(const std::vector<std::size_t>& ids, std::size_t first,
                                const CallContext& context) const;
  std::shared_ptr<const PredictionHead> head(const CallContext& context) const;
  /// Calls use(first, part) with the unembedding, d_model × n_vocabulary: all outputs at once, or parts of
  /// them in order, `first` being the first output of a part.
  void for_each_unembedding_part(const std::function<void(std::size_t first, const Matrix& part)>& use,
                                 const CallContext& context) const;

  /// Returns whether the file has everything needed to predict tokens.
  bool predicts() const { return predicts_; }
  /// Returns whether embeddings are projected, as always when not as wide as the residual stream.
  bool has_embedding_projection() const;
  const formats::TensorFile& file() const { return file_; }
  /// Returns the names of the tensors that a layer is read from.
  std::vector<std::string> tensors_of(std::size_t layer) const;
  /// Returns those of the embeddings, and those from the last norm to the unembedding.
  std::vector<std::string> tensors_of_embeddings() const;
  std::vector<std::string> tensors_of_prediction() const;

 private:
  /// The tensors in memory, and how many bytes they take.
  struct Cache {
    std::mutex mutex;
    std::uint64_t bytes = 0, max_bytes = 0;
    std::map<std::size_t, std::shared_ptr<const LayerWeights>> layers;
    std::map<std::size_t, std::weak_ptr<const LayerWeights>> held;  // by callers, beyond max_bytes
    std::shared_ptr<const Matrix> unembedding;
    std::shared_ptr<const NormWeights> embedding_norm;
    std::shared_ptr<const Affine> embedding_projection;
    std::shared_ptr<const PredictionHead> head;
  };
  std::string unembedding_tensor() const;
  std::optional<std::string> unembedding_bias() const;
  std::vector<std::string> tensors_between(TensorRole first, TensorRole last, std::size_t layer) const;
  void check_shapes() const;
  void refuse_unknown_tensors() const;
  std::shared_ptr<const Matrix> cached_unembedding(const CallContext& context) const;
  bool fits_cache(std::uint64_t bytes) const;
  LayerWeights read_layer(std::size_t index, const CallContext& context) const;
  std::size_t n_tensors(TensorRole role) const;
  NormWeights read_norm(TensorRole role, std::size_t layer, const StopToken& progress) const;
  std::size_t d_embedding() const;
  bool has_wide_positions() const;
  bool has_parameterless_norm(TensorRole role) const;
  Affine read_affine(const std::vector<TensorRole>& roles, std::size_t layer, const CallContext& context,
                     const std::vector<std::size_t>& order = {}, std::size_t expert = 0) const;
  Affine read_projections(std::size_t layer, const CallContext& context) const;

  formats::TensorFile file_;
  Architecture architecture_;
  const Family* family_;
  TensorNames names_;
  bool predicts_ = false;
  mutable Cache cache_;
};

}  // namespace core::transformer
