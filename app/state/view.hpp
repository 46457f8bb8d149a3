#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/state/colour_choice.hpp"
#include "core/statistics/head_facts.hpp"
#include "core/attention/stages.hpp"
#include "core/compare/difference.hpp"
#include "core/editing/draw_model.hpp"
#include "core/editing/edit.hpp"
#include "core/editing/fill.hpp"
#include "core/explain/address.hpp"
#include "core/formats/writers/copy_text.hpp"
#include "core/importing/import.hpp"
#include "core/editing/sentence.hpp"

namespace app {

using core::attention::Stage;

/// One cell of one stage; head counts only for stages that have one a head.
using CellRef = core::explain::CellAddress;

enum class Tab { stages, heads, tokens, compare, laboratory };

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
  memory,
  keys,
  about,
  glossary,
  sentence,
  fill,
  draw_model,
  give,
  palette
};

/// What is to be exported.
enum class ExportWhat { matrix, stage, everything };

/// What it is written as; the rows of export_kinds().
enum class ExportForm { csv, npy, npz, svg, png, session, program };

/// How something is copied: how much of a matrix, and the row of core::formats::copy_forms().
struct CopyChoice {
  core::formats::CopyExtent extent = core::formats::CopyExtent::matrix;
  std::size_t form = 0;
  friend bool operator==(const CopyChoice&, const CopyChoice&) = default;
};

/// Where the edit cursor stands in the matrix editor.
struct EditCursor {
  std::size_t row = 0, column = 0;
  bool waiting = false;   ///< the editor has yet to take the keyboard
  bool dragging = false;  ///< the mouse has moved far enough to mean a drag
  friend bool operator==(const EditCursor&, const EditCursor&) = default;
};

/// One line of the file browser.
struct BrowserEntry {
  std::string name;
  bool is_directory = false;
  std::uintmax_t size = 0;
};

/// The file browser's state: the directory is read when it is entered, not in every frame.
struct Browser {
  std::filesystem::path directory;
  std::vector<BrowserEntry> entries;
  std::string name;              ///< what stands in the name field
  std::string error;             ///< why the directory could not be read, or ""
  bool is_listing = false;       ///< the folder is still being read
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
  std::string measured;     ///< the tensor whose range is shown
};

/// What is being typed into a field: it outlives the field's focus by the frame in which it is handed in.
struct Typed {
  std::string field;  ///< the landmark of the field
  std::string text;
  bool waiting = false;  ///< the field has yet to take the keyboard
  bool selected = true;  ///< once it has, all of the text is selected; else the caret is at its end
  friend bool operator==(const Typed&, const Typed&) = default;
};

/// Ops that are drawn before what is wanted, as they were typed.
struct DrawnBefore {
  std::string text;
  std::string error;  ///< why they cannot be drawn, or ""
};

/// What the dialog that fills a matrix asks for, and the numbers that it would write; they are drawn when
/// something changes, not in every frame.
struct FillForm {
  core::editing::MatrixPlace place;
  core::editing::Fill fill{core::editing::FillRule::randn, 123, {}};
  DrawnBefore before;
  core::attention::SharedMatrix numbers;
};

/// What the dialog that draws a whole model asks for.
struct DrawForm {
  core::editing::ModelDraw draw;
  DrawnBefore before;
};

/// The step of a lesson that is shown.
struct LessonPlace {
  std::string name;
  std::size_t step = 0;
  int frames_shown = 0;  ///< until it arrived
  bool arrived = false;  ///< the strip has moved to what the step speaks of
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

/// A part of a matrix in cells, which need not be whole ones.
struct CellWindow {
  double left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const CellWindow&, const CellWindow&) = default;
};

/// What is looked at and how; nothing of it changes a number.
struct View {
  Tab tab = Tab::stages;
  std::size_t sequence = 0, head = 0;
  Stage heads_stage = Stage::weights;
  ColourChoice colours;
  bool gutters = false;        ///< row sums and entropy stand beside token × token stages
  std::optional<Stage> large;  ///< the stage that fills the Stages view alone
  bool shows_a = false;        ///< a kept state stands in place of the live one as long as its key is held
  std::set<Stage> folded{Stage::mask, Stage::row_sums};  ///< stages that the strip leaves out
  std::map<std::pair<std::size_t, std::size_t>, CellWindow>
      zoomed;  ///< what is shown of matrices of so many rows and columns; of others everything
  std::optional<std::pair<float, float>> scrolled_at;  ///< where the mouse was when the wheel last scrolled
  std::optional<CellRef> hovered, pinned;
  std::optional<core::attention::HeadFigure> heads_order;  ///< what heads are sorted by; nothing: by their number
  std::optional<std::size_t> hovered_head;  ///< in the view of heads
  std::uint64_t likeness_of = 0;  ///< the version of a large trace whose heads' likeness was asked for
  TokensLook tokens;
  std::vector<CellRef> trail;           ///< where following operands came from, the latest last
  std::optional<std::size_t> unfolded;  ///< the step of the worked cell all of whose terms are shown
  core::editing::MatrixPlace edited;    ///< the matrix in the editor
  std::optional<EditCursor> cursor;     ///< there as long as the matrix editor has the keyboard
  std::optional<Typed> typed;
  FillForm fill;
  DrawForm draw;
  bool dark = true;
  float scale = 1;      ///< of text and lengths, 1 … 3
  float text_size = 1;  ///< of text alone, on top of that
  float left_width = 0,
        right_width = 0;  ///< dragged widths of the side regions at scale 1; 0 = as the theme says
  Dialog dialog = Dialog::none;
  ActionSearch search;   ///< of the palette
  std::string question;  ///< what is asked before much memory is taken
  Browser browser;
  ImportForm import;
  ExportWhat export_what = ExportWhat::matrix;
  ExportForm export_form = ExportForm::csv;
  int export_scale = 2;                              ///< of a PNG
  bool export_dark = false, export_numbers = true;   ///< of a figure
  CopyChoice copy;                                   ///< the last one
  int copy_decimals = 3;                             ///< in forms that are for people to read
  std::optional<CellRef> copied_cell;                ///< whose menu is open
  std::optional<LessonPlace> lesson;
  SentenceDraft sentence;
  Stage given_stage = Stage::weights;  ///< the one that the dialog for giving numbers speaks of
  std::size_t reference = 0;          ///< which of the kept states is A
  core::compare::DifferenceKind difference = core::compare::DifferenceKind::a_minus_b;
  std::optional<Stage> sought;        ///< the stage to which the Compare view has yet to scroll
  std::size_t laboratory_masks = 64;  ///< over how many masks the dropout laboratory takes the mean
};

}  // namespace app
