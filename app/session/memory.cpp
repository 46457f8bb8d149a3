#include "app/session/memory.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/text.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/validation.hpp"

namespace app {
namespace {

// Scores, scaled and masked scores, mask, dropout mask and weights after dropout of the displayed head.
constexpr std::uint64_t n_displayed_stages = 6;

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

}  // namespace

MemoryNeed memory_need(const core::attention::Model& model, std::uint64_t free) {
  MemoryNeed need;
  // The engine stores what all heads need; every stage is displayed for one head at a time.
  namespace attention = core::attention;
  const std::size_t n = model.n_tokens(), d_out = std::max(model.d_out(), model.d_output());
  need.bytes = attention::trace_bytes(n, model.d_model(), d_out, model.n_heads, model.n_keys());
  if (attention::fast::supports(model))
    need.bytes = std::min(need.bytes, attention::fast::engine_bytes(n, d_out, model.n_heads, model.n_keys()) +
                                          n_displayed_stages * n * model.n_keys() * sizeof(double));
  need.free = free;
  need.what = fmt::format("{} tokens in {}", model.n_tokens(),
                          model.n_heads == 1 ? "one head" : std::to_string(model.n_heads) + " heads");
  return need;
}

std::string MemoryNeed::words() const {
  std::string need = core::text::gibibytes(bytes), rest = core::text::gibibytes(free);
  if (need == rest) need = mebibytes(bytes), rest = mebibytes(free);  // to tell them apart
  return what + " need " + need + " of memory; " + rest + " are free";
}

}  // namespace app
