#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/positions.hpp"
#include "core/files/families.hpp"
#include "core/files/json.hpp"

/// What the config.json beside a checkpoint says of its model. Keys are those of transformers; what is not
/// said is left open here, or as the program of its family has it.
namespace core::formats::checkpoints {

/// No model has more of anything, and neither sums nor products of two such counts can wrap.
constexpr std::size_t max_counted = std::size_t{1} << 24;

struct ConfigHeads {
  std::optional<std::size_t> n, of_encoder, of_decoder;
  std::optional<std::size_t> kv_heads;  ///< heads of keys and values
  std::optional<std::size_t> width;     ///< columns of a head
};

/// What multiplies the scores.
struct ConfigScale {
  bool scaled = true;              ///< whether scores are divided by √d_head
  bool by_layer = false;           ///< and by the number of the layer, counted from 1
  std::optional<double> scalar;    ///< the divisor is √scalar instead of √d_head
  std::optional<double> factor;    ///< or the scores are multiplied by this number
  std::size_t relative_terms = 0;  ///< of DeBERTa, each of which counts under the root as d_head does
  friend bool operator==(const ConfigScale&, const ConfigScale&) = default;
};

struct ConfigRotary {
  std::optional<double> base;
  std::optional<double> fraction;         ///< of the columns of a head that are rotated
  std::optional<std::size_t> dimensions;  ///< or their number
  std::optional<bool> interleaved;        ///< whether pairs are of neighbors
  positions::Scaling scaling;
  std::string other_scaling;  ///< a rule that is not supported, or that lacks numbers; or ""

  /// The same with what the program of such models takes where nothing is said.
  positions::Rotary rotary(bool is_interleaved) const;
};

/// What is done to positions, queries, keys and scores.
struct ConfigPositions {
  bool rotary = false, relative = false, normed = false, clipped = false;
  std::optional<bool> alibi;
  std::optional<double> alibi_max;                 ///< MPT's: the last slope is 2 to the minus this
  std::optional<double> softcap;                   ///< of the scores
  std::optional<std::size_t> window;               ///< keys that a query attends to at most
  std::vector<bool> windowed;                      ///< by layer, or empty: all layers
  ConfigRotary rotation;                           ///< of all layers, or those without a window
  std::optional<ConfigRotary> rotation_in_window;  ///< of those with one, where it is another
  std::vector<bool> rotated;                       ///< by layer, or empty: all layers
  std::optional<std::size_t> max_distance;         ///< of relative positions
};

/// Sizes of a whole model.
struct Sizes {
  std::size_t n_layers = 0, d_model = 0;
  std::size_t n_heads = 0, kv_heads = 0;  ///< heads of queries; of keys and values
  std::size_t d_head = 0, d_hidden = 0;
  std::size_t n_vocabulary = 0, n_context = 0;  ///< n_context: tokens at most
  std::size_t d_embedding = 0;                  ///< of the embeddings of tokens; 0: d_model
  friend bool operator==(const Sizes&, const Sizes&) = default;
};

struct Config {
  std::string part;                ///< under which key of another configuration it is: "vision_config", or ""
  std::string model_type;          ///< "gpt2", or the first of its architectures in small letters, or ""
  std::string as_type;             ///< the type whose family was said to be its own, or ""
  const Family* family = nullptr;  ///< of the type, or nullptr
  std::string quantization;        ///< "gptq", or ""
  std::optional<bool> is_decoder;
  ConfigHeads heads;
  ConfigScale scale;
  std::optional<double> epsilon;  ///< of norms
  ConfigPositions positions;
  std::vector<Config> parts;  ///< of a model of several: text_config, vision_config …

  // Of whole models alone:
  Sizes sizes;
  std::optional<Activation> activation;
  std::optional<bool> parallel;  ///< whether the MLP is, in families whose programs read it
  bool norms_after = false;  ///< whether norms are after attention and the MLP where the family's are before
  double embedding_factor = 1;  ///< of the embeddings of tokens
  double residual_factor = 1;   ///< of what attention and the MLP add
  double logit_factor = 1;
  std::optional<double> logit_cap;
  Experts experts;
  bool tied = false;
  std::size_t padding_token = 1;
};

/// Reads the text of a config.json; keys that say nothing of attention are passed over. What it leaves to the
/// program is as in models of as_type, where that is given.
///
/// Throws core::Error, "FILE: …", when it is no JSON object or a number of heads is no whole number from 1 to
/// max_counted.
Config parse_config(std::string_view text, const std::string& file_name, const std::string& as_type = "");

/// The same with all that a whole model needs.
///
/// Throws core::Error, "FILE: PLACE: …", when a size is missing, the model is of no family whose whole models
/// are supported, or it does something else that is not, which is named.
Config whole_config(const Json& json);

/// The configuration beside a checkpoint, or in its folder; an empty one when there is none.
Config sibling_config(const std::filesystem::path& checkpoint, const std::string& as_type = "");

/// The part of a configuration that is about a layer with that prefix, or all of it.
const Config& part_for(const Config& config, const std::string& prefix);

}  // namespace core::formats::checkpoints
