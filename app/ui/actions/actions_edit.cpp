#include "app/session/exporting.hpp"
#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "core/editing/draw.hpp"
#include "core/graph/compare.hpp"
#include "core/graph/mistakes.hpp"

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
                  .sheet = "Copy the selected number in full",
                  .why_not = unless([](const Situation& now) { return copied_number(now).has_value(); },
                                    "no number is selected"),
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
                    const std::size_t n = now.pending.model.n_tokens();
                    return edit(editing::InsertToken{n, std::to_string(n)});
                  }});
  rows.push_back({.id = "edit/remove_token",
                  .title = "Remove the last token",
                  .menu = "Edit",
                  .group = 2,
                  .why_not = unless([](const Situation& now) { return now.pending.model.n_tokens() > 1; },
                                    "it is the only one"),
                  .command = [](const Situation& now) {
                    return edit(editing::RemoveToken{now.pending.model.n_tokens() - 1});
                  }});
}

void add_numbers(Rows& rows) {
  rows.push_back({.id = "edit/by_keyboard",
                  .title = "Edit the matrix by keyboard",
                  .menu = "Edit",
                  .group = 3,
                  .keys = {plain(Key::e)},
                  .command = always(set<&Selection::cursor>(EditCursor{0, 0, true}))});
}

/// Adds the actions that override or initialize numbers of the model.
void add_numbers_of_model(Rows& rows) {
  rows.push_back({.id = "edit/type_over",
                  .title = "Override the pinned value",
                  .menu = "Model",
                  .group = 3,
                  .keys = {plain(Key::n)},
                  .why_not = [](const Situation& now) -> std::string {
                    if (!now.displayed.selection.pinned) return "no cell is pinned";
                    return can_be_typed_over(now.displayed.selection.pinned->stage)
                               ? ""
                               : "values of this stage cannot be overridden";
                  },
                  .command = always(set<&Forms::typed>(Typed{"inspector/typed", "", true, true}))});
  rows.push_back(
      {.id = "edit/give",
       .title = "Override stage…",
       .menu = "Model",
       .group = 3,
       .about = "Replaces the computed numbers by pasted ones or those of a file, or computes them again",
       .keys = {plain(Key::i)},
       .sheet = "Override a stage, or compute it again",
       .command = [](const Situation& now) {
         const auto& pinned = now.displayed.selection.pinned;
         const bool can = pinned && core::attention::can_be_given(pinned->stage);
         return Asked{set<&Forms::given_stage>(can ? pinned->stage : now.forms.given_stage),
                      ShowDialog{Dialog::give}};
       }});
  rows.push_back({.id = "edit/draw_model",
                  .title = "Initialize from seed…",
                  .menu = "Model",
                  .group = 0,
                  .command = [](const Situation& now) {
                    const auto like = editing::draw_like(now.pending.model);
                    editing::ModelDraw draw = now.forms.draw.draw;
                    draw.bias = like.bias, draw.output = like.output;
                    return Asked{set<&DrawForm::draw>(std::move(draw)), ShowDialog{Dialog::draw_model}};
                  }});
}

}  // namespace

std::vector<Action> of_edit(const Situation& s) {
  Rows rows;
  add_steps(rows, s);
  add_copying(rows, s, "Edit/Copy as");
  add_tokens(rows);
  add_numbers(rows);
  add_editor_keys(rows);
  return rows;
}

std::vector<Action> of_model(const Situation& s) {
  Rows rows;
  add_numbers_of_model(rows);
  add_switches(rows, s);
  add_mistakes(rows, s);
  add_whole_model(rows, s);
  return rows;
}

namespace {

namespace editing = core::editing;
using core::mistakes::Mistake;

bool is_hidden(const Situation& s) {
  const auto edit = mask_switch(s.displayed.selection.pinned, s.displayed.trace);
  return edit && edit->visible;
}

std::string why_not_mistaken(const Mistake& mistake, const Situation& s) {
  if (!is_made(mistake, s.pending.model))
    return core::mistakes::applies(mistake, s.pending.model) ? "" : "it would change nothing in this model";
  return can_be_mended(mistake) ? "" : "the numbers that it replaced are gone";
}

}  // namespace

