#pragma once

#include <array>
#include <span>
#include <string>

/// Names of the projections of attention in checkpoints.
namespace core::formats::checkpoints {

/// Layout of a weight: [in, out] (x·W), [out, in] as in torch.nn.Linear, chosen by its shape (a fused weight
/// has more outputs than inputs), one matrix per head, [heads, d_in, d_head], or [d_in, heads, d_head], and
/// [heads, d_head, d_out] for the output.
enum class Orientation { in_by_out, out_by_in, inferred_from_shape, head_first, heads_inside };

/// A naming and layout of the projections of one attention, by the suffixes of tensor names; the weights are
/// fused if all three have one name.
struct Naming {
  const char* name;         ///< "gpt2"
  const char* about;        ///< one line for the user
  const char* family = "";  ///< the family that has it, or "" if several do
  bool causal = true;       ///< whether such models are causal, if nothing else reveals it
  Orientation orientation = Orientation::out_by_in;
  std::array<std::string, 3> weights = {}, biases = {};
  std::string output_weight = {}, output_bias = {};
  bool has_fused_bias = false;
  bool is_fused() const { return weights[0] == weights[1]; }
};

/// Returns all known namings; if several fit, the first with an output projection applies.
std::span<const Naming> namings();

}  // namespace core::formats::checkpoints
