#include "app/ui/actions/keys.hpp"

#include <algorithm>

#include "app/ui/actions/actions.hpp"
#include "core/base/utf8.hpp"

namespace app {

namespace {

/// The key that KeyPress::ctrl stands for, as it is printed on keyboards of this system.
constexpr const char* ctrl_words =
#ifdef __APPLE__
    "Control+";
#else
    "Ctrl+";
#endif

std::string modifiers(const KeyPress& press) {
  return std::string(press.ctrl ? ctrl_words : "") + (press.alt ? "Alt+" : "") +
         (press.shift ? "Shift+" : "");
}

std::string nth_letter(char first, Key base, Key key) {
  return std::string(1, static_cast<char>(first + (static_cast<int>(key) - static_cast<int>(base))));
}

std::string name(Key key) {
  if (key >= Key::a && key <= Key::z) return nth_letter('A', Key::a, key);
  if (key >= Key::digit_0 && key <= Key::digit_9) return nth_letter('0', Key::digit_0, key);
  if (key >= Key::f1 && key <= Key::f12)
    return "F" + std::to_string(1 + static_cast<int>(key) - static_cast<int>(Key::f1));
  switch (key) {
    case Key::escape:
      return "Esc";
    case Key::enter:
      return "Enter";
    case Key::tab:
      return "Tab";
    case Key::delete_:
      return "Delete";
    case Key::backspace:
      return "Backspace";
    case Key::left:
      return "←";
    case Key::right:
      return "→";
    case Key::up:
      return "↑";
    case Key::down:
      return "↓";
    case Key::home:
      return "Home";
    case Key::end:
      return "End";
    case Key::page_up:
      return "Page up";
    case Key::page_down:
      return "Page down";
    case Key::bracket_left:
      return "[";
    case Key::bracket_right:
      return "]";
    case Key::question:
      return "?";
    case Key::slash:
      return "/";
    case Key::space:
      return "Space";
    case Key::plus:
      return "+";
    case Key::minus:
      return "−";
    default:
      return "";
  }
}

bool are_digits_in_a_row(std::span<const KeyPress> presses) {
  if (presses.size() < 3 || presses.front().key < Key::digit_0 || presses.back().key > Key::digit_9)
    return false;
  for (std::size_t k = 1; k < presses.size(); ++k)
    if (static_cast<int>(presses[k].key) != static_cast<int>(presses[k - 1].key) + 1) return false;
  return true;
}

}  // namespace

std::string written(const KeyPress& press) {
  return modifiers(press) + name(press.key);
}

std::string written(std::span<const KeyPress> presses) {
  if (presses.empty()) return "";
  const std::string held = modifiers(presses.front());
  const auto each = [&](auto holds) { return std::all_of(presses.begin(), presses.end(), holds); };
  const bool same = each([&](const KeyPress& p) { return modifiers(p) == held; });
  if (same && are_digits_in_a_row(presses))
    return held + name(presses.front().key) + " … " + name(presses.back().key);
  const bool letters =
      same && each([](const KeyPress& p) { return core::text::character_count(name(p.key)) == 1; });
  std::string text = written(presses.front());
  for (const KeyPress& press : presses.subspan(1))
    text += letters ? " " + name(press.key) : ", " + written(press);
  return text;
}

void handle_key(const KeyPress& press, const Situation& situation, Commands& commands) {
  const Forms& forms = situation.forms;
  // What was left by a window before is there for the next one too.
  const bool may_quit = forms.dialog == Dialog::recovery;
  if (forms.dialog != Dialog::none && !may_quit) return;
  if (forms.typed && forms.typed->waiting && !press.ctrl) return;  // it belongs to the field
  const std::vector<Action> all = actions(situation);
  if (const Action* action = action_of(all, press, situation.pending);
      action && (!may_quit || action->id == "file/quit"))
    perform(*action, situation, commands);
}

}  // namespace app
