#pragma once

#include <cstdint>
#include <filesystem>
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
#include "core/model/reading.hpp"

namespace app {

/// What the command line says about the window.
struct OpenWindow {
  std::optional<std::filesystem::path> file = {};  ///< to open at once
  const core::editing::Preset* preset = nullptr;   ///< to begin with instead of a file, or nullptr
  std::string address = {}, token = {};            ///< of a model in a process of Python, or ""
  std::string text = {};                           ///< that a whole model is to read, or ""
  std::size_t layer = 0;                           ///< of it, to be looked at
};

/// The path from the root of a file that is there after this program too, so that it means the same to other
/// windows; as it is where there is no current folder. None of a pipe that the program was given.
std::optional<std::filesystem::path> lasting_path(const std::filesystem::path& path);

/// The least and the greatest finite number of a tensor, and how many others it has.
struct TensorRange {
  double least = 0, greatest = 0;
  std::size_t n_infinite = 0, n_nan = 0;
};

/// A file of tensors from which is to be chosen.
struct OpenedTensors {
  std::shared_ptr<const core::formats::TensorFile> file;
  std::vector<core::formats::checkpoints::Layer> layers;
  std::vector<core::importing::ExpectedLayer> expected;  ///< what would become of each
  std::vector<core::importing::StageLayer> stages;       ///< those that the names tell
  std::map<std::string, TensorRange> ranges;             ///< of the tensors that were asked about
  std::string embeddings;         ///< the tensor that its name says is such, or the only one; or ""
  bool has_index_header = false;  ///< a table whose first line, 0, 1, 2 …, may name the columns
};

/// Where a model came from, when it was made of tensors: another layer can be chosen there.
struct TensorSource {
  OpenedTensors tensors;
  core::importing::Choices choices;
  std::vector<std::string> layers;  ///< their names, "" for a number alone; fewer than two leave no choice
  std::size_t layer = 0;
};

/// A whole model that was opened, and its first text as it reads it, with what was edited and without.
struct OpenedWhole {
  core::transformer::ModelRef model;
  std::shared_ptr<const core::experiment::Reading> reading, before;
  core::attention::Model of_pass,
      layer;               ///< the one that is looked at, as the pass gives it and as it was edited
  std::string view = {};   ///< of a session: what was looked at, or ""
  std::string stamp = {};  ///< of the session's file, from before it was read, or ""
};

/// What became of a file: a model that is to become the document, or tensors from which is to be chosen.
struct Opened {
  /// What a window before has left: its journal goes on.
  struct Left {
    std::shared_ptr<Journal> journal;
    JournalHead head;
    std::string in_lesson;  ///< a session, or ""
  };
  std::filesystem::path path;
  std::shared_ptr<const OpenedWhole> whole = nullptr;  ///< then no other model
  std::optional<core::importing::Imported> imported = {};
  std::optional<TensorSource> source = {};    ///< of a model made of tensors
  std::optional<OpenedTensors> tensors = {};  ///< where there is no model yet
  std::string problem = {};                   ///< why there is none, or ""
  std::string stamp = {};                     ///< of a session, from before it was read
  std::optional<Left> left = {};

