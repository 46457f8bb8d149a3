#pragma once

#include <cstddef>
#include <vector>

#include "core/model/run.hpp"

namespace core::transformer {

/// A token that may stand at a place.
struct Guess {
  std::size_t id = 0;
  double logit = 0, probability = 0;  ///< of all tokens of the model together 1
};

/// The most probable tokens of one row of scores, the first of equal ones first; rows of the model that stand
/// for no token of its tokenizer are padding and are never among them.
std::vector<Guess> best_guesses(const arma::frowvec& logits, std::size_t n_guesses, std::size_t n_tokens);

/// The places of a text whose token is to be guessed, and the rows of a pass that guess it: behind the last
/// one, or, where tokens see both sides, those that are masked.
struct Place {
  std::size_t position, row;
};
/// Throws core::Error when a model that sees both sides has no masked token to guess.
std::vector<Place> places_to_guess(const Transformer& model, const std::vector<std::size_t>& ids);

/// The same, or why there is none, in words.
struct Places {
  std::vector<Place> all = {};
  std::string why_none = {};
};
Places find_places(const Transformer& model, const std::vector<std::size_t>& ids);

}  // namespace core::transformer
