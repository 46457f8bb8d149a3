#include "core/editing/hand_built.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace core::editing::hand_built {

using attention::Model;
using attention::Projections;

namespace {

using Words = std::vector<std::string>;

/// Which word of the vocabulary, in order of first appearance, each token is.
std::vector<std::size_t> indices(const Words& tokens) {
  Words vocabulary;
  std::vector<std::size_t> found;
  for (const std::string& token : tokens) {
    const auto word = std::find(vocabulary.begin(), vocabulary.end(), token);
    found.push_back(static_cast<std::size_t>(word - vocabulary.begin()));
    if (word == vocabulary.end()) vocabulary.push_back(token);
  }
  return found;
}

/// A matrix of zeros but for an identity, times a factor, in the rows from `row` on.
arma::mat identity_at(std::size_t row, std::size_t n_rows, std::size_t size, double factor) {
  arma::mat m(n_rows, size, arma::fill::zeros);
  for (std::size_t k = 0; k < size; ++k) m(row + k, k) = factor;
  return m;
}

/// Tokens as one-hot word beside one-hot position, each n columns wide; values are the words; nothing matches
/// yet.
Model words_and_positions(const Words& tokens) {
  const std::size_t n = tokens.size();
  const std::vector<std::size_t> word = indices(tokens);
  arma::mat x(n, 2 * n, arma::fill::zeros);
  for (std::size_t i = 0; i < n; ++i) x(i, word[i]) = x(i, n + i) = 1;
  Model m;
  m.sequences = {{tokens, x}};
  Projections p;
  p.query.weight = p.key.weight = arma::mat(2 * n, n, arma::fill::zeros);
  p.value.weight = identity_at(0, 2 * n, n, 1);
  m.projections = p;
  m.scale.rule = attention::ScaleRule::none;
  return m;
}

}  // namespace

Model previous_token() {
  Model m = words_and_positions({"one", "word", "follows", "another", "word", "here"});
  const std::size_t n = m.n_tokens();
  arma::mat& query = m.projections->query.weight.edit();
  for (std::size_t i = 1; i < n; ++i) query(n + i, i - 1) = match;  // position i asks for position i − 1
  m.projections->key.weight = identity_at(n, 2 * n, n, 1);
  return m;
}

Model first_token() {
  Model m = words_and_positions({"Once", "upon", "a", "time", "there", "was"});
  const std::size_t n = m.n_tokens();
  m.projections->query.weight.edit().col(0).tail(n).fill(match);  // every position asks for position 0
  m.projections->key.weight = identity_at(n, 2 * n, n, 1);
  return m;
}

Model same_token() {
  Model m = words_and_positions({"a", "rose", "is", "a", "rose", "is"});
  const std::size_t n = m.n_tokens();
  m.projections->query.weight = identity_at(0, 2 * n, n, match);
  m.projections->key.weight = identity_at(0, 2 * n, n, 1);
  return m;
}

Model average() {
  return words_and_positions({"all", "words", "count", "the", "same", "here"});
}

Model induction() {
  const Words tokens{"the", "cat", "sat", "and", "the", "cat", "sat"};
  const std::size_t n = tokens.size();
  const std::vector<std::size_t> word = indices(tokens);
  Model m = words_and_positions(tokens);
  arma::mat& x = m.sequences.front().embeddings.edit();
  x.tail_cols(n).zeros();
  for (std::size_t i = 1; i < n; ++i) x(i, n + word[i - 1]) = 1;  // the word before, instead of the position
  m.projections->query.weight = identity_at(0, 2 * n, n, match);  // asks: who comes after my word?
  m.projections->key.weight = identity_at(n, 2 * n, n, 1);
  return m;
}

}  // namespace core::editing::hand_built
