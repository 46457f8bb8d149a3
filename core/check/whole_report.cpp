#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/report_text.hpp"
#include "core/check/whole_check.hpp"
#include "core/files/json.hpp"

namespace core::check {
namespace {

using formats::json_quoted;
using std::to_string;
using Rows = std::vector<std::vector<std::string>>;

std::string name_of(const DumpTensor& tensor) {
  return tensor.name + (tensor.index ? "[" + to_string(*tensor.index) + "]" : "");
}

void add_rows(const std::string& layer, const std::string& what, const std::optional<RowsResult>& result,
              Rows& rows) {
  if (!result) return;
  std::vector<std::string> row{
      layer, what, name_of(result->tensor), result->shape, result->type, result->reading, "", ""};
  if (!result->obstacle.empty()) {
    row.back() = "DIFFERS: " + result->obstacle;
  } else {
    row[6] = result->largest == 0 ? "0"
                                  : difference_text(result->largest, result->of_nan) + " at token " +
                                        to_string(result->row) + ", number " + to_string(result->column);
    row.back() = result->within ? "agrees" : "DIFFERS";
    if (!result->rounding.empty()) row.back() += " as " + result->rounding;
  }
  rows.push_back(std::move(row));
}

bool differs(const std::optional<RowsResult>& rows) {
  return rows && !rows->within;
}
bool differs(const std::optional<Report>& report) {
  return report && !report->agrees;
}

/// Where the first difference is: a layer, or behind the last one, and what of it.
struct Place {
  std::size_t layer = 0;
  std::string stage;  ///< "hidden_states", a stage of attention, "normed" or "logits"
};
std::optional<Place> first_place(const WholeReport& report) {
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    if (differs(report.layers[l].entering)) return Place{l, "hidden_states"};
    if (const auto& attention = report.layers[l].attention; differs(attention)) {
      const StageResult* first = attention->first_difference();
      return Place{l, first ? attention::info(first->stage).name : "attention"};
    }
  }
  if (differs(report.leaving)) return Place{report.layers.size(), "hidden_states"};
  if (differs(report.normed)) return Place{report.layers.size(), "normed"};
  if (differs(report.logits)) return Place{report.layers.size(), "logits"};
  return std::nullopt;
}

/// What leaves a layer differs: what of the layer is left to look at.
std::string words_of_hidden(const WholeReport& report, std::size_t layer) {
  if (layer == 0)
    return "First difference: what enters layer 0: the embeddings of tokens or positions, or their norm.\n";
  const LayerResult& before = report.layers[layer - 1];
  std::string text = "First difference: what leaves layer " + to_string(layer - 1);
  const bool behind_norm =
      report.leaving && layer == report.layers.size() && !report.leaving->reading.empty();
  const std::string norms = behind_norm ? ", its norms or the last norm.\n" : " or its norms.\n";
  if (!before.attention) return text + ", whose attention was not given: its attention, its MLP" + norms;
  const auto& stages = before.attention->stages;
  const bool to_the_end =
      std::ranges::any_of(stages, [](const StageResult& s) { return s.stage == Stage::output; });
  return text + ", though " +
         (to_the_end ? "its attention agrees: its MLP"
                     : "what was given of its attention agrees: what follows, its MLP") +
         norms;
}

/// Layers whose attention differs from the same causes as the first one's.
std::string words_of_others(const WholeReport& report, std::size_t first) {
  const auto causes = report.layers[first].attention->causes();
  std::size_t n_same = 0, n_differ = 0;
  for (std::size_t l = first + 1; l < report.layers.size(); ++l) {
    if (!differs(report.layers[l].attention)) continue;
    ++n_differ;
    n_same += report.layers[l].attention->causes() == causes ? 1 : 0;
  }
  if (n_differ == 0) return "";
  return "Attention of " + text::counted(n_differ, "later layer") + (n_differ == 1 ? " differs" : " differ") +
         " as well, " +
         (n_same == n_differ ? "for the same reason"
          : n_same == 0      ? "not for the same reason"
                             : to_string(n_same) + " of them for the same reason") +
         ".\n";
}

std::string listed(const std::vector<std::size_t>& numbers) {
  return text::joined(numbers, ", ", [](std::size_t n) { return to_string(n); });
}

/// What the file has not, of which nothing is said.
std::string words_of_missing(const WholeReport& report) {
  std::vector<std::size_t> no_hidden, no_attention;
  std::set<Stage> not_given;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    if (!report.layers[l].entering) no_hidden.push_back(l);
    const auto& attention = report.layers[l].attention;
    if (!attention) no_attention.push_back(l);
    if (attention) not_given.insert(attention->not_given.begin(), attention->not_given.end());
  }
  std::vector<std::string> missing;
  if (!no_hidden.empty()) missing.push_back("what enters layers " + listed(no_hidden));
  if (!report.leaving && !report.normed) missing.push_back("what leaves the last layer");
  if (!no_attention.empty()) missing.push_back("attention of layers " + listed(no_attention));
  if (!not_given.empty())
    missing.push_back("of attention " +
                      text::joined(not_given, ", ", [](Stage s) { return attention::info(s).name; }));
  if (!report.logits) missing.push_back("logits");
  return missing.empty() ? "" : "Not given, and not compared: " + text::joined(missing, "; ") + ".\n";
}

