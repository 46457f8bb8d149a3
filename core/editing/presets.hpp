#pragma once

#include <span>
#include <string_view>

#include "core/attention/model.hpp"

namespace core::editing {

/// A model to start from, named as on the command line.
struct Preset {
  const char* name;   ///< "004-causal"
  const char* title;  ///< "Your journey · causal mask"
  const char* about;  ///< one line: what it shows
  attention::Model (*make)();
};

/// All presets, in the order in which they are listed.
std::span<const Preset> presets();

/// The preset of that name, or nullptr.
const Preset* find_preset(std::string_view name);

/// The preset that the window opens with.
const Preset& default_preset();

}  // namespace core::editing
