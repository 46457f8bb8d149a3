#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/editing/edit.hpp"
#include "core/lessons/lesson.hpp"

namespace tests {

/// The lessons about one model.
std::vector<core::lessons::Lesson> model_lessons();
/// What is to be done in a step of one.
const core::lessons::ModelTask& task(const core::lessons::Step& step);

/// For each lesson about one model and each step the edits that its "try it" asks for, made as a person would
/// make them.
std::map<std::string, std::vector<std::vector<core::editing::Edit>>> tried();

}  // namespace tests
