// Decoding: a token more at a time, with the keys and values of the earlier ones kept.
#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

std::size_t n_tokens(const Situation& s) {
  return s.newest.model.n_tokens();
}

/// Why there is no token more or one back, or "".
std::function<std::string(const Situation&)> beyond_token(int by) {
  return [by](const Situation& s) -> std::string {
    if (const std::string why = why_not_decoded(s.newest.model); !why.empty()) return why;
    const auto& now = s.newest.look.positions.decoded;
    if (by > 0) return now && *now + 1 >= n_tokens(s) ? "this is the last token" : "";
    return !now ? "no decoding is shown" : *now == 0 ? "this is the first token" : "";
  };
}

}  // namespace

void add_decoding(Rows& rows) {
  constexpr const char* menu = "View/Decoding";
  for (const int by : {1, -1})
    rows.push_back({.id = by > 0 ? "decode/on" : "decode/back",
                    .title = by > 0 ? "One token more" : "One token back",
                    .menu = menu,
                    .group = 1,
                    .about = by > 0 ? "What a cache keeps and what is new, token by token" : "",
                    .keys = {by > 0 ? plain(Key::j) : shift(Key::j)},
                    .here = outside_editor,
                    .sheet = "Decoding: one token more, one back",
                    .why_not = beyond_token(by),
                    .command = [by](const Situation& now) {
                      return look([by, n = n_tokens(now)](View& view) { step_decoding(view, n, by); });
                    }});
  rows.push_back(
      {.id = "decode/close",
       .title = "All queries at once",
       .menu = menu,
       .group = 1,
       .why_not = unless([](const Situation& s) { return s.newest.look.positions.decoded.has_value(); },
                         "no decoding is shown"),
       .command = looks([](View& view) { view.look.positions.decoded.reset(); })});
}

}  // namespace app::rows
