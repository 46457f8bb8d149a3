#include "app/ui/frame.hpp"

namespace app {

Frame of_newest(const Frame& f) {
  return {.model = f.newest ? f.newest->model : f.model,
          .trace = f.trace,
          .version = f.version,
          .compute_ms = f.compute_ms,
          .view = f.newest ? f.newest->view : f.view,
          .document = f.document,
          .message = f.message,
          .palette = f.palette,
          .metrics = f.metrics,
          .fonts = f.fonts,
          .painter = f.painter,
          .extents = f.extents,
          .statistics = f.statistics,
          .landmarks = f.landmarks,
          .commands = f.commands,
          .lesson = f.lesson,
          .laboratory = f.laboratory,
          .references = f.references,
          .comparison = f.comparison,
          .comparing = f.comparing,
          .source = f.source,
          .renewal = f.renewal,
          .opening = f.opening,
          .newest = f.newest};
}

}  // namespace app
