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
#include "core/graph/head_facts.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/importing/import.hpp"
#include "core/out/tables.hpp"

namespace app {

/// Whose numbers set the ends of the colors of signed stages: each matrix its own, one range for all heads
/// of a stage, one for every stage and head, or what was typed. Weights and masks have fixed ends, unless
/// some were typed.
enum class RangeRule { matrix, stage, all_heads, typed };

/// The two ends of a range of colors.
struct Ends {
  double low = 0, high = 1;
  double least = 0;  ///< when positive, the range is logarithmic from this size on
  friend bool operator==(const Ends&, const Ends&) = default;
};

/// How numbers become colors; none of it changes a number.
struct ColorChoice {
  RangeRule range = RangeRule::matrix;
  Ends typed_values{-1, 1}, typed_weights{0, 1};
  bool logarithmic = false;
  /// The ends as they were when they were locked, by stage and head; nothing: they follow the numbers.
  std::optional<std::map<std::pair<core::attention::Stage, std::size_t>, Ends>> locked;
  core::color::ColorMap sequential = core::color::ColorMap::weights,
                        diverging = core::color::ColorMap::values;
  friend bool operator==(const ColorChoice&, const ColorChoice&) = default;
};

/// An arrow of the picture of rotary positions that the mouse holds: two numbers of a pair before they are
/// rotated.
struct HeldArrow {
  bool of_key = false;
  std::size_t pair = 0;
  double x = 0, y = 0;
  double longest = 1;  ///< the length that reached the rim when it was taken
  friend bool operator==(const HeldArrow&, const HeldArrow&) = default;
};

/// Where tokens stand, as far as that is looked at.
struct PositionsLook {
  std::optional<std::size_t> decoded;            ///< decoding is shown, and this is the newest token
  std::optional<std::int64_t> query_at, key_at;  ///< where the picture has moved query and key to
  std::optional<HeldArrow> held;
  friend bool operator==(const PositionsLook&, const PositionsLook&) = default;
};

/// The numbers of the pinned cell on the way from what they are made of to their place, stage after stage.
struct OperandAnimation {
  core::explain::CellAddress cell;
  double at = 0;     ///< how many of its steps have been flown, and how much of the next
  bool runs = true;  ///< else it stands still
  friend bool operator==(const OperandAnimation&, const OperandAnimation&) = default;
};

/// What is done for an audience.
struct Presenting {
  bool on = false;           ///< one stage and what it is made of fill the window
  bool full_screen = false;  ///< the window fills the screen
  std::optional<OperandAnimation> flight;
  friend bool operator==(const Presenting&, const Presenting&) = default;
};

/// Where a person stands in the tour over the window.
struct Tour {
  std::size_t step = 0;
  std::shared_ptr<const core::attention::Model> start;  ///< the model as the step found it
  std::shared_ptr<const core::attention::Model> first;  ///< as the tour found it: its end puts it back
};

using core::attention::Stage;

enum class Tab { stages, heads, tokens, compare, laboratory, layers };

/// What the token view shows.
struct TokensLook {
  std::optional<std::size_t> hovered_query, pinned_query;
  std::optional<std::size_t> hovered_key;
  std::set<std::size_t> silent_heads;  ///< heads without lines
  double hide_below = 0.01;            ///< weights below it have no lines, 0 … 1
  bool comes_into_view = false;        ///< the view is to scroll to the pinned query

  std::optional<std::size_t> query() const { return hovered_query ? hovered_query : pinned_query; }
  friend bool operator==(const TokensLook&, const TokensLook&) = default;
};

/// Rows and columns of a matrix.
using Shape = std::pair<std::size_t, std::size_t>;

/// A part of a matrix in cells, which need not be whole ones.
struct CellWindow {
  double left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const CellWindow&, const CellWindow&) = default;
};

/// What is compared, and how.
struct ComparedLook {
  std::size_t reference = 0;  ///< which of the kept states is A
  core::compare::DifferenceKind difference = core::compare::DifferenceKind::a_minus_b;
};

