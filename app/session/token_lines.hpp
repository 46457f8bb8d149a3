#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/graph/head_facts.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// Which weights are to become lines from queries to keys.
struct LineChoice {
  std::vector<std::size_t> heads;
  double hide_below = 0;             ///< weights below it get no line, nor does 0
  std::optional<std::size_t> query;  ///< its lines come before all others
  std::size_t most = 0;              ///< more lines than that are not drawn
  friend bool operator==(const LineChoice&, const LineChoice&) = default;
};

struct TokenLine {
  std::size_t query = 0, key = 0, head = 0;
  double weight = 0;
  friend bool operator==(const TokenLine&, const TokenLine&) = default;
};

/// The lines, those that matter most last, and what they leave out.
struct TokenLines {
  std::vector<TokenLine> lines;
  std::size_t visible = 0;  ///< pairs of tokens that the mask shows, in all chosen heads
  std::size_t above = 0;    ///< of them not hidden by the threshold; as many lines, unless they are too many
  double carried = 0, total = 0;  ///< the weight of the lines, and of all visible pairs
};

/// The lines of the weights before dropout; when they are too many the strongest, those of the query first.
/// Of no use once goes_on, which is asked between rows, says no.
TokenLines token_lines(const core::attention::Trace& trace, const LineChoice& choice,
                       const core::Token& token = {});

}  // namespace app
