#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/files/json.hpp"
#include "core/graph/limits.hpp"
#include "core/graph/model.hpp"

/// What a session asks for is counted before its memory is taken: a short one may name much, many times.
namespace core::formats {

/// What a session says once may take so much when it is kept for every sequence, and all names of tokens.
constexpr std::uint64_t most_copied_bytes = std::uint64_t{1} << 30;

/// What a matrix takes beside its numbers, rounded up.
constexpr std::uint64_t bytes_of_a_matrix = 256;

/// What a matrix takes.
inline std::uint64_t matrix_bytes(const attention::SharedMatrix& m) {
  return bytes_of_a_matrix + sizeof(double) * std::uint64_t{m.n_rows()} * m.n_cols();
}

/// Throws core::Error about a place with more things than a limit.
void require_count(const Json& place, std::size_t count, std::size_t limit, const char* things);

/// Throws core::Error about a place whose things would take more memory than a limit.
void require_bytes(const Json& place, std::uint64_t bytes, const char* things,
                   std::uint64_t limit = attention::max_bytes);

/// What the names of tokens take.
std::uint64_t name_bytes(const std::vector<std::string>& names);

}  // namespace core::formats
