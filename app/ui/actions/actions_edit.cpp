#include "app/session/exporting.hpp"
#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "core/editing/draw.hpp"

namespace app::rows {
namespace {

namespace editing = core::editing;

std::string with(const char* verb, const std::string& words) {
  return words.empty() ? verb : verb + (" " + words);
}

void add_steps(Rows& rows, const Situation& s) {
  rows.push_back({.id = "edit/undo",
                  .title = with("Undo", s.document.steps.undo_words),
                  .menu = "Edit",
                  .keys = {ctrl(Key::z)},
                  .sheet = "Undo",
                  .why_not =
                      [](const Situation& now) {
                        return now.document.steps.can_undo ? "" : nothing_to_undo(now.document.steps);
                      },
                  .command = always(Undo{})});
  rows.push_back({.id = "edit/redo",
                  .title = with("Redo", s.document.steps.redo_words),
                  .menu = "Edit",
                  .keys = {ctrl(Key::y), ctrl_shift(Key::z)},
                  .sheet = "Redo",
                  .why_not = unless([](const Situation& now) { return now.document.steps.can_redo; },
                                    "there is nothing to redo"),
                  .command = always(Redo{})});
  rows.push_back({.id = "edit/copy",
                  .title = "Copy",
                  .menu = "Edit",
                  .group = 1,
                  .keys = {ctrl(Key::c)},
                  .sheet = "Copy the chosen number, in full",
                  .why_not = unless([](const Situation& now) { return copied_number(now).has_value(); },
                                    "no number is chosen"),
                  .command = [](const Situation& now) { return Asked{CopyText{*copied_number(now)}}; }});
}

void add_tokens(Rows& rows) {
  rows.push_back({.id = "edit/sentence",
                  .title = "Type a sentence…",
                  .menu = "Edit",
                  .group = 2,
                  .command = shows(Dialog::sentence)});
  rows.push_back({.id = "edit/add_token",
                  .title = "Add a token",
                  .menu = "Edit",
                  .group = 2,
                  .command = [](const Situation& now) {
                    const std::size_t n = now.newest.model.n_tokens();
                    return edit(editing::InsertToken{n, std::to_string(n)});
                  }});
  rows.push_back({.id = "edit/remove_token",
                  .title = "Remove the last token",
                  .menu = "Edit",
                  .group = 2,
                  .why_not = unless([](const Situation& now) { return now.newest.model.n_tokens() > 1; },
                                    "it is the only one"),
                  .command = [](const Situation& now) {
                    return edit(editing::RemoveToken{now.newest.model.n_tokens() - 1});
                  }});
}

void add_numbers(Rows& rows) {
  rows.push_back({.id = "edit/by_keyboard",
                  .title = "Edit the matrix by keyboard",
                  .menu = "Edit",
                  .group = 3,
                  .keys = {plain(Key::e)},
                  .command = looks([](View& view) {
                    view.selection.cursor = EditCursor{0, 0, true};
                  })});
  rows.push_back({.id = "edit/type_over",
                  .title = "Type a number over the pinned cell",
                  .menu = "Edit",
                  .group = 3,
                  .keys = {plain(Key::n)},
                  .why_not = [](const Situation& now) -> std::string {
                    if (!now.shown.selection.pinned) return "no cell is pinned";
                    return can_be_typed_over(now.shown.selection.pinned->stage)
                               ? ""
                               : "cells of this stage are edited otherwise";
                  },
                  .command = looks([](View& view) {
                    view.forms.typed = Typed{"inspector/typed", "", true, true};
                  })});
  rows.push_back({.id = "edit/give",
                  .title = "Numbers of your own for a stage…",
                  .menu = "Edit",
                  .group = 3,
                  .about = "Pasted or from a file, in place of those that are computed; or computed again",
                  .keys = {plain(Key::i)},
                  .sheet = "Numbers of your own for a stage, or computed again",
                  .command = [](const Situation& now) {
                    const auto& pinned = now.shown.selection.pinned;
                    const bool can = pinned && core::attention::can_be_given(pinned->stage);
                    return Asked{ChangeView{[stage = can ? pinned->stage : now.forms.given_stage](
                                                View& view) { view.forms.given_stage = stage; }},
                                 ShowDialog{Dialog::give}};
                  }});
  rows.push_back({.id = "edit/draw_model",
                  .title = "Draw the model as PyTorch would…",
                  .menu = "Edit",
                  .group = 3,
                  .command = [](const Situation& now) {
                    return Asked{ChangeView{[like = editing::draw_like(now.newest.model)](View& view) {
                                   view.forms.draw.draw.bias = like.bias;
                                   view.forms.draw.draw.output = like.output;
                                 }},
                                 ShowDialog{Dialog::draw_model}};
                  }});
}

}  // namespace

std::vector<Action> of_edit(const Situation& s) {
  Rows rows;
  add_steps(rows, s);
  add_copying(rows, s, "Edit/Copy as");
  add_tokens(rows);
  add_numbers(rows);
  add_switches(rows, s);
  add_mistakes(rows, s);
  add_comparing(rows, s);
  add_editor_keys(rows);
  return rows;
}

}  // namespace app::rows
