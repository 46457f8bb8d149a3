#pragma once

#include <span>
#include <string_view>

#include "core/graph/model.hpp"

namespace core::editing {

/// What stands behind the numbers of a preset.
enum class Evidence {
  printed,          ///< they are printed in the notebook
  published,        ///< they are printed in the book's chapter
  reference,        ///< the notebook prints none; they equal a run of its code in PyTorch
  never_seeded,     ///< the notebook prints numbers without a seed; they equal a run of its code at a seed
  stale_print,      ///< the notebook prints numbers that its code no longer gives; these are what it gives
  by_construction,  ///< what the weights must be follows from the projections
  drawn             ///< an example of our own, drawn from a seed
};

/// A model to start from, named as on the command line.
struct Preset {
  const char* name;   ///< "004-causal"
  const char* title;  ///< "Causal mask", at most 25 characters
  const char* about;  ///< one line: what it shows
  Evidence evidence;
  const char* source;  ///< where the numbers can be looked up: "notebook 004, masked weights"
  attention::Model (*make)();
};

/// All presets, in the order in which they are listed.
std::span<const Preset> presets();

/// The preset of that name, or nullptr.
const Preset* find_preset(std::string_view name);

/// The preset that the window opens with.
const Preset& default_preset();

}  // namespace core::editing
