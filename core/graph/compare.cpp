#include "core/graph/compare.hpp"

#include <algorithm>
#include <array>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/difference.hpp"

namespace core::compare {
namespace {

using attention::Model;
using attention::Stage;
using attention::StageInfo;
using attention::Trace;

/// Returns "6×3", or "2 heads of 6×2".
std::string shape(const StageInfo& stage, const Trace& trace) {
  const attention::StageMatrix& m = trace.at(stage.stage, 0);
  const std::string numbers = text::shape_text(m.n_rows(), m.n_cols());
  if (!stage.per_head) return numbers;
  const std::size_t n = trace.n_heads();
  return std::to_string(n) + (n == 1 ? " head of " : " heads of ") + numbers;
}

/// Returns the numbers of a head; a stage that is not computed yet is computed into `room` and not kept.
const arma::mat& read(const StageInfo& stage, const Trace& trace, std::size_t head, arma::mat& room) {
  const attention::StageMatrix& numbers = trace.at(stage.stage, head);
  if (numbers.is_materialized() || !stage.per_head) return *numbers;
  room.set_size(numbers.n_rows(), numbers.n_cols());
  for (std::size_t i = 0; i < numbers.n_rows(); ++i) room.row(i) = numbers.row(i);
  return room;
}

bool is_never_computed(Stage stage) {
  return stage == Stage::embeddings || stage == Stage::mask || stage == Stage::dropout_mask;
}

/// Returns whether a model copies a stage: it is given, or Q = K = V = X.
bool copies(const Model& model, Stage stage) {
  const bool projected = is_projected(stage);
  return model.given.find(stage) || (projected && !model.projections);
}

StageDifference in_one_only(const StageInfo& stage, bool in_a) {
  return {.stage = stage.stage,
          .in_a = in_a,
          .in_b = !in_a,
          .same_shape = false,
          .obstacle = in_a ? "only A has this stage" : "only B has this stage"};
}

}  // namespace

StageDifference compare_stage(const StageInfo& stage, const Trace& a, const Trace& b, double rounding) {
  StageDifference result;
  result.stage = stage.stage;
  const std::string shape_a = shape(stage, a), shape_b = shape(stage, b);
  if (shape_a != shape_b) {
    result.same_shape = false;
    result.obstacle = "A is " + shape_a + ", B is " + shape_b;
    return result;
  }
  arma::mat room_a, room_b;
  for (std::size_t h = 0; h < stage.count(a.n_heads()); ++h) {
    const arma::mat &left = read(stage, a, h, room_a), &right = read(stage, b, h, room_b);
    if (rounding > 0 && !is_never_computed(stage.stage))
      result.allowed =
          std::max(result.allowed, rounding * std::max(max_abs_finite(left), max_abs_finite(right)));
    const MaxDifference here = max_difference(left, right);
    if (here.distance <= result.largest) continue;
    result.largest = here.distance;
    result.head = h, result.row = here.row, result.column = here.column;
  }
  return result;
}

std::vector<StageDifference> compare(const Model& model_a, const Trace& trace_a, const Model& model_b,
                                     const Trace& trace_b, double rounding, const core::StopToken& token) {
  const attention::StageSet stages_a = existing_stages(model_a), stages_b = existing_stages(model_b);
  std::vector<StageDifference> result;
  for (const StageInfo& stage : attention::stages()) {
    if (!token.should_continue()) break;
    const bool in_a = contains(stages_a, stage.stage), in_b = contains(stages_b, stage.stage);
    const bool copied = copies(model_a, stage.stage) && copies(model_b, stage.stage);
    if (in_a && in_b)
      result.push_back(compare_stage(stage, trace_a, trace_b, copied ? 0 : rounding));
    else if (in_a || in_b)
      result.push_back(in_one_only(stage, in_a));
  }
  return result;
}

namespace {

using attention::CombineRule;
using attention::ScaleRule;

constexpr double default_dropout_rate = 0.5;  // if the model has rate 0

Model flip_mask(const Model& m) {
  Model other = m;
  other.mask = m.mask.with_nothing_masked();
  other.mask.causal = !m.mask.masks_keys();
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
  if (other.dropout.training && other.dropout.rate == 0) other.dropout.rate = default_dropout_rate;
  return other;
}

Model flip_combine_rule(const Model& m) {
  Model other = m;
  const bool correct = m.merge == CombineRule::concatenate;
  other.merge = correct ? CombineRule::reshape_without_transpose : CombineRule::concatenate;
  return other;
}

constexpr std::array table{
    Switch{"mask", "Mask on vs. off",
           "A is the model with its mask taken away, or with the causal mask when it has none.", flip_mask,
           [](const Model& m) { return m.mask.masks_keys(); }, "mask on", "mask off"},
    Switch{"scale", "Scale on vs. off",
           "A is the model with unscaled scores, or scaled by 1/√d_head when they are not scaled.",
           flip_scale, [](const Model& m) { return m.scale.rule != ScaleRule::none; }, "scale on",
           "scale off"},
    Switch{"dropout", "Dropout on vs. off",
           "A is the model in evaluation, or in training when nothing is dropped (at rate 0.5 when it has "
           "none).",
           flip_dropout, [](const Model& m) { return m.dropout.active(); }, "dropout on", "dropout off"},
    Switch{
        "merge", "Combine heads: two ways",
        "A combines the heads the other way: concatenated, or by the notebook's reshape without the transpose.",
        flip_combine_rule, [](const Model& m) { return m.merge == CombineRule::concatenate; },
        "heads concatenated", "reshaped without a transpose"}};

}  // namespace

std::span<const Switch> switches() {
  return table;
}

}  // namespace core::compare
