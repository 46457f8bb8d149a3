#include "app/view_text.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/formats/json.hpp"
#include "core/formats/number.hpp"

namespace app {
namespace {

using core::formats::Json;

const Json* member(const Json& object, const char* key) {
  const auto* members = object.as<Json::Object>();
  if (!members) return nullptr;
  const auto it = std::find_if(members->begin(), members->end(), [key](const auto& m) { return m.first == key; });
  return it == members->end() ? nullptr : &it->second;
}

std::optional<std::size_t> whole(const Json& object, const char* key) {
  const Json* found = member(object, key);
  const Json::Number* number = found ? found->as<Json::Number>() : nullptr;
  if (!number || !number->whole) return std::nullopt;
  return static_cast<std::size_t>(*number->whole);
}

std::string word(const Json& object, const char* key) {
  const Json* found = member(object, key);
  const std::string* text = found ? found->as<std::string>() : nullptr;
  return text ? *text : "";
}

/// The laboratory is a place to try, not to come back to.
const char* tab_name(Tab tab) {
  switch (tab) {
    case Tab::heads: return "heads";
    case Tab::tokens: return "tokens";
    case Tab::compare: return "compare";
    case Tab::stages:
    case Tab::laboratory: break;
  }
  return "stages";
}

const char* range_name(RangeRule rule) {
  switch (rule) {
    case RangeRule::stage: return "stage";
    case RangeRule::all_heads: return "all_heads";
    case RangeRule::typed: return "typed";
    case RangeRule::matrix: break;
  }
  return "matrix";
}

std::string ends_text(const Ends& ends) {
  return "[" + core::formats::number_text(ends.low) + ", " + core::formats::number_text(ends.high) + "]";
}

void recall_ends(const Json& object, const char* key, Ends& ends) {
  const Json* found = member(object, key);
  const auto* both = found ? found->as<Json::List>() : nullptr;
  if (!both || both->size() != 2) return;
  const auto *low = (*both)[0].as<Json::Number>(), *high = (*both)[1].as<Json::Number>();
  if (low && high && low->value < high->value) ends = {low->value, high->value};
}

void recall_switch(const Json& object, const char* key, bool& on) {
  const Json* found = member(object, key);
  if (const bool* value = found ? found->as<bool>() : nullptr) on = *value;
}

void recall_tokens(const Json& object, TokensLook& look) {
  const Json* below = member(object, "hide_below");
  if (const auto* number = below ? below->as<Json::Number>() : nullptr; number && number->value >= 0 && number->value <= 1)
    look.hide_below = number->value;
  const Json* silent = member(object, "silent_heads");
  if (const auto* heads = silent ? silent->as<Json::List>() : nullptr)
    for (const Json& head : *heads)
      if (const auto* number = head.as<Json::Number>(); number && number->whole)
        look.silent_heads.insert(static_cast<std::size_t>(*number->whole));
  if (const auto query = whole(object, "pinned_query")) look.pinned_query = query;
}

}  // namespace

std::string view_text(const View& view) {
  const auto stage_name = [](Stage stage) { return core::formats::json_quoted(core::attention::info(stage).name); };
  std::string text = std::string("{\"tab\": \"") + tab_name(view.tab) + "\"";
  text += ", \"sequence\": " + std::to_string(view.sequence) + ", \"head\": " + std::to_string(view.head);
  text += ", \"heads_stage\": " + stage_name(view.heads_stage);
  text += std::string(", \"range\": \"") + range_name(view.colours.range) + "\"";
  text += std::string(", \"logarithmic\": ") + (view.colours.logarithmic ? "true" : "false");
  if (view.colours.range == RangeRule::typed)
    text += ", \"typed_values\": " + ends_text(view.colours.typed_values) + ", \"typed_weights\": " + ends_text(view.colours.typed_weights);
  text += std::string(", \"gutters\": ") + (view.gutters ? "true" : "false");
  if (view.large) text += ", \"large\": " + stage_name(*view.large);
  if (view.pinned)
    text += ", \"pinned\": {\"stage\": " + stage_name(view.pinned->stage) + ", \"head\": " + std::to_string(view.pinned->head) +
            ", \"row\": " + std::to_string(view.pinned->row) + ", \"column\": " + std::to_string(view.pinned->column) + "}";
  if (view.heads_order) text += ", \"heads_order\": " + core::formats::json_quoted(core::attention::info(*view.heads_order).name);
  text += ", \"hide_below\": " + core::formats::number_text(view.tokens.hide_below);
  if (!view.tokens.silent_heads.empty()) {
    text += ", \"silent_heads\": [";
    for (const std::size_t h : view.tokens.silent_heads) text += (text.back() == '[' ? "" : ", ") + std::to_string(h);
    text += "]";
  }
  if (view.tokens.pinned_query) text += ", \"pinned_query\": " + std::to_string(*view.tokens.pinned_query);
  return text + "}";
}

void recall_view(const std::string& text, View& view) {
  if (text.empty()) return;
  const Json object = core::formats::parse_json(text, "view");
  const std::string tab = word(object, "tab");
  for (const Tab kept : {Tab::stages, Tab::heads, Tab::tokens, Tab::compare})
    if (tab == tab_name(kept)) view.tab = kept;
  view.sequence = whole(object, "sequence").value_or(view.sequence);
  view.head = whole(object, "head").value_or(view.head);
  if (const auto* stage = core::attention::find_stage(word(object, "heads_stage"))) view.heads_stage = stage->stage;
  const std::string range = word(object, "range");
  for (const RangeRule rule : {RangeRule::matrix, RangeRule::stage, RangeRule::all_heads, RangeRule::typed})
    if (range == range_name(rule)) view.colours.range = rule;
  recall_ends(object, "typed_values", view.colours.typed_values);
  recall_ends(object, "typed_weights", view.colours.typed_weights);
  view.colours.locked.reset();
  recall_switch(object, "logarithmic", view.colours.logarithmic);
  recall_switch(object, "gutters", view.gutters);
  view.large.reset();
  if (const auto* stage = core::attention::find_stage(word(object, "large"))) view.large = stage->stage;
  if (const auto* figure = core::attention::find_head_figure(word(object, "heads_order"))) view.heads_order = figure->figure;
  recall_tokens(object, view.tokens);
  const Json* pinned = member(object, "pinned");
  if (!pinned) return;
  if (const auto* stage = core::attention::find_stage(word(*pinned, "stage")))
    view.pinned = CellRef{stage->stage, whole(*pinned, "head").value_or(0), whole(*pinned, "row").value_or(0),
                          whole(*pinned, "column").value_or(0)};
}

}  // namespace app
