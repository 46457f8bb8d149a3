#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/base/color.hpp"
#include "core/base/text.hpp"
#include "core/out/drawing.hpp"

namespace app::widgets {

namespace {

core::color::Shading shading_of(const ColorScale& s) {
  return {s.map, s.ends.low, s.ends.high, s.ends.least};
}

}  // namespace

Rgb ColorScale::color(double number) const {
  return render::color_at(map, dark, render::position_in_range(map, ends.low, ends.high, number, ends.least));
}

double ColorScale::share(double number) const {
  return core::color::bar_fraction(shading_of(*this), number);
}

double ColorScale::number_at(double share) const {
  return core::color::number_at_bar_fraction(shading_of(*this), share);
}

render::ColorMap chosen_map(const ColorChoice& colors, core::attention::Coloring coloring) {
  switch (coloring) {
    case core::attention::Coloring::weights:
      return colors.sequential;
    case core::attention::Coloring::mask:
      return render::ColorMap::mask;
    case core::attention::Coloring::signed_values:
      break;
  }
  return colors.diverging;
}

namespace {

using core::attention::Coloring;

constexpr int steps = 64;
constexpr float bar_thickness = 6, mark_size = 3;  // at scale 1

/// A note on a picture, and a shorter version for narrow places.
struct Note {
  std::string words, brief;
  bool of_low_end = false;  ///< about numbers below the range
  bool is_needed = false;   ///< without it the numbers would be misread
};

/// Returns a note on the pooling, if a pixel stands for several cells.
std::optional<Note> pooling_note(const Frame& frame, const Heatmap& map, const HeatmapLayout& d,
                                 const ColorScale& scale) {
  const render::Pooling pooled = render::pooling(picture_of(frame, map, d, scale));
  if (pooled.rows * pooled.columns < 2) return std::nullopt;
  const std::string block = fmt::format("{} × {}", pooled.rows, pooled.columns);
  return Note{
      std::string("1 pixel shows the ") + core::color::pooling_label(scale.map) + " of " + block + " cells",
      "1 px = " + block};
}

void draw_legend(const Frame& frame, const Heatmap& map, const HeatmapLayout& d, const ColorScale& scale) {
  const auto swatch = [&](float x, float y, double t) {
    const float side = frame.metrics.px(10);
    draw_rect({x, y - side / 2}, {x + side, y + side / 2},
              render::color_at(render::ColorMap::mask, frame.palette.dark, t));
    return x + side + frame.metrics.px(5);
  };
  const bool is_mask = map.stage == Stage::mask;
  const double factor = core::attention::color_range_max(frame.displayed.model, map.stage);
  std::string kept = is_mask ? "unmasked" : "kept, × " + fixed(factor, 2);
  std::string dropped = is_mask ? "masked" : "dropped, × 0", pixels;
  const float gap = frame.metrics.px(12);
  const auto fits = [&] {
    const float words = text_width(frame.fonts.sans12, kept) + text_width(frame.fonts.sans12, dropped) +
                        (pixels.empty() ? 0 : gap + text_width(frame.fonts.sans12, pixels));
    return words + frame.metrics.px(2 * (10 + 5)) + gap <= d.far.x - d.corner.x;
  };
  const auto note = pooling_note(frame, map, d, scale);
  if (note) pixels = note->words;
  if (note && !fits()) pixels = note->brief + ", " + core::color::pooling_label(scale.map);
  if (!is_mask && !fits()) kept = "× " + fixed(factor, 2), dropped = "× 0";
  if (note && !fits()) pixels = note->brief;
  if (!fits()) pixels.clear();
  if (!fits()) return;  // title and marks are enough
  const float y = std::round(d.far.y + frame.metrics.px(12));
  float x = swatch(d.corner.x, y, 1);
  x += draw_text(frame.fonts.sans12, {x, y}, Align::left_middle, frame.palette.faint, kept) + gap;
  const ImU32 ink = packed(readable_on(render::color_at(render::ColorMap::mask, frame.palette.dark, 0)));
  const float left = x;
  x = swatch(x, y, 0);
  if (!is_mask) {
    const float r = frame.metrics.px(3);
    const ImVec2 m{left + frame.metrics.px(5), y};
    draw_cross(m, r, ink, 1.5f);
  }
  x += draw_text(frame.fonts.sans12, {x, y}, Align::left_middle, frame.palette.faint, dropped) + gap;
  draw_text(frame.fonts.sans12, {x, y}, Align::left_middle, frame.palette.dim, pixels);
}

/// Returns the unit of the numbers in the cells, 1 where there are none.
double unit_of_cells(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  return number_style(frame, map, d).font ? unit_in(frame, map) : 1;
}

/// Returns notes on where the picture is not exact.
std::vector<Note> notes_of(const Frame& frame, const Heatmap& map, const HeatmapLayout& d,
                           const ColorScale& scale, double unit) {
  std::vector<Note> notes;
  const ColorLimits& e = scale.ends;
  if (unit != 1) notes.push_back({"× " + unit_text(unit), "× " + unit_text(unit), false, true});
  if (const auto note = pooling_note(frame, map, d, scale)) notes.push_back(*note);
  if (map.other) return notes;
  const double least = scale.is_logarithmic() ? e.least : 0;
  const ClippedCounts* counted = out_of_range_counts(frame, map.stage, map.head, {e.low, e.high, least});
  if (!counted) return notes;
  const ClippedCounts& b = *counted;
  if (b.above > 0)
    notes.push_back({core::text::counted(b.above, "cell") + " above " + end_text(e.high),
                     std::to_string(b.above) + " above"});
  if (b.below > 0)
    notes.push_back({core::text::counted(b.below, "cell") + " below " + end_text(e.low),
                     std::to_string(b.below) + " below", true});
  if (least == 0) return notes;
  if (b.small > 0)
    notes.push_back({core::text::counted(b.small, "cell") + " smaller than " + end_text(least),
                     std::to_string(b.small) + " smaller", true});
  if (b.zero > 0)
    notes.push_back({core::text::counted(b.zero, "cell") + (b.zero == 1 ? " is" : " are") +
                         (marks_masked(map) ? " masked or 0" : " 0") + ", without a logarithm",
                     std::to_string(b.zero) + " are 0", true});
  return notes;
}

/// Draws the tooltip of the bar: its ends, the extremes and all notes.
void draw_tooltip(const Frame& frame, const Heatmap& map, const ColorScale& scale,
                  const std::vector<Note>& notes, ImVec2 min, ImVec2 max) {
  if (!hovers(min, max)) return;
  const ValueRange e = displayed_value_range(frame, map);
  std::string words =
      "colors from " + inspector_text(scale.ends.low) + " to " + inspector_text(scale.ends.high);
  if (scale.is_logarithmic()) words += ", logarithmic from " + inspector_text(scale.ends.least) + " on";
  words += "\nsmallest " + inspector_text(e.smallest) + ", largest " + inspector_text(e.largest);
  if (!notes.empty()) words += "\n" + core::text::joined(notes, "\n", &Note::words);
  platform::push_font(frame.fonts.sans14);
  ImGui::SetTooltip("%s", words.c_str());
  ImGui::PopFont();
}

/// Returns the number at the cross, which the bar marks.
std::optional<double> chosen_number(const HeatmapLayout& d) {
  if (!d.cross || d.row_only) return std::nullopt;
  const double v = d.numbers(d.cross->row, d.cross->column);
  return std::isnan(v) ? std::nullopt : std::optional(v);
}

/// Returns the lines of a note right of a map: two if one is too long.
std::vector<std::string> note_lines(const Frame& frame, const Note& note, float room) {
  const auto fitted = [&](const std::string& words) { return shortened(frame.fonts.sans12, words, room); };
  const std::size_t equals = note.brief.find("= ");
  if (text_width(frame.fonts.sans12, note.brief) <= room || equals == note.brief.npos)
    return {fitted(note.brief)};
  return {fitted(note.brief.substr(0, equals + 1)), fitted(note.brief.substr(equals + 2))};
}

/// Marks where a needed note of a map is drawn.
void mark_note(const Frame& frame, const Heatmap& map, ImVec2 left_middle, const std::string& words) {
  const float half = platform::font_size(frame.fonts.sans12) / 2;
  frame.landmarks.mark(map.place + "/unit", {left_middle.x, left_middle.y - half},
                       {left_middle.x + text_width(frame.fonts.sans12, words), left_middle.y + half});
}

void draw_vertical_bar(const Frame& frame, const Heatmap& map, const HeatmapLayout& d,
                       const ColorScale& scale, const ValueRange& number_range,
                       const std::vector<Note>& notes, double unit) {
  const float thick = frame.metrics.px(bar_thickness), mark = frame.metrics.px(mark_size);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = d.far.x + frame.metrics.px(8), bottom = d.far.y - 1, height = bottom - d.corner.y;
  const auto y_of = [&](double share) { return std::round(bottom - height * static_cast<float>(share)); };
  for (int k = 0; k < steps; ++k)
    draw_rect({x, y_of((k + 1.0) / steps)}, {x + thick, y_of(static_cast<double>(k) / steps)},
              scale.color(scale.number_at((k + 0.5) / steps)));
  const float text_x = x + thick + frame.metrics.px(5), half = frame.metrics.px(6);
  // For maps of one or two rows the end labels are a line apart, beyond the bar.
  const float middle = (d.corner.y + bottom) / 2, half_gap = frame.metrics.px(16) / 2;
  draw_text(frame.fonts.mono12, {text_x, std::min(d.corner.y + half - 2, middle - half_gap)},
            Align::left_middle, frame.palette.dim, end_text(scale.ends.high / unit));
  draw_text(frame.fonts.mono12, {text_x, std::max(bottom - half + 3, middle + half_gap)}, Align::left_middle,
            frame.palette.dim, end_text(scale.number_at(0) / unit));
  for (const double v : {number_range.smallest, number_range.largest}) {
    const float y = y_of(scale.share(v));
    list->AddTriangleFilled({x - 1, y}, {x - 1 - mark, y - mark}, {x - 1 - mark, y + mark},
                            packed(frame.palette.faint));
  }
  if (const auto v = chosen_number(d)) {
    const float y = y_of(scale.share(*v));
    draw_rect({x - 2, y - 2}, {x + thick + 2, y + 2}, frame.palette.background.back);
    draw_rect({x - 2, y - 1}, {x + thick + 2, y + 1}, frame.palette.selection);
  }
  // Notes are next to the end that they concern: an arrow to the next map may begin at the middle.
  const float line = frame.metrics.px(14),
              room = std::min(frame.metrics.px(46), list->GetClipRectMax().x - text_x);
  float from_top = d.corner.y + half - 2, from_bottom = bottom - half + 3;
  for (const Note& note : notes) {
    if (height < frame.metrics.px(44) && !note.is_needed) break;  // the tooltip has them
    for (const std::string& words : note_lines(frame, note, room)) {
      const float y = note.of_low_end ? from_bottom -= line : from_top += line;
      draw_text(frame.fonts.sans12, {text_x, y}, Align::left_middle, frame.palette.dim, words);
      if (note.is_needed) mark_note(frame, map, {text_x, y}, words);
    }
  }
}

bool are_weights_logarithmic(const Frame& frame) {
  return frame.displayed.look.colors.is_logarithmic(Coloring::weights);
}

const char* scale_words(const Frame& frame) {
  return are_weights_logarithmic(frame) ? "back to linear" : "use log scale";
}

void draw_horizontal_bar(const Frame& frame, const Heatmap& map, const HeatmapLayout& d,
                         const ColorScale& scale, const ValueRange& number_range,
                         const std::vector<Note>& notes, double unit) {
  const float thick = frame.metrics.px(bar_thickness), mark = frame.metrics.px(mark_size);
  ImDrawList* list = ImGui::GetWindowDrawList();
  std::string low = end_text(scale.number_at(0) / unit), high = end_text(scale.ends.high / unit);
  const auto room_of = [&](const std::string& end) {
    return end.empty() ? 0 : text_width(frame.fonts.mono12, end) + frame.metrics.px(5);
  };
  const float y = d.far.y + frame.metrics.px(8), shortest = frame.metrics.px(14),
              link = map.other ? 0 : scale_link_width(frame, map.stage, map.head);
  // The low-end label extends left of the picture where there is room; the rest shortens the bar.
  const auto left_end = [&] { return d.corner.x + std::max(0.0f, room_of(low) - map.label_width); };
  const auto bar_width = [&] { return d.far.x - 1 - left_end() - room_of(high) - link; };
  if (bar_width() < shortest) low.clear();  // the tooltip has both ends
  if (bar_width() < shortest) high.clear();
  const float gap = frame.metrics.px(12);
  const auto room_of_words = [&](const std::string& words) {
    return words.empty() ? 0 : text_width(frame.fonts.sans12, words) + gap;
  };
  const std::string needed = notes.empty() || !notes.front().is_needed ? "" : notes.front().brief;
  if (bar_width() - room_of_words(needed) < shortest) high.clear();
  const float left = left_end(), high_room = room_of(high), all = bar_width();
  if (link > 0) draw_scale_link(frame, map.place, {d.far.x, y + thick / 2});
  std::string words = core::text::joined(notes, "; ", &Note::words);
  const float least = frame.metrics.px(72);
  if (room_of_words(words) > all - least) words = core::text::joined(notes, "; ", &Note::brief);
  if (!needed.empty() && room_of_words(words) > all - shortest) words = needed;
  const float wanted = room_of_words(words);
  float words_room = words == needed ? wanted : std::clamp(all - frame.metrics.px(36), 0.0f, wanted);
  // A cut-off beginning says nothing; the tooltip has the whole text.
  if (words_room < wanted && words_room < gap + frame.metrics.px(64)) words_room = 0;
  const float width = std::max(all - words_room, shortest);
  const auto x_of = [&](double share) { return std::round(left + width * static_cast<float>(share)); };
  for (int k = 0; k < steps; ++k)
    draw_rect({x_of(static_cast<double>(k) / steps), y}, {x_of((k + 1.0) / steps), y + thick},
              scale.color(scale.number_at((k + 0.5) / steps)));
  draw_text(frame.fonts.mono12, {left - frame.metrics.px(5), y + thick / 2}, Align::right_middle,
            frame.palette.dim, low);
  draw_text(frame.fonts.mono12, {left + width + frame.metrics.px(5), y + thick / 2}, Align::left_middle,
            frame.palette.dim, high);
  for (const double v : {number_range.smallest, number_range.largest}) {
    const float x = x_of(scale.share(v));
    list->AddTriangleFilled({x, y + thick + 1}, {x - mark, y + thick + 1 + mark},
                            {x + mark, y + thick + 1 + mark}, packed(frame.palette.faint));
  }
  if (const auto v = chosen_number(d)) {
    const float x = x_of(scale.share(*v));
    draw_rect({x - 2, y - 2}, {x + 2, y + thick + 2}, frame.palette.background.back);
    draw_rect({x - 1, y - 2}, {x + 1, y + thick + 2}, frame.palette.selection);
  }
  if (words_room <= gap) return;
  const ImVec2 at{left + width + high_room + gap, y + thick / 2};
  draw_text(frame.fonts.sans12, at, Align::left_middle, frame.palette.dim,
            shortened(frame.fonts.sans12, words, words_room - gap));
  if (!needed.empty()) mark_note(frame, map, at, needed);
}

/// Returns whether linear colors hide nearly all weights: at least 95 % of the nonzero ones are below 0.02,
/// sampled on a grid of 64 × 64 cells.
bool are_mostly_small(const Frame& frame, Stage stage, std::size_t head) {
  constexpr std::size_t min_columns = 40, n_samples = 64;
  constexpr double small = 0.02, share = 0.95;
  if (core::attention::info(stage).coloring != Coloring::weights || !is_ready(frame, stage, head))
    return false;
  const auto& weights = frame.displayed.trace.at(stage, head);
  const std::size_t n_rows = weights.n_rows(), n_columns = weights.n_cols();
  if (n_columns < min_columns) return false;
  std::size_t n_visible = 0, n_small = 0;
  for (std::size_t j = 0; j < n_samples; ++j)
    for (std::size_t i = 0; i < n_samples; ++i) {
      const std::size_t row = (2 * i + 1) * n_rows / (2 * n_samples),
                        column = (2 * j + 1) * n_columns / (2 * n_samples);
      const double weight = weights(row, column);
      if (weight == 0) continue;
      ++n_visible;
      if (weight < small) ++n_small;
    }
  return n_visible > 0 && static_cast<double>(n_small) >= share * static_cast<double>(n_visible);
}

}  // namespace

float scale_link_width(const Frame& frame, Stage stage, std::size_t head) {
  const bool offers = are_weights_logarithmic(frame)
                          ? core::attention::info(stage).coloring == Coloring::weights
                          : are_mostly_small(frame, stage, head);
  if (!offers) return 0;
  return text_width(frame.fonts.sans12, scale_words(frame)) + frame.metrics.px(12);
}

void draw_scale_link(const Frame& frame, const std::string& place, ImVec2 right_middle) {
  if (link(frame, place + "/log", frame.fonts.sans12, right_middle, Align::right_middle, frame.palette.accent,
           scale_words(frame)))
    frame.commands.add(set<&ColorChoice::logarithmic_weights>(!are_weights_logarithmic(frame)),
                       set<&ColorChoice::logarithmic>(false), set<&ColorChoice::locked>(std::nullopt));
  tooltip(are_weights_logarithmic(frame)
              ? "Colors in proportion to the numbers"
              : "95 % of the weights are below 0.02: equal ratios get equal steps of color");
}

std::string end_text(double value) {
  return core::figures::end_text(value, false);
}

float bar_room(const Frame& frame, const Heatmap& map) {
  if (!map.show_bar) return 0;
  if (!map.has_vertical_bar) return frame.metrics.px(26);
  const ColorScale scale = scale_of(frame, map);
  float ends = 0;
  for (const double end : {scale.number_at(0), scale.ends.high})
    ends = std::max(ends, text_width(frame.fonts.mono12, end_text(end)));
  return frame.metrics.px(8 + 6 + 5) + ends;
}

float draw_plain_bar(const Frame& frame, const ColorScale& scale, ImVec2 left_middle, float width) {
  const float gap = frame.metrics.px(5), half = frame.metrics.px(3);
  const std::string low = end_text(scale.number_at(0)), high = end_text(scale.ends.high);
  const float from = left_middle.x +
                     draw_text(frame.fonts.mono12, left_middle, Align::left_middle, frame.palette.dim, low) +
                     gap;
  const auto x_of = [&](int k) { return std::round(from + width * static_cast<float>(k) / steps); };
  for (int k = 0; k < steps; ++k)
    draw_rect({x_of(k), std::round(left_middle.y - half)}, {x_of(k + 1), std::round(left_middle.y + half)},
              scale.color(scale.number_at((k + 0.5) / steps)));
  const float end = from + width + gap;
  return end - left_middle.x +
         draw_text(frame.fonts.mono12, {end, left_middle.y}, Align::left_middle, frame.palette.dim, high);
}

void draw_color_bar(const Frame& frame, const Heatmap& map, const HeatmapLayout& d, const ColorScale& scale) {
  if (coloring_of(map) == Coloring::mask) return draw_legend(frame, map, d, scale);
  const ValueRange number_range = displayed_value_range(frame, map);
  const double unit = unit_of_cells(frame, map, d);
  const std::vector<Note> notes = notes_of(frame, map, d, scale, unit);
  const float room = bar_room(frame, map);
  if (map.has_vertical_bar) {
    draw_vertical_bar(frame, map, d, scale, number_range, notes, unit);
    draw_tooltip(frame, map, scale, notes, {d.far.x + 2, d.corner.y}, {d.far.x + room, d.far.y});
  } else {
    draw_horizontal_bar(frame, map, d, scale, number_range, notes, unit);
    draw_tooltip(frame, map, scale, notes, {d.corner.x, d.far.y + 2}, {d.far.x, d.far.y + room});
  }
}

}  // namespace app::widgets
