#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/model.hpp"

namespace core::formats {

/// The part of a PyTorch program that makes a model's numbers.
struct ProgramNumbers {
  std::string definitions;  ///< lines that define x, the layers and what forward() needs beside them
  std::string layers;       ///< the names of the layers, as they are given to the class
};

/// Draws what PyTorch draws from one of the seeds, to the last bit, and writes all other numbers out.
ProgramNumbers program_numbers(const attention::Model& model, const std::vector<std::uint64_t>& seeds);

}  // namespace core::formats
