#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "app/session/command.hpp"
#include "app/session/comparing.hpp"
#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/lessons.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/memory.hpp"
#include "app/session/opening.hpp"
#include "app/session/recovery.hpp"
#include "app/session/statistics.hpp"
#include "app/session/view.hpp"
#include "app/session/whole_reading.hpp"
#include "core/system/process.hpp"

namespace app {

/// What the store keeps for a person from one run of the program to the next, apart from the view.
struct Kept {
  std::vector<std::filesystem::path> recent;       ///< files, newest first
  std::map<std::string, LessonProgress> progress;  ///< by the lesson's name
  std::filesystem::path journals = {};             ///< the folder of what is not saved, or "": it is not kept
  std::vector<std::filesystem::path> models = {};  ///< whole models that the program brings
};

/// The only writer: it owns the document and everything around it, and changes it by commands alone.
class Store {
 public:
  /// Starts with the default preset; free is asked how many bytes of memory are free, and what takes longer
  /// than at_once_ms is computed in the background. before_computing is as of LiveTrace.
  explicit Store(std::function<std::uint64_t()> free = core::system::free_memory,
                 double at_once_ms = LiveTrace::frame_ms, std::function<void()> before_computing = {});

  /// Carries out one command; what cannot be done leaves everything as it was and says so in message().
  void dispatch(const Command& command);
  /// Is told of every verb that is dispatched, as a line of text, and of every update().
  void record_to(std::function<void(const std::string& line)> record) { record_ = std::move(record); }
  /// Repeats what record_to() told; waits for what is read and written. Throws core::Error at a line that is
  /// no verb.
  void replay(std::string_view lines);
  /// Opens a file at the start, when nothing can be lost. Throws core::Error when it cannot be opened.
  void open(const std::filesystem::path& path, const std::string& text = "", std::size_t layer = 0);
  /// Opens a window on a model in a process of Python, likewise.
  void attach(const std::string& address, const std::string& token, const std::string& text = "",
              std::size_t layer = 0);
  /// Brings the trace nearer to the model and the shown sequence; what takes longer than a frame goes on
  /// in the background.
  void update();
  /// What takes longer than a frame.
  Jobs& jobs() { return jobs_; }

  /// The newest model and what is looked at: what edits change and files keep.
  const core::attention::Model& model() const { return document_.model; }
  const View& view() const { return view_; }
  Pending pending() const {
    return {document_.model, view_.look, view_.selection, document_.whole.get(), &whole_, &view_.layers};
  }
  /// Whether the trace is of that; else it is still to come, or could not be computed.
  bool shows_newest() const { return live_.is_of(document_.model, view_.look.sequence); }
  /// The trace, the model that it is of, and whether it is being renewed.
  const LiveTrace& live() const { return live_; }
  /// What is looked at, as far as that model has it.
  LookedAt shown_view() const;
  DocumentState document() const;
  const Message& message() const { return message_; }
  bool wants_to_quit() const { return quit_; }
  /// Text that a command put aside for the clipboard, once.
  std::optional<std::string> take_clipboard() { return std::exchange(clipboard_, std::nullopt); }
  Kept kept() const { return {recent_, lessons_.progress, {}, {}}; }
  /// Takes over what was kept, and how the window was looked at.
  void recall(Kept kept, const std::map<std::string, std::string>& settings = {});

  /// The lesson under way, or nullptr.
  const LessonState* lesson() const { return lessons_.state(); }
  /// The dropout laboratory, or nullptr where it is not shown or has no mask yet.
  const Laboratory* laboratory() const { return drawing_.laboratory(); }
  /// The states that were kept, and the chosen one against the live model.
  std::span<const Reference> references() const { return references_; }
  const Comparing& comparing() const { return comparing_; }
  /// The whole model that the start page offers, once it has been read, or nullptr.
  const OpenedWhole* start_model() const {
    return start_model_.value() ? start_model_.value()->get() : nullptr;
  }

  /// What is being read, and from what is to be chosen.
  Opening opening() const;
  bool is_reading() const { return reader_.is_busy(); }
  /// Whether sessions or exports are being written.
  bool is_writing() const { return writer_.is_busy(); }
  /// Whether anything but the trace and files is being worked out in the background.
  bool is_working() const {
    return comparing_.is_busy() || drawing_.is_busy() || (document_.whole && whole_.is_busy()) ||
           (view_.forms.start_page && start_model_.is_busy());
  }

