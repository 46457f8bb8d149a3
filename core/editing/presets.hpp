#pragma once

#include <cstddef>
#include <cstdint>
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

/// The models of the teaching notebooks that have a size.
namespace notebooks {

/// How large the classes of notebook 001 are made, for 4 tokens in each sequence, and at which seed.
struct ClassSize {
  std::size_t d_model, n_heads, n_sequences;
  std::uint64_t seed;
};
/// The notebook's own size; it sets no seed.
constexpr ClassSize full_size{256, 8, 8, 42};

/// One head with biases, whatever n_heads says; the input is drawn before the layers.
attention::Model attention_class(const ClassSize& size, bool causal);

/// n_heads causal heads with an output projection; the input is drawn after the layers.
attention::Model multi_head_class(const ClassSize& size, attention::CombineRule merge);

}  // namespace notebooks

namespace hand_built {

/// A key that matches gets e¹⁰ ≈ 22026 times the weight of one that does not.
constexpr double match = 10;

}  // namespace hand_built
}  // namespace core::editing
