#include "app/ui/panels/compare/compare_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "app/session/jobs.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "core/graph/compare.hpp"

namespace app::panels {

namespace {

using core::attention::Coloring;
using core::attention::Columns;
using core::attention::StageInfo;
using core::compare::DifferenceKind;

/// Positions of the three columns of the comparison, relative to the left edge, in pixels.
struct CompareLayout {
  float width = 0;  ///< of all
  float label_a = 0,
        label = 0;   ///< room for row names left of A's pictures, and for indices left of the others
  float column = 0;  ///< the widest picture
  int square = 0, height = 0;  ///< of a token × token picture; every picture is as high
  bool column_tokens = true;   ///< names above the columns

  /// Left edge of the labels of column 0 (A), 1 (B) or 2 (the difference).
  float left(std::size_t k) const {
    return k == 0 ? 0 : label_a + column + gap + (static_cast<float>(k) - 1) * (label + column + gap);
  }
  /// Left edge of its pictures.
  float picture_left(std::size_t k) const { return left(k) + (k == 0 ? label_a : label); }
  /// Returns the width of a picture with n_columns.
  int cells_width(const Metrics& metrics, std::size_t n_columns) const;

  float gap = 0;  ///< between the columns
};

constexpr float header_height = 36, title_height = 26, stage_gap = 10;

const std::array<std::string, 3> kinds{"A − B", "|A − B|", "relative"};

void draw_empty(const Frame& frame) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float x = at.x + frame.metrics.px(8),
              width =
                  std::min(ImGui::GetContentRegionAvail().x - frame.metrics.px(16), frame.metrics.px(560));
  draw_text(frame.fonts.sans17, {x, at.y + frame.metrics.px(24)}, Align::left_middle, frame.palette.text,
            "Nothing to compare with yet");
  platform::move_to({x, at.y + frame.metrics.px(44)});
  paragraph(
      frame.fonts.sans15, frame.palette.dim, width,
      "Take a snapshot of the model as A, then change something: this view shows A, the live model B, and their difference, stage by stage. Or see what a single option changes.");
  Pen pen{frame, x, x + std::min(width, frame.metrics.px(360)),
          ImGui::GetItemRectMax().y + frame.metrics.px(16)};
  draw_references(pen);
  reserve_room(at, {1, pen.y - at.y});
}

void draw_reference_chooser(const Frame& frame, float width) {
  std::vector<Option> options;
  for (const Reference& r : frame.compared.references) options.push_back({r.name + " · " + r.title, ""});
  const std::size_t now = frame.displayed.look.compared.reference;
  if (const auto chosen = combo(frame, "compare/reference", width, options, now))
    frame.commands.add(set<&ComparedLook::reference>(*chosen));
}

/// Draws the header above the columns: A, B, and the kind of difference.
void draw_header(const Frame& frame, const CompareLayout& l, ImVec2 origin, bool swapped) {
  const Metrics& m = frame.metrics;
  const float top = origin.y + std::round((m.px(header_height) - m.frame) / 2), middle = top + m.frame / 2;
  const auto letter = [&](std::size_t k, const char* words) {
    const float x = origin.x + l.picture_left(k);
    draw_text(frame.fonts.sans17, {x, middle}, Align::left_middle, frame.palette.text, words);
    return x + m.px(20);
  };
  const std::size_t kept = frame.compared.references[frame.displayed.look.compared.reference].tensors ? 1 : 0,
                    live = 1 - kept;
  const std::array<float, 2> after{letter(0, "A"), letter(1, swapped ? "A" : "B")};
  const float drop = m.px(26);
  platform::move_to({after[kept], top});
  draw_reference_chooser(frame,
                         std::max(m.px(60), origin.x + l.picture_left(kept) + l.column - after[kept] - drop));
  ImGui::SameLine(0, m.px(4));
  if (button(frame, "reference/drop", "×", kept == 0 ? "Remove this snapshot" : "Remove these tensors"))
    frame.commands.add(RemoveReference{});
  const bool in_place = swapped && live == 1;
  const std::string title =
      in_place ? "in place of B" : frame.document.title + (frame.document.modified ? ", edited" : "");
  const ImVec2 words{after[live], centered_y(frame.fonts.sans15, top, m.frame)};
  draw_text_within(frame.fonts.sans15, words, origin.x + l.picture_left(live) + l.column - after[live],
                   in_place ? frame.palette.status.warning : frame.palette.dim, title);
  platform::move_to({std::min(origin.x + l.picture_left(2), origin.x + l.width - m.px(196)), top});
  if (const auto kind = segmented(frame, "compare/kind", kinds,
                                  static_cast<std::size_t>(frame.displayed.look.compared.difference)))
    frame.commands.add(set<&ComparedLook::difference>(static_cast<DifferenceKind>(*kind)));
}

void draw_warning(const Frame& frame, ImVec2 middle) {
  const float r = frame.metrics.px(6);
  ImGui::GetWindowDrawList()->AddTriangleFilled({middle.x, middle.y - r}, {middle.x - r, middle.y + r},
                                                {middle.x + r, middle.y + r},
                                                packed(frame.palette.status.warning));
}

std::string result_words(const Frame& frame, const ComparedStage& stage) {
  if (!stage.all.obstacle.empty()) return stage.all.obstacle + ": cannot be compared";
  if (!stage.all.differs())
    return stage.all.largest > 0 ? "equal to rounding, largest " + compared_number(stage.all.largest)
                                 : "identical";
  if (stage.within) return "within tolerance, largest " + compared_number(stage.all.largest);
  const std::size_t head = frame.compared.comparison->key.head;
  const bool per_head = core::attention::info(stage.all.stage).per_head;
  if (stage.shown.distance == 0) return fmt::format("equal in head {}, not in head {}", head, stage.all.head);
  std::string place = compared_cell(frame, {stage.all.stage, head, stage.shown.row, stage.shown.column});
  if (per_head) place = place.substr(place.find(": ") + 2);
  return "largest" + (per_head ? " in head " + std::to_string(head) : "") + ": " +
         compared_number(stage.shown.distance) + " at " + place;
}

/// Draws the name and formula of a stage, and the result of its comparison.
void draw_title(const Frame& frame, const ComparedStage& stage, ImVec2 at, float width) {
  const StageInfo& info = core::attention::info(stage.all.stage);
  const Metrics& m = frame.metrics;
  const float middle = at.y + m.px(title_height) / 2;
  ImFont* title = m.compact ? frame.fonts.sans16 : frame.fonts.sans17;
  const Rgb ink = !stage.within ? frame.palette.text : frame.palette.dim;
  draw_text(title, {at.x, middle}, Align::left_middle, ink, info.title);
  const float named = text_width(title, info.title);
  if (frame.displayed.has(info.stage))
    draw_title_area(frame, std::string("compare/title/") + info.name, info.stage, frame.displayed.look.head,
                    {at.x, at.y + m.px(2)}, {named, m.px(title_height - 4)});
  float x = at.x + named + m.px(10);
  if (!stage.formula.empty()) {
    ImFont* font = frame.fonts.sans14;
    x += draw_formula(font, {x, centered_y(font, at.y, m.px(title_height))}, frame.palette.dim,
                      stage.formula) +
         m.px(16);
  }
  if (&stage == frame.compared.comparison->first) {
    draw_warning(frame, {x + m.px(6), middle});
    x += m.px(18);
    x += draw_text(frame.fonts.sans14, {x, middle}, Align::left_middle, frame.palette.status.warning,
                   "first difference") +
         m.px(12);
  }
  draw_text(frame.fonts.sans14, {at.x + width, middle}, Align::right_middle, frame.palette.dim,
            shortened(frame.fonts.sans14, result_words(frame, stage), std::max(m.px(20), at.x + width - x)));
}

// At scale 1.
constexpr float smallest_whole_cell = 4, widest_cell = 64, highest_cell = 26, narrowest_number_cell = 27,
                max_named_tokens = 24;

int CompareLayout::cells_width(const Metrics& m, std::size_t n_columns) const {
  return cells_length(column, n_columns, m.px(widest_cell), m.px(smallest_whole_cell));
}

/// Numbers of a stage in A or B, with the masks of their cells.
struct ComparedSide {
  const arma::mat& numbers;
  const core::attention::Sequence& sequence;
  const ValueRange& number_range;
  const arma::mat &visible, &kept;  ///< 0 = masked; 0 = dropped
};

/// Returns the color range shared by A and B.
ColorLimits shared_color_range(const Frame& frame, const ComparedStage& stage) {
  const StageInfo& info = core::attention::info(stage.all.stage);
  if (info.coloring != Coloring::signed_values)
    return {0, std::max(core::attention::color_range_max(frame.compared.comparison->model, info.stage),
                        core::attention::color_range_max(frame.compared.comparison->live, info.stage))};
  const double max_abs = std::max({-stage.a.smallest, stage.a.largest, -stage.b.smallest, stage.b.largest});
  return {-max_abs, max_abs};
}

void draw_tooltip(const Frame& frame, const ComparedStage& stage) {
  const std::optional<CellRef>& cell = frame.displayed.selection.hovered;
  if (!ImGui::IsItemHovered() || !cell || cell->stage != stage.all.stage) return;
  const auto numbers = compared_numbers(frame, *cell);
  if (!numbers) return;
  const auto& [a, b] = *numbers;
  const std::string words = compared_cell(frame, *cell) + "\nA      " + number_text(a) + "\nB      " +
                            number_text(b) + "\nA − B  " +
                            number_text(core::compare::difference(DifferenceKind::a_minus_b, a, b));
  platform::push_font(frame.fonts.mono13);
  ImGui::SetTooltip("%s", words.c_str());
  ImGui::PopFont();
}

Heatmap make_heatmap(const Frame& frame, const CompareLayout& l, const ComparedStage& stage,
                     std::size_t column) {
  static constexpr std::array names{"/a", "/b", "/difference"};
  const StageInfo& info = core::attention::info(stage.all.stage);
  Heatmap map;
  map.place = std::string("compare/") + info.name + names[column];
  map.stage = info.stage;
  map.head = info.per_head ? frame.compared.comparison->key.head : 0;
  map.width =
      info.columns == Columns::tokens ? l.square : l.cells_width(frame.metrics, stage.difference.n_cols);
  map.height = l.height;
  map.label_width = column == 0 ? l.label_a : l.label;
  map.row_tokens = column == 0;
  if (!l.column_tokens) map.columns = ColumnLabels::indices;
  // The legend of a mask describes the live model; every other bar is the same for A and B.
  map.show_bar = column == 2 || (info.coloring == Coloring::mask) == (column == 1);
  return map;
}

void draw_side(const Frame& frame, const CompareLayout& l, const ComparedStage& stage,
               const ComparedSide& side, std::size_t column, ImVec2 at) {
  const StageInfo& info = core::attention::info(stage.all.stage);
  Heatmap map = make_heatmap(frame, l, stage, column);
  OtherNumbers numbers{.numbers = &side.numbers,
                       .version = frame.compared.comparison->revision,
                       .ends = shared_color_range(frame, stage),
                       .rows = &row_tokens(info, side.sequence),
                       .keys = &side.sequence.keys(),
                       .shows_stage = true,
                       .number_range = &side.number_range};
  if (info.columns == Columns::tokens && info.coloring == Coloring::weights) numbers.visible = &side.visible;
  if (info.stage == Stage::dropout_mask || info.stage == Stage::dropped_weights) numbers.kept = &side.kept;
  map.other = &numbers;
  draw_heatmap(frame, map, {at.x + l.left(column), at.y});
  draw_tooltip(frame, stage);
}

void draw_difference(const Frame& frame, const CompareLayout& l, const ComparedStage& stage, ImVec2 at) {
  const StageInfo& info = core::attention::info(stage.all.stage);
  const bool is_signed = frame.compared.comparison->key.kind != DifferenceKind::absolute;
  const double max_abs = std::max(-stage.difference_range.smallest, stage.difference_range.largest);
  Heatmap map = make_heatmap(frame, l, stage, 2);
  OtherNumbers numbers{.numbers = &stage.difference,
                       .version = frame.compared.comparison->revision,
                       .ends = {is_signed ? -max_abs : 0, max_abs},
                       .rows = &row_tokens(info, live_sequence(*frame.compared.comparison)),
                       .shows_stage = true,
                       .coloring = is_signed ? Coloring::signed_values : Coloring::weights,
                       .number_range = &stage.difference_range};
  if (info.columns == Columns::tokens && info.coloring == Coloring::weights)
    numbers.visible = &frame.compared.comparison->visible;
  map.other = &numbers;
  draw_heatmap(frame, map, {at.x + l.left(2), at.y});
  if (&stage == frame.compared.comparison->first && stage.shown.distance != 0) {
    const ImVec2 corner{std::round(at.x + l.picture_left(2)),
                        std::round(at.y + column_label_height(frame, map))};
    const ImVec2 cell{static_cast<float>(map.width) / static_cast<float>(stage.difference.n_cols),
                      static_cast<float>(map.height) / static_cast<float>(stage.difference.n_rows)};
    const ImVec2 min{corner.x + cell.x * static_cast<float>(stage.shown.column),
                     corner.y + cell.y * static_cast<float>(stage.shown.row)};
    outline({min.x - 2, min.y - 2}, {min.x + cell.x + 1, min.y + cell.y + 1}, frame.palette.status.warning,
            2);
    frame.landmarks.mark("compare/first_cell", min, {min.x + cell.x, min.y + cell.y});
  }
  draw_tooltip(frame, stage);
}

/// Draws one stage of A, of B and their difference side by side, linked cell by cell; returns their height.
///
/// swapped: A is displayed in B's place, too.
float draw_compared_maps(const Frame& frame, const CompareLayout& l, const ComparedStage& stage, ImVec2 at,
                         bool swapped) {
  const ReferenceComparison& c = *frame.compared.comparison;
  const core::attention::Sequence &of_reference = c.model.sequences[c.sequence], &of_live = live_sequence(c);
  // Tensors are B, on the right, and masked as in the model.
  const bool of_tensors = c.tensors != nullptr;
  const ComparedSide a{stage.numbers_a, of_tensors ? of_live : of_reference, stage.a,
                       of_tensors ? c.visible_live : c.visible_reference,
                       of_tensors ? c.dropout_mask_live : c.dropout_mask_reference};
  const ComparedSide b{stage.numbers_b, of_tensors ? of_reference : of_live, stage.b,
                       of_tensors ? c.visible_reference : c.visible_live,
                       of_tensors ? c.dropout_mask_reference : c.dropout_mask_live};
  const Heatmap map = make_heatmap(frame, l, stage, 0);
  const float height = column_label_height(frame, map) + static_cast<float>(l.height) + frame.metrics.px(34);
  if (!ImGui::IsRectVisible(at, {at.x + l.width, at.y + height})) return height;
  draw_side(frame, l, stage, a, 0, at);
  draw_side(frame, l, stage, swapped ? a : b, 1, at);
  draw_difference(frame, l, stage, at);
  return height;
}

bool is_identical(const ComparedStage& stage) {
  return stage.all.obstacle.empty() && !stage.all.differs() && stage.all.largest == 0;
}

/// Draws the titles of identical stages side by side; returns the height of their lines.
float draw_identical(const Frame& frame, const CompareLayout& l, std::span<const ComparedStage> stages,
                     ImVec2 at) {
  const Metrics& m = frame.metrics;
  ImFont* font = m.compact ? frame.fonts.sans16 : frame.fonts.sans17;
  Flow flow{at, l.width - m.px(80), m.px(20), m.px(title_height)};
  for (const ComparedStage& stage : stages) {
    const StageInfo& info = core::attention::info(stage.all.stage);
    const float width = text_width(font, info.title);
    const ImVec2 min = flow.place(width), max{min.x + width, min.y + m.px(title_height)};
    draw_text(font, {min.x, (min.y + max.y) / 2}, Align::left_middle, frame.palette.dim, info.title);
    if (frame.displayed.has(info.stage))
      draw_title_area(frame, std::string("compare/title/") + info.name, info.stage, frame.displayed.look.head,
                      {min.x, min.y + m.px(2)}, {width, m.px(title_height - 4)});
    frame.landmarks.mark(std::string("compare/block/") + info.name, min, max);
  }
  draw_text(frame.fonts.sans14, {at.x + l.width, at.y + m.px(title_height) / 2}, Align::right_middle,
            frame.palette.dim, result_words(frame, stages.front()));
  return flow.next.y + m.px(title_height) - at.y;
}

void draw_compared_stages(const Frame& frame, const CompareLayout& l, bool swapped) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImVec2 at = origin;
  const std::span<const ComparedStage> all = frame.compared.comparison->stages;
  for (std::size_t k = 0, end = 0; k < all.size(); k = end) {
    for (end = k; end < all.size() && is_identical(all[end]);) ++end;
    const bool are_identical = end > k;
    if (!are_identical) ++end;
    const auto part = all.subspan(k, end - k);
    const ImVec2 start = at;
    const auto target = [&](const ComparedStage& stage) {
      return frame.displayed.selection.scroll_target == stage.all.stage;
    };
    if (std::ranges::any_of(part, target)) {
      ImGui::SetScrollY(start.y - origin.y);
      frame.commands.add(set<&Selection::scroll_target>(std::nullopt));
    }
    if (are_identical) {
      at.y += draw_identical(frame, l, part, at);
      continue;
    }
    const ComparedStage& stage = part.front();
    draw_title(frame, stage, at, l.width);
    at.y += frame.metrics.px(title_height);
    const bool pictured = stage.all.same_shape && stage.all.differs();
    if (pictured) at.y += draw_compared_maps(frame, l, stage, at, swapped) + frame.metrics.px(stage_gap);
    frame.landmarks.mark(std::string("compare/block/") + core::attention::info(stage.all.stage).name, start,
                         {at.x + l.width, at.y});
  }
  reserve_room(origin, {l.width, std::max(1.0f, at.y - origin.y)});
}

