#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "app/session/command.hpp"
#include "app/session/comparing.hpp"
#include "app/session/document.hpp"
#include "app/session/full_model_reading.hpp"
#include "app/session/jobs.hpp"
#include "app/session/learning.hpp"
#include "app/session/lessons.hpp"
#include "app/session/live_gradient.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/memory.hpp"
#include "app/session/opening.hpp"
#include "app/session/recovery.hpp"
#include "app/session/start_page.hpp"
#include "app/session/statistics.hpp"
#include "app/session/view.hpp"
#include "core/system/process.hpp"

namespace app {

/// The line of a recording for an update of the store.
constexpr const char* update_line = "update";

/// Settings that survive from one run to the next, apart from the view.
struct PersistentState {
  std::vector<std::filesystem::path> recent;       ///< files, newest first
  std::map<std::string, LessonProgress> progress;  ///< by the lesson's name
  std::filesystem::path journals = {};             ///< folder for unsaved work, or "" to keep none
  std::vector<std::filesystem::path> models = {};  ///< whole models that come with the program
};

/// The only writer: owns the document and everything around it, and changes it only by commands.
class Store {
 public:
  /// Starts with the default preset; free returns the bytes of free memory, and work longer than
  /// max_immediate_ms runs in the background. before_computing is passed to LiveTrace; list lists folders.
  explicit Store(std::function<std::uint64_t()> free = core::system::available_memory,
                 double max_immediate_ms = LiveTrace::frame_ms, std::function<void()> before_computing = {},
                 SideTasks::ListFunction list = browse, bool has_threads = core::has_threads);

  /// Handles one command; one that fails changes nothing and says why in message().
  void dispatch(const Command& command);
  /// Calls `record` with the verbs that lead to this view and progress, then with every dispatched one, as
  /// lines of text, and with update_line on every update().
  void record_to(std::function<void(const std::string& line)> record);
  /// Whether saves and exports write their files; else only the state changes.
  void set_writes_files(bool on) { writes_files_ = on; }
  /// Declares that the window is a page in a browser, or embedded in another page.
  void set_in_browser(bool is_embedded = false) {
    view_.forms.in_browser = true, view_.forms.is_embedded = is_embedded;
  }
  /// Opens a file at startup, when no work can be lost. Throws core::Error when it cannot be opened.
  void open(const std::filesystem::path& path, const std::string& text = "", std::size_t layer = 0);
  /// Attaches to a model in a Python process at startup. Throws core::Error.
  void attach(const std::string& address, const std::string& token, const std::string& text = "",
              std::size_t layer = 0);
  /// Updates the trace for the current model and sequence; work longer than a frame continues in the
  /// background.
  void update();
  /// Looks for work left by windows that were still closing when this one began; returns whether there is
  /// any.
  bool find_leftovers();
  /// Reports, once, that the Python process of the attached model has ended; returns whether it did now.
  bool report_lost_model();
  /// Returns the background jobs.
  Jobs& jobs() { return jobs_; }

  /// Return the newest model and view, which edits change and files keep.
  const core::attention::Model& model() const { return document_.model; }
  const View& view() const { return view_; }
  Pending pending() const {
    return {document_.model, view_.look,    view_.selection, document_.full_model.get(),
            &model_reading_, &view_.layers, &learning_,      &view_.learning};
  }
  /// Whether the trace belongs to the newest model; if not, it is pending or failed.
  bool is_up_to_date() const { return live_.matches(document_.model, view_.look.sequence); }
  /// Returns the trace, its model, and whether it is being updated.
  const LiveTrace& live() const { return live_; }
  /// Returns the gradients of the displayed number.
  const LiveGradient& live_gradient() const { return live_gradient_; }
  /// Returns the view, restricted to the trace's model.
  ModelView shown_view() const;
  DocumentState document() const;
  const Message& message() const { return message_; }
  bool wants_to_quit() const { return quit_; }
  /// Returns, once, the text that a command has copied.
  std::optional<std::string> take_clipboard() { return std::exchange(clipboard_, std::nullopt); }
  /// Return, once, the files and folders that were saved or exported, and whether a command wants files to be
  /// chosen.
  std::vector<std::filesystem::path> take_written() { return std::exchange(written_, {}); }
  bool take_file_choice() { return std::exchange(wants_files_, false); }
  /// Without the progress in lessons of somebody's own, which come from files.
  PersistentState persistent_state() const;
  /// Applies kept settings, and those of the view.
  void apply_settings(PersistentState kept, const std::map<std::string, std::string>& settings = {});