/// What is looked at and how, as a session keeps it; nothing of it changes a number.
struct Look {
  Tab tab = Tab::stages;
  std::size_t sequence = 0, head = 0;
  Stage heads_stage = Stage::weights;
  ColorChoice colors;
  bool gutters = false;        ///< row sums and entropy are displayed next to token × token stages
  std::optional<Stage> large;  ///< the stage that fills the Stages view alone
  std::set<Stage> folded{Stage::mask, Stage::row_sums};  ///< stages that the strip leaves out
  std::set<Stage> code_lines;                            ///< stages of the strip with their line of PyTorch
  /// What is shown of matrices of so many rows and columns; of others everything.
  std::map<Shape, CellWindow> zoomed;
  std::optional<core::attention::HeadFigure>
      heads_order;  ///< what heads are sorted by; nothing: by their number
  TokensLook tokens;
  core::editing::MatrixPlace edited;  ///< the matrix in the editor
  ComparedLook compared;
  PositionsLook positions;
  std::size_t laboratory_masks = 64;  ///< over how many masks the dropout laboratory takes the mean
};

/// What it is written as; the rows of export_kinds().
enum class ExportForm { csv, npy, npz, svg, png, pdf, session, program };

/// How something is copied: how much of a matrix, and the row of core::formats::copy_forms().
struct CopyChoice {
  core::formats::CopyScope extent = core::formats::CopyScope::matrix;
  std::size_t form = 0;
  friend bool operator==(const CopyChoice&, const CopyChoice&) = default;
};

/// What a person has set for every model: most of it is kept from one run to the next.
struct Settings {
  bool dark = true;
  float scale = 1;      ///< of text and lengths, 1 … 3
  float text_size = 1;  ///< of text alone, on top of that
  float left_width = 0,
        right_width = 0;  ///< dragged widths of the side regions at scale 1; 0 = as the theme says
  ExportForm export_form = ExportForm::csv;
  int export_scale = 2;                             ///< of a PNG
  bool export_dark = false, export_numbers = true;  ///< of a figure
  CopyChoice copy;                                  ///< the last one
  int copy_decimals = 3;                            ///< in forms that are for people to read
  bool reduce_motion = false;                       ///< nothing flies or flashes
  bool pytorch_numbers = false;                     ///< cells as PyTorch prints a tensor: four decimals
  float animation_speed = 1;                        ///< of numbers that fly to their place, 0.25 … 4
  bool knows_tour = false;                          ///< the tour was taken or skipped
  bool start_page = true;                           ///< the program begins with it when it opens no file
};

/// One cell of one stage; head counts only for stages that have one a head.
using CellRef = core::explain::CellAddress;

/// Where the edit cursor stands in the matrix editor.
struct EditCursor {
  std::size_t row = 0, column = 0;
  bool waiting = false;   ///< the editor has yet to take the keyboard
  bool dragging = false;  ///< the mouse has moved far enough to mean a drag
  friend bool operator==(const EditCursor&, const EditCursor&) = default;
};

/// The step of a lesson that is shown.
struct LessonPlace {
  std::string name;
  std::size_t step = 0;
  int frames_shown = 0;               ///< until it arrived
  bool arrived = false;               ///< the strip has moved to what the step speaks of
  std::optional<CellRef> guess = {};  ///< the answer to the question that the step asks first
};

/// What is pointed at, pinned and followed at this moment; nothing of it changes a number.
struct Selection {
  std::optional<CellRef> hovered, pinned;
  std::vector<CellRef> trail;               ///< where following operands came from, the latest last
  std::optional<std::size_t> unfolded;      ///< the step of the worked cell all of whose terms are shown
  std::optional<std::size_t> hovered_head;  ///< in the view of heads
  std::optional<EditCursor> cursor;         ///< there as long as the matrix editor has the keyboard
  std::optional<std::pair<float, float>> scrolled_at;  ///< where the mouse was when the wheel last scrolled
  bool shows_a = false;  ///< a kept state stands in place of the live one as long as its key is held
  std::optional<CellRef> copied_cell;  ///< whose menu is open
  std::optional<Stage> sought;         ///< the stage to which the view has yet to scroll
  std::uint64_t similarity_of = 0;     ///< the version of a large trace whose heads' similarity was asked for
  std::optional<LessonPlace> lesson;
  std::optional<bool>
      inspects;  ///< whether a narrow window has the inspector in EDIT's place; nothing: when pinned
  std::optional<Tour> tour;
  Presenting presenting;
};

enum class Dialog {
  none,
  open,
  open_reference,
  open_tensors,
  match_tensors,
  open_given,
  import_tensors,
  save_as,
  export_files,
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
  give,
  palette
};