void add_switches(Rows& rows, const Situation& s) {
  rows.push_back(
      {.id = "model/causal",
       .title = "Causal mask",
       .menu = "Model",
       .group = 2,
       .about = "No query attends to a later token",
       .keys = {plain(Key::c)},
       .sheet = "Causal mask on or off",
       .command =
           [](const Situation& now) { return edit(editing::SetCausal{!now.pending.model.mask.causal}); },
       .checked = [](const Situation& now) { return now.pending.model.mask.causal; }});
  rows.push_back({.id = "model/cell",
                  .title = "Mask the pinned position",
                  .menu = "Model",
                  .group = 2,
                  .about = "Its query does not attend to its key",
                  .keys = {plain(Key::m)},
                  .sheet = "Mask or unmask the pinned position",
                  .why_not = unless(
                      [](const Situation& now) {
                        return mask_switch(now.displayed.selection.pinned, now.displayed.trace).has_value();
                      },
                      "no position of two tokens is pinned"),
                  .command =
                      [](const Situation& now) {
                        return edit(*mask_switch(now.displayed.selection.pinned, now.displayed.trace));
                      },
                  .checked = is_hidden});
  rows.push_back(
      {.id = "model/head",
       .title = "Head " + std::to_string(s.displayed.look.head) + " enabled",
       .menu = "Model",
       .group = 2,
       .about = "An ablated head contributes zeros to the output",
       .keys = {plain(Key::h)},
       .sheet = "Ablate or enable the selected head",
       .command =
           [](const Situation& now) {
             return edit(editing::SwitchHead{now.displayed.look.head,
                                             now.pending.model.is_off(now.displayed.look.head)});
           },
       .checked = [](const Situation& now) { return !now.pending.model.is_off(now.displayed.look.head); }});
  rows.push_back({.id = "model/training",
                  .title = "Dropout (training mode)",
                  .menu = "Model",
                  .group = 1,
                  .about = "In evaluation mode no weight is dropped",
                  .keys = {plain(Key::d)},
                  .sheet = "Dropout: training or evaluation mode",
                  .command =
                      [](const Situation& now) {
                        return edit(editing::SetTraining{!now.pending.model.dropout.training});
                      },
                  .checked = [](const Situation& now) { return now.pending.model.dropout.training; }});
  rows.push_back({.id = "model/draw_mask",
                  .title = "Resample the dropout mask",
                  .menu = "Model",
                  .group = 1,
                  .about = "Uses the next seed",
                  .keys = {plain(Key::space)},
                  .here =
                      [](const Pending& view) {
                        return view.look.tab == Tab::laboratory && !view.selection.presenting.on;
                      },
                  .sheet = "In the dropout laboratory: resample",
                  .command =
                      [](const Situation& now) {
                        return edit(editing::SetDropoutSeed{now.pending.model.dropout.seed + 1});
                      }});
}

void add_mistakes(Rows& rows, const Situation& s) {
  for (const Mistake& mistake : core::mistakes::mistakes()) {
    if (!core::mistakes::concerns(mistake, s.pending.model)) continue;
    rows.push_back(
        {.id = std::string("mistake/") + mistake.name,
         .title = mistake.title,
         .menu = "Model/Inject a bug",
         .group = 4,
         .about = mistake.about,
         .why_not = [&mistake](const Situation& now) { return why_not_mistaken(mistake, now); },
         .command =
             [&mistake](const Situation& now) {
               return edit(editing::SwitchMistake{mistake.name, !is_made(mistake, now.pending.model)});
             },
         .checked = [&mistake](const Situation& now) { return is_made(mistake, now.pending.model); }});
  }
}

