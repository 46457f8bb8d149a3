#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/additions.hpp"

/// Known model families: each row describes their attention, the defaults that config.json leaves to their
/// implementation, and how whole models are computed.
namespace core::formats::checkpoints {

/// Tokens that a token attends to: those up to it, all, or depending on its part of the model (encoder or
/// decoder, image or text).
enum class MaskKind { past, all, by_side, by_tower };

/// Positions of a family: added before attention, or part of it. rotary_by_tensors is rotary if the file has
/// its frequencies; rotary_or_alibi is ALiBi if the text length has no limit.
enum class PositionKind { learned, rotary, relative, alibi, rotary_by_tensors, rotary_or_alibi };

/// Layout of a fused QKV weight: queries, keys and values side by side; by KV head, each with its queries,
/// key and value; or in four blocks of heads, each with its queries, its values and its keys.
enum class FusedLayout { concatenated, by_head, four_blocks };

/// Rule for the slopes of ALiBi: as in Bloom; as in Bloom, times the scale of the scores; or as in MPT, whose
/// order differs if the number of heads is not a power of two.
enum class AlibiSlopes { bloom, scaled, mpt };

enum class NormKind { layer, rms };
using attention::NormScope;
/// Place of a norm: before attention and before the MLP, or after their residual additions.
enum class NormPlace { before, after };
/// Activation of an MLP. Source of both GELUs: Hendrycks and Gimpel 2016. xielu has learned parameters in
/// each layer (Huang and Schlag 2024).
enum class Activation { gelu_erf, gelu_tanh, quick_gelu, relu, relu_squared, silu, xielu };

/// Function from router scores to expert weights: a softmax, or a sigmoid of each.
enum class Routing { softmax, sigmoid };

struct ModelNorm {
  NormKind kind = NormKind::layer;
  NormPlace place = NormPlace::before;
  double epsilon = 1e-5;
  friend bool operator==(const ModelNorm&, const ModelNorm&) = default;
};

struct Mlp {
  Activation activation = Activation::gelu_erf;
  bool gated = false;     ///< the activated gate multiplies the up projection
  bool parallel = false;  ///< its input is that of attention, not the result of attention
  friend bool operator==(const Mlp&, const Mlp&) = default;
};

/// A mixture of experts instead of an MLP: the router chooses n_used experts for each token.
struct Experts {
  std::size_t n = 0;         ///< 0 for none
  std::size_t n_used = 0;    ///< per token
  std::size_t d_hidden = 0;  ///< of an expert
  std::size_t d_shared = 0;  ///< of the shared expert; 0 for none
  bool normalized = false;   ///< whether the weights of a token's experts sum to 1
  Routing routing = Routing::softmax;
  double factor = 1;            ///< of these weights, after normalization
  std::size_t first_layer = 0;  ///< layers before it have an MLP
  friend bool operator==(const Experts&, const Experts&) = default;
};

/// Rotary embedding of a family, for values missing in config.json.
struct RotaryRule {
  bool interleaved = false;                 ///< pairs are adjacent columns, not one of each half
  double fraction = 1;                      ///< rotated fraction of a head's columns
  bool has_fixed_base = false;              ///< the base is fixed in the code; config.json need not give it
  bool scales_only_full_attention = false;  ///< rope_scaling applies only to layers without a window
  bool is_supported = true;
};

/// Layers with RoPE, if config.json does not list them: all, those with a window, or those with a window if
/// the model has any (else all).
enum class RotaryLayers { all, windowed, windowed_if_any };

/// Every n-th layer is an exception, starting at the n-th or the first; 0 for none. config.json may give n.
struct LayerInterval {
  std::size_t n = 0;
  const char* key = "";
  bool from_first = false;
};

/// Value of use_sliding_window with which a family has its window: not false, any, true.
enum class WindowUse { unless_off, always, if_on };

/// Sliding window of a family, for values missing in config.json.
struct WindowRule {
  WindowUse use = WindowUse::unless_off;
  std::size_t width = 0;                ///< if config.json has no sliding_window; 0 for none
  LayerInterval full = {};              ///< layers without a window
  std::size_t n_first_full_layers = 0;  ///< or the number of first layers, unless max_window_layers gives it
  bool is_two_sided = false;            ///< whether windows on both sides are supported
  bool in_full_models = false;          ///< whether the implementation of whole models has windows
};

/// Role of a tensor in a whole model.
enum class TensorRole {
  token_embedding,
  position_embedding,
  segment_embedding,
  embedding_norm,
  embedding_projection,  ///< from narrower embeddings to the residual stream
  attention_norm,
  query,
  key,
  value,
  fused,  ///< queries, keys and values in one weight
  output,
  query_norm,
  key_norm,
  attention_output_norm,  ///< of attention's output, before the residual addition
  mlp_norm,
  gate,
  up,  ///< or gate and up in one weight, if a gated MLP has no separate gate
  mlp_output_norm,
  down,
  router,  ///< of a mixture of experts; in the names of experts "@" is the expert number
  expert_gate,
  expert_up,  ///< of one expert, or gate and up of all experts in one tensor of three dimensions
  expert_down,
  shared_gate,  ///< of the shared expert, which processes every token
  shared_up,
  shared_down,
  shared_expert_gate,     ///< sigmoid gate of the shared expert's output, or none
  router_correction,      ///< added to expert weights only to choose experts
  activation_parameters,  ///< learned parameters of xielu
  final_norm,
  output_projection,  ///< back to the width of the embeddings
  head_dense,         ///< between the last layer and the prediction
  head_norm,
  head,
  head_bias
};
constexpr std::size_t n_roles = static_cast<std::size_t>(TensorRole::head_bias) + 1;

/// Prefixes of tensor names by role, before ".weight" or ".bias": "#" is the layer number, "" means that the
/// family has none. Of several names, separated by spaces, a file has one.
struct RoleNames {
  std::array<const char*, n_roles> names{};
  const char* of(TensorRole role) const { return names[static_cast<std::size_t>(role)]; }
};

/// Models whose attention is computed the same way. Rows with the same name are model types with different
/// defaults; the first of them is used if only tensor names reveal the family.
struct Family {
  const char* name;          ///< "GPT-2"
  const char* types;         ///< model_type in config.json, with spaces around each
  const char* weights = "";  ///< parts of query weight names unique to the family, with spaces around each
  MaskKind mask_kind = MaskKind::past;
  PositionKind positions = PositionKind::learned;
  FusedLayout fused = FusedLayout::concatenated;
  ModelNorm norm = {};    ///< its epsilon applies if config.json has none
  bool is_scaled = true;  ///< scores are scaled by 1/√d_head, unless config.json says otherwise
  RotaryRule rotary = {};
  LayerInterval no_rotary = {};  ///< layers without RoPE
  RotaryLayers rotary_layers = RotaryLayers::all;
  AlibiSlopes slopes = AlibiSlopes::bloom;
  bool has_bias_table = false;  ///< relative position biases come from a table as in T5
  bool has_head_norms = false;  ///< q_norm and k_norm of width d_head are RMSNorm
  /// Extent of the QK norm; with separate factors for each head, or over all heads, it is of the same kind as
  /// norm.
  NormScope norm_over = NormScope::head;
  bool norms_plus_one = false;      ///< factors of all norms are 1 + the tensor's numbers
  bool has_common_names = false;    ///< names of projections are shared with many other models
  const char* grouped_family = "";  ///< the family if a fused weight of such names has fewer KV heads
  WindowRule window = {};

