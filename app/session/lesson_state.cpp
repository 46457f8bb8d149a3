#include "app/session/lesson_state.hpp"

#include "core/base/number.hpp"

namespace app {
using core::text::take_whole_number;

std::string progress_text(const LessonProgress& progress) {
  std::string text = std::to_string(progress.step) + " ";
  for (const std::size_t step : progress.done) text += std::to_string(step) + ",";
  if (!progress.done.empty()) text.pop_back();
  return text;
}

std::optional<LessonProgress> read_progress(std::string_view text, std::size_t n_steps) {
  LessonProgress progress;
  const auto step = take_whole_number(text);
  if (!step || *step >= n_steps || !(text.empty() || text.starts_with(' '))) return std::nullopt;
  progress.step = *step;
  if (text == " ") return progress;
  while (!text.empty()) {
    text.remove_prefix(1);  // the blank or a comma
    const auto done = take_whole_number(text);
    if (!done || *done >= n_steps || !(text.empty() || text.starts_with(','))) return std::nullopt;
    progress.done.insert(*done);
  }
  return progress;
}

}  // namespace app