/// Computes the layout of three pictures of n_tokens × n_tokens side by side in that width.
CompareLayout compare_layout(const Metrics& m, std::size_t n_tokens, float width) {
  CompareLayout l;
  l.width = width;
  l.label_a = m.px(m.compact ? 60 : 76);
  l.label = m.px(n_tokens > 100 ? 34 : 22);
  l.gap = m.px(m.compact ? 16 : 26);
  l.column = std::max(m.px(60), std::floor((width - l.label_a - 2 * l.label - 2 * l.gap) / 3));
  l.square = l.cells_width(m, n_tokens);
  const float cell = static_cast<float>(l.square) / static_cast<float>(n_tokens);
  const float high = cell >= m.px(narrowest_number_cell)
                         ? std::min(std::round(cell * 24 / 39), m.px(highest_cell))
                         : std::min(cell, m.px(highest_cell));
  l.height = std::max(1, static_cast<int>(std::round(high * static_cast<float>(n_tokens))));
  l.column_tokens = static_cast<float>(n_tokens) <= max_named_tokens;
  return l;
}

}  // namespace

void draw_compare(const Frame& frame) {
  if (frame.compared.references.empty()) return draw_empty(frame);
  const ImVec2 origin = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const std::size_t n_tokens =
      (frame.compared.comparison ? frame.compared.comparison->live : frame.displayed.model).n_tokens();
  const CompareLayout l = compare_layout(frame.metrics, n_tokens, room.x - ImGui::GetStyle().ScrollbarSize);
  const bool swapped = frame.displayed.selection.shows_reference;
  draw_header(frame, l, origin, swapped);
  const float top = frame.metrics.px(header_height);
  if (!frame.compared.comparison) {  // only briefly for small models
    if (frame.compared.work.seconds < busy_delay_seconds) return;
    const float middle = origin.y + top + frame.metrics.px(title_height) / 2;
    draw_text(frame.fonts.sans14, {origin.x, middle}, Align::left_middle, frame.palette.dim,
              "Comparing every stage of every head…");
    return;
  }
  platform::move_to({origin.x, origin.y + top});
  const bool zooms = frame.displayed.selection.hovered && !ImGui::GetIO().KeyShift;
  platform::begin_child("comparison", {room.x, std::max(1.0f, room.y - top)}, false,
                        zooms ? ImGuiWindowFlags_NoScrollWithMouse : 0);
  draw_compared_stages(frame, l, swapped);
  ImGui::EndChild();
}

