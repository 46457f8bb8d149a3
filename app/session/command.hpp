#pragma once

#include <any>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "app/session/view.hpp"
#include "core/editing/edit.hpp"
#include "core/importing/import.hpp"
#include "core/model/experiment.hpp"
#include "core/training/setup.hpp"

namespace app {

// Verbs that panels issue: plain data, so that a run of them can be recorded and replayed. Only
// Store::dispatch handles them.

/// Sets one field of the view.
struct SetField {
  void (*assign)(View&, const std::any&);  ///< which field
  std::any value;                          ///< of its type
  void change(View& view) const { assign(view, value); }
};
template <auto member>
struct FieldOf;
template <class P, class T, T P::*member>
struct FieldOf<member> {
  using Owner = P;
  using FieldType = T;
  template <auto... members>
  static constexpr bool is_among(MemberList<members...>) {
    return (std::is_same_v<std::integral_constant<T P::*, member>,
                           std::integral_constant<decltype(members), members>> ||
            ...);
  }
  static void assign(View& view, const std::any& value) {
    part_of<P>(view).*member = std::any_cast<const T&>(value);
  }
};
/// Returns the verb that sets one of ViewFields: set<&Look::tab>(Tab::heads).
template <auto member>
SetField set(typename FieldOf<member>::FieldType value) {
  static_assert(FieldOf<member>::is_among(ViewFields()));
  return {&FieldOf<member>::assign, std::move(value)};
}

// Verbs that change only the view; implemented in navigation.cpp.

/// Pins a cell, or unpins it when it is pinned already; shows its head. When another head is shown, the same
/// cell of that head is pinned.
struct PinCell {
  CellRef cell;
  void change(View& view) const;
};
/// Pins an operand or a result of the pinned cell, and remembers the way back.
struct FollowCell {
  CellRef cell;
  void change(View& view) const;
};
/// Pins the cell from which the last one was followed.
struct GoBack {
  void change(View& view) const;
};
struct UnpinCell {
  void change(View& view) const;
};
/// Shows the stages of the selected head, scrolled to one of them.
struct OpenInStages {
  Stage stage{};
  void change(View& view) const;
};
/// Pins a score of the displayed layer in Stages and shows its sources.
struct AskSources {
  CellRef cell;
  void change(View& view) const;
};
struct ClearHover {
  void change(View& view) const;
};
/// Pins a query of the token view, or unpins it when it is pinned already.
struct PinQuery {
  std::size_t query = 0;
  void change(View& view) const;
};
struct FoldStage {
  Stage stage{};
  bool folded = true;
  void change(View& view) const;
};
/// Resets the zoom of matrices of that shape.
struct ResetZoom {
  MatrixShape shape;
  void change(View& view) const;
};
/// Moves the edit cursor to a number of a matrix of the displayed sequence.
struct MoveEditCursor {
  core::editing::MatrixName matrix{};
  std::size_t row = 0, column = 0;
  void change(View& view) const;
};
/// Starts or ends the presentation, in which one stage fills the window.
struct Present {
  bool on = true;
  void change(View& view) const;
};
/// Shows factor times as many cells in each direction, at least one; the given point, in cells, stays in
/// place.
struct Zoom {
  MatrixShape shape;
  double row = 0, column = 0, factor = 1;
  void change(View& view) const;
};
/// Moves the displayed part by so many cells, within the matrix.
struct Pan {
  MatrixShape shape;
  double rows = 0, columns = 0;
  void change(View& view) const;
};
/// Moves the displayed part so that the cell is in it.
struct ScrollToCell {
  MatrixShape shape;
  std::size_t row = 0, column = 0;
  void change(View& view) const;
};
/// Moves the newest decoded token one back (−1) or forward (+1); begins with the first token and stops at the
/// last.
struct StepDecoding {
  std::size_t n_tokens = 1;
  int by = 1;
  void change(View& view) const;
};
/// Starts, pauses or resumes the animation of the pinned cell; restarts one that has finished. n is the
/// number of its steps.
struct PlayAnimation {
  std::size_t n = 0;
  void change(View& view) const;
};
/// Moves to the previous (−1) or next (+1) boundary between steps, and pauses there.
struct StepAnimation {
  int by = 1;
  std::size_t n = 0;
  void change(View& view) const;
};
/// Advances a running animation by so many steps; pauses at the end.
struct AdvanceAnimation {
  double by = 0;
  std::size_t n = 0;
  void change(View& view) const;
};
struct StartTour {};
struct AdvanceTour {};
struct LeaveTour {};  ///< restores the model from before the tour, in one undo step

struct ApplyEdit {
  core::editing::Edit edit;
};
/// Shows the gradients of a number of the displayed sequence, or no longer.
struct ShowGradient {
  std::optional<core::graph::Target> of;
};
/// Changes the model along the gradients that are shown, or against them, by the step of the view.
struct StepAlongGradient {
  bool against = false;
};
struct EndGesture {};
struct Undo {};
struct Redo {};
struct LoadPreset {
  std::string name;
};
struct OpenPath {
  std::filesystem::path path;  ///< or a link
  core::UntrustedPaths untrusted_paths =
      core::UntrustedPaths::refused;  ///< for files outside a session's folder
  bool as_tensors = false;            ///< even if it is a whole model
  std::string text = {};              ///< for a whole model to read, or "" for an example text
  std::size_t layer = 0;              ///< of the whole model, displayed first
};
/// Sets the text that the whole model reads.
struct ReadText {
  std::string text;
};
/// Compares a first prompt with a second one, which the model reads from then on; without a first prompt the
/// second one is the only one.
struct SetPrompts {
  std::optional<core::experiment::FirstPrompt> first;
  std::string second;
};
/// Takes a part of a layer from the pass over the first prompt, or no longer.
struct TogglePatch {
  core::transformer::Patch patch;
};
struct ShowLayer {
  std::size_t layer = 0;
};
/// Ablates a head of any layer, or without one all heads of the layer, or enables them again.
struct ToggleLayerHead {
  std::size_t layer = 0;
  std::optional<std::size_t> head = 0;
};
/// Discards the edits of one layer, or of all layers; with one layer, its ablated heads stay ablated.
struct DiscardEdits {
  std::optional<std::size_t> layer = {};
};
/// Generates a token with the view's sampling settings, or removes the last one.
struct StepGeneration {
  bool back = false;
};
/// Keeps the displayed layer, as it was before all edits, as reference A and opens the Compare tab.
struct CompareEdits {};
/// Computes the ablation effect of every head, or stops that.
struct SweepHeads {
  bool on = true;
};
/// Makes a model from the open file of tensors.
struct ImportTensors {
  core::importing::Choices choices;
};
struct ImportLayer {
  std::size_t layer = 0;
};                        ///< another layer of the file that the model was made from
struct FinishOpening {};  ///< makes the opened file the document, once unsaved work is safe
struct MeasureTensor {
  std::string name;
};  ///< computes the range of a tensor of the open file
struct PreviewFile {
  std::filesystem::path path;
};  ///< reads a short description of a file
struct CancelReading {};
/// Opens the browser's dialog to choose files, in a page.
struct ChooseFiles {};
struct SaveFile {};  ///< to the document's path, or asks for a name
struct SaveFileAs {
  std::filesystem::path path;
};
/// Copies a link to the document, a preset or the step of a lesson.
struct CopyLink {};
/// Exports one matrix, one stage or everything, as one file or as several in a directory.
struct ExportAs {
  ExportFormat form{};
  ExportScope what{};
  CellRef matrix{};
  std::filesystem::path path{};
  std::string document = {};      ///< title that proposed file names begin with
  bool transformer_lens = false;  ///< library of an experiment
};
/// Writes the selected map of patches, in the format of its file's ending.
struct ExportMap {
  std::filesystem::path path;
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
/// Quits; as opening a file or a preset does, asks first when there is unsaved work.
struct Quit {};
struct DiscardAndContinue {};  ///< the answer to the question about unsaved work
struct SaveAndContinue {};
struct CancelQuestion {};
struct AllowMemory {};      ///< the answer to the question about memory
struct ConfirmQuestion {};  ///< the answer to any other
/// Restores work left by an earlier window, discards it, or leaves all of it to the next window.
struct RestoreLeftover {
  std::size_t index = 0;
};
struct DiscardLeftover {
  std::size_t index = 0;
  bool is_agreed = false;  ///< else the user is asked
};
struct KeepLeftovers {};
struct QuitNow {};  ///< quits without asking; unsaved work is kept for the next window
/// Keeps the live model as reference A, unchanged or with one of core::compare::switches() flipped.
struct AddReference {};
struct AddFlippedReference {
  std::size_t index = 0;
};
struct OverrideStageFromFile {
  core::attention::Stage stage;
  std::filesystem::path path;
};  ///< overrides a stage with numbers from a file of tensors
struct FillFromFile {
  core::editing::MatrixRef place;
  std::filesystem::path path;
};  ///< sets a matrix, and perhaps its tokens, from a file
struct LoadReference {
  std::filesystem::path path;
};  ///< opens a session file as A; the live model stays
/// Checks tensors, a file or a folder of files, as B against the live model.
struct CheckTensors {
  std::filesystem::path path;
};
/// Assigns a tensor of the chosen file to a stage: "" ignores it, nothing returns to matching by name.
struct MapTensor {
  std::string tensor;
  std::optional<std::string> stage;
};
/// Sets the head layout and the layer of the chosen tensors; "" leaves it to the check.
struct SetTensorLayout {
  std::string layout, layer;
};
struct SearchCauses {};     ///< looks for causes of the chosen tensors' difference
struct StopSearch {};       ///< cancels that search
struct RemoveReference {};  ///< the chosen one
struct RenameReference {
  std::string title;
};  ///< the chosen one
struct ShowReference {
  bool on = true;
};  ///< shows the chosen A instead of the live model in every view, or ends that
/// Sets where a lesson was left and which of its steps are done, as kept from an earlier run.
struct SetLessonProgress {
  std::string lesson;
  std::size_t step = 0;
  std::set<std::size_t> done = {};
};
/// Sets the user's own work aside and resumes that lesson where it was left.
struct StartLesson {
  std::string name;
};
/// Moves one step forward (+1) or back (−1), or restarts the current one (0).
struct StepLesson {
  int by = 1;
};
/// Restores the user's own work.
struct LeaveLesson {};
/// Writes the first draft of a lesson that begins with the session, next to its file, and starts it.
struct NewLesson {};

/// Begins to learn a task of the table or, if task is "", to predict a text; or goes on with another batch,
/// learning rate or number of steps.
struct SetLearning {
  std::string task, text;
  core::training::TrainingSetup setup;
};
/// Begins the same run again.
struct RestartLearning {};
/// Trains on so many batches.
struct StepLearning {
  std::size_t n = 1;
};
/// Ablates a head of the network that learns, or enables it again.
struct ToggleLearnedHead {
  std::size_t layer = 0, head = 0;
};
/// Drops the steps after one, and learns on from there.
struct LearnOnFrom {
  std::size_t step = 0;
};
/// Keeps the displayed step of the run as A, or no step.
struct KeepLearned {
  bool on = true;
};
/// Lets the run learn on with the numbers that were edited, and the heads that were ablated, in the whole
/// model that was opened from it.
struct LearnWithEdits {};
/// Makes the network of the displayed step the document's whole model.
struct OpenLearned {};
/// Writes the run into a new folder, with the model of its newest step.
struct ExportLearned {
  std::filesystem::path path;
};

template <class... Verbs>
struct VerbList {};
using Verbs =
    VerbList<SetField, PinCell, FollowCell, GoBack, UnpinCell, OpenInStages, AskSources, ClearHover, PinQuery,
             FoldStage, ResetZoom, MoveEditCursor, Present, Zoom, Pan, ScrollToCell, StepDecoding,
             PlayAnimation, StepAnimation, AdvanceAnimation, StartTour, AdvanceTour, LeaveTour, ApplyEdit,
             ShowGradient, StepAlongGradient, EndGesture, Undo, Redo, LoadPreset, OpenPath, ReadText,
             SetPrompts, TogglePatch, ShowLayer, ToggleLayerHead, DiscardEdits, StepGeneration, CompareEdits,
             SweepHeads, ImportTensors, ImportLayer, FinishOpening, MeasureTensor, PreviewFile, CancelReading,
             ChooseFiles, SaveFile, SaveFileAs, CopyLink, ExportAs, ExportMap, ShowDialog, BrowseTo, CopyText,
             ShowMessage, Quit, DiscardAndContinue, SaveAndContinue, CancelQuestion, AllowMemory,
             ConfirmQuestion, RestoreLeftover, DiscardLeftover, KeepLeftovers, QuitNow, SetLessonProgress,
             StartLesson, StepLesson, LeaveLesson, NewLesson, AddReference, AddFlippedReference,
             OverrideStageFromFile, FillFromFile, LoadReference, CheckTensors, MapTensor, SetTensorLayout,
             SearchCauses, StopSearch, RemoveReference, RenameReference, ShowReference, SetLearning,
             RestartLearning, StepLearning, ToggleLearnedHead, LearnOnFrom, KeepLearned, LearnWithEdits,
             OpenLearned, ExportLearned>;

/// One of Verbs, immutable and shared by copies; a variant of all would take seconds to compile in every
/// source that creates one.
class Command {
 public:
  template <class Verb>
  requires(!std::is_same_v<Verb, Command>) Command(Verb verb)  // NOLINT(google-explicit-constructor)
      : index_(index_of<Verb>(Verbs())), verb_(std::make_shared<const Verb>(std::move(verb))) {}

  /// Returns the verb, or nullptr when it is another one.
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

/// Returns the verb as one line, "PinCell weights 0 1 2": its name, then its fields.
std::string to_text(const Command& command);
/// Parses such a line, with every number exact to the bit. Throws core::Error.
Command parse_command(std::string_view text);
/// Returns the verbs that set ViewFields to those of a view.
std::vector<Command> fields_of(View view);

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
