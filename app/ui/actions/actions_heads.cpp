// Which head is shown, what heads are sorted by, and in the token view whose lines are drawn.
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

constexpr std::size_t most_digits = 9;

std::string nowhere(const Situation& s) {
  return s.shown.look.tab == Tab::tokens ? "" : "only in Tokens";
}
bool in_matrices(const Newest& view) {
  return view.look.tab != Tab::tokens && !view.selection.cursor;
}
bool outside_tokens(const Newest& view) {
  return view.look.tab != Tab::tokens;
}
bool anywhere_in_tokens(const Newest& view) {
  return view.look.tab == Tab::tokens;
}

std::vector<KeyPress> digit_of(std::size_t head) {
  if (head >= most_digits) return {};
  return {plain(static_cast<Key>(static_cast<std::size_t>(Key::digit_1) + head))};
}

/// A head before (−1) or after (+1) the shown one.
std::function<std::string(const Situation&)> beyond(int by) {
  return [by](const Situation& s) -> std::string {
    if (by < 0) return s.newest.look.head > 0 ? "" : "this is the first head";
    return s.newest.look.head + 1 < s.newest.model.n_heads ? "" : "this is the last head";
  };
}
std::size_t neighbour(const Situation& s, int by) {
  return by < 0 ? s.newest.look.head - 1 : s.newest.look.head + 1;
}

Asked show_alone(std::size_t head, std::size_t n_heads) {
  return look([head, n_heads](View& view) {
    view.look.head = head;
    for (std::size_t h = 0; h < n_heads; ++h) view.look.tokens.silent_heads.insert(h);
    view.look.tokens.silent_heads.erase(head);
  });
}

void add_shown_head(Rows& rows, const Situation& s) {
  for (std::size_t h = 0; h < s.newest.model.n_heads; ++h)
    rows.push_back({.id = "head/" + std::to_string(h),
                    .title = std::to_string(h),
                    .menu = "View/Heads/Head",
                    .group = 3,
                    .keys = digit_of(h),
                    .here = in_matrices,
                    .sheet = "Show the first … ninth head",
                    .written = h < most_digits ? "1 … 9" : "",
                    .command = looks([h](View& view) { view.look.head = h; }),
                    .checked = [h](const Situation& now) { return now.newest.look.head == h; }});
  for (const int by : {-1, 1})
    rows.push_back({.id = by < 0 ? "head/previous" : "head/next",
                    .title = by < 0 ? "Previous" : "Next",
                    .menu = "View/Heads/Head",
                    .group = 3,
                    .part = 1,
                    .keys = {plain(by < 0 ? Key::bracket_left : Key::bracket_right)},
                    .here = outside_tokens,
                    .sheet = "Previous, next head",
                    .why_not = beyond(by),
                    .command = [by](const Situation& now) {
                      return look([h = neighbour(now, by)](View& view) { view.look.head = h; });
                    }});
}

void add_lines(Rows& rows, const Situation& s) {
  for (std::size_t h = 0; h < s.newest.model.n_heads; ++h)
    rows.push_back(
        {.id = "lines/" + std::to_string(h),
         .title = "Head " + std::to_string(h),
         .menu = "View/Heads/Lines in Tokens",
         .group = 3,
         .keys = digit_of(h),
         .here = in_tokens,
         .sheet = "In Tokens: the lines of that head",
         .written = h < most_digits ? "1 … 9" : "",
         .why_not = nowhere,
         .command = looks([h](View& view) {
           if (view.look.tokens.silent_heads.erase(h) == 0) view.look.tokens.silent_heads.insert(h);
         }),
         .checked = [h](const Situation& now) { return !now.shown.look.tokens.silent_heads.contains(h); }});
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
                          return show_alone(neighbour(now, by), now.newest.model.n_heads);
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
         .command = looks([order](View& view) {
           view.look.heads_order = order;
           view.look.tab = Tab::heads;
         }),
         .checked = [order](const Situation& now) { return now.shown.look.heads_order == order; }});
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
