#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/positions.hpp"
#include "core/files/families.hpp"
#include "core/files/json.hpp"

/// The config.json of a checkpoint. Keys are those of transformers; missing values stay empty here or take
/// the default of the family's implementation.
namespace core::formats::checkpoints {

/// Upper limit of every count; neither sums nor products of two such counts overflow.
constexpr std::size_t max_count = std::size_t{1} << 24;

struct ConfigHeads {
  std::optional<std::size_t> n, encoder_heads, decoder_heads;
  std::optional<std::size_t> kv_heads;
  std::optional<std::size_t> width;  ///< d_head
};

/// Scale of the scores.
struct ConfigScale {
  bool scaled = true;              ///< whether scores are divided by √d_head
  bool by_layer = false;           ///< whether they are also divided by the layer number, from 1
  std::optional<double> scalar;    ///< the divisor is √scalar instead of √d_head
  std::optional<double> factor;    ///< the scale itself, instead of all of the above
  std::size_t relative_terms = 0;  ///< n of DeBERTa, which divides by √(d_head · (1 + n))
  friend bool operator==(const ConfigScale&, const ConfigScale&) = default;
};

/// Rotary embedding; fraction of a head's columns are rotated unless rotary.dimensions is set.
struct LayerRotary {
  positions::Rotary rotary;
  double fraction = 1;

  /// Returns it for heads of that width. Throws core::Error, "PLACEexpected …", when it does not fit them.
  positions::Rotary of_width(std::size_t d_head, const std::string& place) const;
};

struct ConfigRotary {
  std::optional<double> base;
  std::optional<double> fraction;         ///< rotated fraction of a head's columns
  std::optional<std::size_t> dimensions;  ///< or their number
  std::optional<bool> interleaved;        ///< whether adjacent columns form a pair
  positions::Scaling scaling;
  std::string unsupported_scaling;  ///< a scaling rule that is unsupported or incomplete, or ""
  /// Fraction that the implementation does not read and with which its scaling fails, or 1.
  double failing_fraction = 1;

  /// Returns the rotary embedding, with a family's defaults for missing values.
  LayerRotary rotary(const RotaryRule& rule) const;
};

/// Which layers have a sliding window, and which apply RoPE.
struct LayerPattern {
  std::optional<std::size_t> window;  ///< maximum number of keys that a query attends to
  std::vector<bool> windowed;         ///< by layer, or empty: all layers
  std::vector<bool> rotated;          ///< by layer, or empty: all layers

  /// Returns the maximum number of keys per query in a layer, its own included; 0 for no limit.
  std::size_t window_of(std::size_t layer) const { return is_windowed(layer) ? window.value_or(0) : 0; }
  /// Returns whether a layer is one of those with a window, in a model where some have none.
  bool is_local(std::size_t layer) const { return !windowed.empty() && is_windowed(layer); }
  bool is_rotated(std::size_t layer) const { return layer >= rotated.size() || rotated[layer]; }
  friend bool operator==(const LayerPattern&, const LayerPattern&) = default;

 private:
  bool is_windowed(std::size_t layer) const { return layer >= windowed.size() || windowed[layer]; }
};

/// Positions, norms and window of the attention.
struct ConfigPositions {
  bool rotary = false, relative = false, has_qk_norm = false, has_clipped_qkv = false;
  std::optional<bool> alibi;
  double alibi_bias_max = 8;  ///< MPT's exponent m: the last slope is 2^−m
  LayerPattern layers;
  ConfigRotary default_rotary;                ///< of all layers, or of those without a window
  std::optional<ConfigRotary> window_rotary;  ///< of layers with a window, if different
  std::optional<std::size_t> max_distance;    ///< of relative positions

  const ConfigRotary& rotary_of(std::size_t layer) const {
    return window_rotary && layers.is_local(layer) ? *window_rotary : default_rotary;
  }
};

/// Sizes of a whole model.
struct Sizes {
  std::size_t n_layers = 0, d_model = 0;
  std::size_t n_heads = 0, kv_heads = 0;  ///< query heads; KV heads
  std::size_t d_head = 0, d_hidden = 0;
  std::size_t n_vocabulary = 0, n_context = 0;  ///< n_context: maximum number of tokens
  std::size_t d_embedding = 0;                  ///< of the token embeddings; 0: d_model
  friend bool operator==(const Sizes&, const Sizes&) = default;
};

/// Numbers of a configuration that a whole model takes as they are.
struct ConfigNumbers {
  ConfigScale scale;
  std::optional<double> softcap;  ///< of scaled scores
  double embedding_factor = 1;    ///< of the token embeddings
  double residual_factor = 1;     ///< of the outputs of attention and the MLP
  double logit_factor = 1;
  std::optional<double> logit_softcap;
  Experts experts;
  bool has_tied_embeddings =
      false;  ///< the unembedding is the token embedding, as also without a tensor of its own
  friend bool operator==(const ConfigNumbers&, const ConfigNumbers&) = default;
};

struct Config : ConfigNumbers {
  std::string part;                ///< its key in the enclosing configuration, "vision_config", or ""
  std::string model_type;          ///< "gpt2", or the first of its architectures in lower case, or ""
  std::string type_override;       ///< model type whose family the user chose instead, or ""
  const Family* family = nullptr;  ///< of type_override or model_type, or nullptr
  std::optional<bool> is_decoder;
  ConfigHeads heads;
  std::optional<double> epsilon;  ///< of norms
  bool is_post_norm = false;  ///< whether norms follow attention and the MLP though the family is pre-norm
  ConfigPositions positions;
  std::set<std::string> unread_keys;  ///< that say something else than the family's implementation does
  std::vector<Config> parts;          ///< of a multi-part model: text_config, vision_config …

  // Only for whole models:
  Sizes sizes;
  std::optional<Activation> activation;
  std::optional<bool> parallel;  ///< whether the MLP is parallel, in families that read it from config.json
  std::size_t padding_token = 1;
};

/// Reads a config.json; keys unrelated to attention are ignored. Missing values take the defaults of
/// type_override's family, if type_override is given.
///
/// Throws core::Error, "FILE: …", when it is not an object or a number of heads is not a whole number from 1
/// to max_count.
Config parse_config(const Json& json, const std::string& type_override = "");

/// Reads a config.json with everything that a whole model needs.
///
/// Throws core::Error, "FILE: PLACE: …", when a size is missing, whole models of the family are not
/// supported, or the model has an unsupported feature, which the message names.
Config full_model_config(const Json& json);

/// Returns the folder of a checkpoint: itself, or the one of its file.
std::filesystem::path folder_of(const std::filesystem::path& checkpoint);

/// Reads a JSON file of at most 1 MiB in the folder of a checkpoint, if there is one. Throws core::Error when
/// it is not JSON.
std::optional<Json> sibling_json(const std::filesystem::path& checkpoint, const char* name);

/// Reads the config.json in the folder of a checkpoint, or the params.json of Meta as one, if there is one.
/// Throws core::Error when it is not JSON.
std::optional<Json> sibling_config(const std::filesystem::path& checkpoint);

/// Returns the part of a configuration that describes the layer with this prefix, or all of it.
const Config& config_for_layer(const Config& config, const std::string& prefix);

}  // namespace core::formats::checkpoints
