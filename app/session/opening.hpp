#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/session/command.hpp"
#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/recovery.hpp"
#include "app/session/view.hpp"
#include "core/editing/edit.hpp"
#include "core/editing/presets.hpp"
#include "core/files/layers.hpp"
#include "core/files/tensor.hpp"
#include "core/importing/import.hpp"
#include "core/model/text_reading.hpp"
#include "core/training/training_run.hpp"

namespace app {

/// Command-line options of the window.
struct OpenWindow {
  std::optional<std::filesystem::path> file = {};    ///< to open at once
  const core::editing::Preset* preset = nullptr;     ///< to begin with instead of a file, or nullptr
  std::string address = {}, token = {};              ///< of a model in a Python process, or ""
  std::string text = {};                             ///< for a whole model to read, or ""
  std::size_t layer = 0;                             ///< of the whole model, displayed first
  std::optional<std::filesystem::path> record = {};  ///< file for a recording of what is done
  std::optional<std::filesystem::path> replay = {};  ///< recording to replay at once, instead of a file
  std::size_t until = std::numeric_limits<std::size_t>::max();  ///< last line of it to replay
  bool is_embedded = false;                                     ///< in a page: without menus and side panels
};

/// Returns the absolute path of a file that outlives this program, so that other windows find it too; the
/// path itself without a current folder. Nothing for a descriptor of this process, such as /dev/stdin.
std::optional<std::filesystem::path> absolute_path(const std::filesystem::path& path);

/// Smallest and largest finite number of a tensor, and the counts of others.
struct TensorRange {
  double least = 0, greatest = 0;
  std::size_t n_infinite = 0, n_nan = 0;
};

/// An open file of tensors to choose from.
struct OpenedTensors : core::formats::checkpoints::Checkpoint {
  std::vector<core::importing::ExpectedLayer> expected;  ///< expected import of each
  std::vector<core::importing::StageLayer> stages;       ///< those recognized by name
  std::map<std::string, TensorRange> ranges;             ///< of the measured tensors
  std::string embeddings;                ///< the tensor with such a name, or the only one; or ""
  core::formats::TableIndex index = {};  ///< of a table whose first line or column, 0, 1, 2 …, may be names
};

/// The tensors that a model was made from, so that another layer can be chosen.
struct TensorSource {
  OpenedTensors tensors;
  core::importing::Choices choices;
  std::vector<std::string> layers;  ///< names, "" for one without a name; fewer than two leave no choice
  std::size_t layer = 0;
};

/// A whole model that was opened, and its readings of the first text, with and without edits.
struct OpenedModel {
  core::transformer::ModelRef model;
  ReadingRef reading, before;
  core::attention::Model unedited,
      layer;               ///< the displayed one, as computed by the pass and as edited
  std::string view = {};   ///< of a session, or ""
  std::string stamp = {};  ///< of the session's file before it was read, or ""
};

/// Result of opening a file: a model for the document, or tensors to choose from.
struct Opened {
  /// Work left by an earlier window, whose journal is continued.
  struct Leftover {
    std::shared_ptr<Journal> journal;
    JournalHeader header;
    std::string in_lesson;  ///< a session, or ""
    std::shared_ptr<const core::training::TrainingRun> run = nullptr;
  };
  std::filesystem::path path;                               ///< "" of a link
  std::shared_ptr<const OpenedModel> full_model = nullptr;  ///< if set, there is no other model
  std::optional<core::importing::ImportResult> imported = {};
  std::optional<TensorSource> source = {};    ///< of a model made from tensors
  std::optional<OpenedTensors> tensors = {};  ///< set if there is no model yet
  std::string problem = {};                   ///< why there is none, or ""
  std::string stamp = {};                     ///< of a session's file before it was read
  std::optional<Leftover> leftover = {};
  bool is_learned = false;  ///< the whole model is a step of a run, and path its name
  std::shared_ptr<const core::training::TrainingRun> run = nullptr;  ///< if set, there is no model

