#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/color.hpp"
#include "core/editing/draw.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/address.hpp"
#include "core/graph/difference.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/statistics.hpp"
#include "core/graph/target.hpp"
#include "core/importing/import.hpp"
#include "core/model/full_model.hpp"
#include "core/model/lens.hpp"
#include "core/out/tables.hpp"

namespace app {

/// Color range of signed stages: of each matrix alone, of all heads of a stage, of every stage and head, or
/// typed. Weights have a fixed range unless one was typed, masks always.
enum class ColorRangeRule { matrix, stage, all_heads, typed };

/// The two ends of a color range.
struct ColorLimits {
  double low = 0, high = 1;
  double least = 0;  ///< when positive, the range is logarithmic from this absolute value on
  friend bool operator==(const ColorLimits&, const ColorLimits&) = default;
};

/// Mapping of numbers to colors; changes no number.
struct ColorChoice {
  ColorRangeRule range = ColorRangeRule::matrix;
  ColorLimits typed_values{-1, 1}, typed_weights{0, 1};
  bool logarithmic = false, logarithmic_weights = false;  ///< of all matrices, or of weights alone
  /// The ends when they were locked, by stage and head; nothing: they follow the numbers.
  std::optional<std::map<std::pair<core::attention::Stage, std::size_t>, ColorLimits>> locked;
  core::color::ColorMap sequential = core::color::ColorMap::weights,
                        diverging = core::color::ColorMap::values;

  bool is_logarithmic(core::attention::Coloring coloring) const {
    return logarithmic || (logarithmic_weights && coloring == core::attention::Coloring::weights);
  }
  friend bool operator==(const ColorChoice&, const ColorChoice&) = default;
};

/// An arrow of the RoPE view that is being dragged: the two numbers of a pair before rotation.
struct DraggedArrow {
  bool of_key = false;
  std::size_t pair = 0;
  double x = 0, y = 0;
  double rim_length = 1;  ///< length of an arrow to the rim, as when the drag began
  friend bool operator==(const DraggedArrow&, const DraggedArrow&) = default;
};

/// View of token positions: decoding, and the RoPE view.
struct PositionsLook {
  std::optional<std::size_t> decoded;            ///< newest token of the displayed decoding; nothing: none
  std::optional<std::int64_t> query_at, key_at;  ///< positions to which query and key were dragged
  std::optional<DraggedArrow> dragged_arrow;
  friend bool operator==(const PositionsLook&, const PositionsLook&) = default;
};

/// Animation of the operands of the pinned cell on their way to it, stage by stage.
struct OperandAnimation {
  core::explain::CellAddress cell;
  double at = 0;           ///< number of completed steps, with the fraction of the next
  bool is_running = true;  ///< else it is paused
  friend bool operator==(const OperandAnimation&, const OperandAnimation&) = default;
};

/// Presentation for an audience.
struct Presentation {
  bool on = false;           ///< one stage and its operands fill the window
  bool full_screen = false;  ///< the window fills the screen
  std::optional<OperandAnimation> operand_animation;
  friend bool operator==(const Presentation&, const Presentation&) = default;
};

/// Progress in the tour of the window.
struct Tour {
  std::size_t step = 0;
  std::shared_ptr<const core::attention::Model> start;  ///< the model when the step began
  std::shared_ptr<const core::attention::Model> first;  ///< when the tour began; restored at its end
  std::size_t head = 0;                                 ///< displayed when the step began
};

using core::attention::Stage;

enum class Tab { stages, heads, tokens, compare, laboratory, layers, learn };

/// State of the token view.
struct TokensLook {
  std::optional<std::size_t> hovered_query, pinned_query;
  std::optional<std::size_t> hovered_key;
  std::set<std::size_t> silent_heads;  ///< heads without lines
  double hide_below = 0.01;            ///< weights below it have no lines, 0 … 1
  bool scrolls_to_query = false;       ///< the view has yet to scroll to the pinned query

