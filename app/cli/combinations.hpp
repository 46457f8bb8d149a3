#pragma once

#include <functional>
#include <string>

#include "app/cli/arguments.hpp"

/// What may stand beside what on the command line. Each throws core::Error, one line, where something would
/// change nothing.
namespace app {

/// A command, "attnscope" for the window, and which of its options stand on the command line.
struct Said {
  std::string command;
  std::function<bool(const std::string& option)> has;
};

void settle_window(const Said& said);
/// A FILE, a preset or given tensors, and options that mean something beside them.
void settle_model(const Said& said, OfModel& command);
void settle_figure(const Said& said, const DrawFigure& figure);
/// The format is that of --format, else that of the file's name.
void settle_export(const Said& said, const Export& command);
void settle_generate(const Said& said, const Generate& command);

}  // namespace app
