#pragma once

#include <any>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "app/session/view.hpp"
#include "core/editing/edit.hpp"
#include "core/importing/import.hpp"

namespace app {

// What panels ask for: verbs, which are data alone, so that a run of them can be written down and repeated.
// Only Store::dispatch handles them.

/// One field of the view becomes another value.
struct SetField {
  void (*assign)(View&, const std::any&);  ///< which field
  std::any value;                          ///< of its type
  void change(View& view) const { assign(view, value); }
};
template <auto member>
struct FieldOf;
template <class P, class T, T P::*member>
struct FieldOf<member> {
  using Part = P;
  using Value = T;
  template <auto... members>
  static constexpr bool is_among(Members<members...>) {
    return (std::is_same_v<std::integral_constant<T P::*, member>,
                           std::integral_constant<decltype(members), members>> ||
            ...);
  }
  static void assign(View& view, const std::any& value) {
    part_of<P>(view).*member = std::any_cast<const T&>(value);
  }
};
/// The verb that sets one of ViewFields: set<&Look::tab>(Tab::heads).
template <auto member>
SetField set(typename FieldOf<member>::Value value) {
  static_assert(FieldOf<member>::is_among(ViewFields()));
  return {&FieldOf<member>::assign, std::move(value)};
}

// Verbs that change the view alone; navigation.cpp says how.

/// Pins a cell, or releases it when it is pinned already; shows its head.
struct PinCell {
  CellRef cell;
  void change(View& view) const;
};
/// Pins a cell that the pinned one is made of or leads to, and remembers the way back.
struct FollowCell {
  CellRef cell;
  void change(View& view) const;
};
/// Pins the cell from which the last one was followed.
struct GoBack {
  void change(View& view) const;
};
struct ReleaseCell {
  void change(View& view) const;
};
/// Shows the stages of the selected head, scrolled to one of them.
struct OpenInStages {
  Stage stage{};
  void change(View& view) const;
};
struct StopPointing {
  void change(View& view) const;
};
/// Pins a query of the token view, or releases it when it is pinned already.
struct PinQuery {
  std::size_t query = 0;
  void change(View& view) const;
};
struct FoldStage {
  Stage stage{};
  bool folded = true;
  void change(View& view) const;
};
/// Shows all of the matrices of that shape again.
struct ShowWhole {
  Shape shape;
  void change(View& view) const;
};
/// Puts the cursor on a number of a matrix of the shown sequence.
struct EditAt {
  core::editing::MatrixName matrix{};
  std::size_t row = 0, column = 0;
  void change(View& view) const;
};
/// Lets one stage fill the window, or no longer.
struct Present {
  bool on = true;
  void change(View& view) const;
};
/// Shows factor times as many cells in each direction, at least one; the given point, in cells, stays where
/// it is.
struct Zoom {
  Shape shape;
  double row = 0, column = 0, factor = 1;
  void change(View& view) const;
};
/// Moves the shown part by so many cells, as far as there are any.
struct MovePart {
  Shape shape;
  double rows = 0, columns = 0;
  void change(View& view) const;
};
/// Moves the shown part so that the cell is in it.
struct BringIntoPart {
  Shape shape;
  std::size_t row = 0, column = 0;
  void change(View& view) const;
};
/// Shows the decoding of the token before (−1) or after (+1) the newest one, from the first on; stops at the
/// last.
struct StepDecoding {
  std::size_t n_tokens = 1;
  int by = 1;
  void change(View& view) const;
};
/// Begins the animation of the pinned cell, stops the one under way, or lets it go on; from its start when it
/// had arrived. n is the number of its steps.
struct PlayAnimation {
  std::size_t n = 0;
  void change(View& view) const;
};
/// Goes to the beginning of the step before (−1), or to the end of this one (+1), and stops there.
struct StepAnimation {
  int by = 1;
  std::size_t n = 0;
  void change(View& view) const;
};
/// Goes on by so many steps; stops at the end.
struct AdvanceAnimation {
  double by = 0;
  std::size_t n = 0;
  void change(View& view) const;
};
struct StartTour {};
struct GoOnInTour {};
struct LeaveTour {};  ///< the model becomes what it was before the tour, in one step of undo

struct ApplyEdit {
  core::editing::Edit edit;
};
struct EndGesture {};
struct Undo {};
struct Redo {};
struct LoadPreset {
  std::string name;
};
struct OpenFile {
  std::filesystem::path path;
  core::UntrustedPaths elsewhere = core::UntrustedPaths::refused;  ///< where a session may name files
  bool as_tensors = false;                                         ///< even where it is a whole model
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
/// Computes the ablation effect of every head, or stops that.
struct SweepHeads {
  bool on = true;
};
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
/// Makes what an earlier window has left the document, throws it away, or leaves all of it to the next one.
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

template <class... Verbs>
struct VerbList {};
using Verbs =
    VerbList<SetField, PinCell, FollowCell, GoBack, ReleaseCell, OpenInStages, StopPointing, PinQuery,
             FoldStage, ShowWhole, EditAt, Present, Zoom, MovePart, BringIntoPart, StepDecoding,
             PlayAnimation, StepAnimation, AdvanceAnimation, StartTour, GoOnInTour, LeaveTour, ApplyEdit,
             EndGesture, Undo, Redo, LoadPreset, OpenFile, ReadText, LookAtLayer, SwitchHead, DropEdits,
             WriteToken, CompareEdits, SweepHeads, ImportTensors, ChooseLayer, FinishOpening, MeasureTensor,
             PreviewFile, CancelReading, SaveFile, SaveFileAs, ExportAs, ShowDialog, BrowseTo, CopyText,
             ShowMessage, Quit, DiscardAndContinue, SaveAndContinue, CancelQuestion, TakeMemory, GoOn,
             RestoreLeft, DropLeft, KeepLeft, EndNow, StartLesson, GoInLesson, LeaveLesson, KeepReference,
             KeepSwitched, GiveFile, FillFromFile, LoadReference, CheckTensors, MapTensor, ReadTensorsAs,
             SearchCauses, StopSearch, DropReference, RenameReference, ShowReference>;

/// One of Verbs. It cannot be changed, and copies share it; a variant of all would take seconds to compile in
/// every source that makes one.
class Command {
 public:
  template <class Verb>
  requires(!std::is_same_v<Verb, Command>) Command(Verb verb)  // NOLINT(google-explicit-constructor)
      : index_(index_of<Verb>(Verbs())), verb_(std::make_shared<const Verb>(std::move(verb))) {}

