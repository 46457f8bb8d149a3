#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/editing/draw.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/stages.hpp"
#include "core/importing/import.hpp"

namespace app {

using core::attention::Stage;

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
struct HandedIn {
  std::string field;       ///< its landmark
  std::string error = {};  ///< or "" until the answer is there
  friend bool operator==(const HandedIn&, const HandedIn&) = default;
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
  std::optional<Typed> typed;  ///< in any field of the window
  std::optional<HandedIn> handed_in;
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

}  // namespace app
