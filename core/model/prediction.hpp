#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/model/experiment_reading.hpp"

namespace core::experiment {

/// A token that may come next, and its probability now and before the edits.
struct NextToken {
  std::size_t id = 0;
  std::string text;
  double now = 0, before = 0;
};

/// What would be predicted after a layer, and how probable the chosen token is there.
struct LayerGuess {
  std::string text;
  double probability = 0, of_chosen = 0;
};

/// What is known of the token that comes next.
struct Prediction {
  NextToken chosen;
  double logit = 0;
  std::vector<NextToken> table;     ///< the most probable ones now
  std::size_t n_others = 0;         ///< tokens that are not in the table
  double others = 0;                ///< their probability together
  std::vector<LayerGuess> guesses;  ///< [layer]
  /// What heads add to the chosen token's logit directly; nothing where it is no such sum.
  std::optional<transformer::Contributions> adds, added_before;
  double largest_addition = 0;  ///< of any head, now or before
};

/// The next token by what is read now, beside what was read before the edits; without any of its parts where
/// nothing is guessed.
///
/// token is the chosen one, or nothing for the most probable one; temperature above 0.
Prediction predict_next(const transformer::Transformer& model, const Reading& now, const Reading& before,
                        std::optional<std::size_t> token, double temperature,
                        const transformer::Means& means);

}  // namespace core::experiment