  /// The verb, or nullptr when it is another one.
  template <class Verb>
  const Verb* get_if() const {
    return index_ == index_of<Verb>(Verbs()) ? static_cast<const Verb*>(verb_.get()) : nullptr;
  }
  /// Calls the function with the verb.
  template <class Function>
  void visit(Function&& function) const {
    const auto try_each = [&]<class... All>(VerbList<All...>) {
      (void)((get_if<All>() ? (function(*get_if<All>()), true) : false) || ...);
    };
    try_each(Verbs());
  }

 private:
  template <class Verb, class... All>
  static constexpr std::size_t index_of(VerbList<All...>) {
    static_assert((std::is_same_v<Verb, All> || ...), "a verb of the list");
    std::size_t index = 0;
    (void)((std::is_same_v<Verb, All> ? true : (++index, false)) || ...);
    return index;
  }

  std::size_t index_;
  std::shared_ptr<const void> verb_;
};

/// The verb as one line, "PinCell 14 0 1 2": its name and its fields one after the other.
std::string to_text(const Command& command);
/// Reads such a line back, to the bit. Throws core::Error.
Command command_of(std::string_view text);

/// The commands of one frame, handled after it was drawn.
class Commands {
 public:
  template <class... Verbs>
  void add(Verbs... verbs) {
    (list_.emplace_back(std::move(verbs)), ...);
  }
  void edit(core::editing::Edit e) { add(ApplyEdit{std::move(e)}); }
  std::vector<Command> take() { return std::exchange(list_, {}); }
  const std::vector<Command>& list() const { return list_; }

 private:
  std::vector<Command> list_;
};

}  // namespace app
