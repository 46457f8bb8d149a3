// What can be switched in the model, what can go wrong in it, and what it is compared with.
#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "core/graph/compare_switches.hpp"
#include "core/graph/mistakes.hpp"

namespace app::rows {
namespace {

namespace editing = core::editing;
using core::mistakes::Mistake;

bool is_hidden(const Situation& s) {
  const auto edit = mask_switch(s.shown.selection.pinned, s.shown.trace);
  return edit && edit->visible;
}

std::string why_not_mistaken(const Mistake& mistake, const Situation& s) {
  if (!mistake.present(s.newest.model))
    return core::mistakes::applies(mistake, s.newest.model) ? "" : "it would change nothing here";
  return mistake.mended ? "" : "the numbers to put it right are gone";
}

}  // namespace

void add_switches(Rows& rows, const Situation& s) {
  rows.push_back(
      {.id = "model/causal",
       .title = "Causal mask",
       .menu = "Edit",
       .group = 4,
       .about = "No query sees a later token",
       .keys = {plain(Key::c)},
       .sheet = "Causal mask on or off",
       .command =
           [](const Situation& now) { return edit(editing::SetCausal{!now.newest.model.mask.causal}); },
       .checked = [](const Situation& now) { return now.newest.model.mask.causal; }});
  rows.push_back({.id = "model/cell",
                  .title = "Hide the pinned cell",
                  .menu = "Edit",
                  .group = 4,
                  .about = "Its query does not see its key",
                  .keys = {plain(Key::m)},
                  .sheet = "Hide the pinned cell by hand, or show it",
                  .why_not = unless(
                      [](const Situation& now) {
                        return mask_switch(now.shown.selection.pinned, now.shown.trace).has_value();
                      },
                      "no cell between two tokens is pinned"),
                  .command =
                      [](const Situation& now) {
                        return edit(*mask_switch(now.shown.selection.pinned, now.shown.trace));
                      },
                  .checked = is_hidden});
  rows.push_back(
      {.id = "model/head",
       .title = "Head " + std::to_string(s.shown.look.head) + " on",
       .menu = "Edit",
       .group = 4,
       .about = "Switched off, its contexts are zero when the heads are merged",
       .keys = {plain(Key::h)},
       .sheet = "The chosen head off or on",
       .command =
           [](const Situation& now) {
             return edit(
                 editing::SwitchHead{now.shown.look.head, now.newest.model.is_off(now.shown.look.head)});
           },
       .checked = [](const Situation& now) { return !now.newest.model.is_off(now.shown.look.head); }});
  rows.push_back({.id = "model/training",
                  .title = "Dropout as in training",
                  .menu = "Edit",
                  .group = 4,
                  .about = "In evaluation no weight is dropped",
                  .keys = {plain(Key::d)},
                  .sheet = "Dropout: training or evaluation",
                  .command =
                      [](const Situation& now) {
                        return edit(editing::SetTraining{!now.newest.model.dropout.training});
                      },
                  .checked = [](const Situation& now) { return now.newest.model.dropout.training; }});
  rows.push_back({.id = "model/draw_mask",
                  .title = "Draw another dropout mask",
                  .menu = "Edit",
                  .group = 4,
                  .about = "With the next seed",
                  .keys = {plain(Key::space)},
                  .here =
                      [](const Newest& view) {
                        return view.look.tab == Tab::laboratory && !view.selection.presenting.on;
                      },
                  .sheet = "In the dropout laboratory: draw again",
                  .command =
                      [](const Situation& now) {
                        return edit(editing::SetDropoutSeed{now.newest.model.dropout.seed + 1});
                      }});
}

void add_mistakes(Rows& rows, const Situation& s) {
  for (const Mistake& mistake : core::mistakes::mistakes()) {
    if (!core::mistakes::concerns(mistake, s.newest.model)) continue;
    rows.push_back(
        {.id = std::string("mistake/") + mistake.name,
         .title = mistake.title,
         .menu = "Edit/Show a mistake",
         .group = 4,
         .about = mistake.about,
         .why_not = [&mistake](const Situation& now) { return why_not_mistaken(mistake, now); },
         .command =
             [&mistake](const Situation& now) {
               return edit(editing::SwitchMistake{mistake.name, !mistake.present(now.newest.model)});
             },
         .checked = [&mistake](const Situation& now) { return mistake.present(now.newest.model); }});
  }
}

void add_comparing(Rows& rows, const Situation&) {
  rows.push_back({.id = "compare/keep",
                  .title = "Keep this as A",
                  .menu = "Edit",
                  .group = 5,
                  .about = "To compare with what you make of it",
                  .keys = {plain(Key::k)},
                  .sheet = "Keep this as A, to compare with",
                  .command = always(KeepReference{})});
  const auto switches = core::compare::switches();
  for (std::size_t k = 0; k < switches.size(); ++k)
    rows.push_back({.id = std::string("compare/") + switches[k].name,
                    .title = switches[k].title,
                    .menu = "Edit/Compare",
                    .group = 5,
                    .about = switches[k].about,
                    .command = always(KeepSwitched{k})});
  rows.push_back({.id = "compare/open",
                  .title = "Open a session as A…",
                  .menu = "Edit",
                  .group = 5,
                  .about = "The model that you edit stays as it is",
                  .command = shows(Dialog::open_reference)});
  rows.push_back({.id = "compare/hold",
                  .title = "The kept A in place of B, in every view",
                  .keys = {plain(Key::space)},
                  .here =
                      [](const Newest& view) {
                        return view.look.tab != Tab::laboratory && !view.selection.cursor &&
                               !view.selection.presenting.on;
                      },
                  .written = "Space, held"});
}

void add_editor_keys(Rows& rows) {
  const auto key = [&](const char* id, const char* title, std::vector<KeyPress> keys,
                       const char* written = "") {
    rows.push_back(
        {.id = id, .title = title, .keys = std::move(keys), .here = in_editor, .written = written});
  };
  key("editor/walk", "In the matrix: from number to number",
      {plain(Key::up), plain(Key::down), plain(Key::home), plain(Key::end), plain(Key::page_up),
       plain(Key::page_down)},
      "arrows, Home, End, Page");
  rows.push_back({.id = "editor/across",
                  .title = "In the matrix: from number to number",
                  .keys = {plain(Key::left), plain(Key::right)},
                  .here = [](const Newest& view) { return in_editor(view) && !view.selection.lesson; },
                  .written = "arrows, Home, End, Page"});
  std::vector<KeyPress> begins{plain(Key::enter), plain(Key::minus), plain(Key::plus)};
  for (int digit = 0; digit < 10; ++digit)
    begins.push_back(plain(static_cast<Key>(static_cast<int>(Key::digit_0) + digit)));
  key("editor/type", "In the matrix: type a number", std::move(begins), "digits, Enter");
  key("editor/next", "In the matrix: the next number", {plain(Key::tab)});
  key("editor/zero", "In the matrix: set to 0", {plain(Key::delete_), plain(Key::backspace)});
  key("editor/paste", "In the matrix: paste a block of numbers", {ctrl(Key::v)});
}

}  // namespace app::rows