  const core::attention::Model& model() const { return whole ? whole->layer : imported->model; }
};

/// Reads a file as far as it can be without asking: a session, or tensors of which but one model can be made,
/// or one for each layer, of which it is the first.
///
/// Takes as long as the disk does. Throws core::Error; UntrustedPath when a session names files elsewhere and
/// that is refused.
Opened open_file(const std::filesystem::path& path, const core::Token& progress,
                 core::UntrustedPaths elsewhere = core::UntrustedPaths::refused);

/// Where a whole model lies that a path names: a folder with its tokenizer, a file in such a folder that has
/// its tensors or its configuration, or a GGUF file; nothing for other paths.
std::optional<std::filesystem::path> whole_model_at(const std::filesystem::path& path);

/// Opens a whole model and reads a text with it, or, where that is "", one that shows something.
///
/// Of its weights so many bytes at most are kept. Throws core::Error.
OpenedWhole open_whole(const std::filesystem::path& path, const std::string& text, std::size_t layer,
                       std::uint64_t keep_at_most, const core::Token& progress);

/// Connects to a model in a process of Python and reads a text with it, likewise. Throws core::Error.
OpenedWhole open_attached(const std::string& address, const std::string& token, const std::string& text,
                          std::size_t layer, const core::Token& progress);

/// A whole model that is open already reads what an experiment without edits has; path is what is named when
/// that cannot be read. Throws core::Error.
OpenedWhole read_whole(const core::transformer::ModelRef& model, const core::experiment::Experiment& wanted,
                       const std::filesystem::path& path, const core::Token& progress);

/// The same of the text of a session of a whole model; session is where it stands. Throws core::Error, and
/// UntrustedPath where the model does not lie beside it and that is refused.
OpenedWhole open_saved_whole(const std::string& text, const std::filesystem::path& session,
                             core::UntrustedPaths elsewhere, std::uint64_t keep_at_most,
                             const core::Token& progress);

/// What is known of a file of tensors once it is open.
OpenedTensors look_into(std::shared_ptr<const core::formats::TensorFile> file, const core::Token& progress);

/// A model of tensors, and where it came from. Throws core::Error.
Opened make_of(const OpenedTensors& tensors, const core::importing::Choices& choices,
               const core::Token& progress);

/// The range of a tensor, or of its first part when it is too large to be read at once. Throws core::Error.
TensorRange measure(const core::formats::TensorFile& file, const std::string& name,
                    const core::Token& progress);

/// "−2.13 … 4.5", with what is not finite.
std::string range_text(const TensorRange& range);

/// A few words on a file for the dialog that opens it: its format, tensors, shapes, types and range; "" of a
/// session.
std::string preview_text(const std::filesystem::path& path, const core::Token& progress);

/// What panels are told of a file that is being read, or from which is to be chosen.
struct Opening {
  std::filesystem::path path;  ///< being read, or read last
  bool is_reading = false;
  double seconds = 0;                      ///< for how long already
  std::uint64_t bytes = 0;                 ///< so far
  const OpenedTensors* tensors = nullptr;  ///< of the file from which is to be chosen, or nullptr
  std::filesystem::path previewed;         ///< the file that the preview is of
  std::string preview;
  bool is_writing = false;  ///< it is an export, and no reading
};

/// Reads a directory for the file browser, folders first; an empty path is the current directory.
///
/// A directory that cannot be read gives an empty list and says why in Browser::error.
Browser browse(const std::filesystem::path& directory, std::string name);

/// The numbers of a file that holds one matrix.
struct NumbersInFile {
  std::filesystem::path path;
  arma::mat numbers;
  std::vector<std::string> row_names;  ///< of a table that has them, or empty
};

/// Reads them. Throws core::Error that names the file.
NumbersInFile numbers_in_file(const std::filesystem::path& path, const core::Token& progress);

/// The edit that puts them in a matrix of a model.
///
/// Shapes must agree, but embeddings of one sequence may become more or fewer tokens. Throws core::Error that
/// names the file.
core::editing::Edit edit_with(const NumbersInFile& file, const core::attention::Model& model,
                              core::editing::MatrixPlace place);

/// Reads files in the background, one at a time: to open them, or aside – a preview, a range or a list of
/// files, for which nothing else is given up.
class FileReader {
 public:
  explicit FileReader(Jobs& jobs) : queue_(jobs) {}

  /// Reads something and carries out what it gives; what was being read before is given up.
  void begin(const std::filesystem::path& path, const Jobs::Job& reading, const Jobs::Failed& failed,
             bool is_aside = false);
  /// Whether a reading aside may begin now.
  bool is_free_for_asides() const { return !queue_.is_busy() || is_aside_; }
  void cancel() { queue_.cancel(); }
  void wait() { queue_.wait(); }

  bool is_busy() const { return queue_.is_busy(); }
  /// Being read, or read last.
  const std::filesystem::path& path() const { return path_; }
  double seconds() const { return queue_.seconds(); }
  std::uint64_t bytes() const { return queue_.done(); }

 private:
  std::filesystem::path path_;
  bool is_aside_ = false;
  JobQueue queue_;
};

/// What is being written in the background, each file in its turn.
struct FileWriter {
  explicit FileWriter(Jobs& jobs)
      : saving(jobs, JobQueue::Takes::every), exporting(jobs, JobQueue::Takes::every) {}
  bool is_busy() const { return saving.is_busy() || exporting.is_busy(); }
  /// The file that is waited for.
  const std::filesystem::path& path() const { return saving.is_busy() ? saved_to : exported; }

  std::filesystem::path saved_to, exported;  ///< or were last
  JobQueue saving, exporting;
};

/// A piece of work that begins with a whole model that was opened, and a view that shows its layers.
Document document_of(const OpenedWhole& opened, Origin origin);
void look_at_layers(View& view);

/// What dropping a file means: a dialog takes what it asks for, the comparison checks tensors, and the matrix
/// editor takes the numbers of a file of tensors; anything else is opened.
Command dropped(const std::filesystem::path& path, const View& view, const core::attention::Model& model,
                bool over_editor);

}  // namespace app