std::string verdict(const WholeReport& report) {
  const auto place = first_place(report);
  if (!place) return "Everything agrees that was given.\n";
  if (place->stage == "hidden_states") return words_of_hidden(report, place->layer);
  if (place->stage == "normed")
    return "First difference: the last norm, though what leaves the last layer agrees or was not given.\n";
  if (place->stage == "logits")
    return "First difference: the scores of tokens: the last norm or what predicts tokens, or what leaves the "
           "last layer where that was not given.\n";
  return "First difference: attention of layer " + to_string(place->layer) + ".\n" +
         verdict_words(*report.layers[place->layer].attention) + words_of_others(report, place->layer);
}

std::string rows_json(const std::optional<RowsResult>& result) {
  if (!result) return "null";
  const bool has_place = result->obstacle.empty(), measured = has_place && std::isfinite(result->largest);
  return "{\"tensor\": " + json_quoted(name_of(result->tensor)) +
         ", \"shape\": " + json_quoted(result->shape) + ", \"dtype\": " + json_quoted(result->type) +
         ", \"within\": " + (result->within ? "true" : "false") +
         ", \"max_abs\": " + (measured ? text::number_text(result->largest) : "null") +
         ", \"row\": " + (has_place ? to_string(result->row) : "null") +
         ", \"column\": " + (has_place ? to_string(result->column) : "null") +
         ", \"rounding\": " + (result->rounding.empty() ? "null" : json_quoted(result->rounding)) +
         (result->reading.empty() ? "" : ", \"reading\": " + json_quoted(result->reading)) +
         (result->obstacle.empty() ? "" : ", \"obstacle\": " + json_quoted(result->obstacle)) + "}";
}

std::string layer_json(const LayerResult& layer) {
  std::string attention = layer.attention ? report_json(*layer.attention) : "null";
  if (attention.ends_with('\n')) attention.pop_back();
  return "{\"hidden\": " + rows_json(layer.entering) + ", \"attention\": " + attention + "}";
}

}  // namespace

std::string whole_report_text(const WholeReport& report) {
  Rows rows{{"layer", "what", "tensor", "shape", "type", "", "largest difference", ""}};
  bool any_hidden = false;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    const auto& [entering, attention] = report.layers[l];
    any_hidden = any_hidden || entering;
    add_rows(to_string(l), "what enters it", entering, rows);
    if (!attention) continue;
    for (const StageResult& stage : attention->stages) {
      std::vector<std::string> row = row_of(stage);
      row.insert(row.begin(), to_string(l));
      rows.push_back(std::move(row));
    }
  }
  add_rows("", "what leaves the last layer", report.leaving, rows);
  add_rows("", "the last norm", report.normed, rows);
  add_rows("", "scores of tokens", report.logits, rows);
  if (std::ranges::any_of(rows, [](const auto& row) { return !row[5].empty(); })) rows.front()[5] = "read as";
  std::string text = text::in_columns(rows);
  for (const std::string& name : report.left_out) text += "left out: " + name + "\n";
  for (std::size_t l = 0; l < report.layers.size(); ++l)
    if (report.layers[l].attention)
      for (const std::string& note : report.layers[l].attention->notes)
        text += "note: layer " + to_string(l) + ": " + note + ".\n";
  if (any_hidden) text += "note: each layer was computed from the hidden states that the file has of it.\n";
  return text + "\n" + verdict(report) + words_of_missing(report);
}

std::string whole_report_json(const WholeReport& report) {
  const auto place = first_place(report);
  return "{\"agrees\": " + std::string(report.agrees() ? "true" : "false") + ", \"first_difference\": " +
         (place ? "{\"layer\": " + to_string(place->layer) + ", \"stage\": " + json_quoted(place->stage) + "}"
                : "null") +
         ", \"layers\": [" + text::joined(report.layers, ", ", layer_json) +
         "], \"leaving\": " + rows_json(report.leaving) + ", \"normed\": " + rows_json(report.normed) +
         ", \"logits\": " + rows_json(report.logits) + ", \"left_out\": [" +
         text::joined(report.left_out, ", ", [](const std::string& name) { return json_quoted(name); }) +
         "]}\n";
}

}  // namespace core::check
