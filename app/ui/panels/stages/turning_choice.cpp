#include "app/ui/panels/stages/turning_choice.hpp"

#include <algorithm>
#include <string>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using core::attention::Model;

/// The cell of the scores at which the pinned one stands, as far as it does.
void choose_pinned(const Frame& frame, TurningChoice& c) {
  c.query = c.n_queries - 1;
  const auto& pinned = frame.shown.selection.pinned;
  if (!pinned) return;
  const auto& stage = core::attention::info(pinned->stage);
  if (stage.rows == core::attention::Rows::queries) c.query = std::min(pinned->row, c.n_queries - 1);
  if (stage.rows == core::attention::Rows::keys) c.key = std::min(pinned->row, c.n_keys - 1);
  if (stage.columns == core::attention::Columns::tokens) c.key = std::min(pinned->column, c.n_keys - 1);
}

/// Query and key go back to where their tokens stand.
void as_they_stand(View& view) {
  PositionsLook& look = view.look.positions;
  look.query_at.reset(), look.key_at.reset(), look.held.reset();
}

void pin(const Frame& frame, const TurningChoice& c, std::size_t query, std::size_t key) {
  frame.commands.look([cell = CellRef{Stage::scores, c.head, query, key}](View& v) {
    v.selection.pinned = cell;
    v.selection.trail.clear();
    as_they_stand(v);
  });
}

/// A field for the index of a token, with its name behind it; returns another one that was asked for.
std::optional<std::size_t> token_field(const Frame& frame, const char* words, std::size_t now,
                                       const std::vector<std::string>& names, Rgb color) {
  const auto& m = frame.metrics;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.sans15;
  const float y = widgets::centred_y(font, at.y, m.frame);
  widgets::draw_text(font, {at.x, y}, frame.palette.dim, words);
  platform::move_to({at.x + m.px(48), at.y});
  const auto step = [&](std::uint64_t v, int by) {
    return by > 0 ? std::min<std::uint64_t>(v + 1, names.size() - 1) : v > 0 ? v - 1 : 0;
  };
  const auto typed =
      widgets::count_field(frame, std::string("positions/") + words, words, now, m.px(44), step);
  widgets::draw_text_within(font, {at.x + m.px(98), y}, m.px(64), color, names[now]);
  platform::move_to({at.x + m.px(170), at.y});
  if (!typed || *typed < names.size()) return typed;
  frame.commands.add(ShowMessage{std::string(words) + ": expected a number below " +
                                     std::to_string(names.size()) + ", found \"" + std::to_string(*typed) +
                                     "\"",
                                 true});
  return std::nullopt;
}

}  // namespace

TurningChoice turning_choice(const Frame& frame) {
  const Model& model = frame.shown.model;
  const PositionsLook& look = frame.shown.look.positions;
  TurningChoice c;
  c.rotary = &*model.additions.positions.rotary;
  c.head = frame.shown.look.head, c.n_queries = model.n_tokens(), c.n_keys = model.n_keys();
  choose_pinned(frame, c);
  c.query_stage = core::attention::stage_before(model, Stage::rotated_queries);
  c.key_stage = core::attention::stage_before(model, Stage::rotated_keys);
  c.query_row = core::attention::info(c.query_stage).matrix(frame.shown.trace, c.head).row(c.query);
  c.key_row = core::attention::info(c.key_stage).matrix(frame.shown.trace, c.head).row(c.key);
  const auto& held = look.held;
  if (held && held->pair < core::positions::rotated_columns(*c.rotary, c.query_row.n_elem) / 2) {
    arma::rowvec& numbers = held->of_key ? c.key_row : c.query_row;
    const auto [a, b] = core::positions::columns_of(*c.rotary, held->pair, numbers.n_elem);
    numbers(a) = held->x, numbers(b) = held->y;
  }
  c.query_at = look.query_at.value_or(core::attention::position_of_query(model, c.query));
  c.key_at = look.key_at.value_or(core::attention::position_of_key(model, c.key));
  return c;
}

void draw_turning_choice(const Frame& frame, const TurningChoice& c, ImVec2 at, float width) {
  const auto& m = frame.metrics;
  const auto& sequence = frame.shown.model.sequences[frame.shown.look.sequence];
  platform::move_to(at);
  if (const auto query = token_field(frame, "query", c.query, sequence.tokens, frame.palette.selection))
    pin(frame, c, *query, c.key);
  if (const auto key = token_field(frame, "key", c.key, sequence.keys(), frame.palette.operand))
    pin(frame, c, c.query, *key);
  if (widgets::button(frame, "positions/reset", "as they stand", "Query and key where their tokens stand"))
    frame.commands.look(as_they_stand);
  const float x = ImGui::GetItemRectMax().x + m.px(12);
  const bool is_wrong = !(frame.shown.model.departures == core::attention::Departures());
  const std::string shared = widgets::head_words(frame.shown.model, Stage::keys, c.head);
  const std::string words = is_wrong ? "the model makes a mistake; here pairs turn as they should"
                                     : "drag a tip to type its numbers over · keys of " + shared;
  widgets::draw_text_within(frame.fonts.sans14, {x, widgets::centred_y(frame.fonts.sans14, at.y, m.frame)},
                            at.x + width - x, is_wrong ? frame.palette.status.warning : frame.palette.faint,
                            words);
}

}  // namespace app::panels
