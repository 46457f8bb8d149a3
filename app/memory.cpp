#include "app/memory.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "core/attention/limits.hpp"

namespace app {
namespace {

std::string gibibytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / 0x1p30);
  return text;
}

}  // namespace

std::optional<std::uint64_t> available_bytes(std::string_view meminfo) {
  constexpr std::string_view name = "MemAvailable:";
  const std::size_t line = meminfo.find(name);
  if (line == std::string_view::npos) return std::nullopt;
  std::string_view rest = meminfo.substr(line + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::uint64_t kibibytes = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), kibibytes);
  if (error != std::errc() || !std::string_view(end, rest.data() + rest.size()).starts_with(" kB"))
    return std::nullopt;
  return kibibytes << 10;
}

std::uint64_t free_memory() {
  std::ostringstream text;
  text << std::ifstream("/proc/meminfo").rdbuf();
  if (const auto bytes = available_bytes(text.str())) return *bytes;
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

MemoryNeed memory_need(const core::attention::Model& model, std::uint64_t free) {
  MemoryNeed need;
  need.bytes = core::attention::trace_bytes(model.n_tokens(), model.d_model(), model.d_out(), model.n_heads);
  need.free = free;
  need.what = std::to_string(model.n_tokens()) + " tokens in " +
              (model.n_heads == 1 ? "one head" : std::to_string(model.n_heads) + " heads");
  return need;
}

std::string MemoryNeed::words() const {
  return what + " need " + gibibytes(bytes) + " of memory; " + gibibytes(free) + " are free";
}

}  // namespace app
