#include "app/session/view_text.hpp"

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/json.hpp"

namespace app {
namespace {

constexpr std::array<std::pair<Tab, const char*>, 5> tab_names{{{Tab::stages, "stages"},
                                                                {Tab::heads, "heads"},
                                                                {Tab::tokens, "tokens"},
                                                                {Tab::compare, "compare"},
                                                                {Tab::layers, "layers"}}};

using core::formats::Json;

std::optional<std::size_t> whole(const Json& object, const char* key) {
  const auto found = object.member(key);
  return found && found->is_whole() ? std::optional<std::size_t>(found->whole(0)) : std::nullopt;
}

std::string word(const Json& object, const char* key) {
  const auto found = object.member(key);
  return found && found->is_text() ? found->text() : "";
}

std::vector<Json> items(const Json& object, const char* key) {
  const auto found = object.member(key);
  return found && found->is_list() ? found->items_if_any("").made() : std::vector<Json>();
}

const char* range_name(RangeRule rule) {
  switch (rule) {
    case RangeRule::stage:
      return "stage";
    case RangeRule::all_heads:
      return "all_heads";
    case RangeRule::typed:
      return "typed";
    case RangeRule::matrix:
      break;
  }
  return "matrix";
}

std::string ends_text(const Ends& ends) {
  return "[" + core::text::number_text(ends.low) + ", " + core::text::number_text(ends.high) + "]";
}

void recall_ends(const Json& object, const char* key, Ends& ends) {
  const std::vector<Json> both = items(object, key);
  if (both.size() != 2 || !both[0].is_number() || !both[1].is_number()) return;
  if (both[0].number() < both[1].number()) ends = {both[0].number(), both[1].number()};
}

void recall_switch(const Json& object, const char* key, bool& on) {
  if (const auto found = object.member(key); found && found->is_boolean()) on = found->boolean();
}

void recall_tokens(const Json& object, TokensLook& look) {
  if (const auto below = object.member("hide_below");
      below && below->is_number() && below->number() >= 0 && below->number() <= 1)
    look.hide_below = below->number();
  for (const Json& head : items(object, "silent_heads"))
    if (head.is_whole()) look.silent_heads.insert(head.whole(0));
  if (const auto query = whole(object, "pinned_query")) look.pinned_query = query;
}

}  // namespace

const char* tab_name(Tab tab) {
  for (const auto& [known, name] : tab_names)
    if (known == tab) return name;
  return tab_names.front().second;
}

std::optional<Tab> tab_of(std::string_view name) {
  for (const auto& [tab, known] : tab_names)
    if (name == known) return tab;
  return std::nullopt;
}

std::string view_text(const View& view) {
  const auto stage_name = [](Stage stage) {
    return core::formats::json_quoted(core::attention::info(stage).name);
  };
  std::string text = std::string("{\"tab\": \"") + tab_name(view.look.tab) + "\"";
  text += ", \"sequence\": " + std::to_string(view.look.sequence) +
          ", \"head\": " + std::to_string(view.look.head);
  text += ", \"heads_stage\": " + stage_name(view.look.heads_stage);
  text += std::string(", \"range\": \"") + range_name(view.look.colors.range) + "\"";
  text += std::string(", \"logarithmic\": ") + (view.look.colors.logarithmic ? "true" : "false");
  if (view.look.colors.range == RangeRule::typed)
    text += ", \"typed_values\": " + ends_text(view.look.colors.typed_values) +
            ", \"typed_weights\": " + ends_text(view.look.colors.typed_weights);
  text += std::string(", \"gutters\": ") + (view.look.gutters ? "true" : "false");
  if (view.look.large) text += ", \"large\": " + stage_name(*view.look.large);
  if (view.selection.pinned)
    text += ", \"pinned\": {\"stage\": " + stage_name(view.selection.pinned->stage) +
            ", \"head\": " + std::to_string(view.selection.pinned->head) +
            ", \"row\": " + std::to_string(view.selection.pinned->row) +
            ", \"column\": " + std::to_string(view.selection.pinned->column) + "}";
  if (view.look.heads_order)
    text += ", \"heads_order\": " +
            core::formats::json_quoted(core::attention::info(*view.look.heads_order).name);
  text += ", \"hide_below\": " + core::text::number_text(view.look.tokens.hide_below);
  if (!view.look.tokens.silent_heads.empty()) {
    text += ", \"silent_heads\": [";
    for (const std::size_t h : view.look.tokens.silent_heads)
      text += (text.back() == '[' ? "" : ", ") + std::to_string(h);
    text += "]";
  }
  if (view.look.positions.decoded) text += ", \"decoded\": " + std::to_string(*view.look.positions.decoded);
  if (view.look.tokens.pinned_query)
    text += ", \"pinned_query\": " + std::to_string(*view.look.tokens.pinned_query);
  return text + "}";
}

void recall_view(const std::string& text, View& view) {
  if (text.empty()) return;
  const Json object = core::formats::parse_json(text, "view");
  view.look.tab = tab_of(word(object, "tab")).value_or(view.look.tab);
  view.look.sequence = whole(object, "sequence").value_or(view.look.sequence);
  view.look.head = whole(object, "head").value_or(view.look.head);
  if (const auto* stage = core::attention::find_stage(word(object, "heads_stage")))
    view.look.heads_stage = stage->stage;
  const std::string range = word(object, "range");
  for (const RangeRule rule : {RangeRule::matrix, RangeRule::stage, RangeRule::all_heads, RangeRule::typed})
    if (range == range_name(rule)) view.look.colors.range = rule;
  recall_ends(object, "typed_values", view.look.colors.typed_values);
  recall_ends(object, "typed_weights", view.look.colors.typed_weights);
  view.look.colors.locked.reset();
  recall_switch(object, "logarithmic", view.look.colors.logarithmic);
  recall_switch(object, "gutters", view.look.gutters);
  view.look.large.reset();
  if (const auto* stage = core::attention::find_stage(word(object, "large"))) view.look.large = stage->stage;
  if (const auto* figure = core::attention::find_head_figure(word(object, "heads_order")))
    view.look.heads_order = figure->figure;
  recall_tokens(object, view.look.tokens);
  view.look.positions.decoded = whole(object, "decoded");
  const auto pinned = object.member("pinned");
  if (!pinned) return;
  if (const auto* stage = core::attention::find_stage(word(*pinned, "stage")))
    view.selection.pinned = CellRef{stage->stage, whole(*pinned, "head").value_or(0),
                                    whole(*pinned, "row").value_or(0), whole(*pinned, "column").value_or(0)};
}

}  // namespace app
