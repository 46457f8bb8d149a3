#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

/// Where a person stands in one lesson, from one run of the program to the next.
struct LessonProgress {
  std::size_t step = 0;
  std::set<std::size_t> done;
  friend bool operator==(const LessonProgress&, const LessonProgress&) = default;
};

/// "5 0,1,4": the step, then those that were done.
std::string progress_text(const LessonProgress& progress);
/// Reads it back; nothing when it is no such text or names a step that the lesson has not.
std::optional<LessonProgress> read_progress(std::string_view text, std::size_t n_steps);

}  // namespace app
