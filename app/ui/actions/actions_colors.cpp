// How numbers become colors.
#include <array>
#include <span>

#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

using core::color::ColorMap;
using core::color::NamedMap;

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

void add_maps(Rows& rows, std::span<const NamedMap> maps, ColorMap ColorChoice::*kept, int part) {
  for (const NamedMap& map : maps) {
    Action row = in_menu("", map.name, part);
    row.id = std::string("map/") + map.name;
    row.command = looks([kept, m = map.map](View& view) { view.look.colors.*kept = m; });
    row.checked = [kept, m = map.map](const Situation& now) { return now.shown.look.colors.*kept == m; };
    rows.push_back(std::move(row));
  }
}

}  // namespace

void add_colors(Rows& rows, const Situation&) {
  for (const RangeRow& range : ranges) {
    Action row = in_menu(range.id, range.title, 0);
    row.command = looks([rule = range.rule](View& view) {
      view.look.colors.range = rule;
      view.look.colors.locked.reset();
    });
    row.checked = [rule = range.rule](const Situation& now) { return now.shown.look.colors.range == rule; };
    rows.push_back(std::move(row));
  }
  Action logarithmic = in_menu("colours/logarithmic", "Logarithmic", 1);
  logarithmic.command = looks([](View& view) {
    view.look.colors.logarithmic = !view.look.colors.logarithmic;
    view.look.colors.locked.reset();
  });
  logarithmic.checked = [](const Situation& now) { return now.shown.look.colors.logarithmic; };
  rows.push_back(std::move(logarithmic));

  Action lock = in_menu("colours/lock", "Locked as they are", 1);
  lock.why_not = unless([](const Situation& now) { return now.shown.look.colors.locked || now.color_ends; },
                        "no colours are shown");
  lock.command = [](const Situation& now) {
    if (now.shown.look.colors.locked) return look([](View& view) { view.look.colors.locked.reset(); });
    return look([ends = now.color_ends()](View& view) { view.look.colors.locked = ends; });
  };
  lock.checked = [](const Situation& now) { return now.shown.look.colors.locked.has_value(); };
  rows.push_back(std::move(lock));

  add_maps(rows, core::color::sequential_maps(), &ColorChoice::sequential, 2);
  add_maps(rows, core::color::diverging_maps(), &ColorChoice::diverging, 3);
}

}  // namespace app::rows
