#include "app/session/navigation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/graph/injected_bugs.hpp"

namespace app {

using core::attention::Stage;

namespace {

void show(ModelView& view, std::optional<CellRef> cell) {
  view.selection.pinned = std::move(cell);
  view.selection.unfolded.reset();
  if (view.selection.pinned && core::attention::info(view.selection.pinned->stage).per_head)
    view.look.head = view.selection.pinned->head;
}

/// Returns the start of a span of that length, moved to lie within 0 … most.
double begin_within(double begin, double length, double most) {
  return std::clamp(begin, 0.0, std::max(0.0, most - length));
}

void show_part(View& view, MatrixShape shape, CellWindow part) {
  const CellWindow all = all_cells(shape);
  const double width = std::clamp(part.right - part.left, std::min(1.0, all.right), all.right);
  const double height = std::clamp(part.bottom - part.top, std::min(1.0, all.bottom), all.bottom);
  part.left = begin_within(part.left, width, all.right);
  part.top = begin_within(part.top, height, all.bottom);
  part.right = part.left + width, part.bottom = part.top + height;
  if (part == all)
    view.look.zoomed.erase(shape);
  else
    view.look.zoomed[shape] = part;
}

/// Moves the pinned cell and its animation to the displayed head.
void show_pinned_in_head(ModelView& view) {
  auto& pinned = view.selection.pinned;
  auto& animation = view.selection.presentation.operand_animation;
  if (!pinned || !core::attention::info(pinned->stage).per_head) return;
  const bool is_animated = animation && animation->cell == *pinned;
  pinned->head = view.look.head;
  if (is_animated) animation->cell = *pinned;
}

}  // namespace

void PinCell::change(View& view) const {
  const bool again = view.selection.pinned == cell;
  view.selection.trail.clear();
  view.layers.path.clear();
  show(view, again ? std::nullopt : std::optional(cell));
}

void FollowCell::change(View& view) const {
  if (view.selection.pinned == cell) return;
  if (view.selection.pinned) view.selection.trail.push_back(*view.selection.pinned);
  show(view, cell);
}

void OpenInStages::change(View& view) const {
  view.look.tab = Tab::stages;
  view.look.large.reset();
  view.look.folded.erase(stage);
  view.selection.scroll_target = stage;
}

void AskSources::change(View& view) const {
  UnpinCell().change(view);
  PinCell{cell}.change(view);
  OpenInStages{cell.stage}.change(view);
  view.layers.shows_sources = true;
}

void GoBack::change(View& view) const {
  if (view.selection.trail.empty()) return;
  const CellRef last = view.selection.trail.back();
  view.selection.trail.pop_back();
  show(view, last);
}

bool can_be_overridden(Stage stage) {
  return stage != Stage::embeddings && stage != Stage::mask;
}

std::optional<core::editing::SwitchMaskCell> mask_switch(const std::optional<CellRef>& cell,
                                                         const core::attention::Trace& trace) {
  if (!cell || core::attention::info(cell->stage).columns != core::attention::Columns::tokens)
    return std::nullopt;
  if (cell->row >= trace.at(Stage::mask).n_rows() || cell->column >= trace.at(Stage::mask).n_cols())
    return std::nullopt;  // of another model
  const bool visible = trace.at(Stage::mask)(cell->row, cell->column) != 0;
  return core::editing::SwitchMaskCell{cell->row, cell->column, !visible};
}

bool is_pointing(const Look& look, const Selection& selection) {
  return selection.hovered || selection.hovered_head || look.tokens.hovered_query || look.tokens.hovered_key;
}

void ClearHover::change(View& view) const {
  view.selection.hovered.reset();
  view.selection.hovered_head.reset();
  view.look.tokens.hovered_query.reset();
  view.look.tokens.hovered_key.reset();
}

void PinQuery::change(View& view) const {
  auto& pinned = view.look.tokens.pinned_query;
  pinned = pinned == query ? std::nullopt : std::optional(query);
}

void unpin_cell(ModelView& view) {
  view.selection.trail.clear();
  show(view, std::nullopt);
}

void UnpinCell::change(View& view) const {
  unpin_cell(view);
}

void FoldStage::change(View& view) const {
  if (folded)
    view.look.folded.insert(stage);
  else
    view.look.folded.erase(stage);
}

void ResetZoom::change(View& view) const {
  view.look.zoomed.erase(shape);
}

void MoveEditCursor::change(View& view) const {
  if (view.look.tab == Tab::layers) view.look.tab = Tab::stages;  // Layers has no editor
  view.look.edited = {matrix, view.look.sequence};
  view.selection.cursor = EditCursor{row, column, true};
}

void Present::change(View& view) const {
  view.selection.presentation.on = on;
  view.selection.presentation.operand_animation.reset();
  view.selection.cursor.reset();
  view.selection.tour.reset();
}

CellWindow all_cells(MatrixShape shape) {
  return {0, 0, static_cast<double>(shape.second), static_cast<double>(shape.first)};
}

CellWindow displayed_window(const Look& look, MatrixShape shape) {
  const auto zoomed = look.zoomed.find(shape);
  return zoomed == look.zoomed.end() ? all_cells(shape) : zoomed->second;
}

void Zoom::change(View& view) const {
  const CellWindow now = displayed_window(view.look, shape);
  const double width = now.right - now.left, height = now.bottom - now.top;
  // One factor for both directions, so that cells keep their aspect ratio up to the edges of the matrix.
  const double least = std::min(1.0, std::max(1 / width, 1 / height));
  const double by = std::max(factor, least);
  show_part(view, shape,
            {column - (column - now.left) * by, row - (row - now.top) * by,
             column + (now.right - column) * by, row + (now.bottom - row) * by});
}

void Pan::change(View& view) const {
  const CellWindow now = displayed_window(view.look, shape);
  show_part(view, shape, {now.left + columns, now.top + rows, now.right + columns, now.bottom + rows});
}

bool wheel_zooms(const Look& look, const Selection& selection, const CellRef& over, MatrixShape shape,
                 bool ctrl) {
  const bool large = look.tab == Tab::stages && look.large == over.stage;
  const bool clicked =
      selection.pinned && selection.pinned->stage == over.stage && selection.pinned->head == over.head;
  return ctrl || large || clicked || look.zoomed.contains(shape);
}

bool wheel_scrolls(const Selection& selection, float mouse_x, float mouse_y) {
  constexpr float rest = 3;  // pixels
  return selection.last_scroll_position &&
         std::abs(selection.last_scroll_position->first - mouse_x) <= rest &&
         std::abs(selection.last_scroll_position->second - mouse_y) <= rest;
}

void ScrollToCell::change(View& view) const {
  const CellWindow now = displayed_window(view.look, shape);
  const auto step = [](double from, double to, std::size_t cell) {
    const auto at = static_cast<double>(cell);
    if (to - from <= 1) return at - from;
    return at < from ? at - from : at + 1 > to ? at + 1 - to : 0.0;
  };
  Pan{shape, step(now.top, now.bottom, row), step(now.left, now.right, column)}.change(view);
}

void clamp_view(ModelView& view, const core::attention::Model& model) {
  view.look.sequence = std::min(view.look.sequence, model.sequences.size() - 1);
  view.look.head = std::min(view.look.head, model.n_heads - 1);
  show_pinned_in_head(view);
  if (!core::editing::find_matrix(model, view.look.edited))
    view.look.edited = {core::editing::MatrixName::embeddings, view.look.sequence};
  view.look.edited = edited_place(view.look, model);
  const core::attention::SharedMatrix& edited = *core::editing::find_matrix(model, view.look.edited);
  if (view.selection.cursor &&
      (view.selection.cursor->row >= edited.n_rows() || view.selection.cursor->column >= edited.n_cols()))
    view.selection.cursor.reset();
  const core::attention::StageSet stages = existing_stages(model);
  const auto exists = [&](const std::optional<CellRef>& cell) {
    if (!cell) return true;
    const core::attention::StageShape shape = core::attention::shape_of(model, cell->stage);
    return contains(stages, cell->stage) && cell->head < model.n_heads && cell->row < shape.n_rows &&
           cell->column < shape.n_cols;
  };
  if (!exists(view.selection.pinned)) unpin_cell(view);
  if (const auto& of = view.look.gradient.of;
      of && !exists(CellRef{of->stage, of->head, of->row.value_or(0), of->column.value_or(0)}))
    view.look.gradient.of.reset();
  std::erase_if(view.selection.trail, [&](const CellRef& cell) { return !exists(cell); });
  if (!exists(view.selection.hovered)) view.selection.hovered.reset();
  if (!exists(view.selection.menu_cell)) view.selection.menu_cell.reset();
  PositionsLook& positions = view.look.positions;
  if (positions.decoded && (*positions.decoded >= model.n_tokens() || !decoding_problem(model).empty()))
    positions.decoded.reset();
  TokensLook& look = view.look.tokens;
  for (auto* token : {&look.pinned_query, &look.hovered_query})
    if (*token && **token >= model.n_tokens()) token->reset();
  if (look.hovered_key && *look.hovered_key >= model.n_keys()) look.hovered_key.reset();
  if (view.selection.hovered_head && *view.selection.hovered_head >= model.n_heads)
    view.selection.hovered_head.reset();
  std::erase_if(look.silent_heads, [&model](std::size_t h) { return h >= model.n_heads; });
  if (!contains(stages, view.look.heads_stage)) view.look.heads_stage = Stage::weights;
}

core::editing::MatrixRef edited_place(const Look& look, const core::attention::Model& model) {
  const auto place = core::attention::matrix_ref(model, look.edited.name, look.sequence, look.head);
  if (core::editing::find_matrix(model, place)) return place;
  return {core::editing::MatrixName::embeddings, look.sequence};
}

std::string decoding_problem(const core::attention::Model& model) {
  const core::attention::Mask& mask = model.mask;
  const bool sees_later =
      !mask.causal || mask.prefix > 0 || std::ranges::any_of(mask.cells, [](const auto& cell) {
        return cell.visible && cell.column > cell.row;
      });
  if (model.has_key_embeddings()) return "its keys are of tokens of their own already";
  if (mask.method != core::attention::MaskMethod::negative_infinity)
    return "the softmax goes over later keys as well, before they are masked";
  if (sees_later) return "queries see later keys: rows would change with every new token";
  if (core::bugs::has_bugs(model)) return "the model has an injected bug";
  if (model.merge != core::attention::CombineRule::concatenate)
    return "the heads are not concatenated row by row";
  if (!model.given.empty()) return "some of its numbers are given";
  if (model.dropout.training && (model.dropout.rate > 0 || !model.dropout.given.empty()))
    return "dropout is on";
  return "";
}

void StepDecoding::change(View& view) const {
  auto& decoded = view.look.positions.decoded;
  if (!decoded)
    decoded = 0;
  else if (by > 0)
    decoded = std::min(*decoded + 1, n_tokens - 1);
  else if (*decoded > 0)
    --*decoded;
  view.look.tab = Tab::stages;
  view.look.large.reset();
}

std::vector<CellRef> animated_cells(const core::explain::Computation& of, const CellRef& cell) {
  std::vector<CellRef> cells = core::explain::derived_cells(of, cell);
  std::erase_if(cells, [&](const CellRef& c) { return core::explain::operands(of, c).empty(); });
  return cells;
}

std::optional<AnimationStep> current_animation_step(const Displayed& shown) {
  const auto& operand_animation = shown.selection.presentation.operand_animation;
  if (!operand_animation || shown.selection.pinned != operand_animation->cell) return std::nullopt;
  const auto cells = animated_cells(shown, operand_animation->cell);
  if (cells.empty()) return std::nullopt;
  const auto n = static_cast<double>(cells.size());
  const double at = std::clamp(operand_animation->at, 0.0, n);
  const bool whole = at > 0 && at == std::floor(at) && (!operand_animation->is_running || at == n);
  const auto index = static_cast<std::size_t>(whole ? at - 1 : std::min(std::floor(at), n - 1));
  return AnimationStep{index, cells.size(), cells[index], whole ? 1.0 : at - static_cast<double>(index)};
}

void PlayAnimation::change(View& view) const {
  auto& operand_animation = view.selection.presentation.operand_animation;
  if (!view.selection.pinned) return operand_animation.reset();
  if (!operand_animation || operand_animation->cell != *view.selection.pinned ||
      operand_animation->at >= static_cast<double>(n))
    operand_animation = OperandAnimation{*view.selection.pinned, 0, true};
  else
    operand_animation->is_running = !operand_animation->is_running;
}

void StepAnimation::change(View& view) const {
  auto& operand_animation = view.selection.presentation.operand_animation;
  if (!view.selection.pinned) return;
  if (!operand_animation || operand_animation->cell != *view.selection.pinned)
    operand_animation = OperandAnimation{*view.selection.pinned, 0, false};
  constexpr double close = 1e-6;
  const double to =
      by < 0 ? std::ceil(operand_animation->at - 1 - close) : std::floor(operand_animation->at + 1 + close);
  operand_animation->at = std::clamp(to, 0.0, static_cast<double>(n));
  operand_animation->is_running = false;
}

void AdvanceAnimation::change(View& view) const {
  auto& operand_animation = view.selection.presentation.operand_animation;
  if (!operand_animation || !operand_animation->is_running) return;
  operand_animation->at = std::min(operand_animation->at + by, static_cast<double>(n));
  if (operand_animation->at >= static_cast<double>(n)) operand_animation->is_running = false;
}

namespace {

using core::attention::Model;

bool has_other_numbers(const Selection& now, const Look&, Dialog, const Model& model) {
  const Model& start = *now.tour->start;
  for (std::size_t s = 0; s < std::min(start.sequences.size(), model.sequences.size()); ++s)
    if (!(model.sequences[s].embeddings == start.sequences[s].embeddings)) return true;
  return !(model.projections == start.projections);
}

bool pinned_a_weight(const Selection& now, const Look&, Dialog, const Model&) {
  return now.pinned && now.pinned->stage == Stage::weights;
}

bool followed_an_operand(const Selection& now, const Look&, Dialog, const Model&) {
  return now.pinned && !now.trail.empty();
}

bool shows_another_head(const Selection& now, const Look& look, Dialog, const Model&) {
  return look.head != now.tour->head;
}

bool has_another_mask(const Selection& now, const Look&, Dialog, const Model& model) {
  return model.mask.causal != now.tour->start->mask.causal;
}

bool has_dropout(const Selection& now, const Look&, Dialog, const Model& model) {
  return !(model.dropout == now.tour->start->dropout);
}

bool is_only_shown(const Selection&, const Look&, Dialog, const Model&) {
  return false;
}

bool opened_the_export(const Selection&, const Look&, Dialog dialog, const Model&) {
  return dialog == Dialog::export_files;
}

constexpr std::array steps{
    TourStep{"Drag this number", "Hold it and move the mouse sideways: every stage follows at once.",
             "edit/cell/1/0", has_other_numbers},
    TourStep{"Watch a weight",
             "Point at a cell: the inspector shows how it is computed. Cells that your number has changed "
             "are underlined. Click one to pin it.",
             "strip/weights", pinned_a_weight},
    TourStep{"Follow an operand",
             "The inspector works the pinned cell out. Press one of its pink numbers to go to the stage "
             "that it comes from.",
             "region/inspector", followed_an_operand},
    TourStep{"Switch the mask", "Press it: without the causal mask every token also attends to later tokens.",
             "model/causal", has_another_mask},
    TourStep{"Drop some weights", "Drag the rate: half of the weights become 0, the others are rescaled.",
             "model/dropout", has_dropout},
    TourStep{"Look at another head",
             "Each head has its own queries, keys and values. The keys 1 to 9 select one.", "view/heads",
             shows_another_head},
    TourStep{"Take it with you",
             "Press Ctrl+E, or File → Export…: numbers for a spreadsheet or NumPy, a figure, a program.",
             "menu/File", opened_the_export},
    TourStep{"Go on with a lesson",
             "Lessons ask what will happen, then show it. The end of this tour puts the model back.",
             "menu/Lessons", is_only_shown}};

}  // namespace

std::span<const TourStep> tour_steps() {
  return steps;
}

void start_tour(View& view, const Model& model) {
  const auto found = std::make_shared<const Model>(model);
  view.selection.tour = Tour{0, found, found, view.look.head};
  view.selection.presentation = {};
  view.look.tab = Tab::stages;
  view.look.large.reset();
  view.look.zoomed.clear();
  view.look.folded.erase(Stage::weights);
  unpin_cell(view);
}

void advance_tour(View& view, const Model& model) {
  if (!view.selection.tour) return;
  if (view.selection.tour->step + 1 >= steps.size()) return leave_tour(view);
  ++view.selection.tour->step;
  view.selection.tour->start = std::make_shared<const Model>(model);
  view.selection.tour->head = view.look.head;
}

void leave_tour(View& view) {
  view.selection.tour.reset();
  view.settings.has_seen_tour = true;
}

std::vector<Command> commands_back(const LayersLook& look, std::size_t k) {
  auto path = look.path;
  const auto [layer, cell] = path.at(k);
  path.resize(k);
  return {ShowLayer{layer}, FollowCell{cell}, set<&Selection::trail>({}),
          set<&LayersLook::path>(std::move(path))};
}

}  // namespace app
