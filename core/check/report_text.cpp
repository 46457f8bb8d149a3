#include "core/check/report_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/formats/files/json.hpp"
#include "core/text/number.hpp"
#include "core/text/utf8.hpp"
#include "core/text/words.hpp"

namespace core::check {
namespace {

using attention::info;
using formats::json_quoted;
using std::to_string;

std::string short_number(double value) {
  if (std::isinf(value)) return "not a number apart";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

using Row = std::array<std::string, 6>;

std::string aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k)
      widths[k] = std::max(widths[k], text::character_count(row[k]));
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k)
      line += row[k] + std::string(widths[k] - text::character_count(row[k]) + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

Row row_of(const StageResult& r) {
  Row row{info(r.stage).name, r.tensor, r.shape, r.type, "", ""};
  if (!r.obstacle.empty()) {
    row[5] = "DIFFERS: " + r.obstacle;
    return row;
  }
  row[4] = r.agreement.largest == 0 ? "0" : short_number(r.agreement.largest) + " at " + place_words(r);
  row[5] = r.agreement.within ? "agrees" : "DIFFERS";
  if (r.agreement.within && !r.rounding.empty() && r.agreement.largest > 0) row[5] += " as " + r.rounding;
  return row;
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
         (r.obstacle.empty() ? "" : ", \"obstacle\": " + json_quoted(r.obstacle)) + "}";
}

std::string described(const Explanation& explanation) {
  std::string text;
  for (const mistakes::Mistake* mistake : explanation.mistakes)
    text += "  " + std::string(mistake->cause) + ": " + mistake->about + " " + mistake->remedy + "\n";
  return text;
}

}  // namespace

std::string place_words(const StageResult& r) {
  const Agreement& a = r.agreement;
  std::string words = a.sequence > 0 ? "sequence " + to_string(a.sequence) + ", " : "";
  if (info(r.stage).per_head) words += "head " + to_string(a.head) + ", ";
  return words + "row " + to_string(a.row) + ", column " + to_string(a.column);
}

std::string verdict_words(const Report& report) {
  const StageResult* first = report.first_difference();
  if (!first) return "Everything agrees.\n";
  std::string text = "First stage that differs: " + std::string(info(first->stage).name) + ".\n";
  const auto& found = report.explanations;
  if (found.empty())
    return text + "None of the known mistakes, alone or in pairs, explains all of the tensors.\n";
  if (found.size() == 1)
    return text + "Likely cause: " + text::joined(found.front().causes, " and ") +
           ", which explains every tensor.\n" + described(found.front());
  text += "These explain every tensor equally well; the tensors cannot tell them apart:\n";
  for (const Explanation& explanation : found) text += described(explanation);
  return text;
}

std::string report_text(const Report& report) {
  std::vector<Row> rows{{"stage", "tensor", "shape", "type", "largest difference", ""}};
  for (const StageResult& result : report.stages) rows.push_back(row_of(result));
  std::string text = aligned(rows);
  for (const std::string& name : report.left_out) text += "left out: " + name + "\n";
  return text + "\n" + verdict_words(report);
}

std::string report_json(const Report& report) {
  const StageResult* first = report.first_difference();
  return "{\"agrees\": " + std::string(report.agrees ? "true" : "false") +
         ", \"first_difference\": " + (first ? json_quoted(info(first->stage).name) : "null") +
         ", \"causes\": " + names_json(report.causes()) + ", \"explanations\": " +
         json_list(report.explanations, [](const Explanation& e) { return names_json(e.causes); }) +
         ", \"stages\": " + json_list(report.stages, stage_json) +
         ", \"left_out\": " + names_json(report.left_out) + "}\n";
}

}  // namespace core::check
