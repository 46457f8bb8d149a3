#include "app/ui/panels/dialogs/scan_dialog.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/session/full_model_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/dialogs.hpp"
#include "core/base/text.hpp"

namespace app::panels {
namespace {

using core::scan::HeadTable;

const LiveScan& scan_of(const Frame& frame) {
  return frame.pending.reading->scan();
}

std::string head_name(const HeadTable::HeadRow& row) {
  return fmt::format("{}.{}", row.layer, row.head);
}

/// Returns the largest value of a metric, 1 if there is none above 0.
double end_of(const HeadTable& heads, std::size_t metric) {
  double end = 0;
  for (const HeadTable::HeadRow& row : heads.rows) end = std::max(end, row.values[metric].value_or(0));
  return end > 0.5 && end < 1 ? 1 : end > 0 ? end : 1;
}

/// Returns the end of an axis of a metric, whose quarters are round numbers.
double axis_end(const HeadTable& heads, std::size_t metric) {
  const double end = end_of(heads, metric), power = std::pow(10, std::floor(std::log10(end)));
  for (const double share : {1.0, 2.0, 4.0, 6.0, 8.0})
    if (end <= share * power * (1 + 1e-9)) return share * power;
  return 10 * power;
}

void show_head(const Frame& frame, const HeadTable::HeadRow& row) {
  frame.commands.add(set<&ScanForm::head>(std::pair(row.layer, row.head)), set<&ScanForm::shows_head>(true),
                     set<&ScanForm::example>(std::size_t{0}));
}

void draw_scan_form(const Frame& frame, float width) {
  const ScanForm& now = frame.forms.scan;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, {ImGui::GetStyle().CellPadding.x, frame.metrics.px(3)});
  const FormRows form(frame, "scan", width);
  ImGui::PopStyleVar();
  const char* const browse = "Choose…";
  form.row("texts, one a line");
  const FieldStyle style{
      .width = form.control_width() - button_width(frame, browse) - ImGui::GetStyle().ItemSpacing.x,
      .font = frame.fonts.sans15,
      .alignment = Alignment::left};
  if (const auto texts = text_field(frame, "scan/texts", now.texts, style).text) choose_texts(frame, *texts);
  ImGui::SameLine();
  if (button(frame, "scan/browse", browse, "Chooses a text file, or a .jsonl file with a \"text\" a line"))
    frame.commands.add(ShowDialog{Dialog::open_texts});
  form.row("folder");
  if (const auto folder = text_field(frame, "scan/folder", now.folder, style).text)
    frame.commands.add(set<&ScanForm::folder>(*folder), set<&ScanForm::runs>(false));
}

void draw_state(const Frame& frame, float width) {
  const LiveScan& scan = scan_of(frame);
  std::string words;
  if (scan.is_scanning()) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_fraction_bar(frame, {at.x, at.y + frame.metrics.px(4)}, {at.x + width, at.y + frame.metrics.px(10)},
                      scan.share(), frame.palette.accent);
    reserve_room(at, {width, frame.metrics.px(14)});
    const double left = scan.share() > 0 ? scan.seconds() * (1 / scan.share() - 1) : 0;
    words = fmt::format("{:.0f} % scanned{}; the folder is written every 20 s", scan.share() * 100,
                        left > 0 ? fmt::format(", {:.0f} s left", left) : "");
  } else if (const HeadTable* heads = scan.table()) {
    words = core::text::counted(heads->rows.size(), "head") + " of " + heads->model + " over " +
            texts_words(*heads);
    if (!scan.is_of(*frame.pending.full_model)) words += "; the open model is another one";
  } else {
    words = "Measures of every head over many texts, and the texts on which it has its largest weights.";
  }
  if (const std::string skipped = scan.skipped(frame.forms.scan); !skipped.empty())
    words += (words.ends_with('.') ? " " : ". ") + skipped;
  paragraph(frame.fonts.sans14, frame.palette.dim, width, words);
  if (const std::string error = scan.error(); !error.empty())
    paragraph(frame.fonts.sans14, frame.palette.status.bad, width, error);
}

