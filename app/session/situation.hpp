#pragma once

#include <functional>
#include <map>
#include <utility>

#include "app/session/document.hpp"
#include "app/session/forms.hpp"
#include "app/session/lessons.hpp"
#include "app/session/pair.hpp"
#include "app/session/settings.hpp"

namespace app {

/// What an action may look at.
struct Situation {
  Shown shown;
  Newest newest;
  const Settings& settings;
  const Forms& forms;
  const DocumentState& document;
  /// The ends of all colors as they are now; empty where no picture is drawn.
  std::function<std::map<std::pair<Stage, std::size_t>, Ends>()> color_ends = {};
  /// How far each lesson was taken, by its name; or nullptr.
  const std::map<std::string, LessonProgress>* progress = nullptr;
};

}  // namespace app
