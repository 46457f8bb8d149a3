#include "app/ui/actions/shortcuts.hpp"

#include "app/ui/actions/actions.hpp"

namespace app {

void handle_key(const KeyPress& press, const Situation& situation, Commands& commands) {
  const Forms& forms = situation.forms;
  if (forms.dialog != Dialog::none) return;
  if (forms.typed && forms.typed->waiting && !press.ctrl) return;  // it belongs to the field
  const std::vector<Action> all = actions(situation);
  if (const Action* action = action_of(all, press, situation.newest)) perform(*action, situation, commands);
}

}  // namespace app
