#include "app/ui/panels/model/mask_popup.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/model/additions_popup.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/visibility_words.hpp"
#include "core/graph/visible.hpp"

namespace app::panels {

namespace {

using core::attention::CellVisibility;
using core::attention::Decided;
using core::attention::Model;
using core::color::Palette;

constexpr float tallest = 240;      // at scale 1
constexpr float smallest_cell = 3;  // pixels that a person can still point at
constexpr std::size_t n_kinds = 8;

/// What cells are called and colored by.
struct Kind {
  CellVisibility sight;
  const char* words;
  Rgb color;
  float strength;  ///< of the color over the popup
};

std::array<Kind, n_kinds> kinds_in(const Palette& p) {
  return {{{{true, Decided::by_nothing}, "seen", p.accent, 0.9f},
           {{true, Decided::by_prefix}, "unmasked: prefix", p.head(2), 0.9f},
           {{false, Decided::by_future}, "after the query", p.faint, 0.25f},
           {{false, Decided::by_window}, "outside the window", p.head(1), 0.3f},
           {{false, Decided::by_document}, "other document", p.head(4), 0.3f},
           {{false, Decided::by_padding}, "padding", p.head(5), 0.3f},
           {{true, Decided::by_hand}, "unmasked by hand", p.selection, 0.9f},
           {{false, Decided::by_hand}, "masked by hand", p.selection, 0.35f}}};
}

/// The mask of one sequence, cell by cell.
class Cells {
 public:
  Cells(const Model& model, std::size_t sequence) : model_(model), sights_(model, sequence) {}

  std::size_t n_rows() const { return model_.n_tokens(); }
  std::size_t n_columns() const { return model_.n_keys(); }
  /// By the rules, or as it was switched.
  CellVisibility at(std::size_t row, std::size_t column) const {
    const auto* by_hand = model_.mask.find(row, column);
    return by_hand ? CellVisibility{by_hand->visible, Decided::by_hand} : sights_.by_rules(row, column);
  }

 private:
  const Model& model_;
  core::attention::MaskOfSequence sights_;
};

/// Where the cells stand on the screen.
struct Grid {
  ImVec2 corner, size;
  std::size_t n_rows, n_columns;

