#pragma once

#include "app/session/store.hpp"

namespace support {

/// Returns every settable field of the view as text, a line each.
inline std::string text_of_fields(const app::Store& store) {
  std::string text;
  for (const app::Command& field : app::fields_of(store.view())) text += app::to_text(field) + "\n";
  return text;
}

template <auto member>
void set_changed(app::Store& store, app::View& after) {
  app::View before = store.view();
  using Part = typename app::FieldOf<member>::Owner;
  const app::Command now = app::set<member>(app::part_of<Part>(before).*member),
                     wanted = app::set<member>(app::part_of<Part>(after).*member);
  const std::string text = app::to_text(wanted);
  if (text != app::to_text(now)) store.dispatch(app::parse_command(text));
}

/// Changes the view with the text form of the verbs that set its fields.
template <class Change>
void look(app::Store& store, const Change& change) {
  app::View after = store.view();
  change(after);
  [&]<auto... members>(app::MemberList<members...>) {
    (set_changed<members>(store, after), ...);
  }
  (app::ViewFields());
}

}  // namespace support
