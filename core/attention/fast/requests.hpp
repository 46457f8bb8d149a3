#pragma once

#include <functional>

#include "core/attention/fast/heads.hpp"
#include "core/attention/model.hpp"
#include "core/attention/trace.hpp"

namespace core::attention::fast {

/// A trace whose stages are made from what is kept when they are read; all three must outlive it.
Trace trace_on_request(Heads& all, const Model& model, const std::size_t& sequence,
                       std::function<const arma::mat&()> output);

/// Lets every stage be made anew.
void renew(Trace& trace);

}  // namespace core::attention::fast