  /// Returns the lesson under way, or nullptr.
  const LessonState* lesson() const { return lessons_.state(); }
  /// Returns the dropout laboratory, or nullptr where it is not shown or has no mask yet.
  const Laboratory* laboratory() const { return mask_sampler_.laboratory(); }
  /// Return the references, and the comparison of the chosen one with the live model.
  std::span<const Reference> references() const { return references_; }
  const LiveComparison& live_comparison() const { return live_comparison_; }
  /// Returns the run of training.
  const Learning& learning() const { return learning_; }
  /// Return what the start page shows, or nullptr until it has been read.
  const StartModel* start_model() const {
    return start_model_.value() ? start_model_.value()->get() : nullptr;
  }
  const StartPictures* start_pictures() const { return start_pictures_.value(); }
  const StartRun* start_run() const { return start_run_.value(); }

  /// Returns the file that is being read or chosen from.
  Opening opening() const;
  bool is_reading() const { return reader_.is_busy() || side_tasks_.is_busy(); }
  /// Whether sessions or exports are being written.
  bool is_writing() const { return writer_.is_busy(); }
  /// Whether anything but the trace and files is being computed in the background.
  bool is_working() const {
    return live_comparison_.is_busy() || live_gradient_.is_busy() || mask_sampler_.is_busy() ||
           (document_.full_model && model_reading_.is_busy()) || learning_.is_busy() ||
           (view_.forms.start_page &&
            (start_model_.is_busy() || start_pictures_.is_busy() || start_run_.is_busy()));
  }

 private:
  /// The command that continues after a question, such as about unsaved work or memory.
  struct DeferredCommand {
    std::optional<Command> next;
    bool is_for_writing = false;                              // it continues once pending writes are on disk
    std::optional<core::attention::Model> discardable_model;  // the user has agreed to discard it
    std::shared_ptr<const core::training::TrainingRun> discardable_run;
    std::uint64_t requested_bytes = 0, granted_bytes = max_unconfirmed_bytes;  // memory for stages
    Jobs::Delivery read_result;  // arrived in the meantime; handled once the user has answered
  };

  void handle(const ApplyEdit&);
  void handle(const OverrideStageFromFile& command);
  void handle(const FillFromFile& command);
  /// Handles the verbs that change only the view.
  template <class Verb>
  requires requires(const Verb& verb, View& view) { verb.change(view); }
  void handle(const Verb& verb) { verb.change(view_); }
  void handle(const StartTour&);
  void handle(const AdvanceTour&);
  void handle(const LeaveTour&);
  void handle(const ShowGradient& command);
  void handle(const StepAlongGradient& command);
  void handle(const EndGesture&);
  void handle(const Undo&);
  void handle(const Redo&);
  void handle(const LoadPreset&);
  void handle(const ReadText& command);
  void handle(const SetPrompts& command);
  void handle(const TogglePatch& command);
  void handle(const ExportMap& command);
  void handle(const ShowLayer& command);
  void handle(const ToggleLayerHead& command);
  void handle(const DiscardEdits& command);
  void handle(const StepGeneration& command);
  void handle(const CompareEdits&);
  void handle(const SweepHeads&);
  void handle(const OpenPath&);
  void open_link(const OpenPath& command);
  void handle(const ImportTensors&);
  void handle(const ImportLayer&);
  void handle(const FinishOpening&);
  void handle(const MeasureTensor&);
  void handle(const PreviewFile&);
  void handle(const CancelReading&);
  void handle(const ChooseFiles&) { wants_files_ = true; }
  void handle(const SaveFile&);
  void handle(const SaveFileAs&);
  void handle(const CopyLink&);
  void handle(const ExportAs&);
  void handle(const ShowDialog&);
  void handle(const BrowseTo&);
  void handle(const CopyText&);
  void handle(const ShowMessage&);
  void handle(const Quit&);
  void handle(const DiscardAndContinue&);
  void handle(const SaveAndContinue&);
  void handle(const CancelQuestion&);
  void handle(const AllowMemory&);
  void handle(const ConfirmQuestion&);
  void handle(const RestoreLeftover&);
  void handle(const DiscardLeftover&);
  void handle(const KeepLeftovers&);
  void handle(const QuitNow&);
  void handle(const SetLessonProgress&);
  void handle(const StartLesson&);
  void handle(const StepLesson&);
  void handle(const LeaveLesson&);
  void handle(const NewLesson&);
  void handle(const AddReference&);
  void handle(const AddFlippedReference&);
  void handle(const LoadReference&);
  void handle(const CheckTensors&);
  void handle(const MapTensor&);
  void handle(const SetTensorLayout&);
  void handle(const SearchCauses&);
  void handle(const StopSearch&);
  void handle(const RemoveReference&);
  void handle(const RenameReference&);
  void handle(const ShowReference&);
  void handle(const SetLearning&);
  void handle(const RestartLearning&);
  void handle(const StepLearning&);
  void handle(const ToggleLearnedHead&);
  void handle(const LearnOnFrom&);
  void handle(const KeepLearned&);
  void handle(const LearnWithEdits&);
  void handle(const OpenLearned&);
  void handle(const ExportLearned&);

