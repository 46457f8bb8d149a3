#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/view.hpp"
#include "app/session/whole_reading.hpp"
#include "core/lessons/exhibits.hpp"
#include "core/lessons/lessons.hpp"

namespace app {

/// How the shown step of a lesson stands.
struct LessonState {
  const core::lessons::Lesson* lesson = nullptr;
  std::size_t step = 0;
  std::set<std::size_t> done;                    ///< the steps of this lesson that were tried
  std::string seen;                              ///< what happened in this step, or "" before it was tried
  std::vector<core::lessons::Picture> pictures;  ///< of its exhibit
  std::uint64_t version = 0;                     ///< of the pictures' numbers
  std::vector<core::lessons::Moved> moved;  ///< the cells that the step asks for, the largest change first

  const core::lessons::Step& shown() const { return lesson->steps[step]; }
};

/// "5 0,1,4": the step, then those that were done.
std::string progress_text(const LessonProgress& progress);
/// Reads it back; nothing when it is no such text or names a step that the lesson has not.
std::optional<LessonProgress> read_progress(std::string_view text, std::size_t n_steps);

/// What is kept of a lesson, or nullptr; of no progress at all likewise.
const LessonProgress* progress_of(const std::map<std::string, LessonProgress>* progress,
                                  const std::string& lesson);
/// The first lesson that was left on the way to its last step, or nullptr.
const core::lessons::Lesson* left_lesson(const std::map<std::string, LessonProgress>* progress);

/// The step of the history that a lesson is.
constexpr const char* the_lesson = "the lesson";

/// The lesson under way, with the person's own work that it put aside, and how far each lesson was taken.
class Lessons {
 public:
  /// Puts the document aside and another one in its place: the lesson, at a step, or where it was left.
  ///
  /// model is the whole model of a lesson that is about one, own_reading what a whole model that is put
  /// aside had read. Throws core::Error where there is no such step, or where the model cannot read its text,
  /// as begin() does.
  void start(const core::lessons::Lesson& lesson, std::optional<std::size_t> step,
             const core::transformer::ModelRef& model, Document& document, View& view,
             std::optional<WholeReading::Kept> own_reading);
  /// Goes to a step of the lesson under way, as it starts.
  void begin(std::size_t step, Document& document, View& view);
  /// Brings the person's own work back; gives what its whole model had read.
  std::optional<WholeReading::Kept> leave(Document& document, View& view);
  /// Looks what was done in the shown step; live is of the document's model.
  void assess(const Document& document, const LiveTrace& live, std::size_t sequence);
  /// The same of a lesson about a whole model: what it reads now, and the head that is looked at.
  void assess(const std::shared_ptr<const core::experiment::Reading>& now, std::size_t layer,
              std::size_t head);
  /// What the whole model read when the step began, or nullptr in other lessons.
  std::shared_ptr<const core::experiment::Reading> first_reading() const {
    return under_way_ ? under_way_->first_reading : nullptr;
  }

  bool is_under_way() const { return under_way_.has_value(); }
  /// Of the lesson under way, or nullptr.
  const LessonState* state() const { return under_way_ ? &under_way_->state : nullptr; }
  /// The person's own work: what was put aside, or the document.
  const Document& own(const Document& document) const { return under_way_ ? under_way_->own : document; }
  Document& own(Document& document) { return under_way_ ? under_way_->own : document; }

  std::map<std::string, LessonProgress> progress;  ///< by the lesson's name

 private:
  struct UnderWay {
    Document own;
    View own_view;
    std::optional<WholeReading::Kept> own_reading;
    core::attention::Trace before;  // of the step's start, for the shown sequence
    std::size_t before_sequence = 0;
    std::uint64_t assessed = 0;  // the version of the trace that was looked at
    core::transformer::ModelRef model;
    std::shared_ptr<const core::experiment::Reading> first_reading;
    // What a whole model read when it was looked at, and the layer and head then.
    std::tuple<std::shared_ptr<const core::experiment::Reading>, std::size_t, std::size_t> assessed_whole;
    LessonState state;
  };
  template <class Moment>
  void take(const Moment& moment);

  std::optional<UnderWay> under_way_;
};

}  // namespace app
