// A whole model: its layers, its heads, and the text that it writes.
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

constexpr const char* menu_of_whole = "View/Whole model";
constexpr const char* none_open = "no whole model is open";

bool has_whole(const Situation& s) {
  return s.newest.whole != nullptr;
}

/// "" where a layer lies before (−1) or after (+1) the one that is looked at.
std::function<std::string(const Situation&)> beyond_layer(int by) {
  return [by](const Situation& s) -> std::string {
    if (!has_whole(s)) return none_open;
    const std::size_t now = s.newest.whole->experiment.layer;
    if (by < 0) return now > 0 ? "" : "this is the first layer";
    return now + 1 < s.newest.whole->model->description().sizes.n_layers ? "" : "this is the last layer";
  };
}

void add_layer_steps(Rows& rows) {
  for (const int by : {-1, 1})
    rows.push_back({.id = by < 0 ? "whole/layer_before" : "whole/layer_after",
                    .title = by < 0 ? "Layer before" : "Layer after",
                    .menu = menu_of_whole,
                    .group = 5,
                    .keys = {plain(by < 0 ? Key::page_up : Key::page_down)},
                    .here = outside_editor,
                    .sheet = "Whole models: the layer before, after",
                    .why_not = beyond_layer(by),
                    .command = [by](const Situation& now) {
                      const std::size_t layer = now.newest.whole->experiment.layer;
                      return Asked{LookAtLayer{by < 0 ? layer - 1 : layer + 1}};
                    }});
}

}  // namespace

void add_whole_model(Rows& rows, const Situation& s) {
  const std::size_t first = rows.size();
  rows.push_back({.id = "tab/layers",
                  .title = "Layers",
                  .menu = "View",
                  .about = "Every head of every layer of a whole model",
                  .keys = {ctrl(Key::digit_6)},
                  .sheet = "Layers of a whole model",
                  .why_not = unless(has_whole, none_open),
                  .command = looks([](View& view) { view.look.tab = Tab::layers; }),
                  .checked = [](const Situation& now) { return now.shown.look.tab == Tab::layers; }});
  add_layer_steps(rows);
  rows.push_back({.id = "whole/head_off",
                  .title = "Switch the chosen head off or on",
                  .menu = menu_of_whole,
                  .group = 5,
                  .keys = {plain(Key::x)},
                  .here = outside_editor,
                  .sheet = "Whole models: switch the chosen head off, on",
                  .why_not = unless(has_whole, none_open),
                  .command = [](const Situation& now) {
                    return Asked{SwitchHead{now.newest.whole->experiment.layer, now.newest.look.head}};
                  }});
  rows.push_back({.id = "whole/sweep",
                  .title = "Switch each head off in turn",
                  .menu = menu_of_whole,
                  .group = 5,
                  .part = 1,
                  .about = "What becomes of the chosen token's logit, as bars under the heads",
                  .why_not = unless(has_whole, none_open),
                  .command = always(SweepHeads{})});
  rows.push_back(
      {.id = "whole/undo_all",
       .title = "Undo all edits of the model",
       .menu = menu_of_whole,
       .group = 5,
       .part = 1,
       .why_not = unless(
           [](const Situation& now) { return has_whole(now) && now.newest.whole->experiment.is_edited(); },
           "nothing of a whole model is edited"),
       .command = always(DropEdits{})});
  rows.push_back({.id = "whole/compare",
                  .title = "Compare the layer with before the edits",
                  .menu = menu_of_whole,
                  .group = 5,
                  .part = 1,
                  .why_not = unless(has_whole, none_open),
                  .command = always(CompareEdits{})});
  for (const bool back : {false, true})
    rows.push_back({.id = back ? "whole/back" : "whole/more",
                    .title = back ? "One token back" : "One token more",
                    .menu = menu_of_whole,
                    .group = 5,
                    .part = 2,
                    .why_not = unless(has_whole, none_open),
                    .command = always(WriteToken{back})});
  if (!has_whole(s))  // they would only make the menu longer
    for (std::size_t k = first; k < rows.size(); ++k) rows[k].menu.clear();
}

}  // namespace app::rows
