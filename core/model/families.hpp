#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/files/layers.hpp"
#include "core/model/architecture.hpp"

namespace core::transformer {

/// What a tensor of a model is for.
enum class Role {
  token_embedding,
  position_embedding,
  segment_embedding,
  embedding_norm,
  attention_norm,
  query,
  key,
  value,
  fused,  ///< queries, keys and values in one
  output,
  query_norm,
  key_norm,
  mlp_norm,
  gate,
  up,
  down,
  final_norm,
  head_dense,  ///< what stands between the last layer and the prediction
  head_norm,
  head,
  head_bias
};
constexpr std::size_t n_roles = static_cast<std::size_t>(Role::head_bias) + 1;

/// The beginnings of tensors' names by role, "#" for the number of the layer, "" where a family has none; a
/// weight ends in ".weight", a bias in ".bias".
struct Names {
  std::array<const char*, n_roles> names{};
  const char* of(Role role) const { return names[static_cast<std::size_t>(role)]; }
};

/// Models that are computed the same way.
struct Family {
  const char* name;      ///< "GPT-2"
  const char* types;     ///< as config.json calls them, blanks around each
  const char* gguf;      ///< as general.architecture calls them, blanks around each
  const char* prefixes;  ///< that may stand before names, blanks between; the head's names have none
  Names names;
  Names gguf_names;
  Norm norm;  ///< its epsilon where the configuration says none
  Mlp mlp;
  bool causal;
  bool is_rotary;
  bool in_by_out;           ///< weights of Hugging Face's files are used as x·W, as its Conv1D keeps them
  bool has_groups = false;  ///< config.json may say that heads share keys and values
  formats::checkpoints::Fused fused = formats::checkpoints::Fused::side_by_side;  ///< in such files
  std::optional<Activation> head_activation = {};  ///< before the prediction, where it is not that of the MLP
};

/// All families.
std::span<const Family> families();

/// The family of that name, which is in the table.
const Family& family_named(std::string_view name);

/// The family of a model_type, or nullptr.
const Family* family_of_type(std::string_view type);
/// The family of a general.architecture of GGUF, or nullptr.
const Family* family_of_gguf(std::string_view architecture);

/// "GPT-2, Llama, …"
std::string names_of_families();

}  // namespace core::transformer
