#pragma once

#include "core/lessons/expression.hpp"
#include "core/lessons/lessons.hpp"

/// What the expressions of lessons can ask of a model and of a whole model.
namespace core::lessons {

Names names_of(const Moment& moment);
Names names_of(const WholeMoment& moment);

}  // namespace core::lessons
