#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/screen/painter.hpp"
#include "app/session/command.hpp"
#include "app/session/comparing.hpp"
#include "app/session/document.hpp"
#include "app/session/lessons.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/opening.hpp"
#include "app/session/picture_source.hpp"
#include "app/session/statistics.hpp"
#include "app/session/view.hpp"
#include "app/theme/theme.hpp"
#include "app/ui/landmarks.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// How far the window has come in catching up with the newest model.
struct Renewal {
  double seconds = 0;  ///< since the pictures became old
  double share = 0;    ///< of the work that is done, 0 … 1
};

/// What is worked out of the model for the panels, and how far that is.
struct Work {
  double compute_ms = 0;  ///< of the shown trace
  ValueRanges& extents;
  Statistics& statistics;
  const Laboratory* laboratory = nullptr;  ///< where it is shown, or nullptr
  const PictureSource* source = nullptr;   ///< of the trace's pictures, or nullptr
  const Renewal* renewal = nullptr;        ///< or nullptr when nothing is being renewed
  const Opening* opening = nullptr;        ///< what is being read, and from what is to be chosen
  const Changes* changes = nullptr;        ///< what the last edit of the shown model changed, or nullptr
  const std::map<std::string, LessonProgress>* progress = nullptr;  ///< of lessons, by name, or nullptr
  const OpenedWhole* start_model = nullptr;  ///< that the start page offers, once it has been read
};

/// The states that were kept, and the chosen one against the live model.
struct Compared {
  std::span<const Reference> references = {};  ///< Look::reference chooses
  const Comparison* comparison = nullptr;      ///< where it is shown, or nullptr
  ComparisonWork work = {};                    ///< what is still to come of it
};

/// All that a panel gets: it reads, draws and asks.
struct Frame {
  Displayed displayed;
  Pending pending;
  const Settings& settings;
  const Forms& forms;
  const DocumentState& document;
  const Message& message;
  const Palette& palette;
  const Metrics& metrics;
  const Fonts& fonts;
  render::Painter& painter;
  Landmarks& landmarks;
  Commands& commands;
  Work work;
  Compared compared = {};
  const LessonState* lesson = nullptr;  ///< of the lesson under way, or nullptr

  /// Whether what is shown is of the newest model.
  bool shows_newest() const {
    return displayed.model == pending.model && displayed.look.sequence == pending.look.sequence;
  }
};

}  // namespace app
