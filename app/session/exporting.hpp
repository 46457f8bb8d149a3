#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/session/command.hpp"
#include "core/base/token.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// What an export is made of.
struct Exported {
  const core::attention::Model& model;
  const core::attention::Trace* trace;  ///< of the shown sequence; nullptr where it is still to be computed
  const View& view;
  std::string title;                       ///< of the document
  std::vector<std::string> left_out = {};  ///< what its file does and it does not, in words
};

/// Writes what is asked for, all of it or nothing, and gives the files.
///
/// Throws core::Error, "PATH: cannot be written: why", and core::Stopped; then everything is as it was.
std::vector<std::filesystem::path> export_as(const Exported& exported, const ExportAs& what,
                                             const core::Token& progress);

}  // namespace app
