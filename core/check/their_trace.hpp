#pragma once

#include <vector>

#include "core/check/check.hpp"
#include "core/graph/trace.hpp"

namespace core::check {

/// Their tensors as a trace that has only some stages.
struct TheirTrace {
  attention::Trace trace;     ///< every other stage is empty
  std::vector<Stage> stages;  ///< those that all heads have, in the order of the computation
};

/// The tensors of one sequence, read as the report says; a stage that only some heads have is left out.
TheirTrace their_trace(const Model& model, const Matched& matched, const Report& report,
                       std::size_t sequence);

}  // namespace core::check
