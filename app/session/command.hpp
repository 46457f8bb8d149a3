#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/session/view.hpp"
#include "core/editing/edit.hpp"
#include "core/importing/import.hpp"

namespace app {

// What panels ask for; only Store::dispatch carries it out.
struct ApplyEdit {
  core::editing::Edit edit;
};
struct ChangeView {
  std::function<void(View&)> change;
};
struct EndGesture {};
struct Undo {};
struct Redo {};
struct LoadPreset {
  std::string name;
};
struct OpenFile {
  std::filesystem::path path;
  core::Elsewhere elsewhere = core::Elsewhere::refused;  ///< where a session may name files
  bool as_tensors = false;                               ///< even where it is a whole model
  std::string text = {};  ///< that a whole model is to read, or "" for one that shows something
  std::size_t layer = 0;  ///< of it, to be looked at
};
/// The text that the whole model reads.
struct ReadText {
  std::string text;
};
struct LookAtLayer {
  std::size_t layer = 0;
};
/// A head of any layer off, or on again.
struct SwitchHead {
  std::size_t layer = 0, head = 0;
};
/// What was edited in a layer, or in all of them; heads that are off stay so where one layer is named.
struct DropEdits {
  std::optional<std::size_t> layer = {};
};
/// One token more, as the view says how it is chosen, or the last one back.
struct WriteToken {
  bool back = false;
};
/// Keeps the layer that is looked at, as it was before all edits, as a reference A and compares.
struct CompareEdits {};
struct SweepHeads {};  ///< what switching off each head does
/// Makes a model of the file of tensors from which is to be chosen.
struct ImportTensors {
  core::importing::Choices choices;
};
struct ChooseLayer {
  std::size_t layer = 0;
};                        ///< another layer of the file that the model was made of
struct FinishOpening {};  ///< what was read becomes the model, once unsaved work is safe
struct MeasureTensor {
  std::string name;
};  ///< the range of a tensor of that file
struct PreviewFile {
  std::filesystem::path path;
};  ///< a few words on a file that may be opened
struct CancelReading {};
struct SaveFile {};  ///< where it came from, or asks for a name
struct SaveFileAs {
  std::filesystem::path path;
};
/// One matrix, one stage or everything, as one file or as many in a directory.
struct ExportAs {
  ExportForm form{};
  ExportWhat what{};
  CellRef matrix{};
  std::filesystem::path path{};
  std::string document = {};  ///< what files without a name of their own are called after
};
struct ShowDialog {
  Dialog dialog;
};
struct BrowseTo {
  std::filesystem::path directory;
};
struct CopyText {
  std::string text;
};
struct ShowMessage {
  std::string text;
  bool is_error = false;
};
/// Asks first when there is unsaved work, then does what is named: quit, or open, or a new preset.
struct Quit {};
struct DiscardAndContinue {};  ///< the answer to the question about unsaved work
struct SaveAndContinue {};
struct CancelQuestion {};
struct TakeMemory {};  ///< the answer to the question about memory
struct GoOn {};        ///< the answer to any other
/// Makes what a window before has left the document, throws it away, or leaves all of it to the next one.
struct RestoreLeft {
  std::size_t index = 0;
};
struct DropLeft {
  std::size_t index = 0;
  bool is_agreed = false;  ///< else it is asked about
};
struct KeepLeft {};
struct EndNow {};  ///< quits without a question; what is not saved is kept for the next window
/// Keeps the live model as a reference A, or the same with one of core::compare::switches() the other way.
struct KeepReference {};
struct KeepSwitched {
  std::size_t index = 0;
};
struct GiveFile {
  core::attention::Stage stage;
  std::filesystem::path path;
};  ///< a stage's numbers from a file of tensors
struct FillFromFile {
  core::editing::MatrixPlace place;
  std::filesystem::path path;
};  ///< its numbers, and perhaps its tokens
struct LoadReference {
  std::filesystem::path path;
};  ///< a session file as A; the live model stays
/// Somebody's tensors, a file or a folder of files, as B against the live model.
struct CheckTensors {
  std::filesystem::path path;
};
/// Says which stage a tensor of the chosen file is: "" leaves it out, nothing goes by its name again.
struct MapTensor {
  std::string tensor;
  std::optional<std::string> stage;
};
/// Says how the heads of the chosen tensors lie and which of their layers it is; "" leaves that to the check.
struct ReadTensorsAs {
  std::string layout, layer;
};
struct SearchCauses {};   ///< of the difference of the chosen tensors
struct StopSearch {};     ///< gives such a search up
struct DropReference {};  ///< the chosen one
struct RenameReference {
  std::string title;
};  ///< likewise
struct ShowReference {
  bool on = true;
};  ///< the chosen A in place of the live model in every view, or no more
/// Puts the person's own work aside and goes to where that lesson was left.
struct StartLesson {
  std::string name;
};
/// One step on (+1) or back (−1), or the same one from its start (0).
struct GoInLesson {
  int by = 1;
};
/// Brings the person's own work back.
struct LeaveLesson {};

struct AnyCommand;  // the variant of them all, in any_command.hpp, which takes long to compile

/// One of them.
class Command {
 public:
  /// Every kind above can be one.
  template <class Kind>
  Command(Kind kind);
  /// The command where it is of this kind, else nullptr; for those who include any_command.hpp.
  template <class Kind>
  const Kind* as() const;
  const AnyCommand& any() const { return *any_; }

 private:
  std::shared_ptr<const AnyCommand> any_;
};

/// The commands of one frame, carried out after it was drawn.
class Commands {
 public:
  void add(Command command);
  void edit(core::editing::Edit e);
  void look(std::function<void(View&)> change);
  std::vector<Command> take();
  const std::vector<Command>& list() const { return list_; }

 private:
  std::vector<Command> list_;
};

/// Every kind of command; only who carries them out needs to know them all.
struct AnyCommand
    : std::variant<ApplyEdit, ChangeView, EndGesture, Undo, Redo, LoadPreset, OpenFile, ReadText, LookAtLayer,
                   SwitchHead, DropEdits, WriteToken, CompareEdits, SweepHeads, ImportTensors, ChooseLayer,
                   FinishOpening, MeasureTensor, PreviewFile, CancelReading, SaveFile, SaveFileAs, ExportAs,
                   ShowDialog, BrowseTo, CopyText, ShowMessage, Quit, DiscardAndContinue, SaveAndContinue,
                   CancelQuestion, TakeMemory, GoOn, RestoreLeft, DropLeft, KeepLeft, EndNow, StartLesson,
                   GoInLesson, LeaveLesson, KeepReference, KeepSwitched, GiveFile, FillFromFile,
                   LoadReference, CheckTensors, MapTensor, ReadTensorsAs, SearchCauses, StopSearch,
                   DropReference, RenameReference, ShowReference> {
  using variant::variant;
  const variant& kinds() const { return *this; }
};

template <class Kind>
const Kind* Command::as() const {
  return std::get_if<Kind>(&any_->kinds());
}

}  // namespace app
