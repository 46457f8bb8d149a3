#include "app/session/remembered.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/session/view_text.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace app {
namespace {

using core::color::ColorMap;
using core::color::NamedMap;
using Words = std::map<std::string, std::string>;

std::string percent(float share) {
  return std::to_string(std::lround(share * 100));
}

std::string word(const Words& settings, const char* key) {
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
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    if (const auto* stage = core::attention::find_stage(text.substr(from, end - from)))
      folded.insert(stage->stage);
    from = end + 1;
  }
  return folded;
}

}  // namespace

std::optional<int> remembered_number(const Words& settings, const char* key, int least, int most) {
  const auto number = core::text::parse_whole_number(word(settings, key));
  if (!number || std::cmp_less(*number, least) || std::cmp_greater(*number, most)) return std::nullopt;
  return static_cast<int>(*number);
}

Words remembered(const View& view) {
  Words s;
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
  s["reduce_motion"] = view.settings.reduce_motion ? "yes" : "no";
  s["flight_percent"] = percent(view.settings.flight_speed);
  s["tour"] = view.settings.knows_tour ? "known" : "new";
  s["measure"] = view.look.colors.logarithmic ? "logarithmic" : "linear";
  return s;
}

void recall(const Words& s, View& view) {
  if (const std::string theme = word(s, "theme"); !theme.empty()) view.settings.dark = theme != "light";
  if (const auto scale = remembered_number(s, "scale_percent", 50, 400))
    view.settings.scale = static_cast<float>(*scale) / 100;
  if (const auto size = remembered_number(s, "text_percent", 80, 150))
    view.settings.text_size = static_cast<float>(*size) / 100;
  if (const auto left = remembered_number(s, "left_width", 0, 4000))
    view.settings.left_width = static_cast<float>(*left);
  if (const auto right = remembered_number(s, "right_width", 0, 4000))
    view.settings.right_width = static_cast<float>(*right);
  view.look.tab = tab_of(word(s, "view")).value_or(view.look.tab);
  if (s.contains("folded")) view.look.folded = folded_stages(word(s, "folded"));
  view.look.gutters = word(s, "gutters") == "yes";
  recall_map(word(s, "weights_map"), core::color::sequential_maps(), view.look.colors.sequential);
  recall_map(word(s, "values_map"), core::color::diverging_maps(), view.look.colors.diverging);
  view.settings.reduce_motion = word(s, "reduce_motion") == "yes";
  if (const auto speed = remembered_number(s, "flight_percent", 25, 400))
    view.settings.flight_speed = static_cast<float>(*speed) / 100;
  // Who has used the program before it had a tour has no need of one.
  view.settings.knows_tour = !s.empty() && word(s, "tour") != "new";
  view.look.colors.logarithmic = word(s, "measure") == "logarithmic";
}

}  // namespace app
