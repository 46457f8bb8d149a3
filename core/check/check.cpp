#include "core/check/check.hpp"

#include <algorithm>

#include "core/check/computed.hpp"
#include "core/check/describe.hpp"
#include "core/check/names.hpp"
#include "core/check/notes.hpp"
#include "core/check/roundings.hpp"

namespace core::check {
namespace {

/// rounded is the type of the arithmetic that makes all of the difference, or "".
StageResult result_of(const Theirs& theirs, const Reading* reading, const Computed& right,
                      const Tolerance& tolerance, const std::string& rounded) {
  StageResult result{theirs.stage,
                     theirs.name,
                     formats::shape_text(theirs.tensor.shape),
                     formats::dtype_name(theirs.tensor.dtype),
                     rounding_words(theirs.rounding),
                     theirs.obstacle,
                     reading && !reading->layout.is_plain ? reading->layout.words : "",
                     {}};
  result.agreement.within = false;
  if (!reading) return result;
  result.stage = reading->stage;
  if (attention::info(reading->stage).present(right.model()))
    result.agreement = agreement(theirs, *reading, right, tolerance);
  else
    result.obstacle = "the model does not have this stage";
  if (!rounded.empty()) result.agreement.within = true, result.rounding = rounded;
  return result;
}

/// Heads in files of their own are one stage.
void add(StageResult result, std::vector<StageResult>& all) {
  const std::string base = take_apart(result.tensor).base;
  const auto same = std::find_if(all.begin(), all.end(), [&](const StageResult& r) {
    return r.stage == result.stage && take_apart(r.tensor).base == base && r.tensor != result.tensor;
  });
  if (same == all.end()) return all.push_back(std::move(result));
  const bool within = same->agreement.within && result.agreement.within;
  if (same->obstacle.empty() &&
      (!result.obstacle.empty() || result.agreement.largest > same->agreement.largest))
    *same = std::move(result);
  same->agreement.within = within;
}

/// What explains all tensors, or all that have a reading; those that have none keep nobody from looking.
std::vector<Explanation> causes_of_those_that_fit(const Computed& right, const std::vector<Theirs>& theirs,
                                                  const std::vector<const Reading*>& agreeing,
                                                  const Tolerance& tolerance, const core::Token& token) {
  const auto fits = [](const Theirs& t) { return !t.readings.empty(); };
  if (std::ranges::all_of(theirs, fits)) return find_causes(right, theirs, agreeing, tolerance, token);
  if (auto found = find_causes(right, theirs, agreeing, tolerance, token); !found.empty()) return found;
  std::vector<Theirs> fit;
  std::vector<const Reading*> of_fit;
  for (std::size_t k = 0; k < theirs.size(); ++k)
    if (fits(theirs[k])) fit.push_back(theirs[k]), of_fit.push_back(agreeing[k]);
  const bool differ = std::ranges::find(of_fit, nullptr) != of_fit.end();
  return differ ? find_causes(right, fit, of_fit, tolerance, token) : std::vector<Explanation>();
}

/// The type, float16 or bfloat16, in which all tensors are kept that differ, when its arithmetic alone
/// explains them; else f64. As float32 does, such tensors err by what their type says of itself.
formats::Dtype kept_and_computed_in(const std::vector<Explanation>& explanations,
                                    const std::vector<Theirs>& theirs,
                                    const std::vector<const Reading*>& agreeing) {
  using formats::Dtype;
  for (const Explanation& explanation : explanations) {
    const std::string cause = explanation.causes.size() == 1 ? explanation.causes.front() : "";
    const Dtype type = cause == "half_precision"       ? Dtype::f16
                       : cause == "bfloat16_precision" ? Dtype::bf16
                                                       : Dtype::f64;
    bool all = type != Dtype::f64;
    for (std::size_t k = 0; k < theirs.size(); ++k)
      all = all && (agreeing[k] || (theirs[k].tensor.dtype == type && !theirs[k].readings.empty()));
    if (all) return type;
  }
  return Dtype::f64;
}

std::string pattern_of_first(const Report& report, const std::vector<Theirs>& theirs, const Computed& right,
                             const Tolerance& tolerance) {
  const StageResult* first = report.first_difference();
  if (!first || !first->obstacle.empty()) return "";
  const auto tensor = std::ranges::find(theirs, first->tensor, &Theirs::name);
  const Reading* reading = report.readings[static_cast<std::size_t>(tensor - theirs.begin())];
  return reading ? pattern_in(*tensor, *reading, right, tolerance) : "";
}

}  // namespace

const StageResult* Report::first_difference() const {
  const auto first =
      std::find_if(stages.begin(), stages.end(), [](const StageResult& s) { return !s.agreement.within; });
  return first == stages.end() ? nullptr : &*first;
}

std::vector<std::string> Report::causes() const {
  std::vector<std::string> all;
  for (const Explanation& explanation : explanations)
    for (const std::string& cause : explanation.causes)
      if (std::find(all.begin(), all.end(), cause) == all.end()) all.push_back(cause);
  return all;
}

bool Report::has_unfit() const {
  return std::any_of(stages.begin(), stages.end(), [](const StageResult& s) { return !s.obstacle.empty(); });
}

bool Report::has_wrong_numbers() const {
  return std::any_of(stages.begin(), stages.end(),
                     [](const StageResult& s) { return s.obstacle.empty() && !s.agreement.within; });
}

Report check(const Model& model, const Matched& matched, const Tolerance& tolerance,
             const core::Token& token) {
  const Computed right(model);
  Report report;
  const bool searches = token.goes_on();
  for (const LeftOut& each : matched.left_out) report.left_out.push_back(each.words());
  if (matched.is_first_of_axis) report.n_along_first_axis = matched.layers.size();
  std::vector<const Reading*> agree;
  for (const Theirs& theirs : matched.theirs) {
    const Reading* read = agreeing(theirs, right, tolerance);
    agree.push_back(read && attention::info(read->stage).present(model) ? read : nullptr);
    report.agrees = report.agrees && agree.back();
    if (!theirs.readings.empty()) ++report.n_tensors;
  }
  if (!report.agrees) {
    report.explanations = causes_of_those_that_fit(right, matched.theirs, agree, tolerance, token);
    report.was_stopped = !token.goes_on();
  }
  report.readings = agree;
  std::optional<Computed> explained;
  if (!report.explanations.empty()) explained.emplace(report.explanations.front().model);
  for (std::size_t k = 0; k < agree.size(); ++k) {
    const std::vector<Reading>& readings = matched.theirs[k].readings;
    if (agree[k] || readings.empty()) continue;
    // What a name can mean in two ways is what the explanation makes of it.
    const bool ambiguous = explained && explained->model().n_heads == model.n_heads && readings.size() > 1;
    const Reading* read = ambiguous ? agreeing(matched.theirs[k], *explained, tolerance) : nullptr;
    report.readings[k] = read ? read : &readings.front();
    if (!read) add_ambiguity(matched.theirs[k], report.notes);
  }
  std::vector<std::string> rounded(matched.theirs.size());
  const formats::Dtype kept_in = kept_and_computed_in(report.explanations, matched.theirs, agree);
  const bool errs_as_kept = kept_in != formats::Dtype::f64;
  if (!report.agrees && searches && !errs_as_kept)
    rounded = rounded_alone(right, matched.theirs, agree, report.explanations, tolerance, token);
  // Tensors of which each looks rounded, but not all of them in one way, are not called so.
  bool all_rounded = true;
  for (std::size_t k = 0; k < agree.size(); ++k)
    all_rounded = all_rounded && (agree[k] || !rounded[k].empty());
  if (all_rounded) rounded.assign(rounded.size(), "");
  if (errs_as_kept) {
    for (std::size_t k = 0; k < agree.size(); ++k)
      if (!agree[k]) rounded[k] = formats::dtype_name(kept_in);
    report.notes.push_back("What differs is what arithmetic in " + std::string(formats::dtype_name(kept_in)) +
                           " rounds, in which the tensors are kept");
    report.explanations.clear();
    report.agrees = true;
  }
  for (std::size_t k = 0; k < matched.theirs.size(); ++k)
    add(result_of(matched.theirs[k], report.readings[k], right, tolerance, rounded[k]), report.stages);
  add_notes(right, matched, agree, tolerance, report);
  std::stable_sort(report.stages.begin(), report.stages.end(),
                   [](const StageResult& x, const StageResult& y) { return x.stage < y.stage; });
  report.pattern = pattern_of_first(report, matched.theirs, right, tolerance);
  return report;
}

}  // namespace core::check