  // For whole models:
  const char* full_model = "";  ///< their name, "" if they are not supported
  const char* gguf = "";        ///< general.architecture, with spaces around each
  const char* prefixes = "";    ///< optional prefixes of names, separated by spaces; the LM head has none
  RoleNames names = {}, gguf_names = {};
  Mlp mlp = {};
  bool in_by_out = false;       ///< weights in Hugging Face's files are [in, out] (x·W), as in its Conv1D
  bool reads_kv_heads = false;  ///< the implementation reads the number of KV heads
  bool reads_alibi = false;     ///< the implementation reads whether it has ALiBi
  bool reads_rotary_fraction = false;  ///< the implementation reads the rotated fraction of the columns
  bool reads_parallel_mlp = false;     ///< the implementation reads whether the MLP is parallel
  bool scales_embeddings = false;      ///< by √d_model
  bool normalizes_experts = false;     ///< weights of a token's experts sum to 1, whatever config.json says
  bool has_narrow_experts = false;     ///< config.json gives them a width of their own
  bool has_shared_expert = false;      ///< one that processes every token
  Routing routing = Routing::softmax;
  bool norms_without_parameters = false;           ///< norms have no learned parameters
  std::size_t first_position = 0;                  ///< row of the first token in the position embeddings
  bool positions_follow_padding = false;           ///< row of the first token follows that of the padding
  std::optional<Activation> head_activation = {};  ///< of head_dense, if it is not that of the MLP
};

std::span<const Family> families();

/// Returns the first family of this name, which must be in the table.
const Family& family_named(std::string_view name);
/// Returns the family whose whole models have this name, which must be in the table.
const Family& full_model_family_named(std::string_view name);

/// Returns the family of a model_type or an architecture ("gpt2lmheadmodel"), or nullptr.
const Family* family_of_type(const std::string& type);
/// Returns the family of a query weight by parts of its name, or nullptr.
const Family* family_by_weight(const std::string& weight);
/// Returns the family of a general.architecture of GGUF, or nullptr.
const Family* family_of_gguf(std::string_view architecture);

/// A feature of attention in some models that is not supported or may be ignored.
struct Feature {
  const char* name;   ///< as in --ignore: "rotary"
  const char* words;  ///< "rotary positions"
};
std::span<const Feature> features();
/// Returns the feature of this name, which must be in the table.
const Feature& feature_named(std::string_view name);

}  // namespace core::formats::checkpoints
