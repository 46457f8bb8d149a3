// What can be done with one stage: the menu of its title.
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

constexpr const char* stage_menu = "Stage";

/// An action of the table as it stands in this menu.
void add_of_table(Rows& rows, const std::vector<Action>& all, const char* id, int group) {
  const Action* found = find_action(all, id);
  if (!found) return;
  Action row = *found;
  row.menu = stage_menu, row.group = group;
  rows.push_back(std::move(row));
}

Action large_row(const Situation& s, Stage stage) {
  const bool is_large = s.shown.look.tab == Tab::stages && s.shown.look.large == stage;
  return {.id = "stage/large",
          .title = is_large ? "Back to all stages" : "Show large",
          .menu = stage_menu,
          .about = "A click on the title and a double click on its cells do the same",
          .command = looks([stage, is_large](View& view) {
            view.look.large = is_large ? std::nullopt : std::optional(stage);
            view.look.tab = Tab::stages;
          })};
}

/// One stage is presented: the pinned cell's, so that a cell of another one is released.
Action present_row(Stage stage, std::size_t head) {
  return {.id = "stage/present",
          .title = "Present",
          .menu = stage_menu,
          .about = "This stage for an audience, large enough for the last row (F5 presents what is at hand)",
          .command = looks([stage, head](View& view) {
            Selection& s = view.selection;
            if (s.pinned && s.pinned->stage != stage) s.pinned.reset();
            if (core::attention::info(stage).per_head) view.look.head = head;
            (view.look.tab == Tab::heads ? view.look.heads_stage : view.look.large.emplace()) = stage;
            s.presenting.on = true;
            s.presenting.flight.reset();
            s.cursor.reset();
            s.tour.reset();
          })};
}

Action fold_row(Stage stage) {
  return {.id = "stage/fold",
          .title = "Fold away",
          .menu = stage_menu,
          .about = "A line below the stages brings it back",
          .why_not = unless(
              [](const Situation& now) { return now.shown.look.tab == Tab::stages && !now.shown.look.large; },
              "only among all stages"),
          .command = looks([stage](View& view) { view.look.folded.insert(stage); })};
}

Action give_row(Stage stage) {
  return {.id = "stage/give",
          .title = "Numbers of your own…",
          .menu = stage_menu,
          .group = 2,
          .about = "Pasted or from a file, in place of those that are computed; or computed again",
          .why_not = unless([stage](const Situation&) { return core::attention::can_be_given(stage); },
                            "this stage is edited or switched elsewhere"),
          .command = [stage](const Situation&) {
            return Asked{ChangeView{[stage](View& view) { view.forms.given_stage = stage; }},
                         ShowDialog{Dialog::give}};
          }};
}

Action export_row(Stage stage, std::size_t head) {
  return {.id = "stage/export",
          .title = "Export this…",
          .menu = stage_menu,
          .group = 2,
          .about = "Its numbers or a figure of it, as a file",
          .command = [stage, head](const Situation&) {
            return Asked{ChangeView{[stage, head](View& view) {
                           view.forms.exporting.from = std::pair(stage, head);
                           view.forms.exporting.what = ExportWhat::matrix;
                         }},
                         ShowDialog{Dialog::export_files}};
          }};
}

}  // namespace

void add_stage_menu(Rows& rows, const Situation& s, Stage stage, std::size_t head) {
  const std::vector<Action> all = actions(s);
  rows.push_back(large_row(s, stage));
  rows.push_back(present_row(stage, head));
  rows.push_back(fold_row(stage));
  add_of_table(rows, all, "zoom/fit", 0);
  for (const char* id : {"stages/gutters", "colours/logarithmic", "colours/lock"})
    add_of_table(rows, all, id, 1);
  rows.push_back(give_row(stage));
  add_copying_matrix(rows, s, std::string(stage_menu) + "/Copy as", {stage, head, 0, 0});
  rows.push_back(export_row(stage, head));
}

}  // namespace app::rows
