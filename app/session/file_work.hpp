#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/journal.hpp"
#include "app/session/opening.hpp"
#include "app/session/view.hpp"

namespace app {

/// Reads files beside the window, one at a time: to open them, or aside – a preview, a range or a list of
/// files, for which nothing else is given up.
class FileReader {
 public:
  explicit FileReader(Jobs& jobs) : lane_(jobs) {}

  /// Reads something and carries out what it gives; what was being read before is given up.
  void begin(const std::filesystem::path& path, const Jobs::Job& reading, const Jobs::Failed& failed);
  /// Whether a reading aside may begin now.
  bool is_free_for_asides() const { return !lane_.is_busy() || is_aside_; }
  /// What was begun last is read aside.
  void set_aside() { is_aside_ = true; }
  void cancel() { lane_.cancel(); }
  void wait() { lane_.wait(); }

  bool is_busy() const { return lane_.is_busy(); }
  /// Being read, or read last.
  const std::filesystem::path& path() const { return path_; }
  double seconds() const { return lane_.seconds(); }
  std::uint64_t bytes() const { return lane_.done(); }

 private:
  std::filesystem::path path_;
  bool is_aside_ = false;
  Lane lane_;
};

/// What is being written beside the window, each file in its turn.
struct FileWriter {
  explicit FileWriter(Jobs& jobs) : saving(jobs, Lane::Takes::every), exporting(jobs, Lane::Takes::every) {}
  bool is_busy() const { return saving.is_busy() || exporting.is_busy(); }
  /// The file that is waited for.
  const std::filesystem::path& path() const { return saving.is_busy() ? saved_to : exported; }

  std::filesystem::path saved_to, exported;  ///< or were last
  Lane saving, exporting;
};

/// A piece of work that begins with a whole model that was opened, and a view that shows its layers.
Document document_of(const OpenedWhole& opened, Origin origin);
void look_at_layers(View& view);

/// What was found in files and is not yet part of the document.
struct FoundInFiles {
  /// What a window before has left: it is taken up with its journal.
  struct Left {
    std::shared_ptr<Journal> journal;
    JournalHead head;
    std::string in_lesson;  ///< a session, or ""
  };
  /// A model that was read, and where it came from.
  struct Ready {
    std::filesystem::path path;
    core::importing::Imported imported;
    std::optional<TensorSource> source;
    std::string stamp;
    std::shared_ptr<const OpenedWhole> whole = nullptr;  ///< instead of what was imported
    std::optional<Left> left = {};                       ///< that it was in
  };
  std::optional<OpenedTensors> tensors;  ///< from which is to be chosen
  std::optional<Ready> ready;            ///< until the question about unsaved work is answered
  std::filesystem::path previewed;
  std::string preview;
};

}  // namespace app
