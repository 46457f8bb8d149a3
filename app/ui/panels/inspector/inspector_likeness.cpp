#include "app/ui/panels/inspector/inspector_likeness.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/heads/head_figures.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using widgets::Align;
using widgets::Pen;

constexpr std::size_t most_likeness_heads = 64;

/// Two figures after the point, as "04"; "1" for the same weights.
std::string hundredths(double likeness) {
  if (std::isnan(likeness)) return "–";
  const std::string digits = std::to_string(static_cast<int>(std::floor(likeness * 100 + 1e-9)));
  return digits.size() < 2 ? "0" + digits : digits.size() > 2 ? "1" : digits;
}

/// Where the cells of the matrix lie.
struct Grid {
  ImVec2 corner;
  float cell;
  std::size_t count;
  ImVec2 at(std::size_t row, std::size_t column) const {
    return {std::round(corner.x + static_cast<float>(column) * cell),
            std::round(corner.y + static_cast<float>(row) * cell)};
  }
};

void draw_cells(const Frame& frame, const Grid& g, const arma::mat& likeness,
                const std::vector<std::size_t>& order) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool numbers = g.cell >= widgets::text_width(frame.fonts.mono12, "00") + 3;
  const float gap = g.cell >= 8 ? 1 : 0;
  for (std::size_t r = 0; r < g.count; ++r)
    for (std::size_t c = 0; c < g.count; ++c) {
      const double value = likeness(order[r], order[c]);
      const Rgb color = std::isnan(value)
                            ? frame.palette.hatch.ground
                            : render::color_at(render::ColorMap::weights, frame.palette.dark, value);
      const ImVec2 a = g.at(r, c), b = g.at(r + 1, c + 1);
      list->AddRectFilled(a, {b.x - gap, b.y - gap}, packed(color));
      if (numbers && r != c)
        widgets::draw_text(frame.fonts.mono12, {(a.x + b.x - 1) / 2, (a.y + b.y - 1) / 2}, Align::middle,
                           packed(readable_on(color)), hundredths(value));
    }
}

void draw_names(const Frame& frame, const Grid& g, const std::vector<std::size_t>& order, std::size_t head) {
  const std::size_t step = widgets::label_step(g.cell, frame.metrics.px(16));
  for (std::size_t k = 0; k < g.count; ++k) {
    const bool chosen = order[k] == head;
    if (k % step != 0 && !(chosen && step == 1)) continue;
    const ImU32 ink = packed(chosen ? frame.palette.text : frame.palette.faint);
    const ImVec2 a = g.at(k, k);
    widgets::draw_text(frame.fonts.mono12, {a.x + g.cell / 2, g.corner.y - frame.metrics.px(9)},
                       Align::middle, ink, std::to_string(order[k]));
    widgets::draw_text(frame.fonts.mono12, {g.corner.x - frame.metrics.px(6), a.y + g.cell / 2},
                       Align::right_middle, ink, std::to_string(order[k]));
  }
}

void handle_mouse(const Frame& frame, const Grid& g, const arma::mat& likeness,
                  const std::vector<std::size_t>& order) {
  const float side = g.cell * static_cast<float>(g.count);
  platform::move_to(g.corner);
  widgets::hit_area("likeness", {side, side});
  frame.landmarks.mark_item("inspector/likeness");
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto index = [&](float along) {
    return std::min(static_cast<std::size_t>(std::max(0.0f, along / g.cell)), g.count - 1);
  };
  const std::size_t a = order[index(mouse.y - g.corner.y)], b = order[index(mouse.x - g.corner.x)];
  ImGui::SetTooltip("head %zu and head %zu: %s", a, b, widgets::share_text(likeness(a, b), 4).c_str());
  if (ImGui::IsItemClicked()) frame.commands.look([a](View& v) { v.look.head = a; });
}

/// The other head that is most like this one, or least; nothing when none can be compared.
std::optional<std::size_t> extreme(const arma::mat& likeness, std::size_t head, bool most) {
  std::optional<std::size_t> found;
  for (std::size_t h = 0; h < likeness.n_rows; ++h) {
    const double value = likeness(head, h);
    if (h == head || std::isnan(value)) continue;
    if (!found || (most ? value > likeness(head, *found) : value < likeness(head, *found))) found = h;
  }
  return found;
}

void draw_extreme(Pen& pen, const arma::mat& likeness, std::size_t head, bool most) {
  const auto found = extreme(likeness, head, most);
  if (!found) return;
  const std::string words = most ? "most alike" : "least alike";
  const bool pressed = pen.linked_pair("inspector/" + words, words + ": head " + std::to_string(*found),
                                       widgets::share_text(likeness(head, *found), 4));
  if (pressed) pen.frame.commands.look([h = *found](View& v) { v.look.head = h; });
}

}  // namespace

void draw_likeness(Pen& pen, std::size_t head) {
  const Frame& frame = pen.frame;
  pen.rule();
  widgets::draw_text(frame.fonts.sans13, {pen.right, pen.y + frame.metrics.px(8)}, Align::right_middle,
                     packed(frame.palette.faint), "1 − JSD, mean of rows");
  pen.heading("Likeness of heads");
  if (!likeness_is_quick(frame.shown.trace) && frame.shown.selection.likeness_of != frame.shown.version) {
    pen.prose("So many heads and tokens take a moment.", frame.palette.dim);
    pen.skip(10);
    if (widgets::link(frame, "inspector/work out likeness", frame.fonts.sans14, {pen.left, pen.y},
                      Align::left_middle, frame.palette.accent, "work it out"))
      frame.commands.look([version = frame.shown.version](View& v) { v.selection.likeness_of = version; });
    pen.skip(12);
    return;
  }
  const arma::mat& likeness = frame.work.statistics.likeness(frame.shown.trace, frame.shown.version);
  if (likeness.is_empty()) return pen.prose("It is being worked out …", frame.palette.dim);
  if (likeness.n_rows <= most_likeness_heads) {
    const std::vector<std::size_t> order = sorted_heads(frame);
    const float labels = frame.metrics.px(24), room = pen.right - pen.left - labels;
    const float cell = std::min(std::floor(room / static_cast<float>(order.size())), frame.metrics.px(34));
    pen.skip(22);
    const Grid g{{std::round(pen.left + labels), std::round(pen.y)}, std::max(cell, 1.0f), order.size()};
    draw_cells(frame, g, likeness, order);
    draw_names(frame, g, order, head);
    const auto row = static_cast<std::size_t>(std::find(order.begin(), order.end(), head) - order.begin());
    widgets::outline(ImGui::GetWindowDrawList(), {g.at(row, 0).x - 1, g.at(row, 0).y - 1},
                     g.at(row + 1, g.count), packed(frame.palette.selection), 1);
    handle_mouse(frame, g, likeness, order);
    pen.y = g.at(g.count, 0).y + frame.metrics.px(4);
    const bool numbers = g.cell >= widgets::text_width(frame.fonts.mono12, "00") + 3;
    pen.prose(
        std::string(numbers ? "in hundredths; " : "") + "in the order of the heads; a click chooses one",
        frame.palette.faint);
    pen.skip(4);
  } else {
    pen.prose("The matrix is drawn for up to " + std::to_string(most_likeness_heads) + " heads.",
              frame.palette.faint);
  }
  draw_extreme(pen, likeness, head, true);
  draw_extreme(pen, likeness, head, false);
}

}  // namespace app::panels
