#include "app/state/lesson_state.hpp"

#include <charconv>

namespace app {
namespace {

/// The whole number that a text begins with, taken off the text.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::string progress_text(const LessonProgress& progress) {
  std::string text = std::to_string(progress.step) + " ";
  for (const std::size_t step : progress.done) text += std::to_string(step) + ",";
  if (!progress.done.empty()) text.pop_back();
  return text;
}

std::optional<LessonProgress> read_progress(std::string_view text, std::size_t n_steps) {
  LessonProgress progress;
  const auto step = take_number(text);
  if (!step || *step >= n_steps || !(text.empty() || text.starts_with(' '))) return std::nullopt;
  progress.step = *step;
  if (text == " ") return progress;
  while (!text.empty()) {
    text.remove_prefix(1);  // the blank or a comma
    const auto done = take_number(text);
    if (!done || *done >= n_steps || !(text.empty() || text.starts_with(','))) return std::nullopt;
    progress.done.insert(*done);
  }
  return progress;
}

}  // namespace app
