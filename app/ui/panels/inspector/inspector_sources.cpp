#include "app/ui/panels/inspector/inspector_sources.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "app/session/full_model_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/inspector/inspector_panel.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/text.hpp"

namespace app::panels {
namespace {

using core::circuits::ScoreSource;
using core::circuits::ScoreSources;

constexpr std::size_t n_pairs = 5, n_sources = 6;
constexpr float row_height = 19, bar_half = 4;

/// A part in the list: its own sum in the score as a part of the key, and its total where it is a source.
struct PartRow {
  std::string name;
  std::optional<double> direct;
  const ScoreSource* source = nullptr;
};

/// Returns the numbers that are shown: above the mean of the row, or plain.
const arma::mat& shown_pairs(const Frame& frame, const ScoreSources& of) {
  return frame.pending.layers->sources_plain ? of.pairs : of.pairs_above_row_mean;
}

double shown_sum(const Frame& frame, const ScoreSources& of) {
  return frame.pending.layers->sources_plain ? of.score : of.above_row_mean;
}

double shown_alibi(const Frame& frame, const ScoreSources& of) {
  return frame.pending.layers->sources_plain ? of.alibi : of.alibi_above_row_mean;
}

/// Draws a bar from the middle between two edges, and a number right of it.
void draw_bar_row(const Pen& pen, const std::string& words, float from, float to, double value, double end,
                  ImFont* font, Rgb color) {
  const Frame& frame = pen.frame;
  const float half = frame.metrics.px(bar_half);
  draw_text(font, {pen.left, pen.y}, Align::left_middle, color,
            shortened(font, words, from - pen.left - frame.metrics.px(6)));
  draw_signed_bar(frame, {from, pen.y - half}, {to, pen.y + half},
                  end > 0 && std::isfinite(value) ? std::clamp(value / end, -1.0, 1.0) : 0);
}

/// Draws a line without a bar: what is left of a list, or its sum.
void draw_total(Pen& pen, const std::string& words, double value, int decimals, Rgb color) {
  pen.skip(row_height / 2);
  pen.at_left(pen.frame.fonts.sans13, color, words);
  pen.at_right(pen.frame.fonts.mono13, color, signed_text(value, decimals));
  pen.skip(row_height / 2);
}

void draw_pairs(Pen& pen, const ScoreSources& of) {
  const Frame& frame = pen.frame;
  pen.heading("Pairs");
  draw_text(frame.fonts.sans13, {pen.right, pen.y - frame.metrics.px(13)}, Align::right_middle,
            frame.palette.faint, "part of query × part of key");
  const arma::mat& pairs = shown_pairs(frame, of);
  const std::size_t n = of.parts.size(), n_shown = std::min<std::size_t>(n_pairs, pairs.n_elem);
  std::vector<std::size_t> order(pairs.n_elem);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_shown), order.end(),
      [&](std::size_t one, std::size_t other) { return std::abs(pairs[one]) > std::abs(pairs[other]); });
  double rest = shown_sum(frame, of) - shown_alibi(frame, of);
  const double end = n_shown > 0 ? std::abs(pairs[order[0]]) : 0;
  const float numbers = text_width(frame.fonts.mono13, "−00.000"),
              to = pen.right - numbers - frame.metrics.px(8), from = to - frame.metrics.px(62);
  for (std::size_t k = 0; k < n_shown; ++k) {
    const double value = pairs[order[k]];
    rest -= value;
    pen.skip(row_height / 2);
    draw_bar_row(pen, of.parts[order[k] % n] + " × " + of.parts[order[k] / n], from, to, value, end,
                 frame.fonts.sans13, frame.palette.text);
    pen.at_right(frame.fonts.mono13, frame.palette.text, signed_text(value, 3));
    frame.landmarks.mark("inspector/sources/pair/" + std::to_string(k), {pen.left, pen.y - 8},
                         {pen.right, pen.y + 8});
    pen.skip(row_height / 2);
  }
  if (order.size() > n_shown)
    draw_total(pen, fmt::format("{} other pairs", count_text(order.size() - n_shown)), rest, 3,
               frame.palette.dim);
  if (of.has_alibi) draw_total(pen, "ALiBi", shown_alibi(frame, of), 3, frame.palette.text);
  draw_total(pen, "sum", shown_sum(frame, of), 3, frame.palette.text);
  if (of.softcap)
    pen.prose("softcap " + number_text(*of.softcap) + " is applied after the sum.", frame.palette.dim);
  if (std::ranges::find(of.parts, "layer below") != of.parts.end())
    pen.prose("Norms follow the blocks here: parts begin at the last norm but one.", frame.palette.dim);
}

