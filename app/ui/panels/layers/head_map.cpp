#include "app/ui/panels/layers/layers_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "app/session/full_model_reading.hpp"
#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

namespace {

using core::transformer::HeadRoles;

constexpr double min_role_share = 0.3,
                 min_measured_share = 0.4;  // smallest shares: of any role; of a measured one

struct RoleShare {
  const char *name, *brief;
  double (*share)(const HeadRoles&);
};

constexpr RoleShare role_names[]{
    {"previous", "prev", [](const HeadRoles& r) { return r.previous; }},
    {"first token", "first", [](const HeadRoles& r) { return r.first; }},
    {"itself", "self", [](const HeadRoles& r) { return r.itself; }},
    {"same token", "same", [](const HeadRoles& r) { return r.same_token.value_or(0); }},
    {"induction", "ind", [](const HeadRoles& r) { return r.induction.value_or(0); }}};

/// Returns the role with the largest share of a head's weights.
HeadRole role_among(const HeadRoles& roles) {
  HeadRole best{"other"};
  for (const RoleShare& row : role_names)
    if (const double share = row.share(roles); share > best.share.value_or(min_role_share))
      best = {row.name, share};
  return best;
}

/// Whether an edit of its layer changed the weights of a head; edits of other layers do not count. Weights of
/// an edited layer are float64, so that all of them differ a little.
bool is_changed(const Frame& frame, std::size_t layer, std::size_t head) {
  const auto& both = *frame.pending.reading->readings();
  const auto& now = *both.now->layers[layer];
  if (!now.is_edited || layer >= both.before->layers.size()) return now.is_edited;
  const auto& before = both.before->layers[layer]->heads;
  return head >= before.size() || !arma::approx_equal(now.heads[head].map, before[head].map, "absdiff", 1e-4);
}

}  // namespace

std::string HeadRole::words() const {
  return share ? name + " " + fixed(*share, 2) : name;
}

std::string HeadRole::brief() const {
  const auto row = std::ranges::find(role_names, name, &RoleShare::name);
  const std::string number = share ? fixed(*share, 2) : "";
  return (row == std::end(role_names) ? name : row->brief) + (number.starts_with("0") ? " " + number.substr(1)
                                                              : number.empty()        ? ""
                                                                                      : " " + number);
}

HeadRole role_of(const Frame& frame, std::size_t layer, std::size_t head) {
  if (frame.pending.full_model->experiment.heads_off.contains({layer, head})) return {"ablated"};
  const auto& heads = *frame.pending.reading->readings()->now->layers[layer];
  if (const auto roles = frame.pending.reading->scan().roles(*frame.pending.full_model, layer, head)) {
    HeadRole role = role_among(*roles);
    role.source = is_changed(frame, layer, head) ? RoleSource::before_edits : RoleSource::texts;
    return role;
  }
  const auto* measured = frame.pending.reading->random_roles();
  if (measured && layer < measured->size() && head < (*measured)[layer].size()) {
    const HeadRoles& roles = (*measured)[layer][head];
    if (std::max({roles.previous, roles.induction.value_or(0), roles.same_token.value_or(0)}) >
        min_measured_share) {
      HeadRole role = role_among(roles);
      role.source = is_changed(frame, layer, head) ? RoleSource::before_edits : RoleSource::model;
      return role;
    }
  }
  return role_among(heads.heads[head].roles);
}

float draw_role(const Frame& frame, const HeadRole& role, ImFont* font, float end, bool from_left,
                float middle, float room) {
  const bool is_measured = role.source != RoleSource::prompt;
  const float inset = is_measured ? frame.metrics.px(5) : 0;
  std::string words = role.words();
  for (const std::string& shorter : {role.brief(), role.brief().substr(0, role.brief().find(' '))})
    if (text_width(font, words) + 2 * inset > room) words = shorter;
  words = shortened(font, words, std::max(1.0f, room - 2 * inset));
  const float width = text_width(font, words) + 2 * inset, half = frame.metrics.px(8);
  const float left = from_left ? end : end - width;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool is_current = role.source == RoleSource::model || role.source == RoleSource::texts;
  if (is_current)
    draw_rect({left, middle - half}, {left + width, middle + half}, frame.palette.control.active,
              frame.metrics.px(3));
  else if (role.source == RoleSource::before_edits)
    list->AddRect({left, middle - half}, {left + width, middle + half}, packed(frame.palette.faint),
                  frame.metrics.px(3));
  draw_text(font, {left + inset, middle}, Align::left_middle,
            is_current ? frame.palette.text : frame.palette.dim, words);
  return width;
}

