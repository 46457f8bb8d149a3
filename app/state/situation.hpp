#pragma once

#include <functional>
#include <map>
#include <utility>

#include "app/state/document.hpp"
#include "app/state/pair.hpp"
#include "core/attention/trace.hpp"

namespace app {

/// What an action may look at.
struct Situation {
  const core::attention::Model& model;  ///< that the trace is of
  const core::attention::Trace& trace;  ///< of the shown sequence
  const View& view;                     ///< as far as that model has what is looked at
  const Document& document;
  Newest newest;  ///< what edits change
  /// The ends of all colours as they are now; empty where no picture is drawn.
  std::function<std::map<std::pair<Stage, std::size_t>, Ends>()> colour_ends = {};
};

}  // namespace app
