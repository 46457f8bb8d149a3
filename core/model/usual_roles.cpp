#include "core/model/usual_roles.hpp"

#include <algorithm>

#include "core/base/random.hpp"

namespace core::experiment {
namespace {

using transformer::HeadRoles;

constexpr std::size_t n_rows = 4, longest_row = 48, shortest_row = 8;
constexpr std::uint64_t seed = 123;

/// Random tokens of the text's language, and the same again.
std::vector<std::size_t> repeated_tokens(const transformer::Transformer& model, std::size_t n,
                                         random::Generator& generator) {
  const auto n_tokens =
      static_cast<std::int64_t>(std::min(model.tokenizer->size(), model.architecture.sizes.n_vocabulary));
  std::vector<std::size_t> ids;
  for (int tries = 0; ids.size() < n && tries < 100'000; ++tries) {
    const auto id = static_cast<std::size_t>(generator.randint(1, 0, n_tokens).front());
    if (!model.tokenizer->is_special(id)) ids.push_back(id);
  }
  ids.reserve(2 * ids.size());
  for (std::size_t k = 0, once = ids.size(); k < once; ++k) ids.push_back(ids[k]);
  return ids;
}

void add(HeadRoles& sum, const HeadRoles& roles) {
  constexpr double share = 1.0 / n_rows;
  sum.previous += roles.previous * share;
  sum.first += roles.first * share;
  sum.itself += roles.itself * share;
  sum.same_token = sum.same_token.value_or(0) + roles.same_token.value_or(0) * share;
  sum.induction = sum.induction.value_or(0) + roles.induction.value_or(0) * share;
  sum.entropy_bits += roles.entropy_bits * share;
}

}  // namespace

std::vector<std::vector<HeadRoles>> usual_roles(const transformer::Transformer& model,
                                                const transformer::Means& means) {
  const auto& sizes = model.architecture.sizes;
  const std::size_t n = std::min(longest_row, sizes.n_context / 2);
  if (!model.architecture.causal || n < shortest_row) return {};
  std::vector<std::vector<HeadRoles>> usual(sizes.n_layers, std::vector<HeadRoles>(sizes.n_heads));
  random::Generator generator(seed);
  for (std::size_t row = 0; row < n_rows; ++row) {
    const auto ids = repeated_tokens(model, n, generator);
    if (ids.empty()) return {};
    const transformer::Pass pass = transformer::run(model, ids, {}, means);
    for (std::size_t l = 0; l < sizes.n_layers; ++l)
      means.pool.run(sizes.n_heads, [&](std::size_t h) {
        add(usual[l][h], transformer::roles_of(transformer::weights_in(model, pass, l, h), ids));
      });
  }
  return usual;
}

}  // namespace core::experiment
