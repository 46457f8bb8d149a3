#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/additions.hpp"

/// The families of models that are known: one row each tells what their attention does, what config.json
/// leaves to their program, and how whole models of them are computed.
namespace core::formats::checkpoints {

/// Which tokens a token attends to: those up to it, all, or what its part of the model does (encoder or
/// decoder, image or text).
enum class Visibility { past, all, by_side, by_tower };

/// What tells the model where a token is: numbers added before attention, or something in it; in some, rotary
/// embeddings where the file has their frequencies, or ALiBi where the length of texts has no limit.
enum class Positions { learned, rotary, relative, alibi, rotary_by_tensors, rotary_or_alibi };

/// How one weight for queries, keys and values holds them: side by side; by head (by group of heads, where
/// several share a key and a value); or in four blocks of heads, each with its queries, its values and its
/// keys.
enum class Fused { side_by_side, by_head, in_fours };

/// How ALiBi's slope of a head follows from its number: as in Bloom; as there, times the scale of the scores;
/// or as in MPT, which orders them otherwise when heads are no power of two.
enum class Slopes { bloom, scaled, mpt };

enum class NormKind { layer, rms };
using attention::NormOver;
/// Where a norm is: before attention and before the MLP, or after each of them has been added.
enum class NormPlace { before, after };
/// Between the two halves of an MLP. Source of both GELUs: Hendrycks and Gimpel 2016.
/// xielu has numbers of its own in each layer (Huang and Schlag 2024).
enum class Activation { gelu_erf, gelu_tanh, quick_gelu, relu, relu_squared, silu, xielu };

/// How a router's scores become the weights of experts: a softmax, or a sigmoid of each.
enum class Routing { softmax, sigmoid };

struct Norm {
  NormKind kind = NormKind::layer;
  NormPlace place = NormPlace::before;
  double epsilon = 1e-5;
  friend bool operator==(const Norm&, const Norm&) = default;
};

struct Mlp {
  Activation activation = Activation::gelu_erf;
  bool gated = false;     ///< one half of what goes in is activated and multiplies the other
  bool parallel = false;  ///< it reads what attention reads, not what attention leaves
  friend bool operator==(const Mlp&, const Mlp&) = default;
};

/// A mixture of experts instead of an MLP: each token has the few experts that its router prefers.
struct Experts {
  std::size_t n = 0;         ///< 0 for none
  std::size_t n_used = 0;    ///< by a token
  std::size_t d_hidden = 0;  ///< of an expert
  std::size_t d_shared = 0;  ///< of the expert of all tokens; 0 for none
  bool normalized = false;   ///< whether the weights of a token's experts sum to 1
  Routing routing = Routing::softmax;
  double factor = 1;            ///< of these weights, after that
  std::size_t first_layer = 0;  ///< layers before it have an MLP
  friend bool operator==(const Experts&, const Experts&) = default;
};

/// Rotary embeddings of a family, where config.json does not say it.
struct RotaryRule {
  bool interleaved = false;        ///< pairs are of neighbors, not of halves
  double fraction = 1;             ///< of a head's columns that are rotated
  bool has_fixed_base = false;     ///< its program knows the base; config.json need not tell it
  bool scales_unwindowed = false;  ///< rope_scaling is not of layers with a window
  bool is_supported = true;
};

/// Which layers are rotated, where config.json does not list them: all, those with a window, or those where
/// the model has windows at all.
enum class RotaryLayers { all, windowed, windowed_if_any };

/// Every n-th layer is an exception, from the n-th or from the first on; 0 for none. config.json may tell n.
struct EveryLayer {
  std::size_t n = 0;
  const char* key = "";
  bool from_first = false;
};

/// The sliding window of a family's layers, where config.json does not say it.
struct WindowRule {
  enum class Use { unless_off, always, if_on };  ///< what use_sliding_window has to say
  Use use = Use::unless_off;
  std::size_t width = 0;         ///< where config.json has no sliding_window; 0 for none
  EveryLayer full = {};          ///< layers without the window
  std::size_t n_full_first = 0;  ///< or the first layers, unless max_window_layers says it
  bool is_two_sided = false;     ///< whether windows on both sides are supported
  bool in_whole_models = false;  ///< whether the program of such models has windows at all
};

/// What a tensor of a whole model is for.
enum class Role {
  token_embedding,
  position_embedding,
  segment_embedding,
  embedding_norm,
  embedding_projection,  ///< of embeddings that are narrower than the residual stream
  attention_norm,
  query,
  key,
  value,
  fused,  ///< queries, keys and values in one
  output,
  query_norm,
  key_norm,
  attention_output_norm,  ///< of what attention adds, before it is added
  mlp_norm,
  gate,
  up,  ///< or gate and up in one, where a gated MLP has no gate of its own
  mlp_output_norm,
  down,
  router,  ///< of a mixture of experts, and its experts, "@" for the number of one
  expert_gate,
  expert_up,  ///< of one, or gate and up of all of them in one tensor of three dimensions
  expert_down,
  shared_gate,  ///< the expert of all tokens, and what its output is multiplied by
  shared_up,
  shared_down,
  shared_switch,       ///< or none: it is added as it is
  router_correction,   ///< added to the weights of experts where they are chosen
  activation_numbers,  ///< of xielu
  final_norm,
  output_projection,  ///< back to the width of the embeddings
  head_dense,         ///< between the last layer and the prediction
  head_norm,
  head,
  head_bias
};
constexpr std::size_t n_roles = static_cast<std::size_t>(Role::head_bias) + 1;

/// The beginnings of tensors' names by role, "#" for the number of the layer, "" where a family has none; a
/// weight ends in ".weight", a bias in ".bias". Of several, blanks between, a file has one.
struct Names {
  std::array<const char*, n_roles> names{};
  const char* of(Role role) const { return names[static_cast<std::size_t>(role)]; }
};

/// Models whose attention is computed the same way. Several rows may have one name: model types that differ
/// in what config.json leaves to their programs. The first of them is taken for all, where only names of
/// tensors tell.
struct Family {
  const char* name;          ///< "GPT-2"
  const char* types;         ///< model_type in config.json, blanks around each
  const char* weights = "";  ///< parts of names of query weights that no other family has, blanks around each
  Visibility visibility = Visibility::past;
  Positions positions = Positions::learned;
  Fused fused = Fused::side_by_side;
  Norm norm = {};         ///< its epsilon where config.json says none
  bool is_scaled = true;  ///< scores by 1/√d_head, unless config.json says otherwise
  RotaryRule rotary = {};
  EveryLayer no_rotary = {};  ///< layers without positions
  RotaryLayers rotary_layers = RotaryLayers::all;
  Slopes slopes = Slopes::bloom;
  bool has_bias_table = false;  ///< relative position biases are of a table as in T5
  bool has_head_norms = false;  ///< q_norm and k_norm of a head's width are RMSNorm
  /// What its QK norm is taken over. That of each head with factors of its own, or of all heads, is of the
  /// kind of the family's norm.
  NormOver norm_over = NormOver::head;
  bool norms_plus_one = false;    ///< whose factors, as those of all its norms, are 1 + the tensor's numbers
  bool has_common_names = false;  ///< projections are called as in programs of many other models
  const char* if_grouped = "";    ///< the family, where a fused weight of such names has fewer heads of keys
  WindowRule window = {};