void draw_table(const Frame& frame, const HeadTable& heads, ImVec2 size) {
  const ScanForm& form = frame.forms.scan;
  const std::size_t by = std::min(form.sorted_by, heads.metrics.size());
  std::vector<const HeadTable::HeadRow*> rows;
  for (const HeadTable::HeadRow& row : heads.rows) rows.push_back(&row);
  if (by > 0)
    std::ranges::stable_sort(rows, std::greater<>(), [by](const HeadTable::HeadRow* row) {
      return row->values[by - 1].value_or(-1);
    });
  std::vector<double> ends;
  for (std::size_t k = 0; k < heads.metrics.size(); ++k)
    ends.push_back(std::max(1.0, end_of(heads, k)));  // shares have the colors of weights

  const float head = frame.metrics.px(52), pitch = frame.metrics.px(21), top = frame.metrics.px(38),
              cell = std::floor((size.x - head - ImGui::GetStyle().ScrollbarSize) /
                                static_cast<float>(std::max<std::size_t>(1, heads.metrics.size())));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  for (std::size_t k = 0; k <= heads.metrics.size(); ++k) {
    const float left = k == 0 ? at.x : at.x + head + cell * static_cast<float>(k - 1);
    const float width = k == 0 ? head : cell;
    platform::move_to({left, at.y});
    if (hit_area(fmt::format("sort {}", k).c_str(), {width, top}))
      frame.commands.add(set<&ScanForm::sorted_by>(k));
    frame.landmarks.mark_item(fmt::format("scan/sort/{}", k));
    draw_focus(frame, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    tooltip(k == 0 ? "Sorts by layer and head" : heads.metrics[k - 1].about + "; sorts by it");
    draw_lines(frame.fonts.sans13, {left + frame.metrics.px(4), at.y + frame.metrics.px(2)},
               width - frame.metrics.px(6), frame.metrics.px(16),
               k == by ? frame.palette.text : frame.palette.dim,
               k == 0 ? "head" : heads.metrics[k - 1].title);
  }
  reserve_room(at, {size.x, top});
  platform::begin_child("scan rows", {size.x, size.y - top - ImGui::GetStyle().ItemSpacing.y}, false);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float from = ImGui::GetScrollY(), visible = ImGui::GetWindowHeight();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const float y = pitch * static_cast<float>(r);
    if (y + pitch < from || y > from + visible) continue;
    const HeadTable::HeadRow& row = *rows[r];
    const ImVec2 corner{start.x, start.y + y};
    const float right = corner.x + head + cell * static_cast<float>(heads.metrics.size());
    platform::move_to(corner);
    if (hit_area(("row " + head_name(row)).c_str(), {right - corner.x, pitch})) show_head(frame, row);
    frame.landmarks.mark_item("scan/head/" + head_name(row));
    const bool is_hovered = ImGui::IsItemHovered(), is_chosen = std::pair(row.layer, row.head) == form.head;
    draw_text(frame.fonts.mono13, {corner.x + frame.metrics.px(4), corner.y + pitch / 2}, Align::left_middle,
              is_chosen ? frame.palette.text : frame.palette.dim, head_name(row));
    for (std::size_t k = 0; k < heads.metrics.size(); ++k) {
      const ImVec2 place{corner.x + head + cell * static_cast<float>(k), corner.y};
      const auto& value = row.values[k];
      const Rgb color = render::color_at(frame.displayed.look.colors.sequential, frame.palette.dark,
                                         std::clamp(value.value_or(0) / ends[k], 0.0, 1.0));
      if (value) draw_rect(place, {place.x + cell - 1, place.y + pitch - 1}, color);
      draw_text(frame.fonts.mono12, {place.x + cell - frame.metrics.px(8), place.y + pitch / 2},
                Align::right_middle, value ? core::color::readable_on(color) : frame.palette.faint,
                value ? fixed(*value, 2) : "–");
    }
    if ((is_chosen && form.shows_head) || is_hovered)
      outline(corner, {right, corner.y + pitch}, frame.palette.selection, is_hovered ? 1 : 2);
  }
  reserve_room(start, {1, pitch * static_cast<float>(rows.size())});
  ImGui::EndChild();
}