  float cell_width() const { return size.x / static_cast<float>(n_columns); }
  float cell_height() const { return size.y / static_cast<float>(n_rows); }
  float x(std::size_t column) const {
    return std::round(corner.x + cell_width() * static_cast<float>(column));
  }
  float y(std::size_t row) const { return std::round(corner.y + cell_height() * static_cast<float>(row)); }
  bool can_be_painted() const { return std::min(cell_width(), cell_height()) >= smallest_cell; }
  /// The cell at a point, the nearest one when it is outside.
  std::pair<std::size_t, std::size_t> cell_at(ImVec2 point) const {
    const auto index = [](float along, float length, std::size_t count) {
      const float part = std::clamp(along / length, 0.0f, 0.999999f);
      return std::min(count - 1, static_cast<std::size_t>(part * static_cast<float>(count)));
    };
    return {index(point.y - corner.y, size.y, n_rows), index(point.x - corner.x, size.x, n_columns)};
  }
};

Grid grid_in(const Frame& frame, const Cells& cells, float width) {
  const float most = frame.metrics.px(tallest);
  const auto rows = static_cast<float>(cells.n_rows()), columns = static_cast<float>(cells.n_columns());
  const float cell = std::min(width / columns, most / rows);
  return {ImGui::GetCursorScreenPos(),
          {std::max(std::round(cell * columns), 1.0f), std::max(std::round(cell * rows), 1.0f)},
          cells.n_rows(),
          cells.n_columns()};
}

std::size_t kind_of(const std::array<Kind, n_kinds>& kinds, CellVisibility sight) {
  const auto same = std::ranges::find_if(kinds, [&](const Kind& k) {
    return k.sight.visible == sight.visible && k.sight.decided == sight.decided;
  });
  return same == kinds.end() ? (sight.visible ? 0 : 2) : static_cast<std::size_t>(same - kinds.begin());
}

ImU32 color_of(const Frame& frame, const Kind& kind) {
  return packed(mix(kind.color, frame.palette.ground.raised, kind.strength));
}

/// Neighbours of one kind in a row are one rectangle; of cells below a pixel only those at pixels are drawn.
/// Gives the kinds that are there.
std::set<std::size_t> draw_cells(const Frame& frame, const Cells& cells, const Grid& grid,
                                 const std::array<Kind, n_kinds>& kinds) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto step = [](float cell) { return std::max<std::size_t>(1, static_cast<std::size_t>(1 / cell)); };
  const std::size_t row_step = step(grid.cell_height()), column_step = step(grid.cell_width());
  const float gap = grid.cell_width() >= 8 ? 1.0f : 0.0f;
  std::set<std::size_t> found;
  for (std::size_t row = 0; row < grid.n_rows; row += row_step) {
    std::size_t from = 0, kind = kind_of(kinds, cells.at(row, 0));
    const auto end_run = [&](std::size_t end) {
      list->AddRectFilled({grid.x(from), grid.y(row)},
                          {grid.x(end) - gap, grid.y(std::min(row + row_step, grid.n_rows)) - gap},
                          color_of(frame, kinds[kind]));
      found.insert(kind);
    };
    for (std::size_t column = column_step; column < grid.n_columns; column += column_step) {
      const std::size_t next = kind_of(kinds, cells.at(row, column));
      if (next == kind && gap == 0) continue;
      end_run(column);
      from = column, kind = next;
    }
    end_run(grid.n_columns);
  }
  return found;
}

/// All cells that the mouse has crossed since the last frame become as the first of the stroke is now.
void paint(const Frame& frame, const Cells& cells, const Grid& grid, bool begins) {
  const auto start = grid.cell_at(ImGui::GetIO().MouseClickedPos[0]);
  const bool visible = cells.at(start.first, start.second).visible;
  const auto change = [&](std::pair<std::size_t, std::size_t> cell, bool to) {
    if (cells.at(cell.first, cell.second).visible != to)
      frame.commands.edit(core::editing::SwitchMaskCell{cell.first, cell.second, to});
  };
  if (begins) return change(start, !visible);
  const ImVec2 now = ImGui::GetIO().MousePos, delta = ImGui::GetIO().MouseDelta;
  const float way = std::max(std::fabs(delta.x), std::fabs(delta.y));
  const int n_steps = 1 + static_cast<int>(way / std::min(grid.cell_width(), grid.cell_height()));
  std::set<std::pair<std::size_t, std::size_t>> crossed;
  for (int k = 0; k <= n_steps; ++k) {
    const float part = static_cast<float>(k) / static_cast<float>(n_steps);
    crossed.insert(grid.cell_at({now.x - delta.x * part, now.y - delta.y * part}));
  }
  for (const auto& cell : crossed)
    if (cell != start) change(cell, visible);
}

void explain_cell(const Frame& frame, const Grid& grid, std::size_t sequence) {
  const auto [row, column] = grid.cell_at(ImGui::GetIO().MousePos);
  std::string words = core::explain::visibility_words(frame.pending.model, sequence, row, column);
  if (grid.can_be_painted())
    words += "\nDrag over positions to mask or unmask them.";
  else
    words += "\nToo many tokens to point at single positions here: zoom into a map of the mask and press M.";
  ImGui::SetTooltip("%s", words.c_str());
}

/// The kinds that are there, a square and a word each, in as many rows as they need.
void draw_key(const Frame& frame, const std::array<Kind, n_kinds>& kinds, const std::set<std::size_t>& found,
              ImVec2 at, float width) {
  const auto& m = frame.metrics;
  ImFont* font = frame.fonts.sans13;
  ImVec2 place = at;
  for (const std::size_t k : found) {
    const float needed = m.px(14) + widgets::text_width(font, kinds[k].words) + m.px(14);
    if (place.x > at.x && place.x + needed > at.x + width) place = {at.x, place.y + m.px(18)};
    ImGui::GetWindowDrawList()->AddRectFilled(
        {place.x, place.y + m.px(4)}, {place.x + m.px(9), place.y + m.px(13)}, color_of(frame, kinds[k]));
    widgets::draw_text(font, {place.x + m.px(14), place.y}, frame.palette.dim, kinds[k].words);
    place.x += needed;
  }
  platform::move_to({at.x, place.y + m.px(26)});
}

}  // namespace