std::vector<Action> of_compare(const Situation&) {
  Rows rows;
  rows.push_back({.id = "compare/keep",
                  .title = "Snapshot as A",
                  .menu = "Compare",
                  .group = 0,
                  .about = "Keeps the model as it is now, to compare later edits with",
                  .keys = {plain(Key::k)},
                  .sheet = "Take a snapshot as A",
                  .command = always(KeepReference{})});
  const auto switches = core::compare::switches();
  for (std::size_t k = 0; k < switches.size(); ++k)
    rows.push_back({.id = std::string("compare/") + switches[k].name,
                    .title = switches[k].title,
                    .menu = "Compare/Experiments",
                    .group = 5,
                    .about = switches[k].about,
                    .command = always(KeepSwitched{k})});
  rows.push_back({.id = "compare/open",
                  .title = "Open session as A…",
                  .menu = "Compare",
                  .group = 0,
                  .about = "The model that you edit stays as it is",
                  .command = shows(Dialog::open_reference)});
  rows.push_back({.id = "compare/hold",
                  .title = "Show A in place of B in every view",
                  .keys = {plain(Key::space)},
                  .here =
                      [](const Pending& view) {
                        return view.look.tab != Tab::laboratory && !view.selection.cursor &&
                               !view.selection.presenting.on;
                      },
                  .written = "hold Space"});
  rows.push_back({.id = "file/check_tensors",
                  .title = "Check tensors…",
                  .menu = "Compare",
                  .group = 1,
                  .about = "Compares your tensors with the model: the first stage that differs, and why",
                  .keys = {ctrl(Key::k)},
                  .sheet = "Check your tensors against the model",
                  .command = shows(Dialog::open_tensors)});
  return rows;
}

void add_editor_keys(Rows& rows) {
  const auto key = [&](const char* id, const char* title, std::vector<KeyPress> keys,
                       const char* written = "") {
    rows.push_back(
        {.id = id, .title = title, .keys = std::move(keys), .here = in_editor, .written = written});
  };
  key("editor/walk", "In the matrix: move from number to number",
      {plain(Key::up), plain(Key::down), plain(Key::home), plain(Key::end), plain(Key::page_up),
       plain(Key::page_down)},
      "arrows, Home, End, Page");
  rows.push_back({.id = "editor/across",
                  .title = "In the matrix: move from number to number",
                  .keys = {plain(Key::left), plain(Key::right)},
                  .here = [](const Pending& view) { return in_editor(view) && !view.selection.lesson; },
                  .written = "arrows, Home, End, Page"});
  std::vector<KeyPress> begins{plain(Key::enter), plain(Key::minus), plain(Key::plus)};
  for (int digit = 0; digit < 10; ++digit)
    begins.push_back(plain(static_cast<Key>(static_cast<int>(Key::digit_0) + digit)));
  key("editor/type", "In the matrix: type a number", std::move(begins), "digits, Enter");
  key("editor/next", "In the matrix: the next number", {plain(Key::tab)});
  key("editor/zero", "In the matrix: set to 0", {plain(Key::delete_), plain(Key::backspace)});
  key("editor/paste", "In the matrix: paste a block of numbers", {ctrl(Key::v)});
}

