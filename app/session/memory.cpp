#include "app/session/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/limits.hpp"

namespace app {
namespace {

// Scores, scaled and masked scores, mask, dropout mask and dropped weights of the shown head.
constexpr std::uint64_t squares_looked_at = 6;

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

std::string text_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The whole number behind a name in a text, which is left standing after it.
std::optional<std::uint64_t> number_behind(std::string_view name, std::string_view text,
                                           std::string_view& rest) {
  const std::size_t line = text.find(name);
  if (line == text.npos) return std::nullopt;
  rest = text.substr(line + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return core::text::take_whole_number(rest);
}

/// Where a control group says what it allows, in the second version and in the first.
struct Group {
  const char *limit, *used, *stat;
};
constexpr Group memory_groups[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat"}};

/// What the limit of the address space leaves, or nothing without one.
std::optional<std::uint64_t> address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const std::string statm = text_of("/proc/self/statm");
  std::string_view rest;
  const std::uint64_t pages = number_behind("", statm, rest).value_or(0);
  const std::uint64_t used = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(used, limit.rlim_cur);
}

}  // namespace

std::optional<std::uint64_t> available_bytes(std::string_view meminfo) {
  std::string_view rest;
  const auto kibibytes = number_behind("MemAvailable:", meminfo, rest);
  if (!kibibytes || !rest.starts_with(" kB")) return std::nullopt;
  return *kibibytes << 10;
}

std::optional<std::uint64_t> bytes_left_in_group(std::string_view limit, std::string_view used,
                                                 std::string_view stat) {
  std::string_view rest;
  const auto most = number_behind("", limit, rest), taken = number_behind("", used, rest);
  if (!most || !taken) return std::nullopt;
  const std::uint64_t files = number_behind("inactive_file", stat, rest).value_or(0);
  return *most - std::min(*taken - std::min(files, *taken), *most);
}

void give_back_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

std::uint64_t free_memory() {
  const auto available = available_bytes(text_of("/proc/meminfo"));
  std::uint64_t free = available ? *available
                                 : static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                       static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  for (const Group& group : memory_groups)
    if (const auto left = bytes_left_in_group(text_of(group.limit), text_of(group.used), text_of(group.stat)))
      free = std::min(free, *left);
  return std::min(free, address_space_left().value_or(free));
}

MemoryNeed memory_need(const core::attention::Model& model, std::uint64_t free) {
  MemoryNeed need;
  // The engine keeps what all heads need; of one head at a time every stage is looked at.
  namespace attention = core::attention;
  const std::size_t n = model.n_tokens(), d_out = std::max(model.d_out(), model.d_output());
  need.bytes = attention::trace_bytes(n, model.d_model(), d_out, model.n_heads, model.n_keys());
  if (attention::fast::covers(model))
    need.bytes = std::min(need.bytes, attention::fast::engine_bytes(n, d_out, model.n_heads, model.n_keys()) +
                                          squares_looked_at * n * model.n_keys() * sizeof(double));
  need.free = free;
  need.what = std::to_string(model.n_tokens()) + " tokens in " +
              (model.n_heads == 1 ? "one head" : std::to_string(model.n_heads) + " heads");
  return need;
}

std::string MemoryNeed::words() const {
  std::string need = core::text::gibibytes(bytes), rest = core::text::gibibytes(free);
  if (need == rest) need = mebibytes(bytes), rest = mebibytes(free);  // which tell them apart
  return what + " need " + need + " of memory; " + rest + " are free";
}

}  // namespace app
