#pragma once

#include <iosfwd>

#include "app/command_line/arguments.hpp"

/// The commands about whole models. Each writes what is asked for, and throws core::Error, one line.
namespace app {

void list_tokens(const ListTokens& command, std::ostream& out);
void predict(const Predict& command, std::ostream& out);
void describe_heads(const DescribeHeads& command, std::ostream& out);
void generate(const Generate& command, std::ostream& out);

/// A layer of a whole model as it reads a text: what enters its attention, and its projections. Of no layer
/// it is the first.
core::importing::Imported layer_of_text(const OfWholeModel& command, const std::string& layer);

}  // namespace app
