// Two prompts: the left column, the logit difference, and maps of what each patch recovers.
#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "app/session/full_model_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"

namespace app::panels {
namespace {

using core::circuits::PatchMap;
using core::experiment::FirstPrompt;
using core::experiment::TextReading;
using core::experiment::WatchedDifference;
using core::transformer::Patch;
using core::transformer::PatchedPart;

/// Parts in the words of the window, as in core::transformer::patched_parts().
constexpr const char* part_words[]{"output of a head",  "pattern of a head",   "queries of a head",
                                   "keys of a KV head", "values of a KV head", "output of attention",
                                   "output of the MLP", "residual stream"};

std::vector<Option> options_of(std::span<const char* const> words) {
  return {words.begin(), words.end()};
}

const core::experiment::Experiment& experiment_of(const Frame& frame) {
  return frame.pending.full_model->experiment;
}

/// Adds the command that changes the first prompt, or the second one.
void set_prompts(const Frame& frame, const FirstPrompt& first, const std::string& second) {
  frame.commands.add(SetPrompts{first, second});
}

std::string second_text(const Frame& frame) {
  return core::experiment::whole_text(*frame.pending.full_model->model, experiment_of(frame));
}

/// A column of tokens: a position in each prompt, or nothing where one has no counterpart.
using TokenColumn = std::array<std::optional<std::size_t>, 2>;

std::vector<TokenColumn> columns_of(const core::transformer::TokenAlignment& rows, std::size_t n_first) {
  std::vector<TokenColumn> columns;
  std::size_t next = 0;  // in the first prompt
  for (std::size_t i = 0; i <= rows.size(); ++i) {
    const auto end = i < rows.size() ? rows[i] : n_first;
    while (end && next < *end) columns.push_back({next++, std::nullopt});
    if (end && i < rows.size()) ++next;
    if (i < rows.size()) columns.push_back({end, i});
  }
  return columns;
}

constexpr const char* dragged_token = "token of A";

/// Draws the tokens of both prompts, the second below the first, in columns; those that differ in an outline,
/// and a hatched gap for a token without a counterpart. A token of A is aligned by dragging it onto one of B.
void draw_token_pairs(const Frame& frame, const BothReadings& both,
                      const core::transformer::TokenAlignment& rows, float width) {
  const float pitch = frame.metrics.px(22), chip = frame.metrics.px(20), pad = frame.metrics.px(4);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.sans13;
  const std::vector<std::string>* names[]{&both.before->names, &both.now->names};
  const std::size_t marked = marked_token(frame.displayed.look, *both.now);
  Flow flow{start, width, frame.metrics.px(3), 2 * pitch + frame.metrics.px(6)};
  for (const TokenColumn& column : columns_of(rows, names[0]->size())) {
    std::string words[2];
    for (std::size_t k = 0; k < 2; ++k)
      if (column[k]) words[k] = shortened(font, visible_token((*names[k])[*column[k]]), width - 2 * pad);
    const float room = std::max({text_width(font, words[0]), text_width(font, words[1]), pad}) + 2 * pad;
    const ImVec2 corner = flow.place(room);
    const bool differs = words[0] != words[1];
    for (std::size_t k = 0; k < 2; ++k) {
      const ImVec2 min{corner.x, corner.y + static_cast<float>(k) * pitch}, max{min.x + room, min.y + chip};
      if (!column[k]) {
        hatch(min, max, frame.metrics.px(4), frame.palette.line);
        continue;
      }
      draw_rect(min, max, frame.palette.control.active, frame.metrics.px(3));
      draw_text(font, {min.x + pad, (min.y + max.y) / 2}, Align::left_middle,
                k == 1 && !differs ? frame.palette.faint : frame.palette.text, words[k]);
      const std::string name = fmt::format("prompts/{}/{}", k == 0 ? "a" : "b", *column[k]);
      platform::move_to(min);
      const bool pressed = hit_area(name.c_str(), {room, chip});
      frame.landmarks.mark_item(name);
      if (pressed && column[1]) frame.commands.add(PinQuery{*column[1]});
      if (k == 0 && ImGui::BeginDragDropSource()) {
        ImGui::SetDragDropPayload(dragged_token, &*column[0], sizeof *column[0]);
        ImGui::Text("%s: drop it on a token of B to align them, or to part them",
                    quoted_token(words[0]).c_str());
        ImGui::EndDragDropSource();
      }
      if (k == 1 && ImGui::BeginDragDropTarget()) {
        if (const ImGuiPayload* payload = ImGui::AcceptDragDropPayload(dragged_token)) {
          std::size_t first = 0;
          std::memcpy(&first, payload->Data, sizeof first);
          FirstPrompt prompt = *experiment_of(frame).first;
          prompt.aligned = core::transformer::toggle_pair(rows, first, *column[1]);
          set_prompts(frame, prompt, second_text(frame));
        }
        ImGui::EndDragDropTarget();
      }
      if (ImGui::IsItemHovered())
        ImGui::SetTooltip("position %zu of %s\n%s", *column[k], k == 0 ? "A" : "B",
                          k == 0 ? "Drag it onto a token of B to align them" : "Click to select it");
    }
    const ImVec2 end{corner.x + room, corner.y + pitch + chip};
    if (differs)
      outline({corner.x - 1, corner.y - 1}, {end.x + 1, end.y + 1}, frame.palette.status.warning, 2);
    if (column[1] == marked) draw_rect({corner.x, end.y + 1}, {end.x, end.y + 3}, frame.palette.selection);
    if (column[1]) frame.landmarks.mark("prompts/token/" + std::to_string(*column[1]), corner, end);
  }
  reserve_room(start, {width, flow.next.y - start.y + flow.pitch + frame.metrics.px(2)});
}

void draw_prompts(const Frame& frame, const BothReadings& both, float width) {
  const FirstPrompt& first = *experiment_of(frame).first;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  section_heading(frame, width, "PROMPTS");
  const ImVec2 heading = ImGui::GetItemRectMax();
  const float middle = heading.y - frame.metrics.px(12), right = at.x + width;
  if (link(frame, "prompts/end", frame.fonts.sans13, {right, middle}, Align::right_middle, frame.palette.text,
           "End", "Continues with the first prompt alone"))
    frame.commands.add(SetPrompts{std::nullopt, first.text});
  const float end = right - text_width(frame.fonts.sans13, "End") - frame.metrics.px(14);
  if (link(frame, "prompts/swap", frame.fonts.sans13, {end, middle}, Align::right_middle, frame.palette.text,
           "Swap", "Exchanges A and B, so that patches go the other way")) {
    FirstPrompt swapped{second_text(frame), first.against, first.answer};
    for (const auto& [i, j] : first.aligned) swapped.aligned.emplace_back(j, i);
    set_prompts(frame, swapped, first.text);
  }
  platform::move_to({at.x, heading.y});
  const auto field = [&](const char* label, const char* name, const std::string& shown) {
    const ImVec2 row = ImGui::GetCursorScreenPos();
    draw_label(frame, frame.fonts.sans15, row, frame.palette.text, label);
    platform::move_to({row.x + frame.metrics.px(20), row.y});
    return text_field(frame, name, shown,
                      {.width = width - frame.metrics.px(20),
                       .font = frame.fonts.sans15,
                       .alignment = Alignment::left})
        .text;
  };
  if (const auto text = field("A", "prompts/first", first.text))
    set_prompts(frame, {*text, first.answer, first.against}, second_text(frame));
  if (const auto text = field("B", "prompts/second", second_text(frame)))
    set_prompts(frame, {first.text, first.answer, first.against}, *text);
  ImGui::Dummy({1, frame.metrics.px(2)});
  const auto &a = both.before->names, &b = both.now->names;
  const core::transformer::TokenAlignment rows = alignment_of(both);
  draw_token_pairs(frame, both, rows, width);
  if (!core::transformer::is_one_by_one(rows, a.size())) {
    const auto n = std::ranges::count_if(rows, [](const auto& row) { return row.has_value(); });
    return paragraph(
        frame.fonts.sans13, frame.palette.dim, width,
        fmt::format("{} of {} tokens of B are aligned with A. Others are not patched; drag a token "
                    "of A onto one of B to align them.",
                    n, b.size()));
  }
  std::size_t n = 0, at_token = 0;
  for (std::size_t i = a.size(); i-- > 0;)
    if (a[i] != b[i]) ++n, at_token = i;
  paragraph(frame.fonts.sans13, frame.palette.dim, width,
            n == 0   ? "No token differs: type another prompt B."
            : n == 1 ? fmt::format("1 token differs: {}, {} and {}", at_token, quoted_token(a[at_token]),
                                   quoted_token(b[at_token]))
                     : fmt::format("{} tokens differ, the first is {}", n, at_token));
}

void draw_watched(const Frame& frame, const WatchedDifference* watched, float width) {
  section_heading(frame, width, "WATCHED", "logit difference");
  const FirstPrompt& first = *experiment_of(frame).first;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float gap = frame.metrics.px(24), room = std::floor((width - gap) / 2);
  const bool has_tokens = watched && watched->error.empty();
  const auto field = [&](float x, const char* name, const std::string& shown, const std::string& chosen) {
    platform::move_to({x, at.y});
    return text_field(frame, name, shown,
                      {.width = room,
                       .font = frame.fonts.sans15,
                       .hint = has_tokens ? visible_token(chosen) : "auto"})
        .text;
  };
  if (const auto text = field(at.x, "prompts/answer", first.answer, has_tokens ? watched->answer_text : ""))
    set_prompts(frame, {first.text, *text, first.against, first.aligned}, second_text(frame));
  draw_text(frame.fonts.sans15, {at.x + width / 2, at.y + frame.metrics.frame / 2}, Align::middle,
            frame.palette.dim, "−");
  if (const auto text =
          field(at.x + room + gap, "prompts/against", first.against, has_tokens ? watched->against_text : ""))
    set_prompts(frame, {first.text, first.answer, *text, first.aligned}, second_text(frame));
  if (watched && !watched->error.empty())
    paragraph(frame.fonts.sans13,
              first.answer.empty() && first.against.empty() ? frame.palette.dim : frame.palette.status.bad,
              width, watched->error);
}

void draw_patch_form(const Frame& frame, const TextReading& now, float width) {
  section_heading(frame, width, "PATCH", "A into B");
  const PatchesLook& look = frame.pending.layers->patches;
  const auto part = core::transformer::patched_parts()[look.part].part;
  {
    const FormRows form(frame, "patches", width);
    form.row("what");
    if (const auto k = combo(frame, "prompts/part", form.control_width(), options_of(part_words), look.part))
      frame.commands.add(set<&PatchesLook::part>(*k));
    form.row("where");
    const std::size_t marked = marked_token(frame.displayed.look, now);
    const std::vector<Option> places{{"all positions"},
                                     {fmt::format("at {} {}", quoted_token(now.names[marked]), marked)}};
    if (const auto k = combo(frame, "prompts/where", form.control_width(), places, look.by_position ? 1 : 0))
      frame.commands.add(set<&PatchesLook::by_position>(*k == 1));
    form.row("through");
    const std::size_t layer = experiment_of(frame).layer, head = frame.pending.look.head,
                      n_heads = frame.pending.full_model->model->description().sizes.n_heads,
                      in_group = n_heads / frame.pending.full_model->model->description().sizes.kv_heads;
    std::vector<Option> paths{{"everything", "What each patch recovers in all"}};
    std::vector<std::optional<Patch>> receivers{std::nullopt};
    std::size_t chosen = 0;
    const auto offer = [&](const Patch& to) {
      if (to == look.receiver) chosen = paths.size();
      paths.push_back(
          {core::transformer::patch_name(to), "Path patching: only these change after the patch"});
      receivers.emplace_back(to);
    };
    for (const auto input : {PatchedPart::queries, PatchedPart::keys, PatchedPart::values})
      if (layer > 0 && head < n_heads)
        offer({layer, input, input == PatchedPart::queries ? head : head / in_group});
    if (look.receiver && chosen == 0) offer(*look.receiver);
    if (const auto k = combo(frame, "prompts/receiver", form.control_width(), paths, chosen))
      frame.commands.add(set<&PatchesLook::receiver>(receivers[*k]));
  }
  const Patch patch = selected_patch(frame.pending);
  const bool is_patched = experiment_of(frame).patches.contains(patch);
  if (button(frame, "prompts/patch", is_patched ? "Remove patch" : "Patch",
             "Takes this part of the selected head or layer from A (P)"))
    frame.commands.add(TogglePatch{patch});
  ImGui::SameLine();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_label(frame, frame.fonts.sans13, at, frame.palette.faint,
             core::transformer::patch_name({patch.layer, part, patch.index}));
  ImGui::Dummy({1, frame.metrics.frame});
}

void draw_next_tokens(const Frame& frame, const WatchedDifference& watched, float width) {
  section_heading(frame, width, "NEXT TOKEN", "most probable");
  const bool is_edited = experiment_of(frame).is_edited();
  const auto row = [&](const char* words, const core::experiment::LensToken& token) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + frame.metrics.px(10), name = at.x + frame.metrics.px(72),
                bar = at.x + width - frame.metrics.px(98), end = at.x + width - frame.metrics.px(52);
    draw_text(frame.fonts.sans14, {at.x, middle}, Align::left_middle, frame.palette.dim, words);
    draw_text(frame.fonts.sans14, {name, middle}, Align::left_middle, frame.palette.text,
              shortened(frame.fonts.sans14, quoted_token(token.text), bar - name - frame.metrics.px(6)));
    draw_fraction_bar(
        frame, {bar, middle - frame.metrics.px(4)}, {end, middle + frame.metrics.px(4)}, token.probability,
        render::color_at(frame.displayed.look.colors.sequential, frame.palette.dark, token.probability));
    draw_text(frame.fonts.mono13, {at.x + width, middle}, Align::right_middle, frame.palette.text,
              fixed(token.probability, 4));
    reserve_room(at, {width, frame.metrics.px(20)});
  };
  row("A", watched.first_top);
  row("B", watched.second_top);
  if (is_edited) row("B, patched", watched.now_top);
}

/// A map of patches as drawn.
struct PatchGrid {
  const Frame& frame;
  const PatchMap& map;
  float labels, cell, height;
  bool has_digits;
};

/// Draws the cells of a map from a corner on; a click patches one, or restores it.
void draw_cells(const PatchGrid& grid, ImVec2 at, const std::string& name) {
  const Frame& frame = grid.frame;
  const PatchMap& map = grid.map;
  const auto& patches = experiment_of(frame).patches;
  for (std::size_t i = 0; i < map.recovered.n_rows; ++i)
    for (std::size_t j = 0; j < map.recovered.n_cols; ++j) {
      const ImVec2 min{at.x + grid.cell * static_cast<float>(j), at.y + grid.height * static_cast<float>(i)},
          max{min.x + grid.cell - 1, min.y + grid.height - 1};
      if (!ImGui::IsRectVisible(min, max)) continue;
      const double share = map.recovered(i, j);
      const Patch patch = map.patch_at(i, j);
      platform::move_to(min);
      const bool pressed =
          hit_area(fmt::format("{} {} {}", name, i, j).c_str(), {max.x - min.x, max.y - min.y});
      frame.landmarks.mark_item(fmt::format("prompts/{}/{}/{}", name, i, j));
      if (std::isnan(share)) {
        draw_rect(min, max, frame.palette.background.raised);
        draw_rect({(min.x + max.x) / 2 - 1, (min.y + max.y) / 2 - 1},
                  {(min.x + max.x) / 2 + 1, (min.y + max.y) / 2 + 1}, frame.palette.faint);
        continue;
      }
      const Rgb color = render::color_at(frame.displayed.look.colors.diverging, frame.palette.dark,
                                         0.5 + std::clamp(share, -1.0, 1.0) / 2);
      draw_rect(min, max, color);
      if (grid.has_digits)
        draw_text(frame.fonts.mono12, {(min.x + max.x) / 2, (min.y + max.y) / 2}, Align::middle,
                  core::color::readable_on(color), fixed(share, 2));
      if (patches.contains(patch)) outline(min, max, frame.palette.accent, 2);
      if (ImGui::IsItemHovered() || ImGui::IsItemFocused())
        outline({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, frame.palette.selection, 1);
      if (ImGui::IsItemHovered())
        ImGui::SetTooltip(
            "%s recovers %s%s", core::transformer::patch_name(patch).c_str(), fixed(share, 4).c_str(),
            map.plan.receiver ? (" through " + core::transformer::patch_name(*map.plan.receiver)).c_str()
                              : "\nClick to patch it, or to restore it");
      if (!pressed || map.plan.receiver) continue;
      frame.commands.add(TogglePatch{patch}, ShowLayer{patch.layer});
      if (patch.part <= PatchedPart::queries) frame.commands.add(set<&Look::head>(patch.index));
    }
}

/// Draws a map with its labels; next_to, one column, right of it. Returns its height.
float draw_patch_map(const Frame& frame, const PatchMap& map, const PatchMap* next_to,
                     const std::string& name, ImVec2 at, float width) {
  const bool has_positions = map.plan.by_position || map.plan.part == PatchedPart::residual;
  const auto n_cols = static_cast<float>(map.recovered.n_cols);
  const float labels = frame.metrics.px(54), beside = next_to ? frame.metrics.px(46) : 0,
              room = width - labels - beside,
              cell = std::floor(std::clamp(room / n_cols, frame.metrics.px(has_positions ? 4 : 12),
                                           frame.metrics.px(has_positions ? 18 : 38)));
  const bool has_digits = !has_positions && cell >= text_width(frame.fonts.mono12, "−0.00") + 2;
  PatchGrid grid{frame,     map, labels, cell, frame.metrics.px(has_digits ? 27 : map.n_parts > 1 ? 12 : 24),
                 has_digits};
  if (!has_digits && !has_positions) grid.height = cell;
  const float head = frame.metrics.px(18), top = at.y + head;
  const std::size_t column_step = label_step(cell, text_width(frame.fonts.mono12, "00") + 4),
                    row_step = label_step(grid.height, frame.metrics.px(13));
  const std::size_t query = marked_token(frame.displayed.look, *frame.pending.reading->readings()->now);
  for (std::size_t j = 0; j < map.recovered.n_cols; j += column_step)
    draw_text(frame.fonts.mono12, {at.x + labels + cell * (static_cast<float>(j) + 0.5f), at.y + head / 2},
              Align::middle, has_positions && j == query ? frame.palette.text : frame.palette.dim,
              std::to_string(j));
  for (std::size_t i = 0; i < map.recovered.n_rows; i += row_step)
    draw_text(frame.fonts.sans13, {at.x, top + grid.height * (static_cast<float>(i) + 0.5f)},
              Align::left_middle, frame.palette.dim, map.row_name(i));
  draw_cells(grid, {at.x + labels, top}, name);
  if (next_to) {
    const float x = at.x + labels + cell * n_cols + frame.metrics.px(8);
    grid.cell = std::min(frame.metrics.px(38), at.x + width - x);
    draw_text(frame.fonts.sans13, {x + grid.cell / 2, at.y + head / 2}, Align::middle, frame.palette.dim,
              "MLP");
    draw_cells({frame, *next_to, labels, grid.cell, grid.height, has_digits}, {x, top}, "mlp");
  }
  return head + grid.height * static_cast<float>(map.recovered.n_rows);
}

/// Draws how much of the maps is computed, with Stop or Compute, while any is missing.
void draw_progress(const Frame& frame, float width) {
  const LivePatches& patches = frame.pending.reading->patches();
  const auto [n_known, n_wanted] = patches.progress();
  if (n_known == n_wanted) return;
  const bool runs = frame.pending.layers->patches.runs;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float middle = at.y + frame.metrics.px(11);
  draw_text(frame.fonts.sans13, {at.x, middle}, Align::left_middle, frame.palette.faint,
            fmt::format("{} of {} patches", count_text(n_known), count_text(n_wanted)));
  const char* words = runs ? "Stop" : "Compute";
  const float right = at.x + width - text_width(frame.fonts.sans13, "Compute") - frame.metrics.px(12);
  draw_fraction_bar(frame, {at.x + frame.metrics.px(130), middle - 2}, {right, middle + 2},
                    n_wanted > 0 ? static_cast<double>(n_known) / static_cast<double>(n_wanted) : 0,
                    frame.palette.accent);
  if (link(frame, "prompts/run", frame.fonts.sans13, {at.x + width, middle}, Align::right_middle,
           frame.palette.accent, words))
    frame.commands.add(set<&PatchesLook::runs>(!runs));
  reserve_room(at, {width, frame.metrics.px(24)});
}

}  // namespace

void draw_two_prompts(const Frame& frame, float width) {
  const BothReadings* both = frame.pending.reading->readings();
  if (!both) return;
  const WatchedDifference* watched = frame.pending.reading->watched();
  draw_prompts(frame, *both, width);
  draw_separator(frame, width);
  draw_watched(frame, watched, width);
  draw_separator(frame, width);
  draw_patch_form(frame, *both->now, width);
  draw_separator(frame, width);
  if (!watched || !watched->error.empty()) return;
  draw_next_tokens(frame, *watched, width);
  draw_separator(frame, width);
}

void draw_logit_difference(const Frame& frame) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, right = at.x + width;
  const auto middle = [&](float y) { return std::round(at.y + frame.metrics.px(y)); };
  draw_text(frame.fonts.sans13, {at.x, middle(8)}, Align::left_middle, frame.palette.dim, "LOGIT DIFFERENCE");
  const WatchedDifference* watched = frame.pending.reading->watched();
  if (!watched || !watched->error.empty()) {
    platform::move_to({at.x, at.y + frame.metrics.px(20)});
    return paragraph(frame.fonts.sans14, frame.palette.dim, width, watched ? watched->error : "Computing…");
  }
  const bool is_edited = experiment_of(frame).is_edited();
  draw_text(frame.fonts.sans13, {right, middle(8)}, Align::right_middle, frame.palette.faint,
            !experiment_of(frame).patches.empty() ? "B, patched"
            : is_edited                           ? "B, edited"
                                                  : "B");
  const std::string number = fixed(watched->now, 4);
  draw_text(frame.fonts.mono24, {right, middle(36)}, Align::right_middle, frame.palette.text, number);
  frame.landmarks.mark("prompts/difference", {at.x, middle(24)}, {right, middle(48)});
  draw_text(frame.fonts.sans16, {at.x, middle(36)}, Align::left_middle, frame.palette.text,
            shortened(frame.fonts.sans16,
                      quoted_token(watched->answer_text) + " − " + quoted_token(watched->against_text),
                      width - text_width(frame.fonts.mono24, number) - frame.metrics.px(8)));
  const double share = watched->recovered();
  draw_fraction_bar(frame, {at.x, middle(57)}, {right, middle(65)},
                    std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0, frame.palette.control.active);
  if (std::isfinite(share)) {
    const float x = std::round(at.x + width * static_cast<float>(std::clamp(share, 0.0, 1.0)));
    draw_rect({x, middle(54)}, {x + 1, middle(68)}, frame.palette.text);
  }
  const std::string ends[]{"B " + fixed(watched->second, 4), "A " + fixed(watched->first, 4)};
  draw_text(frame.fonts.mono12, {at.x, middle(79)}, Align::left_middle, frame.palette.dim, ends[0]);
  draw_text(frame.fonts.mono12, {right, middle(79)}, Align::right_middle, frame.palette.dim, ends[1]);
  if (is_edited && std::isfinite(share))
    draw_text(frame.fonts.sans13, {at.x + width / 2, middle(79)}, Align::middle, frame.palette.text,
              "recovered " + fixed(share, 3));
}