void draw_dots(const Frame& frame, ImVec2 left_top, float right) {
  const float size = frame.metrics.px(2), pitch = frame.metrics.px(6);
  for (float x = left_top.x; x + size <= right; x += pitch)
    draw_rect({x, left_top.y}, {x + size, left_top.y + size}, frame.palette.faint);
}

namespace {

using core::experiment::TextReading;
using core::transformer::HeadMap;
using core::transformer::LayerHeads;

struct HeadTile {
  const Frame& frame;
  const LayersTiling& t;
  std::size_t layer, head;
  ImVec2 corner, bottom_right;
  const TextReading& now;
  const LayerHeads& layer_heads;
  const HeadMap& head_map;
  const HeadMap* before;  ///< before the edits, or nullptr where their rows are others; see before_map()
  bool is_ablated, is_chosen;
  float header;  ///< from the map up to the middle of the header
  const char* place = "layers/";
  bool is_patched = false;
  arma::mat aligned = {};  ///< that of A at the positions of B, NaN where there is none; or empty

  bool has_before() const { return before || !aligned.empty(); }
  const arma::mat& before_map() const { return before ? before->map : aligned; }
};

std::string head_name(const HeadTile& m) {
  return fmt::format("{}.{}", m.layer, m.head);
}

/// Returns the numbers in its cells: the selected ones, or the weights where the others are not known.
LayerMaps shown_maps(const HeadTile& m) {
  return m.has_before() ? m.frame.pending.layers->maps : LayerMaps::weights;
}

/// Returns what a patch of the head alone recovers, where its output is mapped.
std::optional<double> recovered(const HeadTile& m) {
  const auto* map = m.frame.pending.reading->patches().of({});
  if (!map || m.layer >= map->recovered.n_rows || m.head >= map->recovered.n_cols) return std::nullopt;
  const double share = map->recovered(m.layer, m.head);
  return std::isnan(share) ? std::nullopt : std::optional(share);
}

bool compares_prompts(const HeadTile& m) {
  return m.frame.pending.full_model->experiment.first.has_value();
}

void draw_picture(const HeadTile& m) {
  const LayerMaps maps = shown_maps(m);
  arma::mat compared, visible;  // of A, or B − A; where tokens have no counterpart, it is masked
  if (maps == LayerMaps::change) compared = m.head_map.map - m.before_map();
  if (maps == LayerMaps::before && !m.aligned.empty()) compared = m.aligned;
  if (maps != LayerMaps::weights && !m.aligned.empty()) {
    visible =
        m.layer_heads.visible ? *m.layer_heads.visible : arma::mat(arma::size(m.aligned), arma::fill::ones);
    const arma::uvec alone = arma::find_nan(m.aligned);
    visible.elem(alone).zeros();
    compared.elem(alone).zeros();
  }
  const arma::mat& numbers = maps == LayerMaps::weights ? m.head_map.map
                             : compared.empty()         ? m.before_map()
                                                        : compared;
  render::HeatmapPicture picture;
  picture.place = m.place +
                  std::string(maps == LayerMaps::change   ? "change/"
                              : maps == LayerMaps::before ? "before/"
                                                          : "") +
                  head_name(m);
  picture.cells.numbers = &numbers;
  picture.cells.visible = visible.empty() ? m.layer_heads.visible.get() : &visible;
  picture.cells.version = m.frame.pending.reading->version_of(m.layer);
  picture.map = maps == LayerMaps::change ? m.frame.displayed.look.colors.diverging
                                          : m.frame.displayed.look.colors.sequential;
  picture.dark = m.frame.palette.dark;
  picture.high = maps == LayerMaps::change ? largest_change(m.frame) : 1;
  picture.low = maps == LayerMaps::change ? -picture.high : 0;
  picture.width = picture.height = static_cast<int>(m.t.map);
  picture.part = {0, 0, static_cast<double>(numbers.n_cols), static_cast<double>(numbers.n_rows)};
  picture.gaps = m.t.map / static_cast<float>(numbers.n_cols) >= m.frame.metrics.px(8);
  picture.phase = static_cast<int>(m.corner.x + m.corner.y) % 6;
  ImGui::GetWindowDrawList()->AddImage(m.frame.painter.paint(picture), m.corner, m.bottom_right);
}

/// Outlines the row of the pinned query, or of the one predicted from, on every map.
void draw_query(const HeadTile& m) {
  const std::size_t row = marked_token(m.frame.displayed.look, m.now) / m.now.block;
  const float cell = m.t.map / static_cast<float>(m.head_map.map.n_rows);
  const float top = std::round(m.corner.y + cell * static_cast<float>(row));
  outline({m.corner.x - 1, top - 1}, {m.bottom_right.x + 1, std::max(top + 3, std::round(top + cell))},
          packed(m.frame.palette.selection, 0.65f), 1);
}

/// Marks an edited head in its corner, with an edge so that it is seen on bright cells too.
void draw_mark(const HeadTile& m) {
  const float size = m.frame.metrics.px(7);
  draw_rect(m.corner, {m.corner.x + size + 2, m.corner.y + size + 2}, m.frame.palette.background.back);
  draw_rect(m.corner, {m.corner.x + size, m.corner.y + size}, m.frame.palette.accent);
}

/// Returns the largest magnitude, without those that do not exist.
double largest_of(const arma::mat& numbers) {
  double largest = 0;
  for (const double number : numbers) largest = std::max(largest, std::isnan(number) ? 0 : std::abs(number));
  return largest;
}

/// Whether the upper right corner of a map is masked, which leaves room for the entropy.
bool has_masked_corner(const HeadTile& m) {
  const arma::mat* visible = m.layer_heads.visible.get();
  return visible && visible->n_cols > 1 && visible->at(0, visible->n_cols - 1) == 0;
}

void draw_header(const HeadTile& m) {
  const auto& f = m.frame;
  const float middle = std::round(m.corner.y - m.header);
  const bool shows_change = compares_prompts(m) && shown_maps(m) == LayerMaps::change;
  const std::string entropy =
      fixed(shows_change ? largest_of(m.head_map.map - m.before_map()) : m.head_map.roles.entropy_bits,
            m.t.is_small && !shows_change ? 1 : 2);
  const float clip = ImGui::GetWindowDrawList()->GetClipRectMax().x;
  float left = m.corner.x, right = std::min(m.bottom_right.x + m.t.gap - f.metrics.px(4), clip);
  if (!m.t.is_small)
    left += draw_text(f.fonts.mono13, {left, middle}, Align::left_middle,
                      m.is_chosen ? f.palette.text : f.palette.dim, head_name(m)) +
            f.metrics.px(8);
  if (has_masked_corner(m)) {
    if (m.bottom_right.x <= clip)  // a clipped number would be read as another
      draw_text(f.fonts.mono12,
                {m.bottom_right.x - f.metrics.px(m.t.is_small ? 3 : 6),
                 m.corner.y + f.metrics.px(m.t.is_small ? 8 : 11)},
                Align::right_middle, f.palette.dim, entropy);
  } else if (const float width = text_width(f.fonts.mono12, entropy);
             m.bottom_right.x - width - left > f.metrics.px(40)) {
    draw_text(f.fonts.mono12, {m.bottom_right.x, middle}, Align::right_middle, f.palette.faint, entropy);
    right = m.bottom_right.x - width - f.metrics.px(6);
  }
  if (right - left <= f.metrics.px(14)) return;
  const auto share = recovered(m);
  if (m.is_patched || (share && std::abs(*share) >= 0.02)) {
    const std::string number = share ? fixed(*share, 2) : "";
    std::string words = m.is_patched ? "patched" : "recovers " + number;
    if (text_width(f.fonts.sans12, words) + f.metrics.px(10) > right - left) words = number;
    if (m.is_patched)
      ImGui::GetWindowDrawList()->AddRect(
          {left, middle - f.metrics.px(8)},
          {left + text_width(f.fonts.sans12, words) + f.metrics.px(10), middle + f.metrics.px(8)},
          packed(f.palette.faint), f.metrics.px(3));
    draw_text(f.fonts.sans12, {left + (m.is_patched ? f.metrics.px(5) : 0), middle}, Align::left_middle,
              f.palette.dim, words);
  } else if (!compares_prompts(m))
    draw_role(f, role_of(f, m.layer, m.head), f.fonts.sans12, left, true, middle, right - left);
}

/// Values of the bar under a head, now and before the edits, and the end of its scale.
struct Bar {
  std::optional<double> now, before;
  double end = 1;
};

Bar bar_of(const HeadTile& m) {
  const FullModelReading& reading = *m.frame.pending.reading;
  const Prediction* next = reading.prediction();
  if (compares_prompts(m)) return {recovered(m), {}, 0.5};
  if (!next) return {};
  if (m.frame.pending.layers->shows_effects) {
    const auto effect = reading.effects().of({m.layer, m.head});
    return {effect ? std::optional(effect->logit_change) : std::nullopt, {}, reading.effects().largest()};
  }
  const auto part =
      [&](const std::optional<core::transformer::LogitAttributions>& of) -> std::optional<double> {
    if (!of || m.layer >= of->heads.size() || m.head >= of->heads[m.layer].size()) return std::nullopt;
    return of->heads[m.layer][m.head];
  };
  return {part(next->attribution), part(next->attribution_before), next->max_attribution};
}

void draw_bar(const HeadTile& m) {
  const Bar bar = bar_of(m);
  const auto& p = m.frame.palette;
  const float top = std::round(m.bottom_right.y + m.t.bar_gap), bottom = top + m.t.bar;
  const float middle = std::round((m.corner.x + m.bottom_right.x) / 2),
              half = (m.bottom_right.x - m.corner.x) / 2;
  if (!bar.now) return draw_dots(m.frame, {m.corner.x, top}, m.bottom_right.x);
  draw_rect({m.corner.x, top}, {m.bottom_right.x, bottom}, p.control.rest);
  const auto at = [&](double value) {
    return std::round(middle +
                      half * static_cast<float>(bar.end > 0 ? std::clamp(value / bar.end, -1.0, 1.0) : 0));
  };
  const double share = bar.end > 0 ? std::clamp(*bar.now / bar.end, -1.0, 1.0) : 0;
  draw_rect({std::min(middle, at(*bar.now)), top}, {std::max(middle, at(*bar.now)), bottom},
            render::color_at(m.frame.displayed.look.colors.diverging, p.dark, 0.5 + share / 2));
  const bool differs = bar.before && std::abs(*bar.before - *bar.now) > bar.end * 0.01;
  if (differs)
    outline({std::min(middle, at(*bar.before)) - 1, top - 1},
            {std::max(middle, at(*bar.before)) + 1, bottom + 1}, p.dim, 1);
  draw_rect({middle, top - 1}, {middle + 1, bottom + 1}, p.faint);
}

/// Returns the text on which a role was measured: "over 100 texts", "on this prompt".
std::string source_words(const Frame& frame, RoleSource source) {
  if (source == RoleSource::prompt) return "on this prompt";
  const core::scan::HeadTable* table = frame.pending.reading->scan().table();
  const std::string words = frame.pending.reading->scan().is_of(*frame.pending.full_model)
                                ? "over " + texts_words(*table)
                                : "on random tokens that repeat";
  return source == RoleSource::before_edits ? words + ", before the edits" : words;
}

/// Returns the cell of the map at a point of the screen.
CellRef cell_at(const HeadTile& m, ImVec2 point) {
  const auto index = [&](float at, float begin) {
    return static_cast<std::size_t>(std::clamp((at - begin) / m.t.map, 0.0f, 0.999f) *
                                    static_cast<float>(m.head_map.map.n_rows));
  };
  return {Stage::weights, m.head, index(point.y, m.corner.y), index(point.x, m.corner.x)};
}

/// Whether the point is in a cell that stands for one weight, which is not masked.
bool has_weight_at(const HeadTile& m, ImVec2 point) {
  if (m.now.block != 1 || point.x < m.corner.x || point.x >= m.bottom_right.x || point.y < m.corner.y ||
      point.y >= m.bottom_right.y)
    return false;
  const CellRef cell = cell_at(m, point);
  const arma::mat* visible = m.layer_heads.visible.get();
  return !visible || visible->at(cell.row, cell.column) != 0;
}

void draw_tooltip(const HeadTile& m) {
  std::string text = "Head " + head_name(m) + (m.is_ablated ? ", ablated" : "");
  const auto [stage, head, row, column] = cell_at(m, ImGui::GetIO().MousePos);
  const double weight = m.head_map.map(row, column);
  if (m.now.block == 1)
    text += fmt::format(": {} {} → {} {}  {}", row, quoted_token(m.now.names[row]), column,
                        quoted_token(m.now.names[column]), core::text::display_number(weight));
  else
    text += fmt::format(": 1 cell shows the largest of {} × {} weights, here {}", m.now.block, m.now.block,
                        fixed(weight, 4));
  if (m.has_before() && !std::isnan(m.before_map()(row, column)) && m.before_map()(row, column) != weight)
    text += (compares_prompts(m) ? "\nin A: " : "\nbefore the edits: ") +
            core::text::display_number(m.before_map()(row, column));
  if (!m.is_ablated && !compares_prompts(m)) {
    const HeadRole role = role_of(m.frame, m.layer, m.head);
    text += "\n" + role.words() + " " + source_words(m.frame, role.source);
  }
  if (m.layer_heads.is_edited && !compares_prompts(m))
    text += "\nThis layer was edited: it is computed in float64.";
  platform::push_font(m.frame.fonts.sans14);
  ImGui::SetTooltip("%s", text.c_str());
  ImGui::PopFont();
}

/// Draws the context menu of a head and of the weight under it; in the selected layer also that of a stage.
void draw_menu(const HeadTile& m) {
  const Frame& frame = m.frame;
  const auto& full_model = *frame.pending.full_model;
  const std::string name = "menu of " + head_name(m);
  if (ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right))
    ImGui::OpenPopup(name.c_str());
  if (!ImGui::BeginPopup(name.c_str())) return;
  platform::push_font(frame.fonts.sans15);
  const auto item = [&](const char* words, const char* landmark) {
    const bool chosen = ImGui::MenuItem(words);
    frame.landmarks.mark_item(std::string("menu/layers/") + landmark);
    return chosen;
  };
  if (const ImVec2 point = ImGui::GetMousePosOnOpeningCurrentPopup(); has_weight_at(m, point)) {
    const CellRef weight = cell_at(m, point);
    const std::string why = fmt::format("Why does {} look at {}?", quoted_token(m.now.names[weight.row]),
                                        quoted_token(m.now.names[weight.column]));
    if (item(why.c_str(), "why")) ask_sources(frame, m.layer, weight);
  }
  if (item("Open in Stages", "stages"))
    frame.commands.add(ShowLayer{m.layer}, set<&Look::head>(m.head), OpenInStages{Stage::weights});
  if (item(m.is_ablated ? "Enable head" : "Ablate head", "switch"))
    frame.commands.add(ToggleLayerHead{m.layer, m.head});
  if (m.layer == full_model.layer && m.layer == full_model.experiment.layer) {
    ImGui::Separator();
    draw_stage_items(frame, Stage::weights, m.head);
  }
  ImGui::PopFont();
  ImGui::EndPopup();
}