  std::optional<std::size_t> query() const { return hovered_query ? hovered_query : pinned_query; }
  friend bool operator==(const TokensLook&, const TokensLook&) = default;
};

/// Rows and columns of a matrix.
using MatrixShape = std::pair<std::size_t, std::size_t>;

/// A part of a matrix in cells, which may be fractional.
struct CellWindow {
  double left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const CellWindow&, const CellWindow&) = default;
};

/// View of the comparison.
struct ComparedLook {
  std::size_t reference = 0;  ///< which of the kept states is A
  core::compare::DifferenceKind difference = core::compare::DifferenceKind::a_minus_b;
};

/// Contents of the maps while the gradients of a number are shown.
enum class GradientMaps { values, gradient, both };

/// Numbers that a step along a gradient changes: every learned matrix, the embeddings, or the edited matrix.
enum class StepAlong { matrices, embeddings, edited };

/// View of gradients.
struct GradientLook {
  std::optional<core::graph::Target> of;  ///< set by ShowGradient, which can be undone; nothing: not shown
  GradientMaps maps = GradientMaps::gradient;
  double step = 0.1;  ///< that the gradient is multiplied by
  StepAlong along = StepAlong::matrices;
  friend bool operator==(const GradientLook&, const GradientLook&) = default;
};

/// The part of the view that a session keeps; changes no number.
struct Look {
  Tab tab = Tab::stages;
  std::size_t sequence = 0, head = 0;
  Stage heads_stage = Stage::weights;
  ColorChoice colors;
  bool gutters = false;        ///< row sums and entropy are displayed next to token × token stages
  std::optional<Stage> large;  ///< the stage that fills the Stages view alone
  std::set<Stage> folded{Stage::mask, Stage::row_sums};  ///< stages that the strip leaves out
  std::set<Stage> code_lines;  ///< stages of the strip that show their line of PyTorch
  /// The displayed part of matrices of that shape; others are displayed in full.
  std::map<MatrixShape, CellWindow> zoomed;
  std::optional<core::attention::HeadMetric> heads_order;  ///< sort key of the heads; nothing: their number
  TokensLook tokens;
  core::editing::MatrixRef edited;  ///< the matrix in the editor
  ComparedLook compared;
  PositionsLook positions;
  GradientLook gradient;
  std::size_t laboratory_masks = 64;  ///< number of masks that the dropout laboratory averages
};

/// File formats of exports; the rows of export_formats().
enum class ExportFormat { csv, npy, npz, svg, png, pdf, session, program, experiment };

/// How something is copied: how much of a matrix, and the row of core::formats::copy_formats().
struct CopyChoice {
  core::formats::CopyScope scope = core::formats::CopyScope::matrix;
  std::size_t form = 0;
  friend bool operator==(const CopyChoice&, const CopyChoice&) = default;
};

/// Settings for every model; most are kept from one run to the next.
struct Settings {
  bool dark = true;
  float scale = 1;      ///< of text and lengths, 1 … 3
  float text_size = 1;  ///< of text alone, on top of that
  float left_width = 0,
        right_width = 0;  ///< dragged widths of the side regions at scale 1; 0 = as the theme says
  ExportFormat export_format = ExportFormat::csv;
  int export_scale = 2;                             ///< of a PNG
  bool export_dark = false, export_numbers = true;  ///< of a figure
  CopyChoice copy;                                  ///< the last one
  int copy_decimals = 3;                            ///< in human-readable formats
  bool reduce_motion = false;                       ///< no animations and no flashes
  bool pytorch_numbers = false;                     ///< cells as PyTorch prints a tensor: four decimals
  float animation_speed = 1;                        ///< of operands, 0.25 … 4
  bool has_seen_tour = false;                       ///< the tour was taken or skipped
  bool start_page = true;                           ///< it is shown at startup when no file is opened
};

/// A cell of a stage; head matters only for stages with one matrix per head.
using CellRef = core::explain::CellAddress;

