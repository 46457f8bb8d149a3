#pragma once

#include <string>
#include <vector>

#include "core/check/check.hpp"

namespace core::check {

class Computed;

/// Says in which ways a tensor could be read that agrees in none, and which of them was taken.
void add_ambiguity(const Theirs& theirs, std::vector<std::string>& notes);

/// Says of which layer the tensors are, which of them agree as another stage than they are called, and of
/// which stages only some heads or sequences were given; finds the stages that nobody gave.
///
/// agreeing[k] is the reading of theirs[k] that agrees, or nullptr; report.readings is known.
void add_notes(const Computed& right, const Matched& matched, const std::vector<const Reading*>& agreeing,
               const Tolerance& tolerance, Report& report);

}  // namespace core::check
