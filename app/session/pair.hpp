#pragma once

#include <cstdint>

#include "app/session/look.hpp"
#include "app/session/selection.hpp"
#include "app/session/whole_model.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace app {

class WholeReading;  // in work/whole_reading.hpp

/// What is shown: a trace, the model that it is of, and what is looked at as far as that model has it.
struct Shown {
  const core::attention::Model& model;
  const core::attention::Trace& trace;  ///< of the shown sequence
  std::uint64_t version;                ///< of the trace: another number, other numbers
  const Look& look;
  const Selection& selection;
};

/// What edits change, whatever is shown: it may have no trace yet.
struct Newest {
  const core::attention::Model& model;
  const Look& look;
  const Selection& selection;
  const WholeModel* whole = nullptr;      ///< that the model is a layer of, or nullptr
  const WholeReading* reading = nullptr;  ///< of that: what is known of its text
  const LayersLook* layers = nullptr;
};

}  // namespace app
