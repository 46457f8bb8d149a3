// Which stages are shown, how large, and how much of them.
#include "app/ui/actions/action_rows.hpp"
#include "app/state/zoom.hpp"

namespace app::rows {
namespace {

/// Fewer or more cells around the pinned one, or around the middle; of token × token matrices when nothing is
/// pinned.
Asked zoom_by(const Situation& s, double factor) {
  const auto& stage = core::attention::info(s.view.pinned ? s.view.pinned->stage : Stage::weights);
  const core::attention::StageMatrix& numbers = stage.matrix(s.trace, s.view.head);
  const Shape shape{numbers.n_rows(), numbers.n_cols()};
  const CellWindow part = shown_part(s.view, shape);
  const double row =
      s.view.pinned ? static_cast<double>(s.view.pinned->row) + 0.5 : (part.top + part.bottom) / 2;
  const double column =
      s.view.pinned ? static_cast<double>(s.view.pinned->column) + 0.5 : (part.left + part.right) / 2;
  return look([=](View& view) { zoom(view, shape, row, column, factor); });
}

void add_zoom(Rows& rows) {
  constexpr double step = 1.5;
  for (const bool in : {true, false})
    rows.push_back({.id = in ? "zoom/in" : "zoom/out",
                    .title = in ? "Zoom in" : "Zoom out",
                    .menu = "View",
                    .group = 4,
                    .keys = {plain(in ? Key::plus : Key::minus)},
                    .here = outside_editor,
                    .sheet = "Zoom in, out; with the mouse: the wheel over a picture",
                    .command = [in](const Situation& now) { return zoom_by(now, in ? 1 / step : step); }});
  rows.push_back({.id = "zoom/fit",
                  .title = "Fit: show all cells",
                  .menu = "View",
                  .group = 4,
                  .keys = {plain(Key::f)},
                  .why_not = unless([](const Situation& now) { return !now.view.zoomed.empty(); },
                                    "all cells are shown"),
                  .command = looks([](View& view) { view.zoomed.clear(); })});
}

void add_large(Rows& rows, const Situation& s) {
  rows.push_back(
      {.id = "stages/alone",
       .title = s.view.tab == Tab::stages && s.view.large ? "Back to all stages" : "One stage alone",
       .menu = "View",
       .group = 4,
       .about = "The pinned cell's, or the one that the mouse is on",
       .keys = {plain(Key::l)},
       .sheet = "The stage at hand alone, or all of them; with the mouse: a double click",
       .command = [](const Situation& now) {
         const bool points = now.view.hovered && !now.view.pinned;
         return look([stage = points ? now.view.hovered->stage : stage_at_hand(now)](View& view) {
           view.large = view.tab == Tab::stages && view.large ? std::nullopt : std::optional(stage);
           view.tab = Tab::stages;
         });
       }});
  rows.push_back({.id = "stages/gutters",
                  .title = "Row sums and entropy",
                  .menu = "View",
                  .group = 4,
                  .keys = {plain(Key::g)},
                  .sheet = "Row sums and entropy beside token × token stages",
                  .command = looks([](View& view) { view.gutters = !view.gutters; }),
                  .checked = [](const Situation& now) { return now.view.gutters; }});
}

/// A row for each stage that the model has.
template <class Finish>
void add_each(Rows& rows, const Situation& s, const char* id, const char* menu, Finish finish) {
  for (const auto& stage : core::attention::stages()) {
    if (!stage.present(s.model)) continue;
    Action row{.id = std::string(id) + stage.name, .title = stage.title, .menu = menu, .group = 4};
    if (finish(row, stage)) rows.push_back(std::move(row));
  }
}

}  // namespace

Stage stage_at_hand(const Situation& s) {
  if (s.view.pinned) return s.view.pinned->stage;
  if (s.view.tab == Tab::heads) return s.view.heads_stage;
  return s.view.large.value_or(Stage::weights);
}

void add_stages(Rows& rows, const Situation& s) {
  using core::attention::StageInfo;
  add_zoom(rows);
  add_large(rows, s);
  add_each(rows, s, "large/", "View/Show large", [](Action& row, const StageInfo& stage) {
    row.command = looks([which = stage.stage](View& view) {
      view.large = which;
      view.tab = Tab::stages;
    });
    row.checked = [which = stage.stage](const Situation& now) { return now.view.large == which; };
    return true;
  });
  add_each(rows, s, "of_heads/", "View/Of all heads", [](Action& row, const StageInfo& stage) {
    row.command = looks([which = stage.stage](View& view) {
      view.heads_stage = which;
      view.tab = Tab::heads;
    });
    row.checked = [which = stage.stage](const Situation& now) {
      return now.view.tab == Tab::heads && now.view.heads_stage == which;
    };
    return stage.per_head;
  });
  add_each(rows, s, "shown/", "View/Shown stages", [](Action& row, const StageInfo& stage) {
    row.command = looks([which = stage.stage](View& view) {
      if (view.folded.erase(which) == 0) view.folded.insert(which);
    });
    row.checked = [which = stage.stage](const Situation& now) { return !now.view.folded.contains(which); };
    return true;
  });
}

}  // namespace app::rows
