#pragma once

#include <cstdint>
#include <string>

#include "core/graph/model.hpp"

namespace app {

/// Bytes above which the window asks before it computes.
constexpr std::uint64_t max_unconfirmed_bytes = std::uint64_t{2} << 30;

/// Memory that a model's stages need, and free memory, in bytes.
struct MemoryNeed {
  std::uint64_t bytes = 0, free = 0;
  std::string what;  ///< "16384 tokens in one head"
  bool is_too_much() const { return bytes > free; }
  /// Returns one line: "16384 tokens in one head need 38.0 GiB of memory; 12.1 GiB are free".
  std::string words() const;
};

/// Returns the memory for the stages of a model that is in memory; free is core::system::available_memory().
MemoryNeed memory_need(const core::attention::Model& model, std::uint64_t free);

}  // namespace app
