#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/graph/model.hpp"

namespace app {

/// Returns the bytes that the program may still take: Linux's MemAvailable, elsewhere all of the machine's
/// memory.
std::uint64_t free_memory();

/// Hands freed memory back to the system, where the C library can.
void give_back_memory();

/// Reads MemAvailable in bytes from the text of /proc/meminfo; nothing when the text does not say.
std::optional<std::uint64_t> available_bytes(std::string_view meminfo);

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

/// The need of a model whose numbers are there already; free is what free_memory() says.
MemoryNeed memory_need(const core::attention::Model& model, std::uint64_t free);

}  // namespace app
