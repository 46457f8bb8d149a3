#include "app/shortcuts.hpp"

#include <algorithm>
#include <array>

#include "app/copying.hpp"
#include "app/pinning.hpp"
#include "app/zoom.hpp"
#include "core/editing/presets.hpp"
#include "core/formats/number.hpp"

namespace app {
namespace {

using Answer = std::optional<Command>;
namespace editing = core::editing;

Answer new_document(const Situation&) {
  return LoadPreset{editing::default_preset().name};
}
Answer open(const Situation&) {
  return ShowDialog{Dialog::open};
}
Answer save(const Situation&) {
  return SaveFile{};
}
Answer save_as(const Situation&) {
  return ShowDialog{Dialog::save_as};
}
Answer export_files(const Situation&) {
  return ShowDialog{Dialog::export_files};
}
Answer quit(const Situation&) {
  return Quit{};
}
Answer undo(const Situation& s) {
  return s.document.can_undo ? Answer(Undo{}) : std::nullopt;
}
Answer redo(const Situation& s) {
  return s.document.can_redo ? Answer(Redo{}) : std::nullopt;
}
Answer keys(const Situation&) {
  return ShowDialog{Dialog::keys};
}

Answer copy(const Situation& s) {
  const auto text = copied_text(s);
  return text ? Answer(CopyText{*text}) : std::nullopt;
}

Answer copy_again(const Situation& s) {
  return CopyText{copied_as(s, copy_source(s), s.view.copy)};
}

Answer choose_head(const Situation& s, std::size_t head) {
  if (head >= s.newest.model.n_heads) return std::nullopt;
  return ChangeView{[head](View& view) { view.head = head; }};
}
/// In the token view a digit switches the lines of its head.
Answer switch_head(const Situation& s, std::size_t head) {
  if (head >= s.newest.model.n_heads) return std::nullopt;
  return ChangeView{[head](View& view) {
    if (view.tokens.silent_heads.erase(head) == 0) view.tokens.silent_heads.insert(head);
  }};
}
/// In the token view the brackets show one head alone.
Answer show_alone(const Situation& s, std::size_t head) {
  if (head >= s.newest.model.n_heads) return std::nullopt;
  return ChangeView{[head, n = s.newest.model.n_heads](View& view) {
    view.head = head;
    for (std::size_t h = 0; h < n; ++h) view.tokens.silent_heads.insert(h);
    view.tokens.silent_heads.erase(head);
  }};
}
template <std::size_t head>
Answer head_number(const Situation& s) {
  return s.view.tab == Tab::tokens ? switch_head(s, head) : choose_head(s, head);
}
Answer go_to_head(const Situation& s, std::size_t head) {
  return s.view.tab == Tab::tokens ? show_alone(s, head) : choose_head(s, head);
}
Answer previous_head(const Situation& s) {
  const std::size_t head = s.newest.view.head;
  return head > 0 ? go_to_head(s, head - 1) : std::nullopt;
}
Answer next_head(const Situation& s) {
  return go_to_head(s, s.newest.view.head + 1);
}

/// In the token view, from the pinned query to the one above or below; the first press pins an end.
Answer move_query(const Situation& s, bool down) {
  const View& v = s.newest.view;
  if (v.tab != Tab::tokens || v.cursor) return std::nullopt;
  const std::size_t last = s.newest.model.n_tokens() - 1;
  const auto& pinned = v.tokens.pinned_query;
  const std::size_t next = !pinned ? (down ? 0 : last) : down ? std::min(*pinned + 1, last) : *pinned - (*pinned > 0);
  return ChangeView{[next](View& view) {
    view.tokens.pinned_query = next;
    view.tokens.comes_into_view = true;
  }};
}
Answer query_above(const Situation& s) { return move_query(s, false); }
Answer query_below(const Situation& s) { return move_query(s, true); }

Answer causal(const Situation& s) {
  return ApplyEdit{editing::SetCausal{!s.newest.model.mask.causal}};
}
/// Hides the pinned cell from its query, or shows it again.
Answer switch_cell(const Situation& s) {
  const auto edit = mask_switch(s.view.pinned, s.trace);
  return edit ? Answer(ApplyEdit{*edit}) : std::nullopt;
}
Answer give(const Situation& s) {
  const bool can = s.view.pinned && core::attention::can_be_given(s.view.pinned->stage);
  return ChangeView{[stage = can ? s.view.pinned->stage : s.view.given_stage](View& view) {
    view.given_stage = stage;
    view.dialog = Dialog::give;
  }};
}
/// Asks for a number to type over the pinned cell.
Answer type_over(const Situation& s) {
  if (!s.view.pinned || !can_be_typed_over(s.view.pinned->stage)) return std::nullopt;
  return ChangeView{[](View& view) { view.typed = Typed{"inspector/typed", "", true, true}; }};
}
Answer head_on_or_off(const Situation& s) {
  const std::size_t head = s.newest.view.head;
  return ApplyEdit{editing::SwitchHead{head, s.newest.model.is_off(head)}};
}
Answer training(const Situation& s) {
  return ApplyEdit{editing::SetTraining{!s.newest.model.dropout.training}};
}
Answer keep_reference(const Situation&) {
  return KeepReference{};
}
Answer check_tensors(const Situation&) {
  return ShowDialog{Dialog::open_tensors};
}
Answer theme(const Situation&) {
  return ChangeView{[](View& view) { view.dark = !view.dark; }};
}
/// Fewer or more cells around the pinned one, or around the middle; of token × token matrices when nothing is pinned.
Answer zoom_by(const Situation& s, double factor) {
  const auto& stage = core::attention::info(s.view.pinned ? s.view.pinned->stage : Stage::weights);
  const core::attention::StageMatrix& numbers = stage.matrix(s.trace, s.view.head);
  const Shape shape{numbers.n_rows(), numbers.n_cols()};
  const CellWindow part = shown_part(s.view, shape);
  const double row = s.view.pinned ? static_cast<double>(s.view.pinned->row) + 0.5 : (part.top + part.bottom) / 2;
  const double column =
      s.view.pinned ? static_cast<double>(s.view.pinned->column) + 0.5 : (part.left + part.right) / 2;
  return ChangeView{[=](View& view) { zoom(view, shape, row, column, factor); }};
}
Answer zoom_in(const Situation& s) { return zoom_by(s, 1 / 1.5); }
Answer zoom_out(const Situation& s) { return zoom_by(s, 1.5); }
Answer fit(const Situation& s) {
  if (s.view.zoomed.empty()) return std::nullopt;
  return ChangeView{[](View& view) { view.zoomed.clear(); }};
}
/// The stage that the keyboard is at: the pinned one, else the one that is looked at.
Stage stage_at_hand(const Situation& s) {
  if (s.view.pinned) return s.view.pinned->stage;
  if (s.view.tab == Tab::heads) return s.view.heads_stage;
  return s.view.large.value_or(Stage::weights);
}
/// Pins the neighbour of the pinned cell; with nothing pinned the first cell.
Answer move_cell(const Situation& s, int down, int right) {
  if (s.newest.view.cursor) return std::nullopt;
  const auto& stage = core::attention::info(stage_at_hand(s));
  const core::attention::StageMatrix& numbers = stage.matrix(s.trace, s.view.head);
  CellRef cell{stage.stage, stage.per_head ? s.view.head : 0, 0, 0};
  const auto moved = [](std::size_t from, int by, std::size_t count) {
    return by < 0 ? from - (from > 0) : by > 0 ? std::min<std::size_t>(from + 1, count - 1) : from;
  };
  if (s.view.pinned) {
    cell.row = moved(s.view.pinned->row, down, numbers.n_rows());
    cell.column = moved(s.view.pinned->column, right, numbers.n_cols());
  }
  if (s.view.pinned == cell) return std::nullopt;
  return ChangeView{[cell, shape = Shape{numbers.n_rows(), numbers.n_cols()}](View& view) {
    pin(view, cell);
    bring_into_part(view, shape, cell.row, cell.column);
  }};
}
Answer cell_above(const Situation& s) { return move_cell(s, -1, 0); }
Answer cell_below(const Situation& s) { return move_cell(s, 1, 0); }
Answer cell_left(const Situation& s) { return move_cell(s, 0, -1); }
Answer cell_right(const Situation& s) { return move_cell(s, 0, 1); }

/// The same row and column, as far as there is one, in the stage before or after.
Answer go_to_stage(const Situation& s, int by) {
  if (s.newest.view.cursor || s.view.tab != Tab::stages) return std::nullopt;
  const auto all = core::attention::stages();
  auto at = static_cast<std::ptrdiff_t>(stage_at_hand(s)) + by;
  const auto count = static_cast<std::ptrdiff_t>(all.size());
  const auto shown = [&](std::ptrdiff_t k) {
    const auto& stage = all[static_cast<std::size_t>(k)];
    return stage.present(s.model) && !s.view.folded.contains(stage.stage);
  };
  while (at >= 0 && at < count && !shown(at)) at += by;
  if (at < 0 || at >= count) return std::nullopt;
  const auto& stage = all[static_cast<std::size_t>(at)];
  const core::attention::StageMatrix& numbers = stage.matrix(s.trace, s.view.head);
  CellRef cell{stage.stage, stage.per_head ? s.view.head : 0, 0, 0};
  if (s.view.pinned) {
    cell.row = std::min<std::size_t>(s.view.pinned->row, numbers.n_rows() - 1);
    cell.column = std::min<std::size_t>(s.view.pinned->column, numbers.n_cols() - 1);
  }
  return ChangeView{[cell](View& view) {
    pin(view, cell);
    if (view.large) view.large = cell.stage;
  }};
}
Answer stage_before(const Situation& s) { return go_to_stage(s, -1); }
Answer stage_after(const Situation& s) { return go_to_stage(s, 1); }

/// The stage that the mouse is on, or the pinned one, alone; again, all of them.
Answer large(const Situation& s) {
  const Stage stage = s.view.hovered && !s.view.pinned ? s.view.hovered->stage : stage_at_hand(s);
  return ChangeView{[stage](View& view) {
    view.large = view.tab == Tab::stages && view.large ? std::nullopt : std::optional(stage);
    view.tab = Tab::stages;
  }};
}
Answer gutters(const Situation&) {
  return ChangeView{[](View& view) { view.gutters = !view.gutters; }};
}
template <Tab tab>
Answer go_to_tab(const Situation&) {
  return ChangeView{[](View& view) { view.tab = tab; }};
}
Answer edit_by_keyboard(const Situation&) {
  return ChangeView{[](View& view) { view.cursor = EditCursor{0, 0, true}; }};
}
/// In a lesson, unless the matrix editor needs the key.
Answer go_in_lesson(const Situation& s, int by) {
  return s.view.lesson && !s.newest.view.cursor ? Answer(GoInLesson{by}) : std::nullopt;
}
Answer next_step(const Situation& s) { return go_in_lesson(s, 1); }
Answer previous_step(const Situation& s) { return go_in_lesson(s, -1); }
Answer same_step(const Situation& s) { return go_in_lesson(s, 0); }
Answer draw_another_mask(const Situation& s) {
  if (s.view.tab != Tab::laboratory) return std::nullopt;
  return ApplyEdit{editing::SetDropoutSeed{s.newest.model.dropout.seed + 1}};
}
Answer release(const Situation& s) {
  const View& v = s.newest.view;
  if (v.cursor) return ChangeView{[](View& view) { view.cursor.reset(); }};
  if (v.tab == Tab::tokens && v.tokens.pinned_query)
    return ChangeView{[](View& view) { view.tokens.pinned_query.reset(); }};
  if (v.pinned) return ChangeView{app::release};
  if (v.tab == Tab::stages && v.large) return ChangeView{[](View& view) { view.large.reset(); }};
  if (v.tab == Tab::laboratory) return ChangeView{[](View& view) { view.tab = Tab::stages; }};
  if (v.lesson) return LeaveLesson{};
  return std::nullopt;
}

Answer back(const Situation& s) {
  if (s.newest.view.cursor || s.newest.view.trail.empty()) return std::nullopt;
  return ChangeView{go_back};
}

constexpr KeyPress plain(Key key) {
  return {key};
}
constexpr KeyPress ctrl(Key key, bool shift = false) {
  return {key, true, shift};
}

constexpr std::array table{
    Shortcut{ctrl(Key::n), "Ctrl+N", "start anew", new_document},
    Shortcut{ctrl(Key::o), "Ctrl+O", "open a file", open},
    Shortcut{ctrl(Key::s), "Ctrl+S", "save", save},
    Shortcut{ctrl(Key::s, true), "Shift+Ctrl+S", "save under another name", save_as},
    Shortcut{ctrl(Key::e), "Ctrl+E", "export numbers, a figure or a program", export_files},
    Shortcut{ctrl(Key::q), "Ctrl+Q", "quit", quit},
    Shortcut{ctrl(Key::z), "Ctrl+Z", "undo", undo},
    Shortcut{ctrl(Key::y), "Ctrl+Y, Shift+Ctrl+Z", "redo", redo},
    Shortcut{ctrl(Key::z, true), nullptr, nullptr, redo},
    Shortcut{ctrl(Key::c), "Ctrl+C", "copy the chosen number, in full", copy},
    Shortcut{ctrl(Key::c, true), "Shift+Ctrl+C", "copy as chosen last in Copy as: at first the matrix as TSV", copy_again},
    Shortcut{plain(Key::digit_1), "1 … 9", "show the first … ninth head; in the token view switch its lines", head_number<0>},
    Shortcut{plain(Key::digit_2), nullptr, nullptr, head_number<1>},
    Shortcut{plain(Key::digit_3), nullptr, nullptr, head_number<2>},
    Shortcut{plain(Key::digit_4), nullptr, nullptr, head_number<3>},
    Shortcut{plain(Key::digit_5), nullptr, nullptr, head_number<4>},
    Shortcut{plain(Key::digit_6), nullptr, nullptr, head_number<5>},
    Shortcut{plain(Key::digit_7), nullptr, nullptr, head_number<6>},
    Shortcut{plain(Key::digit_8), nullptr, nullptr, head_number<7>},
    Shortcut{plain(Key::digit_9), nullptr, nullptr, head_number<8>},
    Shortcut{plain(Key::bracket_left), "[", "previous head, in the token view alone", previous_head},
    Shortcut{plain(Key::bracket_right), "]", "next head, in the token view alone", next_head},
    Shortcut{plain(Key::c), "C", "causal mask on or off", causal},
    Shortcut{plain(Key::m), "M", "hide the pinned cell by hand, or show it", switch_cell},
    Shortcut{plain(Key::n), "N", "type a number over the pinned cell", type_over},
    Shortcut{plain(Key::i), "I", "give a stage its numbers, or compute it again", give},
    Shortcut{plain(Key::h), "H", "the chosen head off or on", head_on_or_off},
    Shortcut{plain(Key::d), "D", "dropout: training or evaluation", training},
    Shortcut{plain(Key::k), "K", "keep this as A, to compare with", keep_reference},
    Shortcut{ctrl(Key::k), "Ctrl+K", "check tensors of your own against the model", check_tensors},
    Shortcut{plain(Key::plus), "+ −", "zoom in, out; with the mouse: the wheel over a picture", zoom_in},
    Shortcut{plain(Key::minus), nullptr, nullptr, zoom_out},
    Shortcut{plain(Key::f), "F", "fit: pictures show all of their cells", fit},
    Shortcut{plain(Key::l), "L", "the stage at hand alone, or all of them; with the mouse: a double click", large},
    Shortcut{plain(Key::g), "G", "row sums and entropy beside token × token stages", gutters},
    Shortcut{{Key::up, false, true}, "Shift+arrows", "pin a cell and walk over its neighbours", cell_above},
    Shortcut{{Key::down, false, true}, nullptr, nullptr, cell_below},
    Shortcut{{Key::left, false, true}, nullptr, nullptr, cell_left},
    Shortcut{{Key::right, false, true}, nullptr, nullptr, cell_right},
    Shortcut{{Key::page_up, false, true}, "Shift+Page", "the same cell in the stage before, after", stage_before},
    Shortcut{{Key::page_down, false, true}, nullptr, nullptr, stage_after},
    Shortcut{ctrl(Key::digit_1), "Ctrl+1 … 4", "Stages, Heads, Tokens, Compare", go_to_tab<Tab::stages>},
    Shortcut{ctrl(Key::digit_2), nullptr, nullptr, go_to_tab<Tab::heads>},
    Shortcut{ctrl(Key::digit_3), nullptr, nullptr, go_to_tab<Tab::tokens>},
    Shortcut{ctrl(Key::digit_4), nullptr, nullptr, go_to_tab<Tab::compare>},
    Shortcut{plain(Key::t), "T", "dark or light", theme},
    Shortcut{plain(Key::escape), "Esc", "release the cell, close a dialog, leave a lesson", release},
    Shortcut{plain(Key::backspace), "Backspace", "back to the cell whose operand was followed", back},
    Shortcut{plain(Key::up), "↑ ↓", "in the token view: pin the query above, below", query_above},
    Shortcut{plain(Key::down), nullptr, nullptr, query_below},
    Shortcut{plain(Key::right), "← →", "in a lesson: back, next", next_step},
    Shortcut{plain(Key::left), nullptr, nullptr, previous_step},
    Shortcut{plain(Key::r), "R", "in a lesson: start the step again", same_step},
    Shortcut{plain(Key::space), "Space", "in the dropout laboratory: draw again", draw_another_mask},
    Shortcut{{}, "Space, held", "the kept A in place of B, in every view", nullptr},
    Shortcut{{}, "arrows, Enter, Esc", "to the next region or control, into a region, out of it", nullptr},
    Shortcut{plain(Key::f1), "F1, ?", "this sheet", keys},
    Shortcut{plain(Key::question), nullptr, nullptr, keys},
    Shortcut{plain(Key::e), "E", "edit the matrix by keyboard", edit_by_keyboard},
    Shortcut{{}, "arrows, Home, End, Page", "walk through the matrix", nullptr},
    Shortcut{{}, "digits, Enter", "type a number", nullptr},
    Shortcut{{}, "Tab", "next number", nullptr},
    Shortcut{{}, "Delete", "0", nullptr},
    Shortcut{{}, "Ctrl+V", "paste a block of numbers", nullptr},
};

bool is_digit(Key key) {
  return key >= Key::digit_0 && key <= Key::digit_9;
}

/// "?" and "+" are Shift with another key on most layouts.
bool matches(const Shortcut& row, KeyPress press) {
  if (press.key == Key::question || press.key == Key::plus) press.shift = false;
  if (press.key == Key::slash && press.shift) press = plain(Key::question);
  return row.command && row.press == press;
}

}  // namespace

std::span<const Shortcut> shortcuts() {
  return table;
}

Situation situation_of(const Frame& f) {
  const Newest newest = f.newest ? *f.newest : Newest{f.model, f.view};
  return {f.model, f.trace, f.view, f.document, newest};
}

void handle_key(const KeyPress& press, const Situation& situation, Commands& commands) {
  const View& view = situation.newest.view;
  if (view.dialog != Dialog::none) return;
  if (view.typed && view.typed->waiting && !press.ctrl) return;  // it belongs to the field
  if (view.cursor && is_digit(press.key) && !press.ctrl) return;
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const Shortcut& s) { return matches(s, press); });
  if (row == table.end()) return;
  if (auto command = row->command(situation)) commands.add(std::move(*command));
}

std::optional<std::string> copied_text(const Situation& s) {
  if (const auto& cursor = s.newest.view.cursor) {
    const View& v = s.newest.view;
    const auto* matrix = editing::find_matrix(s.newest.model, {v.edited.name, v.sequence});
    if (matrix && cursor->row < (*matrix)->n_rows && cursor->column < (*matrix)->n_cols)
      return core::formats::number_text((**matrix)(cursor->row, cursor->column));
  }
  const auto& cell = s.view.pinned ? s.view.pinned : s.view.hovered;
  if (!cell) return std::nullopt;
  const auto& stage = core::attention::info(cell->stage);
  if (!stage.present(s.model) || (stage.per_head && cell->head >= s.trace.heads.size())) return std::nullopt;
  const core::attention::StageMatrix& numbers = stage.matrix(s.trace, cell->head);
  if (cell->row >= numbers.n_rows() || cell->column >= numbers.n_cols()) return std::nullopt;
  return core::formats::number_text(numbers(cell->row, cell->column));
}

}  // namespace app
