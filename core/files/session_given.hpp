#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "core/files/json.hpp"
#include "core/files/session_files.hpp"
#include "core/graph/model.hpp"

/// The "given" of a session file: stages by name, and single cells as a list.
namespace core::formats {

/// What is given, and how many sequences and heads that is; both 0 when no stage is given as a whole.
struct ReadGiven {
  attention::Given given;
  std::size_t n_sequences = 0, n_heads = 0;
  std::size_t n_shared = 0;  ///< keys or values, of which there may be fewer than heads
};

/// Reads {"weights": [head][row][column], …, "cells": [{"stage", "head", "row", "column", "value"}, …]}; a
/// batch has one more level, a single head may do with one less. A stage may lie in a file: {"file",
/// "tensor", "at"}, see matrix_in_file().
///
/// Throws core::Error as Json and TensorFile do, and when two stages have different numbers of heads.
ReadGiven read_given(const Json& place, const SessionFolder& folder);

/// The same as text; the model must pass attention::check().
std::string given_text(const attention::Model& model);

}  // namespace core::formats
