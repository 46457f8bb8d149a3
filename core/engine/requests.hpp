#pragma once

#include <functional>

#include "core/engine/heads.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace core::attention::fast {

/// What decides which stages a trace has, and how large those are that do not depend on what is kept.
struct TraceKind {
  std::size_t d_model = 0, d_output = 0, n_memory = 0, d_memory = 0;
  bool norms = false, turns = false, caps = false, places = false, adds = false;
  friend bool operator==(const TraceKind&, const TraceKind&) = default;
};
TraceKind kind_of(const Model& model);

/// A trace whose stages are made from what is kept when they are read; all three must outlive it.
Trace trace_on_request(Heads& all, const Model& model, const std::size_t& sequence,
                       std::function<const arma::mat&()> output);

/// Lets every stage be made anew.
void renew(Trace& trace);

}  // namespace core::attention::fast