namespace {

constexpr std::size_t most_digits = 9;

std::string nowhere(const Situation& s) {
  return s.displayed.look.tab == Tab::tokens ? "" : "only in Tokens";
}
bool in_matrices(const Pending& view) {
  return view.look.tab != Tab::tokens && !view.selection.cursor;
}
bool outside_tokens(const Pending& view) {
  return view.look.tab != Tab::tokens;
}
bool anywhere_in_tokens(const Pending& view) {
  return view.look.tab == Tab::tokens;
}

std::vector<KeyPress> digit_of(std::size_t head) {
  if (head >= most_digits) return {};
  return {plain(static_cast<Key>(static_cast<std::size_t>(Key::digit_1) + head))};
}

/// Returns the why_not of the head before (−1) or after (+1) the selected one.
std::function<std::string(const Situation&)> beyond(int by) {
  return [by](const Situation& s) -> std::string {
    if (by < 0) return s.pending.look.head > 0 ? "" : "this is the first head";
    return s.pending.look.head + 1 < s.pending.model.n_heads ? "" : "this is the last head";
  };
}
std::size_t neighbour(const Situation& s, int by) {
  return by < 0 ? s.pending.look.head - 1 : s.pending.look.head + 1;
}

Asked show_alone(std::size_t head, std::size_t n_heads) {
  std::set<std::size_t> silent;
  for (std::size_t h = 0; h < n_heads; ++h)
    if (h != head) silent.insert(h);
  return Asked{set<&Look::head>(head), set<&TokensLook::silent_heads>(std::move(silent))};
}

void add_shown_head(Rows& rows, const Situation& s) {
  for (std::size_t h = 0; h < s.pending.model.n_heads; ++h)
    rows.push_back({.id = "head/" + std::to_string(h),
                    .title = std::to_string(h),
                    .menu = "View/Heads/Head",
                    .group = 3,
                    .keys = digit_of(h),
                    .here = in_matrices,
                    .sheet = "Select head 0 … 8",
                    .written = h < most_digits ? "1 … 9" : "",
                    .command = always(set<&Look::head>(h)),
                    .checked = [h](const Situation& now) { return now.pending.look.head == h; }});
  for (const int by : {-1, 1})
    rows.push_back(
        {.id = by < 0 ? "head/previous" : "head/next",
         .title = by < 0 ? "Previous" : "Next",
         .menu = "View/Heads/Head",
         .group = 3,
         .part = 1,
         .keys = {plain(by < 0 ? Key::bracket_left : Key::bracket_right)},
         .here = outside_tokens,
         .sheet = "Previous, next head",
         .why_not = beyond(by),
         .command = [by](const Situation& now) { return Asked{set<&Look::head>(neighbour(now, by))}; }});
}

void add_lines(Rows& rows, const Situation& s) {
  for (std::size_t h = 0; h < s.pending.model.n_heads; ++h)
    rows.push_back(
        {.id = "lines/" + std::to_string(h),
         .title = "Head " + std::to_string(h),
         .menu = "View/Heads/Lines in Tokens",
         .group = 3,
         .keys = digit_of(h),
         .here = in_tokens,
         .sheet = "In Tokens: show or hide the lines of that head",
         .written = h < most_digits ? "1 … 9" : "",
         .why_not = nowhere,
         .command =
             [h](const Situation& now) {
               std::set<std::size_t> silent = now.pending.look.tokens.silent_heads;
               if (silent.erase(h) == 0) silent.insert(h);
               return Asked{set<&TokensLook::silent_heads>(std::move(silent))};
             },
         .checked =
             [h](const Situation& now) { return !now.displayed.look.tokens.silent_heads.contains(h); }});
  for (const int by : {-1, 1})
    rows.push_back({.id = by < 0 ? "lines/previous" : "lines/next",
                    .title = by < 0 ? "Previous head alone" : "Next head alone",
                    .menu = "View/Heads/Lines in Tokens",
                    .group = 3,
                    .part = 1,
                    .keys = {plain(by < 0 ? Key::bracket_left : Key::bracket_right)},
                    .here = anywhere_in_tokens,
                    .sheet = "In Tokens: previous, next head alone",
                    .why_not =
                        [by](const Situation& now) {
                          const std::string why = nowhere(now);
                          return why.empty() ? beyond(by)(now) : why;
                        },
                    .command =
                        [by](const Situation& now) {
                          return show_alone(neighbour(now, by), now.pending.model.n_heads);
                        }});
}

void add_order(Rows& rows) {
  using core::attention::HeadFigure;
  const auto row = [&](const std::string& name, const char* title, std::optional<HeadFigure> order) {
    rows.push_back(
        {.id = "heads_by/" + name,
         .title = title,
         .menu = "View/Heads/Sort by",
         .group = 3,
         .command = always(set<&Look::heads_order>(order), set<&Look::tab>(Tab::heads)),
         .checked = [order](const Situation& now) { return now.displayed.look.heads_order == order; }});
  };
  row("number", "number", std::nullopt);
  for (const auto& figure : core::attention::head_figures()) row(figure.name, figure.title, figure.figure);
}

}  // namespace

void add_heads(Rows& rows, const Situation& s) {
  add_shown_head(rows, s);
  add_lines(rows, s);
  add_order(rows);
}

}  // namespace app::rows
