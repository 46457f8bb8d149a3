// Circuits of the selected head of a whole model, below it in the inspector of Layers.
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "app/session/full_model_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"

namespace app::panels {
namespace {

/// Draws words at both ends of a line.
void draw_line(const Frame& frame, const std::string& words, const std::string& number, float width,
               Rgb color) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float middle = at.y + frame.metrics.px(10);
  draw_text(frame.fonts.sans13, {at.x, middle}, Align::left_middle, color,
            shortened(frame.fonts.sans13, words,
                      width - text_width(frame.fonts.mono13, number) - frame.metrics.px(8)));
  draw_text(frame.fonts.mono13, {at.x + width, middle}, Align::right_middle, color, number);
  reserve_room(at, {width, frame.metrics.px(19)});
}

/// Draws which share of what the head reads each earlier head writes; a click selects the writer.
void draw_composition(const Frame& frame, const core::circuits::Composition& of, std::size_t reader,
                      float width) {
  const std::size_t n_layers = reader / of.n_heads;
  const std::array<const arma::mat*, 3> inputs{&of.queries, &of.keys, &of.values};
  const arma::mat& shares = *inputs[frame.pending.layers->composes];
  double largest = 0;
  for (std::size_t k = 0; k < n_layers * of.n_heads; ++k) largest = std::max(largest, shares(k, reader));
  const float labels = frame.metrics.px(54), height = frame.metrics.px(20),
              cell = std::min(frame.metrics.px(38), (width - labels) / static_cast<float>(of.n_heads));
  const bool has_digits = cell > text_width(frame.fonts.mono12, "0.00") + 2;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  for (std::size_t l = 0; l < n_layers; ++l) {
    const float top = at.y + height * static_cast<float>(l);
    draw_text(frame.fonts.sans13, {at.x, top + height / 2}, Align::left_middle, frame.palette.dim,
              "layer " + std::to_string(l));
    for (std::size_t h = 0; h < of.n_heads; ++h) {
      const double share = shares(l * of.n_heads + h, reader);
      const ImVec2 min{at.x + labels + cell * static_cast<float>(h), top},
          max{min.x + cell - 1, min.y + height - 1};
      const Rgb color = render::color_at(frame.displayed.look.colors.sequential, frame.palette.dark,
                                         largest > 0 ? share / largest : 0);
      platform::move_to(min);
      const bool pressed =
          hit_area(fmt::format("writer {} {}", l, h).c_str(), {max.x - min.x, max.y - min.y});
      frame.landmarks.mark_item(fmt::format("circuits/writer/{}/{}", l, h));
      draw_rect(min, max, color);
      if (has_digits)
        draw_text(frame.fonts.mono12, {(min.x + max.x) / 2, (min.y + max.y) / 2}, Align::middle,
                  core::color::readable_on(color), fixed(share, 2));
      if (ImGui::IsItemHovered()) {
        outline({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, frame.palette.selection, 1);
        ImGui::SetTooltip("Head %zu.%zu writes %s of what is read, in Frobenius norms", l, h,
                          fixed(share, 4).c_str());
      }
      if (pressed) frame.commands.add(ShowLayer{l}, set<&Look::head>(h));
    }
  }
  reserve_room(at, {width, height * static_cast<float>(n_layers) + frame.metrics.px(6)});
}

void draw_pairs_of_tokens(const Frame& frame, const char* title, const char* arrow,
                          const std::vector<core::circuits::TokenPair>& pairs, float width) {
  draw_line(frame, title, "", width, frame.palette.faint);
  const auto& model = *frame.pending.full_model->model;
  for (const core::circuits::TokenPair& pair : pairs)
    draw_line(frame,
              quoted_token(core::transformer::token_name(model, pair.from)) + arrow +
                  quoted_token(core::transformer::token_name(model, pair.to)),
              fixed(pair.value, 2), width, frame.palette.text);
}

void draw_logit_by_token(const Frame& frame, const core::circuits::WrittenSum& of, std::size_t row,
                         float width) {
  constexpr std::size_t n_listed = 4;
  const auto& now = *frame.pending.reading->readings()->now;
  draw_line(frame,
            "its part of the logit of " + quoted_token(frame.pending.reading->prediction()->chosen.text), "",
            width, frame.palette.faint);
  const arma::rowvec by_token = of.by_token.row(row);
  const arma::uvec order = arma::stable_sort_index(arma::vec(arma::abs(by_token.t())), "descend");
  for (std::size_t k = 0; k < std::min<std::size_t>(n_listed, order.n_elem); ++k)
    draw_line(frame, fmt::format("{} {}", quoted_token(now.names[order[k]]), order[k]),
              signed_text(by_token[order[k]], 3), width, frame.palette.text);
  draw_line(frame, "sum over source tokens", signed_text(arma::accu(by_token), 3), width, frame.palette.dim);
}

}  // namespace

void draw_circuits(const Frame& frame, float width) {
  const bool shows = frame.pending.layers->shows_circuits;
  const auto& of = frame.pending.full_model->model->description();
  draw_separator(frame, width);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (link(
          frame, "circuits/shown", frame.fonts.sans15, {at.x, at.y + frame.metrics.px(10)},
          Align::left_middle, frame.palette.text, shows ? "Circuits  ▾" : "Circuits  ▸",
          "What this head reads from earlier heads, its pairs of tokens, and what it writes by source token"))
    frame.commands.add(set<&LayersLook::shows_circuits>(!shows));
  reserve_room(at, {width, frame.metrics.px(24)});
  if (!shows) return;
  if (of.is_attached)
    return paragraph(
        frame.fonts.sans14, frame.palette.dim, width,
        "Circuits need the weights of every layer, which an attached model does not send; open its files.");
  const LiveCircuits& circuits = frame.pending.reading->circuits();
  const std::size_t layer = frame.pending.full_model->experiment.layer,
                    head = std::min(frame.pending.look.head, of.sizes.n_heads - 1);
  const std::size_t row = layer * of.sizes.n_heads + head;
  if (layer > 0) {
    static const std::array<std::string, 3> words{"queries", "keys", "values"};
    draw_line(frame, "what it reads from earlier heads", "", width, frame.palette.faint);
    if (const auto k = segmented(frame, "circuits/input", words, frame.pending.layers->composes))
      frame.commands.add(set<&LayersLook::composes>(*k));
    if (const auto* composition = circuits.composition()) draw_composition(frame, *composition, row, width);
  }
  if (const auto* logit = circuits.logit()) draw_logit_by_token(frame, *logit, row, width);
  if (const auto* pairs = circuits.pairs()) {
    draw_pairs_of_tokens(frame, "OV: source token → token whose logit it raises", " → ", pairs->ov, width);
    draw_pairs_of_tokens(frame, "QK: query token, key token, score", "  ", pairs->qk, width);
  }
  if (circuits.is_busy()) paragraph(frame.fonts.sans13, frame.palette.faint, width, "Computing…");
}

}  // namespace app::panels