/// The edit cursor in the matrix editor.
struct EditCursor {
  std::size_t row = 0, column = 0;
  bool needs_focus = false;  ///< the editor has yet to get the keyboard focus
  bool dragging = false;     ///< the mouse has moved far enough to mean a drag
  friend bool operator==(const EditCursor&, const EditCursor&) = default;
};

/// The displayed step of a lesson.
struct LessonPlace {
  std::string name;
  std::size_t step = 0;
  int frames_shown = 0;               ///< until `has_scrolled`
  bool has_scrolled = false;          ///< the strip has scrolled to the focus of the step
  std::optional<CellRef> guess = {};  ///< the user's prediction in the step
};

/// Hovered, pinned and followed items at this moment; changes no number.
struct Selection {
  std::optional<CellRef> hovered, pinned;
  std::vector<CellRef> trail;               ///< cells from which operands were followed, the latest last
  std::optional<std::size_t> unfolded;      ///< the step of the explained cell that shows all its terms
  std::optional<std::size_t> hovered_head;  ///< in the view of heads
  std::optional<EditCursor> cursor;         ///< set while the matrix editor has the keyboard focus
  std::optional<std::pair<float, float>>
      last_scroll_position;              ///< where the mouse was when the wheel last scrolled
  bool shows_reference = false;          ///< a reference replaces the live model while its key is held
  std::optional<CellRef> menu_cell;      ///< the cell with an open menu
  std::optional<Stage> scroll_target;    ///< the stage to which the view has yet to scroll
  std::uint64_t similarity_version = 0;  ///< version of a large trace with a requested similarity of heads
  std::optional<LessonPlace> lesson;
  std::optional<bool> shows_inspector;  ///< whether a narrow window shows the inspector in place of Edit;
                                        ///< nothing: when pinned
  std::optional<Tour> tour;
  Presentation presentation;
};

enum class Dialog {
  none,
  open,
  open_reference,
  open_tensors,
  match_tensors,
  open_override,
  open_texts,
  import_tensors,
  save_as,
  export_files,
  export_run,
  export_map,
  unsaved_work,
  writing,
  memory,
  question,
  recovery,
  keys,
  about,
  glossary,
  sentence,
  fill,
  draw_model,
  override_stage,
  scan,
  palette
};

/// Whether the dialog chooses a file to read.
inline bool chooses_file(Dialog dialog) {
  return dialog == Dialog::open || dialog == Dialog::open_reference || dialog == Dialog::open_tensors ||
         dialog == Dialog::open_override || dialog == Dialog::open_texts;
}

/// Whether the dialog chooses a file or folder to write, under a proposed name.
inline bool exports(Dialog dialog) {
  return dialog == Dialog::export_files || dialog == Dialog::export_run || dialog == Dialog::export_map;
}

/// Extent of an export.
enum class ExportScope { matrix, stage, everything };

/// One line of the file browser.
struct BrowserEntry {
  std::string name;
  bool is_directory = false;
  std::uintmax_t size = 0;
  std::int64_t modified_at = 0;  ///< last change, in seconds since 1970; 0 if unknown
};

/// The file browser's state: the directory is read when it is entered, not in every frame.
struct Browser {
  std::filesystem::path directory;
  std::vector<BrowserEntry> entries;
  std::string name;                 ///< text of the name field
  std::string error;                ///< why the directory could not be read, or ""
  bool is_listing = false;          ///< the folder is still being read
  bool by_date = false;             ///< sorts the entries by their last change, the latest first
  bool confirms_overwrite = false;  ///< the named file exists; the dialog asks whether to overwrite it
  bool decimal_comma = false;       ///< tables and texts have decimal commas
  core::formats::DecimalMark mark() const {
    return decimal_comma ? core::formats::DecimalMark::comma : core::formats::DecimalMark::point;
  }
};

/// What a file of tensors is opened as.
enum class ImportAs { layer, by_hand, stages, embeddings };

