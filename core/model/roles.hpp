#pragma once

#include <armadillo>
#include <cstddef>
#include <optional>
#include <vector>

namespace core::transformer {

/// What a head does on a text: shares of the weights of its queries, 0 … 1, in the mean.
struct HeadRoles {
  double previous = 0;  ///< to the token before; of the queries from the second on
  double first = 0;     ///< to the first token; of those from the third on
  double itself = 0;
  std::optional<double> same_token;  ///< to earlier places of the query's token, where it has some
  std::optional<double> induction;   ///< to what followed there
  double entropy_bits = 0;           ///< of a row of weights
};

/// The roles of a head by its weights on a text, n_tokens × n_tokens, a query a row. Source of the last two:
/// Olsson et al. 2022.
HeadRoles roles_of(const arma::fmat& weights, const std::vector<std::size_t>& ids);

}  // namespace core::transformer
