#pragma once

#include <ostream>

#include "app/cli/arguments.hpp"

namespace app {

/// Prints the sources of a score as a table or JSON. These functions throw core::Error, one line.
void explain_score(const ExplainScore& command, std::ostream& out);
/// Prints what each patch between two prompts recovers.
void patch_prompts(const PatchPrompts& command, std::ostream& out);
/// Prints the composition of every two heads of different layers.
void list_composition(const ListComposition& command, std::ostream& out);

}  // namespace app
