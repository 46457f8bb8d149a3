#pragma once

#include <string>
#include <vector>

namespace core::text {

/// What a model that predicts the next token learns from: these tokens came before, this one came next.
struct NextToken {
  std::vector<std::string> context;
  std::string target;
  friend bool operator==(const NextToken&, const NextToken&) = default;
};

/// Every pair of a sentence: n tokens give n − 1 of them, the first with one token of context.
std::vector<NextToken> next_token_pairs(const std::vector<std::string>& tokens);

}  // namespace core::text
