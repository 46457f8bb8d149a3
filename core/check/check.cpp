#include "core/check/check.hpp"

#include <algorithm>

#include "core/check/computed.hpp"
#include "core/check/names.hpp"
#include "core/error.hpp"
#include "core/text/words.hpp"

namespace core::check {
namespace {

Theirs read(const Model& model, const formats::TensorFile& file, const formats::TensorInfo& info,
            const std::vector<Stage>& stages, const Name& name, std::size_t sequence) {
  Theirs theirs;
  theirs.name = info.name;
  theirs.stage = stages.front();
  for (const Stage stage : stages)
    for (const Reading& reading :
         readings_of(model, stage, info.shape, name.sequence.value_or(sequence), name.head))
      theirs.readings.push_back(reading);
  if (theirs.readings.empty()) {
    theirs.tensor.dtype = info.dtype;
    theirs.tensor.shape = info.shape;
    theirs.obstacle = "expected " + expected_shape(model, theirs.stage, name.head.has_value()) + ", got " +
                      formats::shape_text(info.shape);
    return theirs;
  }
  theirs.stage = theirs.readings.front().stage;
  theirs.tensor = file.read(info.name);
  theirs.rounding = rounding_of(theirs.tensor);
  return theirs;
}

std::vector<Stage> mapped_stages(const std::string& tensor, const std::string& stage) {
  if (stage.empty()) return {};
  const auto* row = attention::find_stage(stage);
  if (!row) throw Error(tensor + ": there is no stage \"" + stage + "\"");
  return {row->stage};
}

StageResult result_of(const Theirs& theirs, const Reading* reading, const Computed& right,
                      const Tolerance& tolerance) {
  StageResult result{theirs.stage,
                     theirs.name,
                     formats::shape_text(theirs.tensor.shape),
                     formats::dtype_name(theirs.tensor.dtype),
                     rounding_words(theirs.rounding),
                     theirs.obstacle,
                     {}};
  result.agreement.within = false;
  if (!reading) return result;
  result.stage = reading->stage;
  if (attention::info(reading->stage).present(right.model()))
    result.agreement = agreement(theirs, *reading, right, tolerance);
  else
    result.obstacle = "the model does not have this stage";
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
  if (!result.obstacle.empty() || result.agreement.largest > same->agreement.largest)
    *same = std::move(result);
  same->agreement.within = within;
}

}  // namespace

Matched match(const Model& model, const formats::TensorFile& file,
              const std::map<std::string, std::string>& by_hand, std::size_t sequence) {
  for (const auto& [tensor, stage] : by_hand) file.info(tensor);  // throws when it is not there
  Matched matched;
  std::vector<std::string> nameless;
  for (const formats::TensorInfo& info : file.tensors()) {
    const auto hand = by_hand.find(info.name);
    const bool by_a_person = hand != by_hand.end();
    const Name name = take_apart(info.name);
    Meaning meaning = meaning_of(name.base);
    if (by_a_person) meaning = {mapped_stages(info.name, hand->second), true};
    if (by_a_person && hand->second.empty()) continue;
    const bool absent = !meaning.stages.empty() && meaning.certain && !by_a_person &&
                        !attention::info(meaning.stages.front()).present(model);
    if (meaning.stages.empty() || info.dtype == formats::Dtype::text) {
      nameless.push_back(info.name);
      continue;
    }
    if (absent) {
      matched.left_out.push_back(info.name + ": the model does not have this stage");
      continue;
    }
    Theirs theirs = read(model, file, info, meaning.stages, name, sequence);
    if (theirs.readings.empty() && !meaning.certain)
      matched.left_out.push_back(info.name + ": " + theirs.obstacle);
    else
      matched.theirs.push_back(std::move(theirs));
  }
  if (matched.theirs.empty())
    throw Error(
        file.place() +
        "expected tensors named as stages (weights, queries, attn_scores, …), got none; --map NAME=STAGE says which is which");
  if (nameless.size() == 1) matched.left_out.push_back(nameless.front() + ": its name says no stage");
  if (nameless.size() > 1)
    matched.left_out.push_back(text::joined(nameless, ", ") + ": their names say no stage");
  return matched;
}

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

Report check(const Model& model, const Matched& matched, const Tolerance& tolerance,
             const core::Token& token) {
  const Computed right(model);
  Report report;
  report.left_out = matched.left_out;
  std::vector<const Reading*> agree;
  bool can_be_explained = true;
  for (const Theirs& theirs : matched.theirs) {
    agree.push_back(agreeing(theirs, right, tolerance));
    report.agrees = report.agrees && agree.back();
    can_be_explained = can_be_explained && !theirs.readings.empty();
  }
  if (!report.agrees && can_be_explained)
    report.explanations = find_causes(right, matched.theirs, agree, tolerance, token);
  report.readings = agree;
  std::optional<Computed> explained;
  if (!report.explanations.empty()) explained.emplace(report.explanations.front().model);
  for (std::size_t k = 0; k < agree.size(); ++k) {
    const std::vector<Reading>& readings = matched.theirs[k].readings;
    if (agree[k] || readings.empty()) continue;
    // What a name can mean in two ways is what the explanation makes of it.
    const bool ambiguous = explained && readings.size() > 1;
    const Reading* read = ambiguous ? agreeing(matched.theirs[k], *explained, tolerance) : nullptr;
    report.readings[k] = read ? read : &readings.front();
  }
  for (std::size_t k = 0; k < matched.theirs.size(); ++k)
    add(result_of(matched.theirs[k], report.readings[k], right, tolerance), report.stages);
  std::stable_sort(report.stages.begin(), report.stages.end(),
                   [](const StageResult& x, const StageResult& y) { return x.stage < y.stage; });
  return report;
}

}  // namespace core::check
