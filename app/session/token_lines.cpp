#include "app/session/token_lines.hpp"

#include <algorithm>
#include <tuple>

namespace app {

TokenLines token_lines(const core::attention::Trace& trace, const LineChoice& choice,
                       const core::Token& token) {
  TokenLines found;
  const auto matters_more = [&](const TokenLine& a, const TokenLine& b) {
    const auto rank = [&](const TokenLine& l) {
      return std::tuple(choice.query == l.query, l.weight, l.query, l.key, l.head);
    };
    return rank(a) > rank(b);
  };
  const auto keep_the_most = [&] {
    if (found.lines.size() <= choice.most) return;
    std::nth_element(found.lines.begin(), found.lines.begin() + static_cast<std::ptrdiff_t>(choice.most),
                     found.lines.end(), matters_more);
    found.lines.resize(choice.most);
  };
  const std::size_t many = 16 * choice.most + 1000;  // all lines of a large model would fill the memory
  for (std::size_t i = 0; i < trace.mask.n_rows() && token.goes_on(); ++i) {
    const arma::rowvec mask = trace.mask.row(i);
    for (const std::size_t h : choice.heads) {
      const arma::rowvec weights = trace.heads[h].weights.row(i);
      for (std::size_t j = 0; j < mask.n_elem; ++j) {
        if (mask[j] == 0) continue;
        ++found.visible;
        const double weight = weights[j];
        if (!(weight > 0)) continue;  // nor NaN
        found.total += weight;
        if (!(weight >= choice.hide_below)) continue;
        ++found.above;
        found.lines.push_back({i, j, h, weight});
        if (found.lines.size() > many) keep_the_most();
      }
    }
  }
  keep_the_most();
  std::sort(found.lines.begin(), found.lines.end(),
            [&](const auto& a, const auto& b) { return matters_more(b, a); });
  for (const TokenLine& line : found.lines) found.carried += line.weight;
  return found;
}

}  // namespace app
