#include "core/check/report_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"

namespace core::check {
namespace {

using attention::info;
using formats::json_quoted;
using std::to_string;

std::size_t n_stages_of(const Report& report) {
  std::set<Stage> compared;
  for (const StageResult& result : report.stages)
    if (result.obstacle.empty()) compared.insert(result.stage);
  return compared.size();
}

/// A list in JSON of what words(item) says in JSON.
template <typename Item, typename Words>
std::string json_list(const std::vector<Item>& items, Words words) {
  return "[" + text::joined(items, ", ", words) + "]";
}

std::string names_json(const std::vector<std::string>& names) {
  return json_list(names, [](const std::string& name) { return json_quoted(name); });
}

std::string stage_json(const StageResult& r) {
  const Agreement& a = r.agreement;
  const bool measured = r.obstacle.empty() && std::isfinite(a.largest);
  const auto place = [&](std::size_t k) { return r.obstacle.empty() ? to_string(k) : "null"; };
  return "{\"stage\": " + json_quoted(info(r.stage).name) +
         ", \"max_abs\": " + (measured ? text::number_text(a.largest) : "null") +
         ", \"head\": " + (info(r.stage).per_head ? place(a.head) : "null") + ", \"row\": " + place(a.row) +
         ", \"column\": " + place(a.column) + ", \"within\": " + (a.within ? "true" : "false") +
         ", \"sequence\": " + place(a.sequence) + ", \"tensor\": " + json_quoted(r.tensor) +
         ", \"shape\": " + json_quoted(r.shape) + ", \"dtype\": " + json_quoted(r.type) +
         ", \"rounding\": " + (r.rounding.empty() ? "null" : json_quoted(r.rounding)) +
         (r.reading.empty() ? "" : ", \"reading\": " + json_quoted(r.reading)) +
         (r.obstacle.empty() ? "" : ", \"obstacle\": " + json_quoted(r.obstacle)) + "}";
}

/// What nothing but the names of weights may have told when a model was made of them, or "".
std::string assumed_words(const std::string& cause) {
  if (cause == "rotary_missing") return "that it turns queries and keys";
  if (cause == "rotary_other_pairs") return "which pairs of columns turn";
  if (cause == "rotary_base") return "the base of its positions";
  if (cause == "causal_unwanted" || cause == "no_mask") return "whether it is causal";
  if (cause == "n_heads_other") return "the number of its heads";
  return "";
}

/// A cause may as well lie in the model that the tensors were compared with.
std::string assumption_words(const std::vector<std::string>& causes) {
  std::vector<std::string> all;
  for (const std::string& cause : causes)
    if (const std::string words = assumed_words(cause); !words.empty()) all.push_back(words);
  if (all.empty()) return "";
  return "If the model was opened from a file of weights, " + text::joined(all, ", ", {}, " and ") +
         " may have been assumed then: where that was wrong, it is the model that is to be put right.\n";
}

std::string described(const Explanation& explanation) {
  std::string text;
  for (const mistakes::Mistake* mistake : explanation.mistakes)
    text += "  " + std::string(mistake->cause) + ": " + mistake->about + " " +
            mistakes::remedy_in(*mistake, explanation.model) + "\n";
  if (!explanation.details.empty()) text += "  " + text::joined(explanation.details, "; or ") + "\n";
  return text;
}

}  // namespace

std::string difference_text(double value, bool of_nan) {
  if (std::isinf(value)) return of_nan ? "not a number apart" : "∞ apart";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::vector<std::string> row_of(const StageResult& r) {
  std::vector<std::string> row{info(r.stage).name, r.tensor, r.shape, r.type, r.reading, "", ""};
  if (!r.obstacle.empty()) {
    row[6] = "DIFFERS: " + r.obstacle;
    return row;
  }
  row[5] = r.agreement.largest == 0
               ? "0"
               : difference_text(r.agreement.largest, r.agreement.of_nan) + " at " + place_words(r);
  row[6] = r.agreement.within ? "agrees" : "DIFFERS";
  if (r.agreement.within && !r.rounding.empty() && r.agreement.largest > 0) row[6] += " as " + r.rounding;
  return row;
}

std::string place_words(const StageResult& r) {
  const Agreement& a = r.agreement;
  std::string words = a.sequence > 0 ? "sequence " + to_string(a.sequence) + ", " : "";
  if (info(r.stage).per_head || a.head > 0) words += "head " + to_string(a.head) + ", ";
  return words + "row " + to_string(a.row) + ", column " + to_string(a.column);
}

std::string coverage_words(const Report& report) {
  const auto name = [](Stage stage) { return info(stage).name; };
  return text::counted(report.n_tensors, "tensor") + " of " + text::counted(n_stages_of(report), "stage") +
         (report.n_tensors == 1 ? " was" : " were") + " compared; " +
         (report.not_given.empty()
              ? "the model has no other stages"
              : "not given, and not compared: " + text::joined(report.not_given, ", ", name)) +
         (report.n_along_first_axis > 1
              ? "; of the " + to_string(report.n_along_first_axis) +
                    " along the first axis, be they layers or sequences, only the first"
              : "");
}

namespace {

/// Whether a cause is why shapes are others as well.
bool explains_shapes(const Report& report, const std::vector<std::string>& causes) {
  const auto has = [&](const char* cause) { return std::ranges::find(causes, cause) != causes.end(); };
  const auto fits = [](const StageResult& r) { return r.obstacle.empty() || r.stage == Stage::output; };
  return has("n_heads_other") ||
         (has("output_projection_missing") && std::ranges::all_of(report.stages, fits));
}

/// ": 12 tokens instead of 8", where that keeps most tensors from being compared.
std::string obstacle_in_common(const Report& report) {
  std::map<std::string, std::size_t> counts;
  for (const StageResult& stage : report.stages)
    if (const std::size_t at = stage.obstacle.rfind(": "); at != std::string::npos)
      ++counts[stage.obstacle.substr(at)];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
  return most == counts.end() || most->second * 2 <= report.stages.size() ? "" : most->first;
}

}  // namespace

std::string verdict_words(const Report& report) {
  const StageResult* first = report.first_difference();
  if (!first) return "Everything agrees: " + coverage_words(report) + ".\n";
  std::string text = "First stage that differs: " + std::string(info(first->stage).name) + ".\n";
  const std::vector<std::string> causes = report.causes();
  const bool of_other_shapes = explains_shapes(report, causes);
  const bool has_unfit = report.has_unfit() && !of_other_shapes;  // whose shapes no cause explains
  if (has_unfit && report.n_tensors == 0)
    text += "Nothing could be compared" + obstacle_in_common(report) + ".\n";
  else if (has_unfit)
    text += report.has_wrong_numbers()
                ? "Tensors of another shape were not looked at for causes.\n"
                : "Whatever could be compared agrees: " + coverage_words(report) + ".\n";
  if (has_unfit) text += "A tensor that is no stage is left out by --map NAME=.\n";
  if (!report.has_wrong_numbers() && !of_other_shapes) return text;
  const auto& found = report.explanations;
  if (found.empty() && report.was_stopped)
    return text + "The search for the cause was stopped before one was found.\n";
  if (found.empty())
    return text + "None of the known mistakes, alone or in pairs, explains all of the tensors.\n" +
           (report.pattern.empty() ? "" : "What differs: " + report.pattern + ".\n");
  if (report.was_stopped) text += "The search was stopped; there may be other causes.\n";
  const std::string every = has_unfit ? "every tensor whose shape fits" : "every tensor";
  if (found.size() == 1)
    return text + "Likely cause: " + text::joined(found.front().causes, " and ") +
           (found.front().causes.size() > 1 ? ", which together explain " : ", which explains ") + every +
           ".\n" + described(found.front()) + assumption_words(causes);
  text += "These explain " + every + " equally well; the tensors cannot tell them apart:\n";
  for (const Explanation& explanation : found) text += described(explanation);
  return text + assumption_words(causes);
}

std::string report_text(const Report& report) {
  std::vector<std::vector<std::string>> rows{
      {"stage", "tensor", "shape", "type", "", "largest difference", ""}};
  for (const StageResult& result : report.stages) {
    rows.push_back(row_of(result));
    if (!result.reading.empty()) rows.front()[4] = "read as";
  }
  std::string text = text::in_columns(rows);
  for (const std::string& name : report.left_out) text += "left out: " + name + "\n";
  for (const std::string& note : report.notes) text += "note: " + note + ".\n";
  return text + "\n" + verdict_words(report);
}

std::string report_json(const Report& report) {
  const StageResult* first = report.first_difference();
  return "{\"agrees\": " + std::string(report.agrees ? "true" : "false") +
         ", \"first_difference\": " + (first ? json_quoted(info(first->stage).name) : "null") +
         ", \"causes\": " + names_json(report.causes()) + ", \"explanations\": " +
         json_list(report.explanations, [](const Explanation& e) { return names_json(e.causes); }) +
         ", \"stages\": " + json_list(report.stages, stage_json) +
         ", \"left_out\": " + names_json(report.left_out) + ", \"notes\": " + names_json(report.notes) +
         ", \"n_tensors\": " + to_string(report.n_tensors) +
         ", \"n_stages\": " + to_string(n_stages_of(report)) + ", \"not_given\": " +
         json_list(report.not_given, [](Stage stage) { return json_quoted(info(stage).name); }) +
         ", \"stopped\": " + (report.was_stopped ? "true" : "false") + ", \"details\": " +
         json_list(report.explanations, [](const Explanation& e) { return names_json(e.details); }) +
         ", \"pattern\": " + (report.pattern.empty() ? "null" : json_quoted(report.pattern)) + "}\n";
}

}  // namespace core::check