void handle_mouse(const HeadTile& m) {
  const float above = m.header + m.t.header / 2;
  platform::move_to({m.corner.x, m.corner.y - above});
  const bool pressed = hit_area(("head " + head_name(m)).c_str(), {m.t.map, m.t.map + above});
  m.frame.landmarks.mark("layers/" + head_name(m), m.corner, m.bottom_right);
  draw_focus(m.frame, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (pressed) {
    m.frame.commands.add(ShowLayer{m.layer});
    m.frame.commands.add(set<&Look::head>(m.head));
    m.frame.commands.add(set<&LayersLook::addition>(std::nullopt));
  }
  const bool hovered = ImGui::IsItemHovered();
  if (compares_prompts(m) && ImGui::BeginDragDropSource()) {
    const std::array<std::size_t, 2> head{m.layer, m.head};
    ImGui::SetDragDropPayload(dragged_head, head.data(), sizeof head);
    ImGui::Text("Head %s: drop it on B to patch it from A", head_name(m).c_str());
    ImGui::EndDragDropSource();
  }
  draw_menu(m);
  if (!hovered) return;
  outline({m.corner.x - 1, m.corner.y - 1}, {m.bottom_right.x + 1, m.bottom_right.y + 1},
          packed(m.frame.palette.selection, 0.6f), 1);
  if (ImGui::IsMouseHoveringRect(m.corner, m.bottom_right)) draw_tooltip(m);
  if (!ImGui::IsMouseDoubleClicked(0)) return;
  if (const ImVec2 point = ImGui::GetIO().MousePos; has_weight_at(m, point))
    m.frame.commands.add(UnpinCell{}, PinCell{cell_at(m, point)});
  m.frame.commands.add(OpenInStages{Stage::weights});
}

/// Returns a map of the first of two prompts at the positions of the second; empty where that cannot be.
arma::mat aligned_map(const Frame& frame, const arma::mat& map) {
  const BothReadings& both = *frame.pending.reading->readings();
  if (!both.now->experiment.first || both.now->block != 1 || both.before->block != 1) return {};
  const auto rows = alignment_of(both);
  arma::mat aligned(rows.size(), rows.size(), arma::fill::value(arma::datum::nan));
  for (std::size_t j = 0; j < rows.size(); ++j)
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i] && rows[j]) aligned(i, j) = map(*rows[i], *rows[j]);
  return aligned;
}

