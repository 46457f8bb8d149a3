#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/journal.hpp"
#include "app/session/lessons.hpp"
#include "app/session/view.hpp"

namespace app {

/// What is said when edits cannot be written down, and why not.
inline std::string not_recorded(const std::string& why) {
  return "Edits are not recorded for the case of a crash: " + why;
}

/// How long what a window leaves that is still ending is looked for at the start.
constexpr std::chrono::seconds looks_for_left{5};

/// What is to outlive a crash: the person's own work, and what is tried in the lesson that put it aside.
struct Recordable {
  const Document& own;
  const View& view;
  const LessonState* lesson = nullptr;  ///< the one under way, or nullptr
  const Document* tried = nullptr;      ///< the document of that lesson's step

  bool is_modified() const {
    return (own.is_modified() && !own.is_attached()) || (lesson && tried->is_modified());
  }
};

/// Keeps what is not saved in a journal, within a second of every edit, beside the window; and what windows
/// before have left.
class Recorder {
 public:
  explicit Recorder(Jobs& jobs) : queue_(jobs, JobQueue::Takes::newest) {}

  /// Begins to record in a folder, and finds what was left there. Throws core::Error when nothing can be
  /// written there, which is tried again from edit to edit.
  void begin(const std::filesystem::path& folder);
  /// Hands the work over to be written when it has other numbers than the last one; once a frame. What waits
  /// to be written is always the newest.
  void follow(const Recordable& work);
  /// Finds what a window leaves that was still ending when this one began; whether there is any.
  bool finds_more();
  /// Waits for what is being written, and writes the work: for the next window when it is not saved.
  void finish(const Recordable& work);
  /// Keeps nothing: what is not saved is given up, as the person has said.
  void forget();

  const std::vector<std::shared_ptr<Journal>>& left() const { return left_; }
  /// Goes on in a journal that was left, whose work is the document from now on.
  void restore(std::shared_ptr<Journal> journal);
  void drop(std::size_t index);
  /// The others may offer it.
  void keep_for_later();

 private:
  /// What is written of a piece of work.
  struct Entry {
    struct Text {
      core::formats::Session session;
      std::shared_ptr<const WholeModel> whole;  // instead of the session's model, which is a layer of it
      std::string text() const;
    };
    JournalHead head;
    Text own;
    std::optional<Text> tried;

    void write_to(Journal& journal) const;
  };
  /// Enough of a document to know its work again.
  struct Numbers {
    core::attention::Model model;
    core::experiment::Experiment experiment;  // of a whole model, instead
    bool are_of(const Document& document) const;
  };
  struct Written {
    Numbers own;
    std::optional<std::filesystem::path> path;  // where it is saved
    std::string stamp;
    std::optional<Numbers> tried;
    std::string lesson;
    std::size_t step = 0;
    bool is_of(const Recordable& work) const;
  };
  /// What is to be written next; the thread that writes takes it in the moment in which it begins.
  class NextEntry {
   public:
    void put(std::optional<Entry> entry);
    std::optional<Entry> take();
    bool is_empty() const;

   private:
    mutable std::mutex mutex_;
    std::optional<Entry> entry_;
  };
  static Numbers numbers_of(const Document& document);
  Entry entry_of(const Recordable& work);
  bool has_journal(const Recordable& work);
  void begin_to_write();
  void tell(const std::string& why);

  std::filesystem::path folder_;  // "" where nothing is to be recorded
  std::shared_ptr<Journal> journal_;
  std::vector<std::shared_ptr<Journal>> left_;
  std::optional<Written> written_;
  std::string since_;               // the first edit that is not saved
  std::size_t n_edits_before_ = 0;  // that were taken up
  bool is_clear_ = true;            // nothing is in the journal
  bool has_failed_ = false;         // which is said once
  std::string why_not_;             // nothing is recorded, until that was said
  Jobs::Clock::time_point next_, look_next_, look_until_;
  NextEntry next_entry_;
  JobQueue queue_;
};

}  // namespace app
