#pragma once

#include <map>
#include <span>
#include <string>

#include "app/screen/painter.hpp"
#include "app/session/command.hpp"
#include "app/session/comparing.hpp"
#include "app/session/document.hpp"
#include "app/session/lessons.hpp"
#include "app/session/live_gradient.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/opening.hpp"
#include "app/session/picture_source.hpp"
#include "app/session/start_page.hpp"
#include "app/session/statistics.hpp"
#include "app/session/view.hpp"
#include "app/theme/theme.hpp"
#include "app/ui/landmarks.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// Progress of the update of the window to the newest model.
struct UpdateProgress {
  double seconds = 0;  ///< since the pictures became outdated
  double share = 0;    ///< of the work done, 0 … 1
};

/// Results computed from the model for the panels, and the progress of work in the background.
struct Work {
  double compute_ms = 0;  ///< of the displayed trace
  ValueRanges& value_ranges;
  Statistics& statistics;
  const Laboratory* laboratory = nullptr;           ///< if displayed, else nullptr
  const PictureSource* source = nullptr;            ///< of the trace's pictures, or nullptr
  const UpdateProgress* update_progress = nullptr;  ///< nullptr if nothing is being updated
  const Opening* opening = nullptr;                 ///< of a file: being read, or with choices to make
  const Changes* changes = nullptr;                 ///< of the last edit of the displayed model, or nullptr
  const std::map<std::string, LessonProgress>* progress = nullptr;  ///< of lessons, by name, or nullptr
  const StartModel* start_model = nullptr;        ///< offered by the start page; nullptr until it is read
  const StartPictures* start_pictures = nullptr;  ///< of its cards and files; nullptr until they are read
  const StartRun* start_run = nullptr;            ///< nullptr until it has been trained
};

/// The snapshots, and the comparison of the chosen one with the live model.
struct ComparisonState {
  std::span<const Reference> references = {};       ///< ComparedLook::reference is the index of A
  const ReferenceComparison* comparison = nullptr;  ///< if displayed, else nullptr
  ComparisonProgress work = {};                     ///< state of the pending comparison
};

/// Everything that a panel needs in one frame: it reads the state, draws, and adds commands.
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
  ComparisonState compared = {};
  const LessonState* lesson = nullptr;     ///< of the current lesson, or nullptr
  const LiveGradient* gradient = nullptr;  ///< of the displayed number, or nullptr if none is shown

  /// Returns whether the displayed model and sequence are the newest.
  bool is_up_to_date() const {
    return displayed.model == pending.model && displayed.look.sequence == pending.look.sequence;
  }
};

}  // namespace app