 private:
  /// What goes on after a question, about unsaved work or memory.
  struct Waiting {
    std::optional<Command> next;
    bool is_for_writing = false;                     // it goes on once what is being written is safe
    std::optional<core::attention::Model> given_up;  // of which the person has answered that it may go
    std::uint64_t asked_bytes = 0, granted_bytes = bytes_without_a_question;  // that stages may take
    Jobs::Delivery was_read;  // meanwhile, and is taken in once the person has answered
  };

  void handle(const ApplyEdit&);
  void handle(const GiveFile& command);
  void handle(const FillFromFile& command);
  /// The verbs that change the view and nothing else.
  template <class Verb>
  requires requires(const Verb& verb, View& view) { verb.change(view); }
  void handle(const Verb& verb) { verb.change(view_); }
  void handle(const StartTour&);
  void handle(const GoOnInTour&);
  void handle(const LeaveTour&);
  void handle(const EndGesture&);
  void handle(const Undo&);
  void handle(const Redo&);
  void handle(const LoadPreset&);
  void handle(const ReadText& command);
  void handle(const LookAtLayer& command);
  void handle(const SwitchHead& command);
  void handle(const DropEdits& command);
  void handle(const WriteToken& command);
  void handle(const CompareEdits&);
  void handle(const SweepHeads&);
  void handle(const OpenFile&);
  void handle(const ImportTensors&);
  void handle(const ChooseLayer&);
  void handle(const FinishOpening&);
  void handle(const MeasureTensor&);
  void handle(const PreviewFile&);
  void handle(const CancelReading&);
  void handle(const SaveFile&);
  void handle(const SaveFileAs&);
  void handle(const ExportAs&);
  void handle(const ShowDialog&);
  void handle(const BrowseTo&);
  void handle(const CopyText&);
  void handle(const ShowMessage&);
  void handle(const Quit&);
  void handle(const DiscardAndContinue&);
  void handle(const SaveAndContinue&);
  void handle(const CancelQuestion&);
  void handle(const TakeMemory&);
  void handle(const GoOn&);
  void handle(const RestoreLeft&);
  void handle(const DropLeft&);
  void handle(const KeepLeft&);
  void handle(const EndNow&);
  void handle(const StartLesson&);
  void handle(const GoInLesson&);
  void handle(const LeaveLesson&);
  void handle(const KeepReference&);
  void handle(const KeepSwitched&);
  void handle(const LoadReference&);
  void handle(const CheckTensors&);
  void handle(const MapTensor&);
  void handle(const ReadTensorsAs&);
  void handle(const SearchCauses&);
  void handle(const StopSearch&);
  void handle(const DropReference&);
  void handle(const RenameReference&);
  void handle(const ShowReference&);

  void perform(const Command& command);
  /// What undo would bring back.
  Undoable work() const;
  void take_back(Undoable work);
  /// What is there now becomes a step of undo; says when that drops others.
  void record_step(const std::string& target, const std::string& words);
  /// What a window before has left becomes the document, and its journal goes on.
  void restore(const Opened& ready);
  void start_with_whole(const Opened& ready);
  /// What a window before has left of a lesson; its journal is kept until all of it is back.
  struct Tried {
    std::string session = {};  // or ""
    std::string words = {};    // to be said
    std::optional<std::size_t> step = {};
    std::shared_ptr<Journal> journal = {};
  };
  void start_lesson(const std::string& name, const Tried& tried);
  /// Opens the whole model of a lesson, and starts it then.
  void start_with_model_of(const core::lessons::Lesson& lesson, const Tried& tried);
  void start(const core::lessons::Lesson& lesson, const core::transformer::ModelRef& model,
             const Tried& tried);
  void try_again(const Tried& tried);
  /// The experiment becomes another, as a step of undo where it has words; texts of another length drop
  /// what spoke of their tokens.
  void experiment_with(core::experiment::Experiment experiment, const std::string& target,
                       const std::string& words);
  /// The document's model becomes the layer of a whole model, as edited; says what does not fit any longer.
  void adopt(std::shared_ptr<WholeModel> whole);
  /// What the whole model reads; throws core::Error while that is not known.
  const BothReadings& readings() const;
  /// Throws core::Error while the document's model is a layer of another text than is to be read.
  void require_layer_of_text() const;
  /// Throws core::Error, which says whether it is still being read or could not be.
  [[noreturn]] void refuse_text() const;
  /// The layer as it is known already, of the document or of what undo brings back, where its projections are
  /// those of this one; else nullptr.
  const WholeModel* known_layer(const WholeModel& whole) const;
  void follow_whole();
  Recordable to_record() const;
  void record_in(const std::filesystem::path& folder);
  void show_left();
  void ask(std::string question, std::string answer, const Command& next);
  bool is_changed_on_disk() const;
  void leave_lesson();
  void assess_lesson();
  void run_laboratory();
  void keep(core::attention::Model model, std::string title);
  void run_comparison();
  /// The reference that is chosen, or nullptr where there is none.
  Reference* chosen_reference();
  /// The same where it is of tensors, which are read in another way then and searched once more.
  Reference* tensors_to_read_again();

