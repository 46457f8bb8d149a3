#include "app/token_lines.hpp"

#include <algorithm>
#include <tuple>

namespace app {

TokenLines token_lines(const core::attention::Trace& trace, const LineChoice& choice) {
  TokenLines found;
  const arma::mat& mask = trace.mask;
  for (const std::size_t h : choice.heads) {
    const arma::mat& weights = trace.heads[h].weights;
    for (std::size_t j = 0; j < mask.n_cols; ++j)
      for (std::size_t i = 0; i < mask.n_rows; ++i) {
        if (mask(i, j) == 0) continue;
        ++found.visible;
        const double weight = weights(i, j);
        if (!(weight > 0)) continue;  // nor NaN
        found.total += weight;
        if (weight >= choice.hide_below) found.lines.push_back({i, j, h, weight});
      }
  }
  found.above = found.lines.size();
  const auto matters_more = [&](const TokenLine& a, const TokenLine& b) {
    const auto rank = [&](const TokenLine& l) { return std::tuple(choice.query == l.query, l.weight, l.query, l.key, l.head); };
    return rank(a) > rank(b);
  };
  if (found.lines.size() > choice.most) {
    std::nth_element(found.lines.begin(), found.lines.begin() + static_cast<std::ptrdiff_t>(choice.most), found.lines.end(), matters_more);
    found.lines.resize(choice.most);
  }
  std::sort(found.lines.begin(), found.lines.end(), [&](const auto& a, const auto& b) { return matters_more(b, a); });
  for (const TokenLine& line : found.lines) found.carried += line.weight;
  return found;
}

}  // namespace app