/// Fields of the dialog that imports a file of tensors.
struct ImportForm {
  ImportAs as = ImportAs::layer;  ///< by_hand: the projections are named one by one
  core::importing::Choices choices;
  std::size_t layer = 0;    ///< of those that were found
  bool has_output = false;  ///< by hand: there is an output projection
  core::formats::checkpoints::ProjectionMapping mapping;
  std::string measured;  ///< the tensor whose range is shown
};

/// Text being typed into a field: it outlives the field's focus by the frame in which it is submitted.
struct TypedField {
  std::string field;  ///< the landmark of the field
  std::string text;
  bool needs_focus = false;  ///< the field has yet to get the keyboard focus
  bool selected = true;      ///< on focus, all of the text is selected; else the caret is at its end
  friend bool operator==(const TypedField&, const TypedField&) = default;
};

/// The field that was submitted last, and the error if it was refused.
struct SubmittedField {
  std::string field;       ///< its landmark
  std::string error = {};  ///< or "", also before there is an answer
  std::string text = {};   ///< as submitted
  friend bool operator==(const SubmittedField&, const SubmittedField&) = default;
};

/// Random operations to run before the wanted one, as typed.
struct RngPrefix {
  std::string text;
  std::string error;  ///< why they cannot be run, or ""
};

/// Fields of the dialog that fills a matrix, and the resulting numbers, which are computed when a field
/// changes, not in every frame.
struct FillForm {
  core::editing::MatrixRef place;
  core::editing::Fill fill{core::editing::FillRule::randn, 123, {}};
  RngPrefix before;
  core::attention::SharedMatrix numbers;
};

/// Fields of the dialog that initializes a model from a seed.
struct DrawForm {
  core::editing::ModelInit draw;
  RngPrefix before;
};

/// The sentence being typed in its dialog.
struct SentenceDraft {
  std::string text;
  core::text::TokenRule rule = core::text::TokenRule::words;
  std::uint64_t seed = 123;
};

/// Search for an action in the palette, and the selected line of the results.
struct ActionSearch {
  std::string text;
  std::size_t line = 0;
  bool needs_focus = true;  ///< the field has yet to get the keyboard focus
};

/// Selection of the export dialog.
struct ExportChoice {
  ExportScope what = ExportScope::matrix;
  std::optional<std::pair<Stage, std::size_t>> from = {};  ///< a stage and its head; nothing: the pinned one
  bool transformer_lens = false;                           ///< library of an experiment as a program
};

/// What is patched of two prompts, and what the maps of patches show.
struct PatchesLook {
  std::size_t part = 0;                              ///< row of core::transformer::patched_parts()
  bool by_position = false;                          ///< rows are patched one at a time
  std::optional<core::transformer::Patch> receiver;  ///< of path patching, or nothing
  bool runs = true;                                  ///< the maps are computed
  friend bool operator==(const PatchesLook&, const PatchesLook&) = default;
};

/// Heads over many texts: the file of texts, the folder of the scan, and what of it is shown.
struct ScanForm {
  std::string texts;                               ///< a path, or ""
  std::string folder;                              ///< a path, or ""; also of a scan that was made elsewhere
  bool runs = false;                               ///< the texts are scanned into the folder, or were
  std::size_t sorted_by = 0;                       ///< metric whose largest values come first
  std::size_t across = 0, up = 1;                  ///< metrics of the scatter plot
  std::pair<std::size_t, std::size_t> head{0, 0};  ///< layer and number of the one whose examples are shown
  bool shows_head = false;                         ///< its examples take the place of the plot
  std::size_t example = 0;
  friend bool operator==(const ScanForm&, const ScanForm&) = default;
};

