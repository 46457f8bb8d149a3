#include "core/model/roles.hpp"

#include <cmath>

namespace core::transformer {
namespace {

/// A mean that may be of nothing.
struct Mean {
  double sum = 0;
  std::size_t n = 0;
  void add(double number) {
    sum += number;
    ++n;
  }
  double value() const { return n == 0 ? 0 : sum / static_cast<double>(n); }
  std::optional<double> if_any() const { return n == 0 ? std::nullopt : std::optional(value()); }
};

}  // namespace

HeadRoles roles_of(const arma::fmat& weights, const std::vector<std::size_t>& ids) {
  Mean previous, first, itself, same, induction, entropy;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) previous.add(weights.at(i, i - 1));
    if (i > 1) first.add(weights.at(i, 0));
    itself.add(weights.at(i, i));
    double bits = 0;
    for (std::size_t j = 0; j < weights.n_cols; ++j)
      if (const double weight = weights.at(i, j); weight > 0) bits -= weight * std::log2(weight);
    entropy.add(bits);
    double to_same = 0, to_next = 0;
    bool was_before = false;
    for (std::size_t j = 0; j < i; ++j) {
      if (ids[j] != ids[i]) continue;
      was_before = true;
      to_same += weights.at(i, j);
      if (j + 1 != i) to_next += weights.at(i, j + 1);
    }
    if (!was_before) continue;
    same.add(to_same);
    induction.add(to_next);
  }
  return {previous.value(), first.value(),      itself.value(),
          same.if_any(),    induction.if_any(), entropy.value()};
}

}  // namespace core::transformer