/// Whether it is a dialog in which a file is chosen to be read.
inline bool chooses_file(Dialog dialog) {
  return dialog == Dialog::open || dialog == Dialog::open_reference || dialog == Dialog::open_tensors ||
         dialog == Dialog::open_given;
}

/// What is to be exported.
enum class ExportWhat { matrix, stage, everything };

/// One line of the file browser.
struct BrowserEntry {
  std::string name;
  bool is_directory = false;
  std::uintmax_t size = 0;
  std::int64_t changed = 0;  ///< seconds since 1970, of its last change; 0 where that is not known
};

/// The file browser's state: the directory is read when it is entered, not in every frame.
struct Browser {
  std::filesystem::path directory;
  std::vector<BrowserEntry> entries;
  std::string name;              ///< what stands in the name field
  std::string error;             ///< why the directory could not be read, or ""
  bool is_listing = false;       ///< the folder is still being read
  bool by_date = false;          ///< the entries stand by their last change, the latest first
  bool asks_to_replace = false;  ///< the named file exists, and whether to write over it is being asked
};

/// What a file of tensors is opened as.
enum class ImportAs { layer, by_hand, stages, embeddings };

/// What is being chosen about a file of tensors.
struct ImportForm {
  ImportAs as = ImportAs::layer;  ///< by_hand: the projections are named one by one
  core::importing::Choices choices;
  std::size_t layer = 0;    ///< of those that were found
  bool has_output = false;  ///< by hand: there is an output projection
  core::formats::checkpoints::Mapping mapping;
  std::string measured;  ///< the tensor whose range is shown
};

/// What is being typed into a field: it outlives the field's focus by the frame in which it is handed in.
struct Typed {
  std::string field;  ///< the landmark of the field
  std::string text;
  bool waiting = false;  ///< the field has yet to take the keyboard
  bool selected = true;  ///< once it has, all of the text is selected; else the caret is at its end
  friend bool operator==(const Typed&, const Typed&) = default;
};

/// The field whose text was handed in last, and what was answered when it was refused.
struct Submitted {
  std::string field;       ///< its landmark
  std::string error = {};  ///< or "" until the answer is there
  std::string text = {};   ///< that was handed in
  friend bool operator==(const Submitted&, const Submitted&) = default;
};

/// Ops that are drawn before what is wanted, as they were typed.
struct RngPrefix {
  std::string text;
  std::string error;  ///< why they cannot be drawn, or ""
};

/// What the dialog that fills a matrix asks for, and the numbers that it would write; they are drawn when
/// something changes, not in every frame.
struct FillForm {
  core::editing::MatrixPlace place;
  core::editing::Fill fill{core::editing::FillRule::randn, 123, {}};
  RngPrefix before;
  core::attention::SharedMatrix numbers;
};

/// What the dialog that draws a whole model asks for.
struct DrawForm {
  core::editing::ModelDraw draw;
  RngPrefix before;
};

/// The sentence being typed in its dialog.
struct SentenceDraft {
  std::string text;
  core::text::TokenRule rule = core::text::TokenRule::words;
  std::uint64_t seed = 123;
};

/// What is being looked for among all actions, and which line of what was found is chosen.
struct ActionSearch {
  std::string text;
  std::size_t line = 0;
  bool waiting = true;  ///< the field has yet to take the keyboard
};

/// What the dialog for exports speaks of.
struct ExportChoice {
  ExportWhat what = ExportWhat::matrix;
  std::optional<std::pair<Stage, std::size_t>> from = {};  ///< a stage and its head; nothing: the pinned one
};

/// The dialog that is open, and what stands in the fields of each.
struct Forms {
  Dialog dialog = Dialog::none;
  bool start_page = false;                ///< the doors fill the window in place of the panels
  std::vector<std::string> used_actions;  ///< of the palette, the latest first
  std::optional<Typed> typed;             ///< in any field of the window
  std::optional<Submitted> submitted;
  ActionSearch search;            ///< of the palette
  std::string question;           ///< what is asked before something is done, such as taking much memory
  std::string answer;             ///< that lets it be done
  std::vector<std::string> left;  ///< what windows before have left, in words
  Browser browser;
  ImportForm import;
  ExportChoice exporting;
  SentenceDraft sentence;
  FillForm fill;
  DrawForm draw;
  std::vector<std::filesystem::path> models;  ///< whole models that the program brings
  Stage given_stage = Stage::weights;         ///< the one that the dialog for giving numbers speaks of
};