/// Returns the map of a head that the reading must have.
HeadTile make_tile(const Frame& frame, const LayersTiling& t, std::size_t layer, std::size_t head,
                   ImVec2 corner) {
  const FullModelState& full_model = *frame.pending.full_model;
  const TextReading& now = *frame.pending.reading->readings()->now;
  const LayerHeads& layer_heads = *now.layers[layer];
  const TextReading& original = *frame.pending.reading->readings()->before;
  const HeadMap* before = layer < original.layers.size() && head < original.layers[layer]->heads.size()
                              ? &original.layers[layer]->heads[head]
                              : nullptr;
  const bool is_alike = before && arma::size(before->map) == arma::size(layer_heads.heads[head].map) &&
                        (!now.experiment.first || now.experiment.first->aligned.empty());
  return {
      frame,
      t,
      layer,
      head,
      corner,
      {corner.x + t.map, corner.y + t.map},
      now,
      layer_heads,
      layer_heads.heads[head],
      is_alike ? before : nullptr,
      full_model.experiment.heads_off.contains({layer, head}),
      layer == full_model.experiment.layer && head == frame.pending.look.head,
      t.header / 2 + (layer == 0 ? t.columns.room : 0),
      "layers/",
      std::ranges::any_of(full_model.experiment.patches,
                          [&](const core::transformer::Patch& patch) {
                            const std::size_t n =
                                core::transformer::n_parts(full_model.model->description().sizes, patch.part);
                            return patch.layer == layer && n > 1 &&
                                   patch.index == head / (full_model.model->description().sizes.n_heads / n);
                          }),
      before && !is_alike ? aligned_map(frame, before->map) : arma::mat()};
}

