#pragma once

#include <vector>

#include "core/check/ways.hpp"

namespace core::check {

/// The ways in which positions are off by one or turn by another base; some of them change nothing in a
/// model.
std::vector<Way> ways_of_rotations(const Model& model);

}  // namespace core::check