  void perform(const Command& command);
  /// Returns the state that undo would restore.
  UndoEntry work() const;
  void restore_state(UndoEntry work);
  /// Records the current state as an undo step; shows a message when that drops others.
  void record_step(const std::string& target, const std::string& words);
  /// Makes work left by an earlier window the document, and continues its journal.
  void restore(const Opened& ready);
  void start_full_model(const Opened& ready);
  /// Work left in a lesson by an earlier window; its journal is kept until all of it is restored.
  struct LessonWork {
    std::string session = {};  // or ""
    std::string words = {};    // of the message
    std::optional<std::size_t> step = {};
    std::shared_ptr<Journal> journal = {};
  };
  void start_lesson(const std::string& name, const LessonWork& lesson_work);
  void start_lesson(const core::lessons::Lesson& lesson, const LessonWork& lesson_work);
  /// Opens the whole model of a lesson, then starts the lesson.
  void start_lesson_with_model(const core::lessons::Lesson& lesson, const LessonWork& lesson_work);
  void start(const core::lessons::Lesson& lesson, const core::transformer::ModelRef& model,
             const LessonWork& lesson_work);
  void restore_lesson_work(const LessonWork& lesson_work);
  /// Replaces the experiment, as an undo step unless words is ""; a text of another length drops edits that
  /// belong to its tokens.
  void set_experiment(core::experiment::Experiment experiment, const std::string& target,
                      const std::string& words);
  /// Makes the edited layer of a whole model the document's model; reports edits that do not fit.
  void adopt(std::shared_ptr<FullModelState> full_model);
  /// Returns the readings of the whole model; throws core::Error while they are pending.
  const BothReadings& readings() const;
  /// Throws core::Error while the document's layer is of another text than the requested one.
  void require_layer_of_text() const;
  /// Throws core::Error, which says whether the text is still being read or could not be.
  [[noreturn]] void throw_text_not_read() const;
  /// Returns the same layer of the same model in the document or in an undo step, so that its projections can
  /// be shared; else nullptr.
  const FullModelState* known_layer(const FullModelState& full_model) const;
  void follow_full_model();
  /// Lets the run go on; pauses it where its setup ends, and at numbers that are none.
  void follow_learning();
  /// Whether the run is what is displayed, saved and undone.
  bool is_in_learn() const { return view_.look.tab == Tab::learn && learning_.run(); }
  bool may_discard_run(const Command& command);
  void save_run_to(const std::filesystem::path& path);
  void open_run(const std::filesystem::path& path);
  void show_run(const std::string& words, bool is_error);
  UnsavedWork work_to_record() const;
  void record_in(const std::filesystem::path& folder);
  void show_leftovers();
  void ask(std::string question, std::string answer, const Command& next);
  bool is_changed_on_disk() const;
  void leave_lesson();
  void assess_lesson();
  /// Begins the run of a lesson's step.
  void begin_lesson_run();
  void run_laboratory();
  void add_reference(core::attention::Model model, std::string title);
  void run_comparison();
  /// Returns the chosen reference, or nullptr where there is none.
  Reference* chosen_reference();
  /// Returns it if it has tensors, and requests their check and search once more; else nullptr.
  Reference* recheck_tensors();