void draw_cells(const HeadTile& m) {
  draw_picture(m);
  if (m.is_ablated)
    draw_ablated(m.frame, m.corner, m.bottom_right);
  else
    draw_query(m);
  if (m.is_patched || m.is_ablated) draw_mark(m);
}

}  // namespace

void draw_head_map(const Frame& frame, const LayersTiling& t, std::size_t layer, std::size_t head,
                   ImVec2 corner) {
  if (head >= frame.pending.reading->readings()->now->layers[layer]->heads.size()) return;
  const HeadTile m = make_tile(frame, t, layer, head, corner);
  draw_cells(m);
  if (is_selected(frame, {layer, false, frame.pending.look.head}))  // its layer's heads are summed
    outline({corner.x - 1, corner.y - 1}, {m.bottom_right.x + 1, m.bottom_right.y + 1}, frame.palette.operand,
            1);
  if (m.is_chosen)
    outline({corner.x - 3, corner.y - 3}, {m.bottom_right.x + 3, m.bottom_right.y + 3},
            frame.palette.selection, 2);
  draw_header(m);
  draw_bar(m);
  handle_mouse(m);
}

void draw_head_alone(const Frame& frame, const LayersTiling& t, std::size_t layer, std::size_t head,
                     ImVec2 corner) {
  HeadTile m = make_tile(frame, t, layer, head, corner);
  m.place = "layers/alone/";
  draw_cells(m);
  frame.landmarks.mark("layers/alone", m.corner, m.bottom_right);
  if (hovers(m.corner, m.bottom_right)) draw_tooltip(m);
}

}  // namespace app::panels
