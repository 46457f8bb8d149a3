#pragma once

#include <iosfwd>

#include "app/cli/arguments.hpp"

/// The commands about whole models. Each writes what is asked for, and throws core::Error, one line.
namespace app {

void list_tokens(const ListTokens& command, std::ostream& out);
void predict(const Predict& command, std::ostream& out);
void describe_heads(const DescribeHeads& command, std::ostream& out);
void generate(const Generate& command, std::ostream& out);

/// A layer of a whole model as it reads a text: what enters its attention, and its projections. Of no layer
/// it is the first.
core::importing::Imported layer_of_text(const OfWholeModel& command, const std::string& layer);

/// Somebody's tensors of all layers against a whole model, whose text and against are set; whether they
/// agree.
///
/// What is to be said beside the report goes to err.
bool check_whole_model(const Check& command, std::ostream& out, std::ostream& err);

}  // namespace app
