#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/positions.hpp"

namespace core::formats::checkpoints {

/// Heads, as a configuration tells them.
struct ConfigHeads {
  std::optional<std::size_t> n, of_encoder, of_decoder;
  std::optional<std::size_t> n_groups;  ///< heads of keys and values
  std::optional<std::size_t> width;     ///< columns of a head
};

/// What multiplies the scores, as far as a configuration tells it.
struct ConfigScale {
  bool scaled = true;              ///< whether scores are divided by √d_head
  bool by_layer = false;           ///< and by the number of the layer, counted from 1
  std::optional<double> scalar;    ///< the divisor is √scalar instead of √d_head
  std::optional<double> factor;    ///< or the scores are multiplied by this number
  std::size_t relative_terms = 0;  ///< of DeBERTa, each of which counts under the root as d_head does
};

/// How queries and keys turn with their positions, as far as a configuration tells it.
struct ConfigRotary {
  std::optional<double> base;
  std::optional<double> fraction;         ///< of the columns of a head that turn
  std::optional<std::size_t> dimensions;  ///< or their number
  std::optional<bool> neighbours;         ///< whether pairs are of neighbours
  positions::Scaling scaling;
  std::string other_scaling;  ///< a rule that is not known: "yarn"; or ""
};

/// What is done to positions, queries, keys and scores, as far as a configuration tells it.
struct ConfigPositions {
  bool rotary = false, relative = false, normed = false, clipped = false;
  std::optional<bool> alibi;
  std::optional<double> alibi_max;              ///< MPT's: the last slope is 2 to the minus this
  std::optional<double> cap;                    ///< of the scores
  std::optional<double> epsilon;                ///< of norms
  std::optional<std::size_t> window;            ///< keys that a query sees at most
  std::vector<bool> windowed;                   ///< by layer, or empty: all layers
  ConfigRotary turns;                           ///< of all layers, or those without a window
  std::optional<ConfigRotary> turns_in_window;  ///< of those with one, where they turn otherwise
  std::vector<bool> turning;                    ///< by layer, or empty: all layers
  std::optional<std::size_t> max_distance;      ///< of relative positions
};

/// What the config.json beside a checkpoint says of its attention.
struct Config {
  std::string part;          ///< under which key of another configuration it stands: "vision_config", or ""
  std::string model_type;    ///< "gpt2", or the first of its architectures in small letters, or ""
  std::string quantisation;  ///< "gptq", or ""
  std::optional<bool> is_decoder;
  ConfigHeads heads;
  ConfigScale scale;
  ConfigPositions positions;
  std::vector<Config> parts;  ///< of a model of several: text_config, vision_config …
};

/// Reads a config.json of Hugging Face's; keys that say nothing of attention are passed over.
///
/// Throws core::Error, "FILE: …", when it is no JSON object or a number of heads is no whole number of at
/// least 1, or beyond 2^24.
Config parse_config(std::string_view text, const std::string& file_name);

/// The configuration beside a checkpoint, or in its folder; an empty one when there is none.
Config config_beside(const std::filesystem::path& checkpoint);

/// The part of a configuration that speaks of a layer with that prefix, or all of it.
const Config& part_for(const Config& config, const std::string& prefix);

}  // namespace core::formats::checkpoints