/// Returns heads and MLPs by the size of their totals, then the embeddings; before totals are known all
/// parts.
std::vector<PartRow> part_rows(const Frame& frame, const ScoreSources& of) {
  const arma::rowvec by_key = arma::sum(shown_pairs(frame, of), 0);
  const auto direct = [&](const std::string& name) -> std::optional<double> {
    const auto found = std::ranges::find(of.parts, name);
    if (found == of.parts.end()) return std::nullopt;
    return by_key[static_cast<std::size_t>(found - of.parts.begin())];
  };
  std::vector<PartRow> rows, embeddings;
  for (const ScoreSource& source : of.sources) {
    const bool is_embedding = !source.head && !source.name.starts_with("MLP");
    (is_embedding ? embeddings : rows).push_back({source.name, direct(source.name), &source});
  }
  const auto size = [&](const PartRow& row) {
    return of.has_totals ? std::abs(row.source->total) : std::abs(row.direct.value_or(0));
  };
  std::ranges::stable_sort(rows, std::greater<>(), size);
  if (rows.size() > n_sources) rows.resize(n_sources);
  rows.insert(rows.end(), embeddings.begin(), embeddings.end());
  return rows;
}

/// Draws where the selected head read and the weight without the part.
void draw_part_details(Pen& pen, const ScoreSources& of, const PartRow& row, const CellRef& cell) {
  const Frame& frame = pen.frame;
  if (!of.has_totals) return;
  const auto& tokens = frame.displayed.sequence().tokens;
  const float indent = frame.metrics.px(12);
  if (row.source->head && row.source->read) {
    const auto [layer, head] = *row.source->head;
    const auto token = [&](std::size_t i) {
      return quoted_token(i < tokens.size() ? tokens[i] : "") + " " + std::to_string(i);
    };
    pen.skip(row_height / 2);
    const std::string words = "at " + token(cell.column) + " it read ";
    draw_text(frame.fonts.sans13, {pen.left + indent, pen.y}, Align::left_middle, frame.palette.dim, words);
    const float x = pen.left + indent + text_width(frame.fonts.sans13, words);
    if (link(frame, "inspector/sources/read", frame.fonts.sans13, {x, pen.y}, Align::left_middle,
             frame.palette.accent, token(row.source->read->key), "Pins that weight in its layer and head"))
      go_to_layer(frame, layer, {Stage::weights, head, cell.column, row.source->read->key});
    pen.at_right(frame.fonts.mono13, frame.palette.dim, fixed(row.source->read->weight, 4));
    pen.skip(row_height / 2);
  }
  pen.skip(row_height / 2);
  draw_text(frame.fonts.sans13, {pen.left + indent, pen.y}, Align::left_middle, frame.palette.dim,
            "without it the weight is " + fixed(of.weight, 4) + " →");
  pen.at_right(frame.fonts.mono13, frame.palette.text, fixed(row.source->weight_without, 4));
  pen.skip(row_height / 2);
}

