#pragma once

#include <cstdint>
#include <string>

#include "core/graph/model.hpp"

namespace app {

/// Beyond it the window asks before it computes.
constexpr std::uint64_t bytes_without_a_question = std::uint64_t{2} << 30;

/// What a model's stages will take, and what of it is free.
struct MemoryNeed {
  std::uint64_t bytes = 0, free = 0;
  std::string what;  ///< "16384 tokens in one head"
  bool is_too_much() const { return bytes > free; }
  /// One line: "16384 tokens in one head need 38.0 GiB of memory; 12.1 GiB are free".
  std::string words() const;
};

/// The need of a model whose numbers are there already; free is what core::system::free_memory() says.
MemoryNeed memory_need(const core::attention::Model& model, std::uint64_t free);

}  // namespace app