  /// Reads something in the background and carries out what it gives; what was being read before is given up.
  /// A session that names files elsewhere is asked about where there is a command to go on with.
  void read_in_background(const std::filesystem::path& path, const Jobs::Job& reading,
                          const std::optional<Command>& if_untrusted = {});
  /// The same for what is to be done with the document and the layer of it that are there now, and with no
  /// other.
  void read_for_document(const std::filesystem::path& path, const Jobs::Job& reading);
  /// The same for what nobody waits for; it is not read while something else is.
  void read_aside(const std::filesystem::path& path, const Jobs::Job& reading);
  void fail_to_read(const std::filesystem::path& path, const Failure& failure);
  void fail_to_write(const std::filesystem::path& path, const Failure& failure, bool was_saving);
  void list(const std::filesystem::path& directory);
  void list_files();
  void list_again_after_it();
  void take(Opened opened);
  /// What was opened and is not wanted ends in the background.
  void drop_opened();
  Jobs::Job making_of(const OpenedTensors& tensors, const core::importing::Choices& choices);
  void choose_from(OpenedTensors tensors);

  /// Whether the command may go on; asks about unsaved work when it may not yet.
  bool may_leave(const Command& command);
  /// The command goes on once what it must not break off is on the disk: quitting waits for all of it, and
  /// says so; the others for what is being saved.
  void leave_when_written(const Command& command);
  void leave_once_written();
  bool is_quitting() const;
  /// From now on this waits, and nothing else: for an answer, or for what is being written.
  void wait_for(const Command& next, bool is_for_writing);
  /// What waits goes on, or nothing does any longer.
  void go_on();
  void stay();
  /// Takes in what was read, or keeps it until the question that is open is answered.
  void take_when_answered(Jobs::Delivery was_read);
  void take_what_was_read();
  /// The dialog is closed where it is open; another one stays.
  void close(Dialog dialog);
  /// After every command and delivery: drops what the model has no longer, and of what belongs to a
  /// dialog that is no longer open.
  void tidy();
  /// Does something; an exception becomes the message, and what was to be had is named in it.
  void attempt(const std::string& what, const std::function<void()>& act);
  /// Whether a model's stages may take their memory; asks when they may not yet. Throws core::Error when
  /// there is not as much.
  bool may_take_memory(const core::attention::Model& model, const Command& command);
  void start_with(Document document);
  void read_start_model();
  /// Throws core::Error where no file can keep the work.
  void require_saveable() const;
  /// Saves the model as it is now; it counts as saved once it is.
  void save_to(const std::filesystem::path& path);
  void remember(const std::filesystem::path& path);
  void keep_view_within_model();
  void say(std::string text, bool is_error = false) { message_ = {std::move(text), is_error}; }

  Document document_;
  View view_;
  Message message_;
  Waiting waiting_;
  std::vector<std::filesystem::path> recent_;
  std::optional<std::string> clipboard_;
  std::function<void(const std::string&)> record_;
  bool quit_ = false;
  Lessons lessons_;
  std::vector<Reference> references_;
  std::uint64_t last_reference_ = 0;
  std::optional<OpenedTensors> choosing_;  // from which is to be chosen
  std::optional<Opened> opened_;           // until the question about unsaved work is answered
  std::filesystem::path previewed_;
  std::string preview_;
  std::optional<std::filesystem::path> to_list_;  // the folder that the file browser waits for
  std::function<std::uint64_t()> free_memory_;

  // The last members: what is under way ends before what it is delivered to.
  Jobs jobs_;
  LiveTrace live_;
  Comparing comparing_{jobs_};
  MaskDrawing drawing_{jobs_};
  WholeReading whole_{jobs_};
  AsyncValue<std::filesystem::path, std::shared_ptr<const OpenedWhole>> start_model_{jobs_};
  std::shared_ptr<const void> refused_layer_;  // for whose stages there is no memory
  FileWriter writer_{jobs_};
  FileReader reader_{jobs_};
  Recorder recorder_{jobs_};
};

}  // namespace app