/// The open dialog, and the fields of all dialogs.
struct Forms {
  Dialog dialog = Dialog::none;
  bool start_page = false;                ///< the start page replaces the panels
  std::vector<std::string> used_actions;  ///< of the palette, the latest first
  std::optional<TypedField> typed;        ///< in any field of the window
  std::optional<SubmittedField> submitted;
  ActionSearch search;                 ///< of the palette
  std::string question;                ///< asked before an action, such as one that needs much memory
  std::string answer;                  ///< label of the button that confirms the action
  std::vector<std::string> leftovers;  ///< work left by earlier windows, in words
  Browser browser;
  ImportForm import;
  ExportChoice exporting;
  ScanForm scan;
  SentenceDraft sentence;
  FillForm fill;
  DrawForm draw;
  std::vector<std::filesystem::path> models;  ///< whole models that come with the program
  Stage overridden_stage = Stage::weights;    ///< the one that the override dialog is about
  bool in_browser = false;                    ///< the window is a page, without folders
  bool is_embedded = false;                   ///< in a frame of another page: the view alone
};

/// A typed text that cannot be read, and why.
struct RefusedText {
  std::string text, why;
};

/// Contents of the maps of heads: weights, weights before the edits, or the change by the edits.
enum class LayerMaps { weights, before, change };

/// What the heads of a layer, or its MLP, add to the residual stream.
struct StreamAddition {
  std::size_t layer = 0;
  bool of_mlp = false;
  std::size_t head = 0;  ///< displayed when it was selected: another head takes its place in the inspector
  friend bool operator==(const StreamAddition&, const StreamAddition&) = default;
};

/// View of a whole model; changes no number.
struct LayersLook {
  std::optional<std::size_t>
      token;               ///< whose logit is displayed; nothing: the most probable one before the edits
  double temperature = 0;  ///< of generated tokens; 0: always the most probable one
  std::size_t top = 40;    ///< top-k for sampling, 0 for all tokens
  std::uint64_t seed = 123;
  std::optional<RefusedText> refused;
  bool shows_effects = false;  ///< bars show ablation effects, else direct logit attribution
  LayerMaps maps = LayerMaps::weights;
  core::transformer::LensKind lens = core::transformer::LensKind::logit;
  std::optional<StreamAddition> addition;  ///< worked out in the inspector
  bool shows_sources = false;              ///< the inspector shows a score by its sources
  bool sources_plain = false;              ///< and not above the mean of its row
  std::string source;                      ///< the selected one, or ""
  /// Cells of layers from which one in another layer was followed, the latest last.
  std::vector<std::pair<std::size_t, core::explain::CellAddress>> path;
  bool shows_circuits = false;  ///< the circuits of the selected head are computed and shown
  std::size_t composes = 0;     ///< what of it reads earlier heads: 0 queries, 1 keys, 2 values
  PatchesLook patches;

  /// Returns the divisor of logits for displayed probabilities.
  double shown_temperature() const { return temperature > 0 ? temperature : 1; }
};

/// Steps a second while a run plays: fixed, or as many as the processor trains.
enum class LearningSpeed { one, ten, sixty, fastest };

/// View of a run of training.
struct LearningLook {
  bool plays = false;  ///< it trains while it is displayed
  LearningSpeed speed = LearningSpeed::fastest;
  std::optional<std::size_t> shown;                ///< step of the displayed snapshot; nothing: the newest
  std::size_t sample = 0;                          ///< of the sequences that are not trained on
  std::pair<std::size_t, std::size_t> head{0, 0};  ///< layer and number of the selected one
  bool shows_change = false;                       ///< the maps show the change since A
};

/// The part of the view that depends on the model.
struct ModelView {
  Look look;
  Selection selection;
};

/// All that the window shows apart from the model; changed only by commands.
struct View : ModelView {
  Settings settings;
  Forms forms;
  LayersLook layers;
  LearningLook learning;
};

