#include "core/text/next_token.hpp"

namespace core::text {

std::vector<NextToken> next_token_pairs(const std::vector<std::string>& tokens) {
  std::vector<NextToken> pairs;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    pairs.push_back({{tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i)}, tokens[i]});
  return pairs;
}

}  // namespace core::text