void draw_mask_picture(const Frame& frame, float width) {
  const Model& model = frame.pending.model;
  if (model.sequences.empty() || model.n_tokens() == 0 || model.n_keys() == 0) return;
  const std::size_t sequence = std::min(frame.pending.look.sequence, model.sequences.size() - 1);
  const Cells cells(model, sequence);
  const Grid grid = grid_in(frame, cells, width);
  const auto kinds = kinds_in(frame.palette);
  const auto found = draw_cells(frame, cells, grid, kinds);
  widgets::hit_area("mask picture", grid.size);
  frame.landmarks.mark("model/mask_picture", grid.corner,
                       {grid.corner.x + grid.size.x, grid.corner.y + grid.size.y});
  if (ImGui::IsItemActive() && grid.can_be_painted()) paint(frame, cells, grid, ImGui::IsItemActivated());
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive()) explain_cell(frame, grid, sequence);
  draw_key(frame, kinds, found, {grid.corner.x, grid.corner.y + grid.size.y + frame.metrics.px(6)}, width);
}

namespace {

using core::attention::Mask;
using core::attention::MaskAlignment;
using core::attention::MaskWindow;
using namespace core::editing;
using Counts = std::vector<std::size_t>;

const std::array<std::string, 2> alignments{"the last keys", "the first keys"};

std::string listed(const Counts& counts, const char* between = " ") {
  return core::text::joined(counts, between, [](std::size_t n) { return std::to_string(n); });
}

std::string side_text(const std::optional<std::size_t>& side) {
  return side ? std::to_string(*side) : "-1";
}

/// "2, 0"; "-1" is no limit, and nothing at all is no window.
std::optional<MaskWindow> window_in(const std::string& text) {
  if (text.find_first_not_of(' ') == text.npos) return MaskWindow();
  const std::size_t comma = text.find_first_of(",; ", text.find_first_not_of(' '));
  if (comma == text.npos) return std::nullopt;
  const auto side = [](const std::string& part, std::optional<std::size_t>& into) {
    const std::string number = part.substr(std::min(part.find_first_not_of(", ;"), part.size()));
    if (number == "-1" || number == "−1") return true;
    const auto counts = counts_in(number);
    if (!counts || counts->size() != 1) return false;
    into = counts->front();
    return true;
  };
  MaskWindow window;
  if (!side(text.substr(0, comma), window.left) || !side(text.substr(comma), window.right))
    return std::nullopt;
  return window;
}

void window_row(PopupFields& fields, const Mask& mask) {
  const bool is_set = mask.window != MaskWindow();
  const std::string shown =
      is_set ? side_text(mask.window.left) + ", " + side_text(mask.window.right) : std::string();
  const auto typed = fields.field(
      "sliding window", "mask/window", shown,
      "Sliding window: how many keys left and right of its own position a query attends to, such as 3, 0; −1 for no limit (window_size of FlashAttention).");
  if (!typed) return;
  if (const auto window = window_in(*typed))
    fields.frame.commands.edit(SetMaskWindow{*window});
  else
    fields.refuse("sliding window", "two whole numbers, such as 3, 0 (−1 for no limit)", *typed);
}

void prefix_row(PopupFields& fields, const Mask& mask) {
  const auto typed =
      fields.field("prefix length", "mask/prefix", mask.prefix > 0 ? std::to_string(mask.prefix) : "",
                   "Prefix length: the number of first keys that every query attends to, even later ones.");
  if (!typed) return;
  const auto counts = counts_in(*typed);
  if (counts && counts->size() <= 1)
    fields.frame.commands.edit(SetMaskPrefix{counts->empty() ? 0 : counts->front()});
  else
    fields.refuse("prefix length", "a whole number or nothing", *typed);
}

void documents_row(PopupFields& fields, const Mask& mask) {
  const auto typed = fields.field(
      "document IDs", "mask/documents", listed(mask.documents),
      "Document IDs of packed sequences, such as 0 0 0 1 1 2: a query attends to keys of its own document only.");
  if (!typed) return;
  if (const auto documents = counts_in(*typed))
    fields.frame.commands.edit(SetDocuments{*documents});
  else
    fields.refuse("document IDs", "whole numbers, one for each token", *typed);
}

void padding_row(PopupFields& fields, const Mask& mask, std::size_t sequence, std::size_t n_sequences) {
  const std::string shown = sequence < mask.hidden_keys.size() ? listed(mask.hidden_keys[sequence]) : "";
  const auto typed = fields.field(
      "padding mask", "mask/padding", shown,
      n_sequences > 1 ? "Padding mask: keys of this sequence that no query attends to, such as 6 7."
                      : "Padding mask: keys that no query attends to, such as 6 7.");
  if (!typed) return;
  const auto keys = counts_in(*typed);
  if (!keys) return fields.refuse("padding mask", "whole numbers of keys", *typed);
  auto all = mask.hidden_keys;
  all.resize(n_sequences);
  all[sequence] = *keys;
  fields.frame.commands.edit(SetHiddenKeys{std::move(all)});
}

void alignment_row(PopupFields& fields, const Mask& mask) {
  fields.row("queries are");
  const auto now = static_cast<std::size_t>(mask.align);
  if (const auto chosen = widgets::segmented(fields.frame, "mask/align", alignments, now))
    fields.frame.commands.edit(SetMaskAlignment{static_cast<MaskAlignment>(*chosen)});
  widgets::tooltip(
      "Where fewer queries than keys are placed: at the last keys, as with a KV cache, or from the first on, like PyTorch's is_causal=True.");
}

}  // namespace