void draw_patch_maps(const Frame& frame, float width) {
  const LivePatches& patches = frame.pending.reading->patches();
  section_heading(frame, width, "RECOVERED BY EACH PATCH", "A into B");
  if (!patches.error().empty())
    return paragraph(frame.fonts.sans14, frame.palette.dim, width, patches.error());
  draw_progress(frame, width);
  const auto place = [&](const PatchMap& map, const PatchMap* next_to, const char* name) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float height = draw_patch_map(frame, map, next_to, name, at, width);
    reserve_room(at, {width, height + frame.metrics.px(6)});
  };
  const core::circuits::PatchPlan plan = plan_of(frame.pending.layers->patches);
  const PatchMap* chosen = patches.of(plan);
  if (chosen) {
    place(*chosen, plan == core::circuits::PatchPlan() ? patches.of({PatchedPart::mlp}) : nullptr, "map");
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float left = at.x + frame.metrics.px(54), middle = at.y + frame.metrics.px(8);
    draw_text(frame.fonts.mono12, {left, middle}, Align::left_middle, frame.palette.dim, "−1");
    draw_color_map(frame, {left + frame.metrics.px(20), middle - 3},
                   {left + frame.metrics.px(70), middle + 3}, frame.displayed.look.colors.diverging);
    draw_text(frame.fonts.mono12, {left + frame.metrics.px(76), middle}, Align::left_middle,
              frame.palette.dim, "1");
    if (link(frame, "prompts/export", frame.fonts.sans13, {at.x + width, middle}, Align::right_middle,
             frame.palette.accent, "Export…", "Writes the map as CSV, npz or figure"))
      frame.commands.add(ShowDialog{Dialog::export_map});
    const float end = at.x + width - text_width(frame.fonts.sans13, "Export…") - frame.metrics.px(12);
    if (link(frame, "prompts/copy", frame.fonts.sans13, {end, middle}, Align::right_middle,
             frame.palette.accent, "Copy", "Copies the map as CSV"))
      frame.commands.add(CopyText{core::formats::csv_text(labeled(*chosen))});
    reserve_room(at, {width, frame.metrics.px(20)});
  }
  const PatchMap* stream =
      plan.part == PatchedPart::residual || plan.receiver ? nullptr : patches.of({PatchedPart::residual});
  if (!stream) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(frame.fonts.sans15, at, frame.palette.text, "Residual stream");
  draw_text_right(frame.fonts.sans13, at.x + width, at.y + 2, frame.palette.faint, "layer × position");
  reserve_room(at, {width, frame.metrics.px(22)});
  place(*stream, nullptr, "stream");
}

}  // namespace app::panels
