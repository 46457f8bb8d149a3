#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/editing/edit.hpp"
#include "core/lessons/lessons.hpp"

namespace tests {

/// The lessons about one model.
std::vector<core::lessons::Lesson> model_lessons();

/// For each lesson about one model and each step the edits that its "try it" asks for, made as a person would
/// make them.
std::map<std::string, std::vector<std::vector<core::editing::Edit>>> tried();

}  // namespace tests
