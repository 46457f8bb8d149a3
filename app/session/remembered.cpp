#include "app/session/remembered.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/files/json.hpp"
#include "core/files/session_files.hpp"

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
  return found && found->is_list() ? found->items_or_empty("") : std::vector<Json>();
}

constexpr std::array range_names{
    std::pair{ColorRangeRule::matrix, "matrix"}, std::pair{ColorRangeRule::stage, "stage"},
    std::pair{ColorRangeRule::all_heads, "all_heads"}, std::pair{ColorRangeRule::typed, "typed"}};

std::string ends_text(const ColorLimits& ends) {
  return "[" + core::text::number_text(ends.low) + ", " + core::text::number_text(ends.high) + "]";
}

void recall_ends(const Json& object, const char* key, ColorLimits& ends) {
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

std::string view_text(const View& view, const std::filesystem::path& folder) {
  using core::formats::json_quoted, core::formats::json_boolean, core::formats::json_object;
  using std::to_string;
  const Look& look = view.look;
  const bool is_typed = look.colors.range == ColorRangeRule::typed;
  const auto& pinned = view.selection.pinned;
  const auto& gradient = look.gradient.of;
  const auto stage_name = [](Stage stage) { return json_quoted(core::attention::info(stage).name); };
  const auto number = [](const std::optional<std::size_t>& n) { return n ? to_string(*n) : ""; };
  return json_object(
      {{"tab", json_quoted(tab_name(look.tab))},
       {"sequence", to_string(look.sequence)},
       {"head", to_string(look.head)},
       {"heads_stage", stage_name(look.heads_stage)},
       {"range", json_quoted(range_names.at(static_cast<std::size_t>(look.colors.range)).second)},
       {"logarithmic", json_boolean(look.colors.logarithmic)},
       {"typed_values", is_typed ? ends_text(look.colors.typed_values) : ""},
       {"typed_weights", is_typed ? ends_text(look.colors.typed_weights) : ""},
       {"gutters", json_boolean(look.gutters)},
       {"large", look.large ? stage_name(*look.large) : ""},
       {"pinned", pinned ? json_object({{"stage", stage_name(pinned->stage)},
                                        {"head", to_string(pinned->head)},
                                        {"row", to_string(pinned->row)},
                                        {"column", to_string(pinned->column)}})
                         : ""},
       {"gradient",
        gradient && gradient->expected.empty()
            ? json_object({{"of", json_quoted(text_of(*gradient))}, {"head", to_string(gradient->head)}})
            : ""},
       {"heads_order", look.heads_order ? json_quoted(core::attention::info(*look.heads_order).name) : ""},
       {"lens", view.layers.lens == core::transformer::LensKind::logit
                    ? ""
                    : json_quoted(core::transformer::name_of(view.layers.lens).name)},
       {"hide_below", core::text::number_text(look.tokens.hide_below)},
       {"silent_heads",
        look.tokens.silent_heads.empty()
            ? ""
            : core::formats::json_list(look.tokens.silent_heads, [](std::size_t h) { return to_string(h); })},
       {"decoded", number(look.positions.decoded)},
       {"pinned_query", number(look.tokens.pinned_query)},
       {"scan", folder.empty() || view.forms.scan.folder.empty()
                    ? ""
                    : json_quoted(core::formats::path_in_session(view.forms.scan.folder, folder).string())}});
}

void restore_view(const std::string& text, View& view, const std::filesystem::path& folder) {
  if (text.empty()) return;
  const Json object = core::formats::parse_json(text, "view");
  view.look.tab = tab_of(word(object, "tab")).value_or(view.look.tab);
  view.look.sequence = whole(object, "sequence").value_or(view.look.sequence);
  view.look.head = whole(object, "head").value_or(view.look.head);
  if (const auto* stage = core::attention::find_stage(word(object, "heads_stage")))
    view.look.heads_stage = stage->stage;
  const std::string range = word(object, "range");
  for (const auto& [rule, name] : range_names)
    if (range == name) view.look.colors.range = rule;
  recall_ends(object, "typed_values", view.look.colors.typed_values);
  recall_ends(object, "typed_weights", view.look.colors.typed_weights);
  view.look.colors.locked.reset();
  recall_switch(object, "logarithmic", view.look.colors.logarithmic);
  recall_switch(object, "gutters", view.look.gutters);
  view.look.large.reset();
  if (const auto* stage = core::attention::find_stage(word(object, "large"))) view.look.large = stage->stage;
  if (const auto* figure = core::attention::find_head_metric(word(object, "heads_order")))
    view.look.heads_order = figure->figure;
  view.layers.lens =
      core::transformer::find_lens_kind(word(object, "lens")).value_or(core::transformer::LensKind::logit);
  recall_tokens(object, view.look.tokens);
  view.look.positions.decoded = whole(object, "decoded");
  view.look.gradient.of.reset();
  if (const auto gradient = object.member("gradient")) {
    view.look.gradient.of = core::graph::parse_target(word(*gradient, "of"));
    if (view.look.gradient.of) view.look.gradient.of->head = whole(*gradient, "head").value_or(0);
  }
  if (const std::string scan = word(object, "scan"); !scan.empty())
    view.forms.scan.folder = (folder / scan).string();
  const auto pinned = object.member("pinned");
  if (!pinned) return;
  if (const auto* stage = core::attention::find_stage(word(*pinned, "stage")))
    view.selection.pinned = CellRef{stage->stage, whole(*pinned, "head").value_or(0),
                                    whole(*pinned, "row").value_or(0), whole(*pinned, "column").value_or(0)};
}

namespace {

using core::color::ColorMap;
using core::color::NamedMap;
using SettingsMap = std::map<std::string, std::string>;

std::string percent(float share) {
  return std::to_string(std::lround(share * 100));
}

std::string word(const SettingsMap& settings, const char* key) {
  const auto it = settings.find(key);
  return it == settings.end() ? "" : it->second;
}

const char* name_of(ColorMap map, std::span<const NamedMap> maps) {
  const auto it = std::find_if(maps.begin(), maps.end(), [map](const NamedMap& m) { return m.map == map; });
  return it == maps.end() ? "" : it->name;
}

void recall_map(const std::string& name, std::span<const NamedMap> maps, ColorMap& map) {
  for (const NamedMap& known : maps)
    if (name == known.name) map = known.map;
}

std::string folded_text(const std::set<Stage>& folded) {
  return core::text::joined(folded, " ", [](Stage stage) { return core::attention::info(stage).name; });
}

std::set<Stage> folded_stages(const std::string& text) {
  std::set<Stage> folded;
  for (const std::string_view word : core::text::split_words(text))
    if (const auto* stage = core::attention::find_stage(word)) folded.insert(stage->stage);
  return folded;
}

constexpr char between_actions = '\t';

/// Reads the IDs of actions; the latest is the first.
std::vector<std::string> used_actions(std::string_view text) {
  std::vector<std::string> ids = core::text::split(text, between_actions), used;
  for (; !ids.empty(); ids.pop_back()) used = with_used_action(std::move(used), ids.back());
  return used;
}

}  // namespace

std::optional<int> setting_number(const SettingsMap& settings, const char* key, int least, int most) {
  const auto number = core::text::parse_unsigned(word(settings, key));
  if (!number || std::cmp_less(*number, least) || std::cmp_greater(*number, most)) return std::nullopt;
  return static_cast<int>(*number);
}

SettingsMap saved_settings(const View& view) {
  SettingsMap s;
  s["theme"] = view.settings.dark ? "dark" : "light";
  s["scale_percent"] = percent(view.settings.scale);
  s["text_percent"] = percent(view.settings.text_size);
  s["left_width"] = std::to_string(std::lround(view.settings.left_width));
  s["right_width"] = std::to_string(std::lround(view.settings.right_width));
  s["view"] = tab_name(view.look.tab);
  s["folded"] = folded_text(view.look.folded);
  s["gutters"] = view.look.gutters ? "yes" : "no";
  s["weights_map"] = name_of(view.look.colors.sequential, core::color::sequential_maps());
  s["values_map"] = name_of(view.look.colors.diverging, core::color::diverging_maps());
  s["start_page"] = view.settings.start_page ? "yes" : "no";
  s["pytorch_numbers"] = view.settings.pytorch_numbers ? "yes" : "no";
  s["reduce_motion"] = view.settings.reduce_motion ? "yes" : "no";
  s["flight_percent"] = percent(view.settings.animation_speed);
  s["tour"] = view.settings.has_seen_tour ? "known" : "new";
  s["measure"] = view.look.colors.logarithmic ? "logarithmic" : "linear";
  s["used_actions"] = core::text::joined(view.forms.used_actions, std::string(1, between_actions));
  return s;
}

void apply_settings(const SettingsMap& s, View& view) {
  if (const std::string theme = word(s, "theme"); !theme.empty()) view.settings.dark = theme != "light";
  if (const auto scale = setting_number(s, "scale_percent", 50, 400))
    view.settings.scale = static_cast<float>(*scale) / 100;
  if (const auto size = setting_number(s, "text_percent", 80, 150))
    view.settings.text_size = static_cast<float>(*size) / 100;
  if (const auto left = setting_number(s, "left_width", 0, 4000))
    view.settings.left_width = static_cast<float>(*left);
  if (const auto right = setting_number(s, "right_width", 0, 4000))
    view.settings.right_width = static_cast<float>(*right);
  view.look.tab = tab_of(word(s, "view")).value_or(view.look.tab);
  if (s.contains("folded")) view.look.folded = folded_stages(word(s, "folded"));
  view.look.gutters = word(s, "gutters") == "yes";
  recall_map(word(s, "weights_map"), core::color::sequential_maps(), view.look.colors.sequential);
  recall_map(word(s, "values_map"), core::color::diverging_maps(), view.look.colors.diverging);
  view.settings.start_page = word(s, "start_page") != "no";
  view.settings.pytorch_numbers = word(s, "pytorch_numbers") == "yes";
  view.settings.reduce_motion = word(s, "reduce_motion") == "yes";
  if (const auto speed = setting_number(s, "flight_percent", 25, 400))
    view.settings.animation_speed = static_cast<float>(*speed) / 100;
  // Settings without an entry for the tour are of an experienced user, who needs none.
  view.settings.has_seen_tour = !s.empty() && word(s, "tour") != "new";
  view.look.colors.logarithmic = word(s, "measure") == "logarithmic";
  if (s.contains("used_actions")) view.forms.used_actions = used_actions(word(s, "used_actions"));
}

std::vector<std::string> with_used_action(std::vector<std::string> used, const std::string& id) {
  constexpr std::size_t most = 8;
  if (id.empty() || id.find_first_of("\t\r\n") != id.npos) return used;  // could not be read back
  std::erase(used, id);
  used.insert(used.begin(), id);
  used.resize(std::min(used.size(), most));
  return used;
}

std::vector<std::filesystem::path> with_recent(std::vector<std::filesystem::path> recent,
                                               const std::filesystem::path& file) {
  std::erase(recent, file);
  recent.insert(recent.begin(), file);
  if (recent.size() > max_recent) recent.resize(max_recent);
  return recent;
}

}  // namespace app