  /// Reads in the background and delivers the result; cancels the previous read. For a session that names
  /// files outside its folder, asks whether to continue with the given command, if any.
  void read_in_background(const std::filesystem::path& path, const Jobs::Job& reading,
                          const std::optional<Command>& if_untrusted = {});
  /// Does the same for the current document and layer; fails if they are others when the result arrives.
  void read_for_document(const std::filesystem::path& path, const Jobs::Job& reading);
  void fail_to_read(const std::filesystem::path& path, const Failure& failure);
  void fail_to_write(const std::filesystem::path& path, const Failure& failure, bool was_saving);
  void take(Opened opened);
  /// Drops a model that was opened and is not wanted, in the background.
  void drop_opened();
  Jobs::Job make_model_job(const OpenedTensors& tensors, const core::importing::Choices& choices);
  void choose_from(OpenedTensors tensors);

  /// Whether the command may proceed; asks about unsaved work when it may not yet.
  bool may_discard_work(const Command& command);
  /// Continues with the command once pending writes are on disk: quitting waits for all of them, and says so;
  /// other commands only for saves.
  void continue_when_written(const Command& command);
  void continue_if_written();
  bool is_quitting() const;
  /// Makes this the only waiting command: for an answer, or for pending writes.
  void wait_for(const Command& next, bool is_for_writing);
  /// Continue the waiting command, or drop it.
  void continue_deferred();
  void cancel_deferred();
  /// Handles a result of reading, or keeps it until the open question is answered.
  void deliver_when_answered(Jobs::Delivery read_result);
  void handle_pending_result();
  /// Closes that dialog if it is open; another one stays.
  void close(Dialog dialog);
  /// Drops parts of the view that the model lacks, and data of dialogs that are closed; called after every
  /// command and delivery.
  void tidy();
  /// Calls act; an exception becomes the message, in which `what` names the subject.
  void attempt(const std::string& what, const std::function<void()>& act);
  /// Whether a model's stages may use the memory they need; asks when they may not yet. Throws core::Error
  /// when too little is free.
  bool may_use_memory(const core::attention::Model& model, const Command& command);
  void replace_document(Document document);
  void read_start_page();
  /// Throws core::Error if the document cannot be saved.
  void require_saveable() const;
  /// Saves the current model in the background; it counts as saved once it is written.
  void save_to(const std::filesystem::path& path);
  void remember(const std::filesystem::path& path);
  void clamp_view_to_model();
  void say(std::string text, bool is_error = false) { message_ = {std::move(text), is_error}; }

  Document document_;
  View view_;
  Message message_;
  DeferredCommand deferred_;
  std::vector<std::filesystem::path> recent_;
  std::optional<std::string> clipboard_;
  std::vector<std::filesystem::path> written_;
  std::function<void(const std::string&)> record_;
  core::transformer::ModelRef lost_model_;  ///< whose process has ended, as was reported
  bool writes_files_ = true, wants_files_ = false, quit_ = false;
  Lessons lessons_;
  std::vector<Reference> references_;
  std::uint64_t last_reference_ = 0;
  std::filesystem::path read_path_;        // being read to be opened, or read last
  std::optional<OpenedTensors> choosing_;  // to choose from
  std::optional<Opened> opened_;           // until the question about unsaved work is answered
  std::function<std::uint64_t()> free_memory_;

  // The last members, so that jobs end before the members that they deliver to.
  Jobs jobs_;
  LiveTrace live_;
  LiveGradient live_gradient_{jobs_};
  LiveComparison live_comparison_{jobs_};
  MaskSampler mask_sampler_{jobs_};
  FullModelReading model_reading_{jobs_};
  Learning learning_{jobs_};
  std::optional<LearningDocument> own_run_;                           // set aside for a lesson that trains
  std::shared_ptr<const core::training::TrainingRun> learning_seen_;  // when it was followed last
  AsyncValue<std::filesystem::path, std::shared_ptr<const StartModel>> start_model_{jobs_};
  AsyncValue<StartPicturesKey, StartPictures> start_pictures_{jobs_};
  AsyncValue<std::shared_ptr<const core::training::TrainingRun>, StartRun> start_run_{jobs_};  // of its part
  std::shared_ptr<const void> refused_layer_;  // the layer for whose stages there is no memory
  FileWriter writer_{jobs_};
  JobQueue reader_{jobs_};  // opens files, one at a time
  SideTasks side_tasks_;
  Recorder recorder_{jobs_};
};

}  // namespace app