/// A text that was typed and cannot be read, and why.
struct RefusedText {
  std::string text, why;
};

/// What the maps of the heads show: their weights, those before the edits, or what the edits changed.
enum class LayerMaps { weights, before, change };

/// How a whole model is looked at; nothing of it changes a number.
struct LayersLook {
  std::optional<std::size_t> token;  ///< whose logit is displayed; nothing: the most probable one
  double temperature = 0;            ///< of generated tokens; 0: always the most probable one
  std::size_t top = 40;              ///< sampled among so many, 0 for all
  std::uint64_t seed = 123;
  std::optional<RefusedText> refused;
  bool shows_effects = false;  ///< bars show ablation effects, else direct logit attribution
  LayerMaps maps = LayerMaps::weights;

  /// What logits are divided by where probabilities are displayed.
  double shown_temperature() const { return temperature > 0 ? temperature : 1; }
};

/// What is looked at of a model.
struct LookedAt {
  Look look;
  Selection selection;
};

/// All that the window shows apart from the model: changed by commands alone.
struct View : LookedAt {
  Settings settings;
  Forms forms;
  LayersLook layers;
};

/// The part of the view that is of that type.
template <class Part>
Part& part_of(View& v) {
  return std::get<Part&>(std::tie(v.look, v.look.tokens, v.look.colors, v.look.compared, v.look.positions,
                                  v.selection, v.selection.presenting, v.settings, v.forms, v.forms.search,
                                  v.forms.browser, v.forms.import, v.forms.exporting, v.forms.sentence,
                                  v.forms.draw, v.layers));
}

template <auto... members>
struct Members {};

/// The fields that panels set, one by one.
using ViewFields = Members<
    &Look::tab, &Look::sequence, &Look::head, &Look::heads_stage, &Look::gutters, &Look::large, &Look::folded,
    &Look::code_lines, &Look::zoomed, &Look::heads_order, &Look::edited, &Look::laboratory_masks,
    &TokensLook::hovered_query, &TokensLook::pinned_query, &TokensLook::hovered_key,
    &TokensLook::silent_heads, &TokensLook::hide_below, &TokensLook::comes_into_view, &ColorChoice::range,
    &ColorChoice::typed_values, &ColorChoice::typed_weights, &ColorChoice::logarithmic, &ColorChoice::locked,
    &ColorChoice::sequential, &ColorChoice::diverging, &ComparedLook::reference, &ComparedLook::difference,
    &PositionsLook::decoded, &PositionsLook::query_at, &PositionsLook::key_at, &PositionsLook::held,
    &Selection::hovered, &Selection::pinned, &Selection::trail, &Selection::unfolded,
    &Selection::hovered_head, &Selection::cursor, &Selection::scrolled_at, &Selection::copied_cell,
    &Selection::sought, &Selection::similarity_of, &Selection::lesson, &Selection::inspects, &Presenting::on,
    &Presenting::full_screen, &Presenting::flight, &Settings::dark, &Settings::scale, &Settings::text_size,
    &Settings::left_width, &Settings::right_width, &Settings::export_form, &Settings::export_scale,
    &Settings::export_dark, &Settings::export_numbers, &Settings::copy, &Settings::copy_decimals,
    &Settings::reduce_motion, &Settings::pytorch_numbers, &Settings::animation_speed, &Settings::start_page,
    &Forms::start_page, &Forms::used_actions, &Forms::dialog, &Forms::typed, &Forms::submitted,
    &Forms::search, &Forms::fill, &Forms::given_stage, &ActionSearch::text, &ActionSearch::line,
    &ActionSearch::waiting, &Browser::name, &Browser::by_date, &Browser::asks_to_replace, &ImportForm::as,
    &ImportForm::choices, &ImportForm::layer, &ImportForm::has_output, &ImportForm::mapping,
    &ImportForm::measured, &ExportChoice::what, &ExportChoice::from, &SentenceDraft::text,
    &SentenceDraft::rule, &SentenceDraft::seed, &DrawForm::draw, &DrawForm::before, &LayersLook::token,
    &LayersLook::temperature, &LayersLook::top, &LayersLook::seed, &LayersLook::shows_effects,
    &LayersLook::maps>;

}  // namespace app