void draw_parts(Pen& pen, const ScoreSources& of, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const float total_width = text_width(frame.fonts.mono13, "−00.000"), gap = frame.metrics.px(8),
              direct_right = pen.right - total_width - gap, bar_to = direct_right - total_width - gap,
              bar_from = bar_to - frame.metrics.px(50);
  pen.heading("Parts");
  const float titles = pen.y - frame.metrics.px(13);
  draw_text(frame.fonts.sans13, {direct_right, titles}, Align::right_middle, frame.palette.faint, "direct");
  draw_text(frame.fonts.sans13, {pen.right, titles}, Align::right_middle, frame.palette.faint, "total");
  if (hovers({bar_to, titles - gap}, {direct_right, titles + gap}))
    ImGui::SetTooltip(
        "The sum of the pairs in which it is the part of the key. These numbers sum to the score.");
  if (hovers({direct_right, titles - gap}, {pen.right, titles + gap}))
    ImGui::SetTooltip(
        "What the score above its row's mean loses when this part writes nothing and everything after it is recomputed.");
  const std::vector<PartRow> rows = part_rows(frame, of);
  double end = 0, rest = shown_sum(frame, of) - shown_alibi(frame, of);
  for (const PartRow& row : rows) {
    end = std::max(end, std::abs(of.has_totals ? row.source->total : row.direct.value_or(0)));
    rest -= row.direct.value_or(0);
  }
  const auto& selected = frame.pending.layers->source;
  std::size_t n_direct = 0;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const PartRow& row = rows[k];
    n_direct += row.direct ? 1 : 0;
    const bool is_selected = selected == row.name;
    const ImVec2 corner{pen.left, pen.y}, size{pen.right - pen.left, frame.metrics.px(row_height)};
    platform::move_to(corner);
    const bool pressed = hit_area(("source " + row.name).c_str(), size);
    frame.landmarks.mark_item("inspector/sources/part/" + std::to_string(k));
    const float pad = frame.metrics.px(8);
    if (is_selected || ImGui::IsItemHovered())
      draw_rect({corner.x - pad, corner.y}, {pen.right + pad, corner.y + size.y},
                is_selected ? frame.palette.control.active : frame.palette.control.hovered,
                frame.metrics.px(3));
    if (pressed) frame.commands.add(set<&LayersLook::source>(is_selected ? "" : row.name));
    pen.skip(row_height / 2);
    if (of.has_totals) {
      draw_bar_row(pen, row.name, bar_from, bar_to, row.source->total, end, frame.fonts.sans13,
                   frame.palette.text);
      pen.at_right(frame.fonts.mono13, frame.palette.text, signed_text(row.source->total, 3));
    } else {
      draw_text(frame.fonts.sans13, {pen.left, pen.y}, Align::left_middle, frame.palette.text, row.name);
      draw_dots(frame, {bar_from, pen.y - 1}, bar_to);
    }
    draw_text(frame.fonts.mono13, {direct_right, pen.y}, Align::right_middle, frame.palette.dim,
              row.direct ? signed_text(*row.direct, 3) : "–");
    pen.skip(row_height / 2);
    if (is_selected) draw_part_details(pen, of, row, cell);
  }
  const auto line = [&](const std::string& words, double value, Rgb color) {
    pen.skip(row_height / 2);
    pen.at_left(frame.fonts.sans13, color, words);
    draw_text(frame.fonts.mono13, {direct_right, pen.y}, Align::right_middle, color, signed_text(value, 3));
    pen.skip(row_height / 2);
  };
  if (of.parts.size() > n_direct)
    line(core::text::counted(of.parts.size() - n_direct, "other"), rest, frame.palette.dim);
  line("sum, as parts of the key", shown_sum(frame, of) - shown_alibi(frame, of), frame.palette.text);
}

/// Draws a number as the sum of what parts, or source tokens, have written.
void draw_sum(Pen& pen, const core::circuits::WrittenSum& of, const CellRef& cell) {
  constexpr std::size_t n_listed = 12;
  const Frame& frame = pen.frame;
  const auto& tokens = frame.displayed.sequence().tokens;
  pen.heading(cell.stage == Stage::contexts ? "Source tokens" : "Parts");
  std::vector<std::size_t> order(of.parts.n_elem);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t k) { return std::abs(of.parts[k]); });
  const float to = pen.right - text_width(frame.fonts.mono13, "−00.0000") - frame.metrics.px(8),
              from = to - frame.metrics.px(62);
  double rest = of.value;
  for (std::size_t k = 0; k < std::min(n_listed, order.size()); ++k) {
    const std::size_t part = order[k];
    const std::string name = cell.stage == Stage::contexts && part < tokens.size()
                                 ? quoted_token(tokens[part]) + " " + of.names[part]
                                 : of.names[part];
    pen.skip(row_height / 2);
    draw_bar_row(pen, name, from, to, of.parts[part], std::abs(of.parts[order[0]]), frame.fonts.sans13,
                 frame.palette.text);
    pen.at_right(frame.fonts.mono13, frame.palette.text, signed_text(of.parts[part], 4));
    pen.skip(row_height / 2);
    rest -= of.parts[part];
  }
  if (order.size() > n_listed)
    draw_total(pen, core::text::counted(order.size() - n_listed, "other"), rest, 4, frame.palette.dim);
  draw_total(pen, cell.stage == Stage::contexts ? "sum" : "residual stream", of.value, 4, frame.palette.text);
  frame.landmarks.mark("inspector/sources/sum", {pen.left, pen.y - 18}, {pen.right, pen.y});
}