namespace {

/// Draws a card with a title and a description, with an accent edge while it is on; returns true when it was
/// pressed.
bool experiment(Pen& pen, const std::string& name, const std::string& title, const std::string& about,
                const char* help, bool is_on) {
  const Frame& frame = pen.frame;
  const Metrics& m = frame.metrics;
  const ImVec2 min{pen.left, pen.y}, max{pen.right, pen.y + m.px(41)};
  platform::move_to(min);
  const bool pressed = hit_area(name.c_str(), {max.x - min.x, max.y - min.y});
  frame.landmarks.mark_item(name);
  const auto& control = frame.palette.control;
  draw_rect(min, max, is_on || ImGui::IsItemHovered() ? control.hovered : control.rest, m.px(3));
  if (is_on) draw_rect(min, {min.x + m.px(3), max.y}, frame.palette.accent);
  draw_focus(frame, min, max);
  tooltip(help);
  const float left = min.x + m.px(12), room = max.x - left - m.px(12);
  const auto line = [&](ImFont* font, float middle, Rgb color, const std::string& words) {
    draw_text(font, {left, min.y + m.px(middle)}, Align::left_middle, color, shortened(font, words, room));
  };
  line(frame.fonts.sans15, 12, frame.palette.text, title);
  line(frame.fonts.sans13, 29, frame.palette.dim, about);
  pen.y = max.y + m.px(4);
  return pressed;
}

}  // namespace