void draw_scatter(const Frame& frame, const HeadTable& heads, ImVec2 size) {
  const ScanForm& form = frame.forms.scan;
  std::vector<Option> options;
  for (const HeadTable::Metric& metric : heads.metrics) options.push_back({metric.title, metric.about});
  const std::size_t x = std::min(form.across, options.size() - 1), y = std::min(form.up, options.size() - 1);
  const float combo_width = frame.metrics.px(150);
  if (const auto next = combo(frame, "scan/up", combo_width, options, y))
    frame.commands.add(set<&ScanForm::up>(*next));
  ImGui::SameLine();
  inline_label(frame, "against");
  if (const auto next = combo(frame, "scan/across", combo_width, options, x))
    frame.commands.add(set<&ScanForm::across>(*next));
  const float labels = frame.metrics.px(44), foot = frame.metrics.px(40);
  const ImVec2 at = ImGui::GetCursorScreenPos(), min{at.x + labels, at.y + frame.metrics.px(10)},
               max{at.x + size.x - frame.metrics.px(22), at.y + size.y - frame.metrics.frame - foot};
  reserve_room(at, {size.x, max.y + foot - at.y - ImGui::GetStyle().ItemSpacing.y});
  draw_rect(min, max, frame.palette.background.back);
  const double ends[]{axis_end(heads, x), axis_end(heads, y)};
  constexpr int n_ticks = 4;
  for (int k = 0; k <= n_ticks; ++k) {
    const float share = static_cast<float>(k) / n_ticks;
    const auto tick = [share](double end) { return fixed(share * end, end < 0.1 ? 4 : end < 100 ? 2 : 0); };
    const float left = min.x + share * (max.x - min.x), top = max.y - share * (max.y - min.y);
    draw_rect({left, min.y}, {left + 1, max.y}, frame.palette.control.rest);
    draw_rect({min.x, top}, {max.x, top + 1}, frame.palette.control.rest);
    draw_text(frame.fonts.mono12, {left, max.y + frame.metrics.px(10)}, Align::middle, frame.palette.dim,
              tick(ends[0]));
    draw_text(frame.fonts.mono12, {min.x - frame.metrics.px(6), top}, Align::right_middle, frame.palette.dim,
              tick(ends[1]));
  }
  draw_text(frame.fonts.sans13, {(min.x + max.x) / 2, max.y + frame.metrics.px(28)}, Align::middle,
            frame.palette.dim, heads.metrics[x].title + "; brighter points: later layers");

  const float radius = frame.metrics.px(5);
  const HeadTable::HeadRow* nearest = nullptr;
  ImVec2 place_of_nearest;
  float distance = frame.metrics.px(12);
  const std::size_t n_layers = heads.rows.empty() ? 1 : heads.rows.back().layer + 1;
  for (const HeadTable::HeadRow& row : heads.rows) {
    if (!row.values[x] || !row.values[y]) continue;
    const ImVec2 place{min.x + static_cast<float>(*row.values[x] / ends[0]) * (max.x - min.x),
                       max.y - static_cast<float>(*row.values[y] / ends[1]) * (max.y - min.y)};
    const double layer = static_cast<double>(row.layer + 1) / static_cast<double>(n_layers);
    const Rgb color =
        render::color_at(frame.displayed.look.colors.sequential, frame.palette.dark, 0.3 + 0.7 * layer);
    ImGui::GetWindowDrawList()->AddCircleFilled(place, radius, packed(color, 0.85f));
    frame.landmarks.mark("scan/point/" + head_name(row), {place.x - radius, place.y - radius},
                         {place.x + radius, place.y + radius});
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const float away = std::hypot(mouse.x - place.x, mouse.y - place.y);
    if (away < distance) nearest = &row, distance = away, place_of_nearest = place;
  }
  platform::move_to(min);
  const bool pressed = hit_area("scatter", {max.x - min.x, max.y - min.y});
  if (!nearest || !ImGui::IsItemHovered()) return;
  ImGui::GetWindowDrawList()->AddCircle(place_of_nearest, radius + 2, packed(frame.palette.selection), 0, 2);
  ImGui::SetTooltip(
      "%s", fmt::format("head {}: {} {}, {} {}", head_name(*nearest), heads.metrics[y].title,
                        fixed(*nearest->values[y], 3), heads.metrics[x].title, fixed(*nearest->values[x], 3))
                .c_str());
  if (pressed) show_head(frame, *nearest);
}

