#include <array>
#include <cmath>

#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

struct TabRow {
  Tab tab;
  const char* id;
  const char* title;
  Key key;
};
constexpr std::array tabs{TabRow{Tab::stages, "tab/stages", "Stages", Key::digit_1},
                          TabRow{Tab::heads, "tab/heads", "Heads", Key::digit_2},
                          TabRow{Tab::tokens, "tab/tokens", "Tokens", Key::digit_3},
                          TabRow{Tab::compare, "tab/compare", "Compare", Key::digit_4},
                          TabRow{Tab::laboratory, "tab/laboratory", "Dropout laboratory", Key::digit_5}};

/// The laboratory has nothing to show where nothing is dropped: it opens at a rate of one half.
Asked opens(Tab tab, const Situation& s) {
  Asked asked = look([tab](View& view) { view.look.tab = tab; });
  const bool at_half = tab == Tab::laboratory && s.newest.model.dropout.rate == 0 &&
                       s.newest.model.dropout.given.empty() && s.newest.look.tab != tab;
  if (!at_half) return asked;
  asked.push_back(EndGesture{});
  asked.push_back(ApplyEdit{core::editing::SetDropoutRate{0.5}});
  asked.push_back(EndGesture{});
  asked.push_back(ShowMessage{"The model had no dropout: its rate is 0.5 now; Ctrl+Z takes it back."});
  return asked;
}

void add_tabs(Rows& rows) {
  for (const TabRow& row : tabs)
    rows.push_back({.id = row.id,
                    .title = row.title,
                    .menu = "View",
                    .keys = {ctrl(row.key)},
                    .sheet = "Stages, Heads, Tokens, Compare, laboratory",
                    .command = [tab = row.tab](const Situation& now) { return opens(tab, now); },
                    .checked = [tab = row.tab](const Situation& now) { return now.shown.look.tab == tab; }});
}

/// Dark and light share a key, which goes from the one to the other.
void add_themes(Rows& rows, const Situation& s) {
  for (const bool dark : {true, false}) {
    rows.push_back({.id = dark ? "theme/dark" : "theme/light",
                    .title = dark ? "Dark" : "Light",
                    .menu = "View",
                    .group = 2,
                    .sheet = "Dark or light",
                    .command = looks([dark](View& view) { view.settings.dark = dark; }),
                    .checked = [dark](const Situation& now) { return now.settings.dark == dark; }});
    if (s.settings.dark != dark) rows.back().keys = {plain(Key::t)};
  }
}

/// A size in percent, one row for each of the choices.
template <std::size_t n>
void add_sizes(Rows& rows, const char* id, const char* menu, const std::array<int, n>& choices,
               float Settings::*size) {
  for (const int percent : choices) {
    const float wanted = static_cast<float>(percent) / 100;
    rows.push_back({.id = id + std::to_string(percent),
                    .title = std::to_string(percent) + " %",
                    .menu = menu,
                    .group = 2,
                    .command = looks([size, wanted](View& view) { view.settings.*size = wanted; }),
                    .checked = [size, wanted](const Situation& now) {
                      return std::fabs(now.settings.*size - wanted) < 0.01f;
                    }});
  }
}

}  // namespace

std::vector<Action> of_view(const Situation& s) {
  Rows rows;
  add_whole_model(rows, s);
  add_tabs(rows);
  add_presenting(rows);
  add_decoding(rows);
  add_themes(rows, s);
  add_sizes(rows, "scale/", "View/Scale", std::array{100, 125, 150, 200}, &Settings::scale);
  add_sizes(rows, "text_size/", "View/Text size", std::array{90, 100, 110, 125}, &Settings::text_size);
  add_heads(rows, s);
  add_colors(rows, s);
  add_stages(rows, s);
  add_walking(rows, s);
  return rows;
}

}  // namespace app::rows