/// Returns the part of the view that has that type.
template <class Part>
Part& part_of(View& v) {
  return std::get<Part&>(std::tie(v.look, v.look.tokens, v.look.colors, v.look.compared, v.look.positions,
                                  v.look.gradient, v.selection, v.selection.presentation, v.settings, v.forms,
                                  v.forms.search, v.forms.browser, v.forms.import, v.forms.exporting,
                                  v.forms.sentence, v.forms.draw, v.forms.scan, v.layers, v.layers.patches,
                                  v.learning));
}

template <auto... members>
struct MemberList {};

/// Fields that panels set individually.
using ViewFields = MemberList<
    &Look::tab, &Look::sequence, &Look::head, &Look::heads_stage, &Look::gutters, &Look::large, &Look::folded,
    &Look::code_lines, &Look::zoomed, &Look::heads_order, &Look::edited, &Look::laboratory_masks,
    &TokensLook::hovered_query, &TokensLook::pinned_query, &TokensLook::hovered_key,
    &TokensLook::silent_heads, &TokensLook::hide_below, &TokensLook::scrolls_to_query, &ColorChoice::range,
    &ColorChoice::typed_values, &ColorChoice::typed_weights, &ColorChoice::logarithmic,
    &ColorChoice::logarithmic_weights, &ColorChoice::locked, &ColorChoice::sequential,
    &ColorChoice::diverging, &ComparedLook::reference, &ComparedLook::difference, &PositionsLook::decoded,
    &PositionsLook::query_at, &PositionsLook::key_at, &PositionsLook::dragged_arrow, &GradientLook::maps,
    &GradientLook::step, &GradientLook::along, &Selection::hovered, &Selection::pinned, &Selection::trail,
    &Selection::unfolded, &Selection::hovered_head, &Selection::cursor, &Selection::last_scroll_position,
    &Selection::menu_cell, &Selection::scroll_target, &Selection::similarity_version, &Selection::lesson,
    &Selection::shows_inspector, &Presentation::on, &Presentation::full_screen,
    &Presentation::operand_animation, &Settings::dark, &Settings::scale, &Settings::text_size,
    &Settings::left_width, &Settings::right_width, &Settings::export_format, &Settings::export_scale,
    &Settings::export_dark, &Settings::export_numbers, &Settings::copy, &Settings::copy_decimals,
    &Settings::reduce_motion, &Settings::pytorch_numbers, &Settings::animation_speed, &Settings::start_page,
    &Forms::start_page, &Forms::used_actions, &Forms::dialog, &Forms::typed, &Forms::submitted,
    &Forms::search, &Forms::fill, &Forms::overridden_stage, &ActionSearch::text, &ActionSearch::line,
    &ActionSearch::needs_focus, &Browser::name, &Browser::by_date, &Browser::confirms_overwrite,
    &Browser::decimal_comma, &ImportForm::as, &ImportForm::choices, &ImportForm::layer,
    &ImportForm::has_output, &ImportForm::mapping, &ImportForm::measured, &ExportChoice::what,
    &ExportChoice::from, &ExportChoice::transformer_lens, &SentenceDraft::text, &SentenceDraft::rule,
    &SentenceDraft::seed, &DrawForm::draw, &DrawForm::before, &PatchesLook::part, &PatchesLook::by_position,
    &PatchesLook::receiver, &PatchesLook::runs, &ScanForm::texts, &ScanForm::folder, &ScanForm::runs,
    &ScanForm::sorted_by, &ScanForm::across, &ScanForm::up, &ScanForm::head, &ScanForm::shows_head,
    &ScanForm::example, &LayersLook::token, &LayersLook::temperature, &LayersLook::top, &LayersLook::seed,
    &LayersLook::shows_effects, &LayersLook::maps, &LayersLook::lens, &LayersLook::addition,
    &LayersLook::shows_sources, &LayersLook::sources_plain, &LayersLook::source, &LayersLook::path,
    &LayersLook::shows_circuits, &LayersLook::composes, &LearningLook::plays, &LearningLook::speed,
    &LearningLook::shown, &LearningLook::sample, &LearningLook::head, &LearningLook::shows_change>;

}  // namespace app