void draw_example(const Frame& frame, const ShownExample& example, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float side = std::floor(std::min(size.x / 2, size.y));
  render::HeatmapPicture picture;
  picture.place = "scan/pattern";
  picture.cells.numbers = &example.pattern;
  picture.cells.version = scan_of(frame).version() * core::scan::n_examples + frame.forms.scan.example;
  picture.map = frame.displayed.look.colors.sequential;
  picture.dark = frame.palette.dark;
  picture.low = 0, picture.high = 1;
  picture.width = picture.height = static_cast<int>(side);
  const auto n = static_cast<double>(example.pattern.n_rows);
  picture.part = {0, 0, n, n};
  picture.gaps = side / static_cast<float>(n) >= frame.metrics.px(8);
  ImGui::GetWindowDrawList()->AddImage(frame.painter.paint(picture), at, {at.x + side, at.y + side});
  frame.landmarks.mark("scan/pattern", at, {at.x + side, at.y + side});
  const float left = at.x + side + frame.metrics.px(12), width = at.x + size.x - left;
  const float button_top = at.y + side - frame.metrics.frame;
  const auto n_lines =
      static_cast<std::size_t>((button_top - at.y - frame.metrics.px(8)) / frame.metrics.px(18));
  draw_lines(frame.fonts.sans14, {left, at.y}, width, frame.metrics.px(18), frame.palette.text,
             visible_token(example.of.sequence->text), n_lines);
  platform::move_to({left, button_top});
  const auto [layer, head] = frame.forms.scan.head;
  if (button(frame, "scan/open", "Open as the prompt", "Reads this text with the model and shows the head")) {
    frame.commands.add(ReadText{example.of.sequence->text}, set<&Look::tab>(Tab::layers));
    if (scan_of(frame).is_of(*frame.pending.full_model))
      frame.commands.add(ShowLayer{layer}, set<&Look::head>(head));
    close_dialog(frame);
  }
  reserve_room(at, {size.x, side});
}

