#include "core/files/session_limits.hpp"

#include "core/base/text.hpp"

namespace core::formats {

void require_count(const Json& place, std::size_t count, std::size_t limit, const char* things) {
  if (count > limit) place.fail("at most " + std::to_string(limit) + " " + things, std::to_string(count));
}

void require_bytes(const Json& place, std::uint64_t bytes, const char* things, std::uint64_t limit) {
  if (bytes > limit)
    place.fail(std::string(things) + " of at most " + text::gibibytes(limit), text::gibibytes(bytes));
}

std::uint64_t name_bytes(const std::vector<std::string>& names) {
  std::uint64_t bytes = sizeof(names);
  for (const std::string& name : names) bytes += sizeof(name) + name.size();
  return bytes;
}

}  // namespace core::formats
