#include "app/cli/address_space.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <thread>

extern "C" int openblas_get_num_threads();

namespace app {

std::optional<std::string> missing_address_space() {
  // Each thread that computes with it takes such a piece: its own, which wait, and ours.
  constexpr std::uint64_t piece = std::uint64_t{128} << 20, program = piece;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const auto n_own = static_cast<std::uint64_t>(std::max(1, openblas_get_num_threads())),
             n_ours = std::uint64_t{std::max(1u, std::thread::hardware_concurrency())};
  const std::uint64_t needed = program + (n_own + n_ours) * piece;
  if (limit.rlim_cur >= needed) return std::nullopt;
  return "expected at least " + std::to_string(needed >> 10) + " KiB of address space (ulimit -v), got " +
         std::to_string(limit.rlim_cur >> 10) + (n_own > 1 ? "; OPENBLAS_NUM_THREADS=1 needs less" : "");
}

}  // namespace app
