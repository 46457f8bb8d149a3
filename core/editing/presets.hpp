#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/graph/model.hpp"

namespace core::editing {

/// Evidence for the numbers of a preset.
enum class Evidence {
  printed,            ///< they are printed in the notebook
  published,          ///< they are printed in the book's chapter
  reference,          ///< the notebook prints none; they equal a run of its code in PyTorch
  unseeded_notebook,  ///< the notebook prints numbers without a seed; they equal a run of its code at a seed
  outdated_print,     ///< the notebook's printed numbers are outdated; these equal a run of its code
  by_construction,    ///< the expected weights follow from the projections
  sampled             ///< an example of our own, initialized from a seed
};

/// A model to start from, named as on the command line.
struct Preset {
  const char* name;   ///< "004-causal"
  const char* title;  ///< "Causal mask", at most 25 characters
  const char* about;  ///< one-line description
  Evidence evidence;
  const char* source;  ///< where to find the numbers: "notebook 004, masked weights"
  attention::Model (*make)();
};

/// Returns all presets, in listing order.
std::span<const Preset> presets();

/// Returns the preset of this name, or nullptr.
const Preset* find_preset(std::string_view name);

/// Returns the preset that the window opens with.
const Preset& default_preset();

/// Models of the teaching notebooks that take a size.
namespace notebooks {

/// Size and seed of the classes of notebook 001, with 4 tokens per sequence.
struct ClassSize {
  std::size_t d_model, n_heads, n_sequences;
  std::uint64_t seed;
};
/// The notebook's own size; it sets no seed.
constexpr ClassSize full_size{256, 8, 8, 42};

/// Returns one head with biases, regardless of n_heads; the input is sampled before the layers.
attention::Model attention_class(const ClassSize& size, bool causal);

/// Returns n_heads causal heads with an output projection; the input is sampled after the layers.
attention::Model multi_head_class(const ClassSize& size, attention::CombineRule merge);

}  // namespace notebooks

namespace hand_built {

/// A key that matches gets e¹⁰ ≈ 22026 times the weight of one that does not.
constexpr double match_score = 10;

}  // namespace hand_built
}  // namespace core::editing
