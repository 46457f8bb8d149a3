#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "app/cli/arguments.hpp"

namespace app {

/// Options that a command was given.
struct GivenOptions {
  std::string command;
  std::function<bool(const char* option)> has;

  /// Throws core::Error, "COMMAND: OPTION: …", for the first of some options that was given.
  void refuse(std::initializer_list<const char*> options, const std::string& expected) const;
};

// Check and complete a whole command where options depend on each other. Each throws core::Error, one line,
// where an option would change nothing.
void validate_model(const GivenOptions& given, ModelOptions& command);
void validate(const GivenOptions& given, Export& command);
void validate(const GivenOptions& given, WriteGradients& command);
void validate(const GivenOptions& given, WriteProgram& command);
void validate(const GivenOptions& given, DrawFigure& figure);
void validate(const GivenOptions& given, Generate& command);
void validate(const GivenOptions& given, ExplainScore& command);
void validate(const GivenOptions& given, ListComposition& command);
void validate(const GivenOptions& given, ScanTexts& command);
void validate(const GivenOptions& given, Learn& command);

}  // namespace app
