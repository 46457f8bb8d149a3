// How numbers become colours.
#include <array>
#include <span>

#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

using core::colour::ColourMap;
using core::colour::NamedMap;

struct RangeRow {
  RangeRule rule;
  const char* id;
  const char* title;
};
constexpr std::array ranges{RangeRow{RangeRule::matrix, "colours/matrix", "By matrix"},
                            RangeRow{RangeRule::stage, "colours/stage", "By stage, over its heads"},
                            RangeRow{RangeRule::all_heads, "colours/all", "One for all stages and heads"},
                            RangeRow{RangeRule::typed, "colours/typed", "Typed, beside the tabs"}};

Action in_menu(const char* id, const char* title, int part) {
  return {.id = id, .title = title, .menu = "View/Colours", .group = 4, .part = part};
}

void add_maps(Rows& rows, std::span<const NamedMap> maps, ColourMap ColourChoice::*kept, int part) {
  for (const NamedMap& map : maps) {
    Action row = in_menu("", map.name, part);
    row.id = std::string("map/") + map.name;
    row.command = looks([kept, m = map.map](View& view) { view.look.colours.*kept = m; });
    row.checked = [kept, m = map.map](const Situation& now) { return now.shown.look.colours.*kept == m; };
    rows.push_back(std::move(row));
  }
}

}  // namespace

void add_colours(Rows& rows, const Situation&) {
  for (const RangeRow& range : ranges) {
    Action row = in_menu(range.id, range.title, 0);
    row.command = looks([rule = range.rule](View& view) {
      view.look.colours.range = rule;
      view.look.colours.locked.reset();
    });
    row.checked = [rule = range.rule](const Situation& now) { return now.shown.look.colours.range == rule; };
    rows.push_back(std::move(row));
  }
  Action logarithmic = in_menu("colours/logarithmic", "Logarithmic", 1);
  logarithmic.command = looks([](View& view) {
    view.look.colours.logarithmic = !view.look.colours.logarithmic;
    view.look.colours.locked.reset();
  });
  logarithmic.checked = [](const Situation& now) { return now.shown.look.colours.logarithmic; };
  rows.push_back(std::move(logarithmic));

  Action lock = in_menu("colours/lock", "Locked as they are", 1);
  lock.why_not = unless([](const Situation& now) { return now.shown.look.colours.locked || now.colour_ends; },
                        "no colours are shown");
  lock.command = [](const Situation& now) {
    if (now.shown.look.colours.locked) return look([](View& view) { view.look.colours.locked.reset(); });
    return look([ends = now.colour_ends()](View& view) { view.look.colours.locked = ends; });
  };
  lock.checked = [](const Situation& now) { return now.shown.look.colours.locked.has_value(); };
  rows.push_back(std::move(lock));

  add_maps(rows, core::colour::sequential_maps(), &ColourChoice::sequential, 2);
  add_maps(rows, core::colour::diverging_maps(), &ColourChoice::diverging, 3);
}

}  // namespace app::rows
