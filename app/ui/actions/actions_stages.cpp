// Which stages are shown, how large, and how much of them.
#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

/// Fewer or more cells around the pinned one, or around the middle; of token × token matrices when nothing is
/// pinned.
Asked zoom_by(const Situation& s, double factor) {
  const auto& stage =
      core::attention::info(s.shown.selection.pinned ? s.shown.selection.pinned->stage : Stage::weights);
  const core::attention::StageMatrix& numbers = stage.matrix(s.shown.trace, s.shown.look.head);
  const Shape shape{numbers.n_rows(), numbers.n_cols()};
  const CellWindow part = shown_part(s.shown.look, shape);
  const double row = s.shown.selection.pinned ? static_cast<double>(s.shown.selection.pinned->row) + 0.5
                                              : (part.top + part.bottom) / 2;
  const double column = s.shown.selection.pinned ? static_cast<double>(s.shown.selection.pinned->column) + 0.5
                                                 : (part.left + part.right) / 2;
  return look([=](View& view) { zoom(view, shape, row, column, factor); });
}

void add_zoom(Rows& rows) {
  constexpr double step = 1.5;
  for (const bool in : {true, false})
    rows.push_back({.id = in ? "zoom/in" : "zoom/out",
                    .title = in ? "Zoom in" : "Zoom out",
                    .menu = "View/Zoom",
                    .group = 5,
                    .keys = {plain(in ? Key::plus : Key::minus)},
                    .here = outside_editor,
                    .sheet = "Zoom in, out; or Ctrl and the wheel over a picture",
                    .command = [in](const Situation& now) { return zoom_by(now, in ? 1 / step : step); }});
  rows.push_back({.id = "zoom/fit",
                  .title = "Fit: show all cells",
                  .menu = "View/Zoom",
                  .group = 5,
                  .keys = {plain(Key::f)},
                  .why_not = unless([](const Situation& now) { return !now.shown.look.zoomed.empty(); },
                                    "all cells are shown"),
                  .command = looks([](View& view) { view.look.zoomed.clear(); })});
}

void add_large(Rows& rows, const Situation& s) {
  rows.push_back(
      {.id = "stages/alone",
       .title =
           s.shown.look.tab == Tab::stages && s.shown.look.large ? "Back to all stages" : "One stage alone",
       .menu = "View",
       .group = 5,
       .about = "The pinned cell's, or the one that the mouse is on",
       .keys = {plain(Key::l)},
       .sheet = "One stage alone, or all; or a double click",
       .command = [](const Situation& now) {
         const bool points = now.shown.selection.hovered && !now.shown.selection.pinned;
         return look([stage = points ? now.shown.selection.hovered->stage : stage_at_hand(now)](View& view) {
           view.look.large =
               view.look.tab == Tab::stages && view.look.large ? std::nullopt : std::optional(stage);
           view.look.tab = Tab::stages;
         });
       }});
  rows.push_back({.id = "stages/gutters",
                  .title = "Row sums and entropy",
                  .menu = "View",
                  .group = 5,
                  .keys = {plain(Key::g)},
                  .sheet = "Row sums and entropy beside the stages",
                  .command = looks([](View& view) { view.look.gutters = !view.look.gutters; }),
                  .checked = [](const Situation& now) { return now.shown.look.gutters; }});
}

/// The picture of rotary positions, under the queries that they turned.
void add_positions(Rows& rows) {
  rows.push_back(
      {.id = "stages/positions",
       .title = "Positions that turn",
       .menu = "View",
       .group = 5,
       .about = "Rotary positions as arrows: a query and a key, their angles and the score at every distance",
       .why_not = unless(
           [](const Situation& now) {
             return core::attention::info(Stage::rotated_queries).present(now.shown.model);
           },
           "the model has no rotary positions"),
       .command = looks([](View& view) {
         view.look.large = Stage::rotated_queries;
         view.look.tab = Tab::stages;
       })});
}

/// A row for each stage that the model has.
template <class Finish>
void add_each(Rows& rows, const Situation& s, const char* id, const char* menu, Finish finish) {
  for (const auto& stage : core::attention::stages()) {
    if (!stage.present(s.shown.model)) continue;
    Action row{.id = std::string(id) + stage.name, .title = stage.title, .menu = menu, .group = 5};
    if (finish(row, stage)) rows.push_back(std::move(row));
  }
}

}  // namespace

Stage stage_at_hand(const Situation& s) {
  if (s.shown.selection.pinned) return s.shown.selection.pinned->stage;
  if (s.shown.look.tab == Tab::heads) return s.shown.look.heads_stage;
  return s.shown.look.large.value_or(Stage::weights);
}

void add_stages(Rows& rows, const Situation& s) {
  using core::attention::StageInfo;
  add_zoom(rows);
  add_large(rows, s);
  add_positions(rows);
  add_each(rows, s, "large/", "View/Show large", [](Action& row, const StageInfo& stage) {
    row.command = looks([which = stage.stage](View& view) {
      view.look.large = which;
      view.look.tab = Tab::stages;
    });
    row.checked = [which = stage.stage](const Situation& now) { return now.shown.look.large == which; };
    return true;
  });
  add_each(rows, s, "of_heads/", "View/One stage of all heads", [](Action& row, const StageInfo& stage) {
    row.command = looks([which = stage.stage](View& view) {
      view.look.heads_stage = which;
      view.look.tab = Tab::heads;
    });
    row.checked = [which = stage.stage](const Situation& now) {
      return now.shown.look.tab == Tab::heads && now.shown.look.heads_stage == which;
    };
    return stage.per_head;
  });
  add_each(rows, s, "shown/", "View/Shown stages", [](Action& row, const StageInfo& stage) {
    row.command = looks([which = stage.stage](View& view) {
      if (view.look.folded.erase(which) == 0) view.look.folded.insert(which);
    });
    row.checked = [which = stage.stage](const Situation& now) {
      return !now.shown.look.folded.contains(which);
    };
    return true;
  });
}

}  // namespace app::rows
