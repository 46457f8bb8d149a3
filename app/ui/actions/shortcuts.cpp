#include "app/ui/actions/shortcuts.hpp"

#include "app/ui/actions/actions.hpp"

namespace app {

void handle_key(const KeyPress& press, const Situation& situation, Commands& commands) {
  const Forms& forms = situation.forms;
  // What was left by a window before is there for the next one too.
  const bool may_quit = forms.dialog == Dialog::recovery;
  if (forms.dialog != Dialog::none && !may_quit) return;
  if (forms.typed && forms.typed->waiting && !press.ctrl) return;  // it belongs to the field
  const std::vector<Action> all = actions(situation);
  if (const Action* action = action_of(all, press, situation.newest);
      action && (!may_quit || action->id == "file/quit"))
    perform(*action, situation, commands);
}

}  // namespace app
