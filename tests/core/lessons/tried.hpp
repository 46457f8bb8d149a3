#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/editing/edit.hpp"

namespace tests {

/// For each lesson and step the edits that its "try it" asks for, made as a person would make them.
std::map<std::string, std::vector<std::vector<core::editing::Edit>>> tried();

}  // namespace tests