void draw_head(const Frame& frame, ImVec2 size) {
  const ScanForm& form = frame.forms.scan;
  const auto* examples = scan_of(frame).examples(form);
  if (!examples) return;
  if (examples->empty())
    return paragraph(frame.fonts.sans14, frame.palette.dim, size.x, "This head has no examples.");
  const float pitch = frame.metrics.px(20);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const std::size_t n = std::min(examples->size(), core::scan::n_examples),
                    chosen = std::min(form.example, n - 1);
  for (std::size_t k = 0; k < n; ++k) {
    const ShownExample& example = (*examples)[k];
    const core::scan::ScannedText& of = *example.of.sequence;
    const ImVec2 corner{start.x, start.y + pitch * static_cast<float>(k)};
    const ImVec2 end{corner.x + size.x, corner.y + pitch};
    platform::move_to(corner);
    if (hit_area(fmt::format("example {}", k).c_str(), {size.x, pitch}))
      frame.commands.add(set<&ScanForm::example>(k));
    frame.landmarks.mark_item(fmt::format("scan/example/{}", k));
    if (k == chosen) draw_rect(corner, end, frame.palette.control.active, 2);
    if (ImGui::IsItemHovered()) outline(corner, end, frame.palette.selection, 1);
    const float middle = corner.y + pitch / 2;
    draw_text(frame.fonts.mono13, {corner.x + frame.metrics.px(44), middle}, Align::right_middle,
              frame.palette.text, fixed(example.of.strength, 2));
    const std::string words = fmt::format("{} {} → {} {}", quoted_token(of.tokens[example.query]),
                                          example.query, quoted_token(of.tokens[example.key]), example.key);
    draw_text(frame.fonts.sans14, {corner.x + frame.metrics.px(56), middle}, Align::left_middle,
              frame.palette.text, shortened(frame.fonts.sans14, words, size.x - frame.metrics.px(130)));
    draw_text(frame.fonts.sans13, {end.x - frame.metrics.px(4), middle}, Align::right_middle,
              frame.palette.dim, fmt::format("line {}", of.line));
  }
  const float used = pitch * static_cast<float>(n) + frame.metrics.px(12);
  reserve_room(start, {size.x, used - ImGui::GetStyle().ItemSpacing.y});
  draw_example(frame, (*examples)[chosen], {size.x, size.y - used});
}

void draw_heads_of_scan(const Frame& frame, const HeadTable& heads, float width) {
  const float height = std::clamp(ImGui::GetIO().DisplaySize.y - frame.metrics.px(340), frame.metrics.px(240),
                                  frame.metrics.px(620)),
              gap = frame.metrics.px(16), left = std::floor((width - gap) * 0.54f);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  platform::begin_child("scan rows", {left, height}, false);
  draw_table(frame, heads, {left, height});
  ImGui::EndChild();
  platform::move_to({at.x + left + gap, at.y});
  platform::begin_child("scan side", {width - left - gap, height}, false);
  const auto [layer, head] = frame.forms.scan.head;
  const std::vector<std::string> sides{"Two measures", fmt::format("Examples of head {}.{}", layer, head)};
  if (const auto side = segmented(frame, "scan/side", sides, frame.forms.scan.shows_head ? 1 : 0))
    frame.commands.add(set<&ScanForm::shows_head>(*side == 1));
  const ImVec2 room{width - left - gap, height - frame.metrics.frame - 2 * ImGui::GetStyle().ItemSpacing.y};
  if (frame.forms.scan.shows_head)
    draw_head(frame, room);
  else if (!heads.metrics.empty())
    draw_scatter(frame, heads, room);
  ImGui::EndChild();
}

}  // namespace

void choose_texts(const Frame& frame, const std::string& texts) {
  if (!frame.pending.full_model) return;
  frame.commands.add(set<&ScanForm::texts>(texts), set<&ScanForm::runs>(false),
                     set<&ScanForm::folder>(scan_folder(texts, *frame.pending.full_model)));
}

void draw_scan_dialog(const Frame& frame) {
  const float width = dialog_width(frame, 1120);
  if (!frame.pending.full_model) return close_dialog(frame);
  draw_scan_form(frame, width);
  draw_state(frame, width);
  if (const HeadTable* heads = scan_of(frame).table()) draw_heads_of_scan(frame, *heads, width);
  const ScanForm& form = frame.forms.scan;
  const bool is_running = form.runs && scan_of(frame).is_scanning();
  const std::string_view pressed =
      dialog_foot(frame, width, {"dialog/confirm", is_running ? "Stop" : "Scan", !form.texts.empty()},
                  {"dialog/cancel", "Close"});
  if (pressed == "dialog/cancel") close_dialog(frame);
  if (pressed == "dialog/confirm") frame.commands.add(set<&ScanForm::runs>(!is_running));
}

}  // namespace app::panels
