#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace core::formats::checkpoints {

/// What the config.json beside a checkpoint says of its attention.
struct Config {
  std::optional<std::size_t> n_heads;
  bool scaled = true;            ///< whether scores are divided by √d_head
  bool scaled_by_layer = false;  ///< and by the number of the layer, counted from 1
  std::optional<double> scalar;  ///< the divisor is √scalar instead of √d_head
};

/// Reads a config.json of Hugging Face's; keys that say nothing of attention are passed over.
///
/// Throws core::Error, "FILE: …", when it is no JSON object or a number of heads is no whole number of at
/// least 1.
Config parse_config(std::string_view text, const std::string& file_name);

/// The configuration beside a checkpoint, or in its folder; an empty one when there is none.
Config config_beside(const std::filesystem::path& checkpoint);

}  // namespace core::formats::checkpoints