  // Of whole models:
  const char* whole = "";     ///< their name, "" where they are not supported
  const char* gguf = "";      ///< general.architecture, blanks around each
  const char* prefixes = "";  ///< may stand before names, blanks between; the head's names have none
  Names names = {}, gguf_names = {};
  Mlp mlp = {};
  bool in_by_out = false;   ///< weights of Hugging Face's files are used as x·W, as its Conv1D keeps them
  bool has_groups = false;  ///< its program reads how many heads share keys and values
  bool partial_rotary = false;      ///< its program reads which part of the columns is rotated
  bool parallel_by_config = false;  ///< its program reads whether the MLP is parallel
  bool scales_embeddings = false;   ///< by √d_model
  bool normalizes_experts = false;  ///< weights of a token's experts sum to 1, unless config.json says
  bool has_narrow_experts = false;  ///< their width is not that of an MLP in config.json
  bool has_shared_expert = false;   ///< one that every token goes through
  Routing routing = Routing::softmax;
  bool bare_norms = false;                         ///< norms of layers have no numbers of their own
  std::size_t first_position = 0;                  ///< row of the first token among learned positions
  bool begins_behind_padding = false;              ///< position rows up to that of the padding have no tokens
  std::optional<Activation> head_activation = {};  ///< before the prediction, where it is not that of the MLP
};

std::span<const Family> families();

/// The first family of that name, which is in the table.
const Family& family_named(std::string_view name);
/// The family whose whole models have that name, which is in the table.
const Family& whole_family_named(std::string_view name);

/// The family of a model_type or an architecture ("gpt2lmheadmodel"), or nullptr.
const Family* family_of_type(const std::string& type);
/// The family of a query's weight by parts of its name, or nullptr.
const Family* family_by_weight(const std::string& weight);
/// The family of a general.architecture of GGUF, or nullptr.
const Family* family_of_gguf(std::string_view architecture);

/// How a weight is kept: as x·W, as torch.nn.Linear does, whichever its shape tells (a fused weight has more
/// outputs than inputs), or as one matrix for each head, [heads, d_in, d_head].
enum class Orientation { in_by_out, out_by_in, by_shape, head_first };

/// A way in which programs name and lay out the projections of one attention: the ends of the names of its
/// tensors; one weight for all three is fused.
struct Naming {
  const char* name;         ///< "gpt2"
  const char* about;        ///< one line for people
  const char* family = "";  ///< whose it is, or "" when several have it
  bool causal = true;       ///< whether such models mask the future, when nothing else tells it
  Orientation orientation = Orientation::out_by_in;
  std::array<std::string, 3> weights = {}, biases = {};
  std::string output_weight = {}, output_bias = {};
  bool has_fused_bias = false;
  bool is_fused() const { return weights[0] == weights[1]; }
};

/// All that are known; what fits several is of the first with an output projection.
std::span<const Naming> namings();

/// Something that attention does in some models and that is not supported, or may be ignored.
struct Feature {
  const char* name;   ///< as --ignore calls it: "rotary"
  const char* words;  ///< "rotary positions"
};
std::span<const Feature> features();
/// The feature of that name, which is in the table.
const Feature& feature_named(std::string_view name);

}  // namespace core::formats::checkpoints
