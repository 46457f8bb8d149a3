#pragma once

#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace core::check {

/// A number of float32 without all but its first 11 binary digits, cut off and not rounded.
double cut_to_tf32(double number);

/// The trace of a sequence by a processor that takes the factors of every matrix product cut to TF32 and adds
/// up in float32, as graphics cards do that are not told to round first.
///
/// The model's own precision counts for nothing; no cell of it may be typed over. Throws core::Error as
/// attend() does.
attention::Trace trace_with_cut_products(const attention::Model& model, std::size_t sequence);

}  // namespace core::check