std::string mask_rules_words(const Mask& mask, std::size_t sequence) {
  std::vector<std::string> rules;
  if (mask.window != MaskWindow())
    rules.push_back("window " + side_text(mask.window.left) + ", " + side_text(mask.window.right));
  if (mask.prefix > 0) rules.push_back("prefix " + std::to_string(mask.prefix));
  if (!mask.documents.empty()) rules.push_back("documents");
  if (sequence < mask.hidden_keys.size() && !mask.hidden_keys[sequence].empty())
    rules.push_back("padding " + listed(mask.hidden_keys[sequence]));
  if (mask.align == MaskAlignment::first) rules.push_back("first keys");
  return core::text::joined(rules, " · ");
}

void draw_mask_popup(const Frame& frame, const char* name) {
  if (!ImGui::BeginPopup(name)) return;
  const auto& model = frame.pending.model;
  const ImVec2 start = ImGui::GetCursorScreenPos();
  PopupFields fields{{frame, start, popup_labels}};
  window_row(fields, model.mask);
  prefix_row(fields, model.mask);
  documents_row(fields, model.mask);
  padding_row(fields, model.mask, std::min(frame.pending.look.sequence, model.sequences.size() - 1),
              model.sequences.size());
  if (model.n_keys() != model.n_tokens() || model.mask.align != MaskAlignment::last)
    alignment_row(fields, model.mask);
  platform::move_to({start.x, fields.at.y + frame.metrics.px(6)});
  draw_mask_picture(frame, frame.metrics.px(popup_labels + popup_controls));
  const float height = ImGui::GetCursorScreenPos().y - start.y;
  platform::move_to(start);
  ImGui::Dummy({frame.metrics.px(popup_labels + popup_controls), height});
  ImGui::EndPopup();
}

}  // namespace app::panels
