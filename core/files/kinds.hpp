#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/files/layers.hpp"

namespace core::formats::checkpoints {

/// Whom a token of such a model sees: those before it, all, or what its tower does (encoder or decoder, image
/// or text).
enum class Sight { past, all, by_side, by_tower };

/// What tells the model where a token stands: numbers added before attention, or something in it.
enum class Positions { before, rotary, relative, alibi };

/// A family of models whose attention does the same.
struct Kind {
  const char* name;   ///< "GPT-2"
  const char* types;  ///< as config.json calls them, blanks around each
  const char* signs;  ///< parts of names of query weights that no other family has, blanks around each
  Sight sight;
  Positions positions;
  bool is_scaled;  ///< scores by 1/√d_head, unless its configuration says otherwise
  Fused fused;
  bool norm_before;  ///< whether what enters attention has gone through a norm
};

/// All kinds.
std::span<const Kind> kinds();

/// The kind of that name, which is in the table.
const Kind& kind_named(std::string_view name);

/// The kind of a model_type or an architecture ("gpt2lmheadmodel"), or nullptr.
const Kind* kind_of_type(const std::string& type);

/// The kind that the name of a query's weight is a sign of, or nullptr.
const Kind* kind_by_sign(const std::string& weight);

/// Something that attention does in some models and not here.
struct Absence {
  const char* name;   ///< as it is asked to be ignored: "rotary"
  const char* words;  ///< "rotary positions"
};
std::span<const Absence> absences();

/// The absence of that name, which is in the table.
const Absence& absence_named(std::string_view name);

}  // namespace core::formats::checkpoints
