#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/editing/edit.hpp"
#include "core/lessons/lessons.hpp"

namespace tests {

/// The lessons about one model.
std::vector<core::lessons::Lesson> model_lessons();

/// Returns, for each step of each lesson about one model, the edits of its "try it" as a user would make
/// them.
std::map<std::string, std::vector<std::vector<core::editing::Edit>>> tried();

}  // namespace tests