/// Returns the table that "copy" gives: every pair and every source, with tabs.
std::string table_text(const ScoreSources& of) {
  std::string text = "query part\tkey part\tdirect\tabove row mean\n";
  const std::size_t n = of.parts.size();
  for (std::size_t k = 0; k < of.pairs.n_elem; ++k)
    text += of.parts[k % n] + "\t" + of.parts[k / n] + "\t" + number_text(of.pairs[k]) + "\t" +
            number_text(of.pairs_above_row_mean[k]) + "\n";
  if (of.has_alibi)
    text += "ALiBi\t\t" + number_text(of.alibi) + "\t" + number_text(of.alibi_above_row_mean) + "\n";
  text += "source\ttotal\tweight without it\n";
  for (const ScoreSource& source : of.sources)
    text += source.name + "\t" + number_text(source.total) + "\t" + number_text(source.weight_without) + "\n";
  return text;
}

}  // namespace

bool draw_sources_choice(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  if (!frame.pending.full_model || !(is_score(cell) || is_written_sum(cell)) ||
      frame.displayed.selection.pinned != cell)
    return false;
  const bool shows = frame.pending.layers->shows_sources;
  static const std::array<std::string, 2> words{"Worked", "Sources"};
  pen.skip(8);
  platform::move_to({pen.left, pen.y});
  if (const auto pressed = segmented(frame, "inspector/sources/shown", words, shows ? 1 : 0))
    frame.commands.add(set<&LayersLook::shows_sources>(*pressed == 1));
  pen.y += frame.metrics.frame;
  pen.skip(2);
  return shows;
}

void draw_sources(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const FullModelState& full_model = *frame.pending.full_model;
  if (const std::string reason = no_sources_reason(full_model); !reason.empty())
    return pen.prose(reason, frame.palette.dim);
  if (is_written_sum(cell)) {
    if (const auto* sum = frame.pending.reading->sum_of_sources(full_model, cell))
      return draw_sum(pen, *sum, cell);
    return pen.prose("The sources are being computed.", frame.palette.dim);
  }
  const ScoreSources* of = frame.pending.reading->sources(full_model, cell);
  if (!of)
    return pen.prose(frame.displayed.trace.at(Stage::mask)(cell.row, cell.column) == 0
                         ? "This key is masked, so that its score has no effect."
                         : "The sources are being computed.",
                     frame.palette.dim);
  static const std::array<std::string, 2> words{"row mean", "plain"};
  const bool is_plain = frame.pending.layers->sources_plain;
  pen.skip(4);
  const float middle = pen.y + frame.metrics.frame / 2;
  draw_text(frame.fonts.sans14, {pen.left, middle}, Align::left_middle, frame.palette.dim, "relative to");
  platform::move_to({pen.left + text_width(frame.fonts.sans14, "relative to") + frame.metrics.px(12), pen.y});
  if (const auto pressed = segmented(frame, "inspector/sources/relative", words, is_plain ? 1 : 0))
    frame.commands.add(set<&LayersLook::sources_plain>(*pressed == 1));
  if (of->has_totals &&
      link(frame, "inspector/sources/copy", frame.fonts.sans13, {pen.right, middle}, Align::right_middle,
           frame.palette.accent, "copy", "Copies every pair and every source as a table"))
    frame.commands.add(CopyText{table_text(*of)});
  pen.y += frame.metrics.frame;
  pen.skip(14);
  if (is_plain)
    pen.at_left(frame.fonts.sans13, frame.palette.text, "scaled score");
  else
    pen.at_left(frame.fonts.sans13, frame.palette.text,
                fmt::format("{} − row mean {} =", inspector_text(of->score),
                            inspector_text(of->score - of->above_row_mean)));
  pen.at_right(frame.fonts.mono13, frame.palette.text, inspector_text(shown_sum(frame, *of)));
  frame.landmarks.mark("inspector/sources/sum", {pen.left, pen.y - 8}, {pen.right, pen.y + 8});
  pen.skip(10);
  pen.rule();
  draw_pairs(pen, *of);
  pen.rule();
  draw_parts(pen, *of, cell);
}

}  // namespace app::panels
