#include "app/session/comparison.hpp"

#include <algorithm>
#include <array>

#include "app/session/tensor_check.hpp"

namespace app {
namespace {

using core::attention::Stage;
using core::attention::StageInfo;
using core::attention::Trace;

constexpr double rounding = 1e-12;  // of two ways of working out the same, relative

/// What is seen of a stage of which all heads are known.
ComparedStage seen(const core::compare::StageDifference& all, const Trace& a, const Trace& b,
                   const ComparisonKey& key) {
  ComparedStage result;
  result.all = all;
  result.within = !all.differs();
  if (!all.same_shape || !all.differs()) return result;
  const StageInfo& stage = core::attention::info(all.stage);
  result.numbers_a = stage.matrix(a, key.head);
  result.numbers_b = stage.matrix(b, key.head);
  result.shown = core::compare::farthest(result.numbers_a, result.numbers_b);
  result.difference = core::compare::difference(key.kind, result.numbers_a, result.numbers_b);
  result.a = extent_of(result.numbers_a), result.b = extent_of(result.numbers_b);
  result.apart = extent_of(result.difference);
  return result;
}

/// Names the first stage that differs, and keeps what says why a number is 0.
void finish(Comparison& c, const Trace& kept, const Trace& live) {
  const auto first = std::ranges::find_if(c.stages, [](const ComparedStage& s) { return !s.within; });
  c.first = first == c.stages.end() ? nullptr : &*first;
  c.visible_live = live.mask;
  const bool of_tensors = c.tensors != nullptr;
  c.visible_kept = of_tensors ? c.visible_live : arma::mat(kept.mask);
  if (of_tensors)
    c.visible = c.visible_live;
  else if (arma::size(c.visible_kept) == arma::size(c.visible_live))
    c.visible = arma::max(c.visible_kept, c.visible_live);
  const bool drops = std::ranges::any_of(c.stages, [](const ComparedStage& s) {
    return !s.difference.empty() &&
           (s.all.stage == Stage::dropout_mask || s.all.stage == Stage::dropped_weights);
  });
  if (!drops) return;
  c.kept_by_live = live.heads[c.key.head].dropout_mask;
  c.kept_by_reference = of_tensors ? c.kept_by_live : arma::mat(kept.heads[c.key.head].dropout_mask);
}

}  // namespace

bool ComparisonKey::same_numbers(const ComparisonKey& other) const {
  return reference == other.reference && trace == other.trace && version == other.version &&
         sequence == other.sequence;
}

const core::attention::Sequence& live_sequence(const Comparison& comparison) {
  return comparison.live.sequences[comparison.key.sequence];
}

std::string why_not_in_place_of(const core::attention::Model& a, const core::attention::Model& b) {
  const auto size = [](const core::attention::Model& m) {
    return std::to_string(m.n_tokens()) + "×" + std::to_string(m.d_model()) + " to " +
           std::to_string(m.d_out()) +
           (m.d_output() == m.d_out() ? "" : " and " + std::to_string(m.d_output())) + " with " +
           std::to_string(m.n_heads) + (m.n_heads == 1 ? " head" : " heads");
  };
  if (size(a) != size(b)) return "A is " + size(a) + ", B " + size(b);
  const auto parts = [](const core::attention::Model& m) {
    std::array<bool, 6> there{m.projections.has_value()};
    if (!m.projections) return there;
    const auto& p = *m.projections;
    return std::array<bool, 6>{true,
                               p.query.bias.has_value(),
                               p.key.bias.has_value(),
                               p.value.bias.has_value(),
                               p.output.has_value(),
                               p.output && p.output->bias};
  };
  return parts(a) == parts(b) ? "" : "A and B have other projections or biases";
}

std::shared_ptr<const Comparison> compared(const ComparisonKey& key, std::uint64_t revision,
                                           const ComparedState& kept, const ComparedState& live,
                                           const Comparison* older, const core::Token& token) {
  auto c = std::make_shared<Comparison>();
  c->key = key;
  c->revision = revision;
  c->model = kept.model, c->live = live.model;
  c->sequence = kept.sequence;
  c->trace = kept.trace;
  c->is_exact = kept.is_exact && live.is_exact;
  std::vector<core::compare::StageDifference> all;
  if (older && older->key.same_numbers(key))
    for (const ComparedStage& stage : older->stages) all.push_back(stage.all);
  else
    all = core::compare::compare(kept.model, *kept.trace, live.model, *live.trace, c->is_exact ? 0 : rounding,
                                 token);
  for (const auto& stage : all) {
    if (!token.goes_on()) return c;
    c->stages.push_back(seen(stage, *kept.trace, *live.trace, key));
  }
  finish(*c, *kept.trace, *live.trace);
  return c;
}

std::shared_ptr<const Comparison> compared_tensors(const ComparisonKey& key, std::uint64_t revision,
                                                   std::shared_ptr<const TensorCheck> check,
                                                   const ComparedState& live, const core::Token& token) {
  auto c = std::make_shared<Comparison>();
  c->key = key;
  c->revision = revision;
  c->model = c->live = live.model;
  c->sequence = live.sequence;
  c->trace = {check, &check->observed};
  const auto& results = check->report.stages;
  c->tensors = std::move(check);
  for (const Stage stage : c->tensors->stages) {
    if (!token.goes_on()) return c;
    const StageInfo& info = core::attention::info(stage);
    if (!info.present(c->model)) continue;
    c->stages.push_back(
        seen(core::compare::compare_stage(info, *live.trace, *c->trace), *live.trace, *c->trace, key));
    c->stages.back().within = std::ranges::none_of(
        results, [&](const core::check::StageResult& r) { return r.stage == stage && !r.agreement.within; });
  }
  finish(*c, *c->trace, *live.trace);
  return c;
}

}  // namespace app
