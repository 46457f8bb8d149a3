#include "core/graph/compare_switches.hpp"

#include <array>

namespace core::compare {
namespace {

using attention::MergeRule;
using attention::Model;
using attention::ScaleRule;

constexpr double usual_rate = 0.5;  // where the model has none

Model flip_mask(const Model& m) {
  Model other = m;
  other.mask = m.mask.hiding_nothing();
  other.mask.causal = !m.mask.hides();
  return other;
}

Model flip_scale(const Model& m) {
  Model other = m;
  other.scale.rule = m.scale.rule == ScaleRule::none ? ScaleRule::inverse_sqrt_d_head : ScaleRule::none;
  return other;
}

Model flip_dropout(const Model& m) {
  Model other = m;
  other.dropout.training = !m.dropout.active();
  if (other.dropout.training && other.dropout.rate == 0) other.dropout.rate = usual_rate;
  return other;
}

Model flip_merge(const Model& m) {
  Model other = m;
  const bool correct = m.merge == MergeRule::concatenate;
  other.merge = correct ? MergeRule::reshape_without_transpose : MergeRule::concatenate;
  return other;
}

constexpr std::array table{
    Switch{"mask", "mask on against off",
           "A is the model with its mask taken away, or with the causal mask when it has none.", flip_mask,
           [](const Model& m) -> std::string { return m.mask.hides() ? "mask on" : "mask off"; }},
    Switch{"scale", "scale on against off",
           "A is the model with unscaled scores, or scaled by 1/√d_head when they are not scaled.",
           flip_scale,
           [](const Model& m) -> std::string {
             return m.scale.rule == ScaleRule::none ? "scale off" : "scale on";
           }},
    Switch{"dropout", "dropout on against off",
           "A is the model in evaluation, or in training when nothing is dropped (at rate 0.5 when it has "
           "none).",
           flip_dropout,
           [](const Model& m) -> std::string { return m.dropout.active() ? "dropout on" : "dropout off"; }},
    Switch{
        "merge", "correct merge against the notebook's",
        "A merges the heads the other way: side by side, or by the notebook's reshape without the transpose.",
        flip_merge, [](const Model& m) -> std::string {
          return m.merge == MergeRule::concatenate ? "correct merge" : "the notebook's merge";
        }}};

}  // namespace

std::span<const Switch> switches() {
  return table;
}

}  // namespace core::compare
