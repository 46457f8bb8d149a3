#include "app/comparison.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "app/tensor_check.hpp"
#include "core/attention/attend.hpp"
#include "core/check/their_trace.hpp"
#include "core/error.hpp"

namespace app {
namespace {

using core::attention::StageInfo;

constexpr double rounding = 1e-12;                 // of two ways of working out the same, relative
constexpr std::chrono::seconds longest_search{3};  // the window stands still meanwhile

ComparedStage compared_stage(const core::compare::StageDifference& all, const core::attention::Trace& a,
                             const core::attention::Trace& b, const ComparisonKey& key) {
  ComparedStage result{
      .all = all, .shown = {}, .difference = {}, .within = !all.differs(), .a = {}, .b = {}, .apart = {}};
  if (!all.same_shape) return result;
  const StageInfo& stage = core::attention::info(all.stage);
  const arma::mat& left = stage.matrix(a, key.head);
  const arma::mat& right = stage.matrix(b, key.head);
  result.shown = core::compare::farthest(left, right);
  result.difference = core::compare::difference(key.kind, left, right);
  result.a = extent_of(left), result.b = extent_of(right), result.apart = extent_of(result.difference);
  return result;
}

}  // namespace

Comparison::Comparison() = default;
Comparison::~Comparison() = default;

std::string why_not_in_place_of(const core::attention::Model& a, const core::attention::Model& b) {
  const auto size = [](const core::attention::Model& m) {
    return std::to_string(m.n_tokens()) + "×" + std::to_string(m.d_model()) + " to " +
           std::to_string(m.d_out()) + " with " + std::to_string(m.n_heads) +
           (m.n_heads == 1 ? " head" : " heads");
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

void trace_reference(Comparison& comparison, const core::attention::Model& a, std::size_t sequence) {
  comparison.tensors.reset();
  comparison.model = a;
  comparison.sequence = std::min(sequence, a.sequences.size() - 1);
  comparison.trace = core::attention::attend(a, comparison.sequence);
}

void check_tensors(Comparison& c, const Reference& reference, const core::attention::Model& live,
                   bool searches) {
  const auto start = std::chrono::steady_clock::now();
  c.model = live;
  c.sequence = c.key.sequence;
  c.trace = {};
  c.tensors = std::make_unique<TensorCheck>();
  TensorCheck& check = *c.tensors;
  try {
    check.matched = core::check::match(live, *reference.tensors, reference.by_hand, c.sequence);
  } catch (const core::Error& error) {
    check.problem = error.what();
    return;
  }
  check.searched = searches;
  check.report = core::check::check(live, check.matched, {}, [&] {
    const bool goes_on = searches && std::chrono::steady_clock::now() - start < longest_search;
    check.searched = check.searched && goes_on;
    return goes_on;
  });
  core::check::TheirTrace theirs = core::check::their_trace(live, check.matched, check.report, c.sequence);
  c.trace = std::move(theirs.trace);
  check.stages = std::move(theirs.stages);
}

void work_out_tensors(Comparison& c, const core::attention::Trace& live) {
  c.stages.clear();
  const auto& results = c.tensors->report.stages;
  for (const core::attention::Stage stage : c.tensors->stages) {
    const StageInfo& info = core::attention::info(stage);
    if (!info.present(c.model)) continue;
    c.stages.push_back(
        compared_stage(core::compare::compare_stage(info, live, c.trace), live, c.trace, c.key));
    c.stages.back().within = std::none_of(
        results.begin(), results.end(),
        [&](const core::check::StageResult& r) { return r.stage == stage && !r.agreement.within; });
  }
  const auto first =
      std::find_if(c.stages.begin(), c.stages.end(), [](const ComparedStage& s) { return !s.within; });
  c.first = first == c.stages.end() ? nullptr : &*first;
  c.visible = live.mask;
}

void work_out(Comparison& c, const core::attention::Model& b, const core::attention::Trace& trace_b,
              bool b_is_exact) {
  c.stages.clear();
  c.is_exact = b_is_exact;
  for (const auto& all : core::compare::compare(c.model, c.trace, b, trace_b, b_is_exact ? 0 : rounding))
    c.stages.push_back(compared_stage(all, c.trace, trace_b, c.key));
  const auto first =
      std::find_if(c.stages.begin(), c.stages.end(), [](const ComparedStage& s) { return !s.within; });
  c.first = first == c.stages.end() ? nullptr : &*first;
  const bool one_shape = arma::size(*c.trace.mask) == arma::size(*trace_b.mask);
  c.visible = one_shape ? arma::mat(arma::max(*c.trace.mask, *trace_b.mask)) : arma::mat();
}

}  // namespace app
