#include "app/session/exporting.hpp"

#include <fmt/core.h>
#include <algorithm>
#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "core/base/number.hpp"
#include "core/editing/draw.hpp"
#include "core/graph/compare.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/stages.hpp"

namespace app::rows {

namespace {

namespace editing = core::editing;

std::string undo_title(const char* verb, const std::string& words) {
  return words.empty() ? verb : verb + (" " + words);
}

void add_undo_actions(ActionRows& rows, const ActionContext& s) {
  add(rows, "edit/undo", undo_title("Undo", s.document.steps.undo_words), "Edit")
      .keys(ctrl(Key::z))
      .sheet_text("Undo")
      .disabled_reason([](const ActionContext& now) {
        return now.document.steps.can_undo ? "" : nothing_to_undo(now.document.steps);
      })
      .does(Undo{});
  add(rows, "edit/redo", undo_title("Redo", s.document.steps.redo_words), "Edit")
      .keys(ctrl(Key::y), ctrl_shift(Key::z))
      .sheet_text("Redo")
      .only_if([](const ActionContext& now) { return now.document.steps.can_redo; },
               "there is nothing to redo")
      .does(Redo{});
  add(rows, "edit/copy", "Copy", "Edit", 1)
      .keys(ctrl(Key::c))
      .sheet_text("Copy the selected number in full")
      .only_if([](const ActionContext& now) { return number_to_copy(now).has_value(); },
               "no number is selected")
      .command([](const ActionContext& now) { return CopyText{*number_to_copy(now)}; });
}

void add_token_actions(ActionRows& rows) {
  add(rows, "edit/sentence", "Type a sentence…", "Edit", 2).command([](const ActionContext& now) {
    const bool words = now.forms.sentence.rule == core::text::TokenRule::words;
    const auto& tokens = now.displayed.sequence().tokens;
    return CommandList{set<&SentenceDraft::text>(core::text::joined(tokens, words ? " " : "")),
                       ShowDialog{Dialog::sentence}};
  });
  add(rows, "edit/add_token", "Add a token", "Edit", 2).command([](const ActionContext& now) {
    const std::size_t n = now.pending.model.n_tokens();
    return edit(editing::InsertToken{n, std::to_string(n)});
  });
  add(rows, "edit/remove_token", "Remove the last token", "Edit", 2)
      .only_if([](const ActionContext& now) { return now.pending.model.n_tokens() > 1; },
               "it is the only one")
      .command([](const ActionContext& now) {
        return edit(editing::RemoveToken{now.pending.model.n_tokens() - 1});
      });
}

void add_matrix_editing(ActionRows& rows, const ActionContext& s) {
  for (const editing::MatrixName name : editable_matrices) {
    const auto place = matrix_ref(s.pending.model, name, s.pending.look.sequence, s.pending.look.head);
    if (!find_matrix(s.pending.model, place)) continue;
    add(rows, std::string("edit/matrix/") + symbol(name), std::string("Edit ") + symbol(name), "Edit/Matrix",
        3)
        .does(MoveEditCursor{name, 0, 0});
  }
  add(rows, "edit/by_keyboard", "Edit the matrix by keyboard", "Edit", 3)
      .keys(plain(Key::e))
      .command([](const ActionContext& now) {
        return MoveEditCursor{now.pending.look.edited.name, 0, 0};
      });
}

/// Adds the actions that override or initialize numbers of the model.
void add_override_actions(ActionRows& rows) {
  add(rows, "edit/type_over", "Override the pinned value", "Model", 3)
      .keys(plain(Key::n))
      .disabled_reason([](const ActionContext& now) -> std::string {
        if (!now.displayed.selection.pinned) return "no cell is pinned";
        return can_be_overridden(now.displayed.selection.pinned->stage)
                   ? ""
                   : "values of this stage cannot be overridden";
      })
      .does(set<&Forms::typed>(TypedField{"inspector/typed", "", true, true}));
  add(rows, "edit/give", "Override stage…", "Model", 3)
      .about("Replaces the computed numbers by pasted ones or those of a file, or computes them again")
      .keys(plain(Key::i))
      .sheet_text("Override a stage, or compute it again")
      .command([](const ActionContext& now) {
        const auto& pinned = now.displayed.selection.pinned;
        const bool can = pinned && core::attention::can_be_given(pinned->stage);
        return CommandList{set<&Forms::overridden_stage>(can ? pinned->stage : now.forms.overridden_stage),
                           ShowDialog{Dialog::override_stage}};
      });
  add(rows, "edit/draw_model", "Initialize from seed…", "Model", 0).command([](const ActionContext& now) {
    const auto like = editing::matching_init(now.pending.model);
    editing::ModelInit draw = now.forms.draw.draw;
    draw.bias = like.bias, draw.output = like.output;
    return CommandList{set<&DrawForm::draw>(std::move(draw)), ShowDialog{Dialog::draw_model}};
  });
}

namespace editing = core::editing;
using core::bugs::Bug;

bool is_masked(const ActionContext& s) {
  const auto edit = mask_switch(s.displayed.selection.pinned, s.displayed.trace);
  return edit && edit->visible;
}

std::string injection_disabled_reason(const Bug& bug, const ActionContext& s) {
  if (!is_injected(bug, s.pending.model))
    return core::bugs::has_effect(bug, s.pending.model) ? "" : "it would change nothing in this model";
  return is_fixable(bug) ? "" : "the numbers that it replaced are gone";
}

}  // namespace

std::vector<Action> edit_actions(const ActionContext& s) {
  ActionRows rows;
  add_undo_actions(rows, s);
  add_copy_actions(rows, s, "Edit/Copy as");
  add_token_actions(rows);
  add_matrix_editing(rows, s);
  add_editor_keys(rows);
  return rows;
}

std::vector<Action> model_actions(const ActionContext& s) {
  ActionRows rows;
  add_override_actions(rows);
  add_model_toggles(rows, s);
  add_mistakes(rows, s);
  add_full_model(rows, s);
  return rows;
}

void add_model_toggles(ActionRows& rows, const ActionContext& s) {
  add(rows, "model/causal", "Causal mask", "Model", 2)
      .about("No query attends to a later token")
      .keys(plain(Key::c))
      .sheet_text("Causal mask on or off")
      .command(
          [](const ActionContext& now) { return edit(editing::SetCausal{!now.pending.model.mask.causal}); })
      .checked([](const ActionContext& now) { return now.pending.model.mask.causal; });
  add(rows, "model/cell", "Mask the pinned position", "Model", 2)
      .about("Its query does not attend to its key")
      .keys(plain(Key::m))
      .sheet_text("Mask or unmask the pinned position")
      .only_if(
          [](const ActionContext& now) {
            return mask_switch(now.displayed.selection.pinned, now.displayed.trace).has_value();
          },
          "no position of two tokens is pinned")
      .command([](const ActionContext& now) {
        return edit(*mask_switch(now.displayed.selection.pinned, now.displayed.trace));
      })
      .checked(is_masked);
  add(rows, "model/head", fmt::format("Head {} enabled", s.displayed.look.head), "Model", 2)
      .about("An ablated head contributes zeros to the output")
      .keys(plain(Key::h))
      .sheet_text("Ablate or enable the selected head")
      .command([](const ActionContext& now) {
        return edit(editing::ToggleHead{now.displayed.look.head,
                                        now.pending.model.is_ablated(now.displayed.look.head)});
      })
      .checked(
          [](const ActionContext& now) { return !now.pending.model.is_ablated(now.displayed.look.head); });
  add(rows, "model/training", "Dropout (training mode)", "Model", 1)
      .about("In evaluation mode no weight is dropped")
      .keys(plain(Key::d))
      .sheet_text("Dropout: training or evaluation mode")
      .command([](const ActionContext& now) {
        const auto& dropout = now.pending.model.dropout;
        CommandList commands = edit(editing::SetTraining{!dropout.training});
        if (dropout.rate == 0)
          commands.push_back(
              ShowMessage{"The dropout rate is 0, so training mode drops no weight: Model, Dropout rate"});
        return commands;
      })
      .checked([](const ActionContext& now) { return now.pending.model.dropout.training; });
  for (const double rate : {0.0, 0.1, 0.2, 0.5})
    add(rows, "model/dropout/" + core::text::number_text(rate),
        "Dropout rate " + core::text::number_text(rate), "Model/Dropout rate", 1)
        .does(EndGesture{}, ApplyEdit{editing::SetDropoutRate{rate}}, EndGesture{})
        .checked([rate](const ActionContext& now) { return now.pending.model.dropout.rate == rate; });
  add(rows, "model/draw_mask", "Resample the dropout mask", "Model", 1)
      .about("Uses the next seed")
      .keys(plain(Key::space))
      .keys_apply([](const Pending& view) {
        return view.look.tab == Tab::laboratory && !view.selection.presentation.on;
      })
      .sheet_text("In the dropout laboratory: resample")
      .command([](const ActionContext& now) {
        return edit(editing::SetDropoutSeed{now.pending.model.dropout.seed + 1});
      });
}

void add_mistakes(ActionRows& rows, const ActionContext& s) {
  std::vector<const Bug*> bugs;
  for (const Bug* bug : core::bugs::offered_bugs())
    if (core::bugs::is_relevant(*bug, s.pending.model)) bugs.push_back(bug);
  std::ranges::stable_sort(bugs, {}, [](const Bug* bug) { return bug->texts.first; });
  for (const Bug* bug : bugs) {
    add(rows, std::string("mistake/") + bug->name, bug->texts.title,
        std::string("Model/Inject a bug/") + core::attention::info(bug->texts.first).title, 4)
        .about(bug->texts.about)
        .section(core::attention::info(bug->texts.first).title)
        .disabled_reason([bug](const ActionContext& now) { return injection_disabled_reason(*bug, now); })
        .command([bug](const ActionContext& now) {
          return edit(editing::SwitchMistake{bug->name, !is_injected(*bug, now.pending.model)});
        })
        .checked([bug](const ActionContext& now) { return is_injected(*bug, now.pending.model); });
  }
}

std::vector<Action> compare_actions(const ActionContext&) {
  ActionRows rows;
  add(rows, "compare/keep", "Snapshot as A", "Compare", 0)
      .about("Keeps the model as it is now, to compare later edits with")
      .keys(plain(Key::k))
      .keys_apply([](const Pending& view) { return view.look.tab != Tab::learn; })
      .sheet_text("Take a snapshot as A")
      .does(AddReference{});
  const auto switches = core::compare::switches();
  for (std::size_t k = 0; k < switches.size(); ++k)
    add(rows, std::string("compare/") + switches[k].name, switches[k].title, "Compare/Experiments", 5)
        .about(switches[k].about)
        .does(AddFlippedReference{k});
  add(rows, "compare/open", "Open session as A…", "Compare", 0)
      .about("The model that you edit stays as it is")
      .does(ShowDialog{Dialog::open_reference});
  add(rows, "compare/hold", "Show A in place of B in every view", "")
      .keys(plain(Key::space))
      .keys_apply([](const Pending& view) {
        return view.look.tab != Tab::laboratory && view.look.tab != Tab::learn && !view.selection.cursor &&
               !view.selection.presentation.on;
      })
      .key_text("hold Space");
  add(rows, "file/check_tensors", "Check tensors…", "Compare", 1)
      .about("Compares your tensors with the model: the first stage that differs, and why")
      .keys(ctrl(Key::k))
      .sheet_text("Check your tensors against the model")
      .does(ShowDialog{Dialog::open_tensors});
  return rows;
}

void add_editor_keys(ActionRows& rows) {
  constexpr const char *section = "In the matrix", *walk = "Move from number to number";
  const auto key = [&](const char* id, const char* title, std::vector<KeyPress> keys,
                       const char* key_text = "") {
    add(rows, id, title, "").section(section).keys(std::move(keys)).keys_apply(in_editor).key_text(key_text);
  };
  key("editor/walk", walk,
      {plain(Key::up), plain(Key::down), plain(Key::home), plain(Key::end), plain(Key::page_up),
       plain(Key::page_down)},
      "arrows, Home, End, Page");
  add(rows, "editor/across", walk, "")
      .section(section)
      .keys(plain(Key::left), plain(Key::right))
      .keys_apply([](const Pending& view) { return in_editor(view) && !view.selection.lesson; })
      .key_text("arrows, Home, End, Page");
  std::vector<KeyPress> begins{plain(Key::enter), plain(Key::minus), plain(Key::plus)};
  for (int digit = 0; digit < 10; ++digit)
    begins.push_back(plain(static_cast<Key>(static_cast<int>(Key::digit_0) + digit)));
  key("editor/type", "Type a number", std::move(begins), "digits, Enter");
  key("editor/next", "The next number", {plain(Key::tab)});
  key("editor/zero", "Set to 0", {plain(Key::delete_), plain(Key::backspace)});
  key("editor/paste", "Paste a block of numbers", {ctrl(Key::v)});
}

namespace {

constexpr std::size_t n_digit_keys = 9;

std::string lines_disabled_reason(const ActionContext& s) {
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

std::vector<KeyPress> digit_keys(std::size_t head) {
  if (head >= n_digit_keys) return {};
  return {plain(static_cast<Key>(static_cast<std::size_t>(Key::digit_1) + head))};
}

/// Returns the disabled_reason of the head before (−1) or after (+1) the selected one.
std::function<std::string(const ActionContext&)> head_step_disabled_reason(int by) {
  return [by](const ActionContext& s) -> std::string {
    if (by < 0) return s.pending.look.head > 0 ? "" : "this is the first head";
    return s.pending.look.head + 1 < s.pending.model.n_heads ? "" : "this is the last head";
  };
}
std::size_t neighbor_head(const ActionContext& s, int by) {
  return by < 0 ? s.pending.look.head - 1 : s.pending.look.head + 1;
}

CommandList show_alone(std::size_t head, std::size_t n_heads) {
  std::set<std::size_t> silent;
  for (std::size_t h = 0; h < n_heads; ++h)
    if (h != head) silent.insert(h);
  return CommandList{set<&Look::head>(head), set<&TokensLook::silent_heads>(std::move(silent))};
}

void add_shown_head(ActionRows& rows, const ActionContext& s) {
  for (std::size_t h = 0; h < s.pending.model.n_heads; ++h)
    add(rows, "head/" + std::to_string(h), std::to_string(h), "View/Heads/Head", 3)
        .keys(digit_keys(h))
        .keys_apply(in_matrices)
        .sheet_text("Select head 0 … 8")
        .key_text(h < n_digit_keys ? "1 … 9" : "")
        .does(set<&Look::head>(h))
        .checked([h](const ActionContext& now) { return now.pending.look.head == h; });
  for (const int by : {-1, 1})
    add(rows, by < 0 ? "head/previous" : "head/next", by < 0 ? "Previous" : "Next", "View/Heads/Head", 3, 1)
        .keys(plain(by < 0 ? Key::bracket_left : Key::bracket_right))
        .keys_apply(outside_tokens)
        .sheet_text("Previous, next head")
        .disabled_reason(head_step_disabled_reason(by))
        .command([by](const ActionContext& now) { return set<&Look::head>(neighbor_head(now, by)); });
}

void add_lines(ActionRows& rows, const ActionContext& s) {
  for (std::size_t h = 0; h < s.pending.model.n_heads; ++h)
    add(rows, "lines/" + std::to_string(h), "Head " + std::to_string(h), "View/Heads/Lines in Tokens", 3)
        .keys(digit_keys(h))
        .keys_apply(in_tokens)
        .sheet_text("In Tokens: show or hide the lines of that head")
        .key_text(h < n_digit_keys ? "1 … 9" : "")
        .disabled_reason(lines_disabled_reason)
        .command([h](const ActionContext& now) {
          std::set<std::size_t> silent = now.pending.look.tokens.silent_heads;
          if (silent.erase(h) == 0) silent.insert(h);
          return set<&TokensLook::silent_heads>(std::move(silent));
        })
        .checked(
            [h](const ActionContext& now) { return !now.displayed.look.tokens.silent_heads.contains(h); });
  for (const int by : {-1, 1})
    add(rows, by < 0 ? "lines/previous" : "lines/next", by < 0 ? "Previous head alone" : "Next head alone",
        "View/Heads/Lines in Tokens", 3, 1)
        .keys(plain(by < 0 ? Key::bracket_left : Key::bracket_right))
        .keys_apply(anywhere_in_tokens)
        .sheet_text("In Tokens: previous, next head alone")
        .disabled_reason([by](const ActionContext& now) {
          const std::string why = lines_disabled_reason(now);
          return why.empty() ? head_step_disabled_reason(by)(now) : why;
        })
        .command([by](const ActionContext& now) {
          return show_alone(neighbor_head(now, by), now.pending.model.n_heads);
        });
}

void add_order(ActionRows& rows) {
  using core::attention::HeadMetric;
  const auto row = [&](const std::string& name, const char* title, std::optional<HeadMetric> order) {
    add(rows, "heads_by/" + name, title, "View/Heads/Sort by", 3)
        .does(set<&Look::heads_order>(order), set<&Look::tab>(Tab::heads))
        .checked([order](const ActionContext& now) { return now.displayed.look.heads_order == order; });
  };
  row("number", "index", std::nullopt);
  for (const auto& figure : core::attention::head_metrics()) row(figure.name, figure.title, figure.figure);
}

}  // namespace

void add_heads(ActionRows& rows, const ActionContext& s) {
  add_shown_head(rows, s);
  add_lines(rows, s);
  add_order(rows);
}

}  // namespace app::rows
