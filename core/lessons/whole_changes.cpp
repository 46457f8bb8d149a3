#include "core/lessons/whole_changes.hpp"

#include "core/base/error.hpp"
#include "core/lessons/measures.hpp"
#include "core/model/layer_model.hpp"
#include "core/model/lens.hpp"

namespace core::lessons {
namespace {

using experiment::Place;
using experiment::Reading;

double probability(const Reading& reading, std::size_t token) {
  return transformer::probability_of(reading.logits.tail_rows(1).as_row(), token);
}

/// nullptr where the text of the step's start has no such head.
const transformer::HeadRoles* roles_before(const WholeMoment& m, const Place& head) {
  const auto& layers = m.before.layers;
  if (head.first >= layers.size() || head.second >= layers[head.first]->heads.size()) return nullptr;
  return &layers[head.first]->heads[head.second].roles;
}

}  // namespace

std::string quoted(const WholeMoment& m, std::size_t token) {
  return "“" + transformer::token_name(*m.transformer.tokenizer, token) + "”";
}

std::size_t guess_behind(const WholeMoment& m, const Reading& reading, std::size_t layer) {
  const auto guesses = experiment::guesses_after(m.transformer, reading, layer, 1);
  if (guesses.empty()) throw Error("The model guesses nothing: " + reading.no_guess);
  return guesses.front().id;
}

std::size_t last_guess(const WholeMoment& m, const Reading& reading) {
  return guess_behind(m, reading, reading.layers.size() - 1);
}

Followed followed(const WholeMoment& m) {
  const std::size_t token = last_guess(m, m.before);
  return {token, probability(m.before, token), probability(m.now, token)};
}

std::string followed_words(const WholeMoment& m) {
  const Followed token = followed(m);
  return quoted(m, token.token) + " has " + number(token.now) + " instead of " + number(token.before);
}

std::size_t settled_from(const WholeMoment& m) {
  const std::size_t last = last_guess(m, m.now);
  std::size_t layer = m.now.layers.size() - 1;
  while (layer > 0 && guess_behind(m, m.now, layer - 1) == last) --layer;
  return layer;
}

bool was_induction(const WholeMoment& m, const Place& head) {
  const auto* roles = roles_before(m, head);
  return roles && roles->induction.value_or(0) > 0.3;
}

bool was_previous(const WholeMoment& m, const Place& head) {
  const auto* roles = roles_before(m, head);
  return roles && roles->previous > 0.8;
}

std::vector<Place> off(const WholeMoment& m, bool (*did)(const WholeMoment&, const Place&)) {
  std::vector<Place> heads;
  for (const Place& head : m.now.experiment.heads_off)
    if (did(m, head)) heads.push_back(head);
  return heads;
}

std::string head_name(const Place& head) {
  return std::to_string(head.first) + "." + std::to_string(head.second);
}

}  // namespace core::lessons
