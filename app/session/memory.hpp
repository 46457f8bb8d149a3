#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/graph/model.hpp"

namespace app {

/// Bytes that the program may still take: Linux's MemAvailable, elsewhere all of the machine's memory; no
/// more than a container or the shell's limit of the address space leaves.
std::uint64_t free_memory();

/// Hands what was let go of back to the system, as far as the library that allocates can.
void give_back_memory();

/// Bytes that Linux says are available, read from the text of /proc/meminfo; nothing when the text does not
/// say.
std::optional<std::uint64_t> available_bytes(std::string_view meminfo);

/// Bytes that a control group leaves of its limit, read from the texts of its memory.max, memory.current and
/// memory.stat, which says what of them files take that need not stay; nothing without a limit.
std::optional<std::uint64_t> bytes_left_in_group(std::string_view limit, std::string_view used,
                                                 std::string_view stat);

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