  const core::attention::Model& model() const { return full_model ? full_model->layer : imported->model; }
};

/// Opens a file as far as possible without asking: a session, or tensors that make only one model, or one for
/// each layer, of which it takes the first.
///
/// Blocks on the disk. Throws core::Error; UntrustedPath when a session names files outside its folder and
/// that is refused.
Opened open_file(const std::filesystem::path& path, const core::StopToken& progress,
                 core::UntrustedPaths untrusted_paths = core::UntrustedPaths::refused,
                 core::formats::DecimalMark mark = core::formats::DecimalMark::point);

/// Returns the path of the whole model that a path names: a folder with its tokenizer, the folder of a file
/// with its tensors or its configuration, or a GGUF file; nothing for other paths.
std::optional<std::filesystem::path> full_model_at(const std::filesystem::path& path);

/// Opens the whole model of a file or a folder, keeping as much of its weights as half of the free memory
/// holds, or connects to that of an address with its token, "" for none. Throws core::Error.
core::transformer::ModelRef open_or_attach(const std::filesystem::path& model, const std::string& token);

/// Opens a whole model and reads a text with it, or, where that is "", an example.
///
/// Keeps at most so many bytes of its weights in memory. Throws core::Error.
OpenedModel open_full_model(const std::filesystem::path& path, const std::string& text, std::size_t layer,
                            std::uint64_t max_cached_bytes, const core::StopToken& progress);

/// Connects to a model in a Python process and reads a text with it, as open_full_model(). Throws
/// core::Error.
OpenedModel open_attached(const std::string& address, const std::string& token, const std::string& text,
                          std::size_t layer, const core::StopToken& progress);

/// Reads the text of an experiment without edits with an open whole model. Throws core::Error, which names
/// path.
OpenedModel read_full_model(const core::transformer::ModelRef& model,
                            const core::experiment::Experiment& wanted, const std::filesystem::path& path,
                            const core::StopToken& progress);

/// Reads the text again with an experiment's edits. Throws core::Error as read_full_model() does.
void read_edited(OpenedModel& opened, const core::experiment::Experiment& edited,
                 const std::filesystem::path& path, const core::StopToken& progress);

/// Opens and reads the whole model of a session from the session's text and path. Throws core::Error;
/// UntrustedPath when the model is outside the session's folder and that is refused.
OpenedModel open_saved_full_model(const std::string& text, const std::filesystem::path& session,
                                  core::UntrustedPaths untrusted_paths, std::uint64_t max_cached_bytes,
                                  const core::StopToken& progress);

/// Finds the layers, stages and embeddings in an open file of tensors. Throws core::Error.
OpenedTensors inspect_tensors(std::shared_ptr<const core::formats::TensorFile> file,
                              const core::StopToken& progress);

/// Makes a model from tensors, with its source. Throws core::Error.
Opened make_model(const OpenedTensors& tensors, const core::importing::Choices& choices,
                  const core::StopToken& progress);

/// Returns the range of a tensor, or of its first part when it is too large to read. Throws core::Error.
TensorRange measure(const core::formats::TensorFile& file, const std::string& name,
                    const core::StopToken& progress);

/// Returns "-2.13 … 4.5", with the counts of infinite numbers and NaN.
std::string range_text(const TensorRange& range);

/// Describes a file for the dialog that opens it: its format, tensors, shapes, types and range; "" for a
/// session.
std::string preview_text(const std::filesystem::path& path, core::formats::DecimalMark mark,
                         const core::StopToken& progress);

/// State of a file that is being read or chosen from, for panels.
struct Opening {
  std::filesystem::path path;  ///< being read, or read last
  bool is_reading = false;
  double seconds = 0;                      ///< since reading began
  std::uint64_t bytes = 0;                 ///< so far
  const OpenedTensors* tensors = nullptr;  ///< of the file to choose from, or nullptr
  std::filesystem::path previewed;         ///< the file that the preview is of
  std::string preview;
  bool is_previewing = false;  ///< the preview is still being read
  bool is_writing = false;     ///< an export is being written instead
};

/// Returns the time of a file's last change, in seconds since 1970; 0 if unknown.
std::int64_t modified_at(const std::filesystem::path& path);

/// Reads a directory for the file browser, folders first; an empty path is the current directory.
///
/// A directory that cannot be read gives an empty list and says why in Browser::error.
Browser browse(const std::filesystem::path& directory, const core::StopToken& progress);

/// The numbers of a file that holds one matrix.
struct MatrixFile {
  std::filesystem::path path;
  arma::mat numbers;
  std::vector<std::string> row_names;  ///< of a table that has them, or empty
};

/// Reads a file that holds one matrix. Throws core::Error, which names the file.
MatrixFile read_matrix_file(const std::filesystem::path& path, const core::StopToken& progress);

/// Returns the edit that sets a matrix of a model to the numbers of a file.
///
/// Shapes must agree, but embeddings of a single sequence may change their number of tokens. Throws
/// core::Error, which names the file.
core::editing::Edit edit_from_file(const MatrixFile& file, const core::attention::Model& model,
                                   core::editing::MatrixRef place);

/// Reads in the background what dialogs show about files: nothing waits for it, and it stops no other read.
class SideTasks {
 public:
  using ListFunction = std::function<Browser(const std::filesystem::path&, const core::StopToken&)>;
  SideTasks(Jobs& jobs, ListFunction list)
      : list_(std::move(list)), listing_(jobs), previewing_(jobs), measuring_(jobs) {}

  /// Lists a folder in a file browser, which must outlive this object, in place of the last one.
  void list(Browser& browser, const std::filesystem::path& directory);
  /// Reads the preview of a file, in place of the last one.
  void preview(const std::filesystem::path& path, core::formats::DecimalMark mark);
  /// Stops that; the preview can be asked for again.
  void stop_preview();
  /// Measures a tensor, in place of the last one, and delivers its range.
  void measure(const std::shared_ptr<const core::formats::TensorFile>& file, const std::string& name,
               const std::function<void(const TensorRange&)>& deliver);

  bool is_busy() const { return listing_.is_busy() || previewing_.is_busy() || measuring_.is_busy(); }
  bool is_previewing() const { return previewing_.is_busy(); }
  /// Return the file of the last preview, and the preview, "" until it has been read.
  const std::filesystem::path& previewed() const { return previewed_; }
  const std::string& preview() const { return preview_; }

 private:
  ListFunction list_;
  std::filesystem::path previewed_;
  std::string preview_;
  JobQueue listing_, previewing_, measuring_;
};

/// Writes in the background, one file after the other.
struct FileWriter {
  explicit FileWriter(Jobs& jobs)
      : saving(jobs, JobQueue::QueuePolicy::every), exporting(jobs, JobQueue::QueuePolicy::every) {}
  bool is_busy() const { return saving.is_busy() || exporting.is_busy(); }
  /// Returns the path being written, or written last.
  const std::filesystem::path& path() const { return saving.is_busy() ? save_path : export_path; }

  std::filesystem::path save_path, export_path;  ///< current or last paths
  JobQueue saving, exporting;
};

/// Make a document from a whole model that was opened, and show its layers in the view.
Document document_of(const OpenedModel& opened, Origin origin);
void show_layers_view(View& view);

/// Returns the command for a dropped file: a dialog for a file uses it, the comparison checks tensors, and
/// the matrix editor takes the numbers of a file of tensors; anything else is opened.
Command command_for_dropped_file(const std::filesystem::path& path, const View& view,
                                 const core::attention::Model& model, bool over_editor);

}  // namespace app