void draw_references(Pen& pen) {
  const Frame& frame = pen.frame;
  pen.heading("Baseline (A)");
  platform::move_to({pen.left, pen.y});
  if (button(frame, "reference/keep", "Snapshot as A",
             "Takes the model as it is now as A; later edits are B (K)"))
    frame.commands.add(AddReference{});
  ImGui::SameLine(0, frame.metrics.px(6));
  if (button(frame, "reference/open", "Open as A…",
             "Reads A from a session file; the model that you edit stays as it is"))
    frame.commands.add(ShowDialog{Dialog::open_reference});
  pen.y += frame.metrics.frame + frame.metrics.px(4);
  pen.prose("A is a copy of a model; B is always this one.", frame.palette.faint);
  pen.rule();
  pen.heading("Experiments");
  const std::size_t chosen = frame.displayed.look.compared.reference;
  const auto& all = frame.compared.references;
  const auto switches = core::compare::switches();
  const std::size_t running =
      chosen < all.size() ? all[chosen].experiment.value_or(switches.size()) : switches.size();
  for (std::size_t k = 0; k < switches.size(); ++k) {
    const core::compare::Switch& model_switch = switches[k];
    const bool is_on = running == k;
    const std::string about =
        "A: " + (is_on ? model_switch.state(all[chosen].model) : model_switch.other(frame.displayed.model));
    if (!experiment(pen, std::string("reference/") + model_switch.name, model_switch.title, about,
                    model_switch.about, is_on))
      continue;
    if (is_on)
      frame.commands.add(RemoveReference{});
    else
      frame.commands.add(AddFlippedReference{k});
  }
  if (experiment(pen, "reference/tensors", "Compare with my tensors…",
                 "B: a file of yours, .npz, .pt, .safetensors",
                 "Shows the first stage that differs from the model, and the likely cause (Ctrl+K)", false))
    frame.commands.add(ShowDialog{Dialog::open_tensors});
}

}  // namespace app::panels
