#include "core/lessons/changes.hpp"

#include <algorithm>

namespace core::lessons {

using attention::HeadTrace;
using attention::Trace;

bool changed(const Moment& m, const attention::StageMatrix Trace::*stage) {
  return largest_difference(m.before.*stage, m.trace.*stage) > 0;
}

bool changed(const Moment& m, const attention::StageMatrix HeadTrace::*stage) {
  return largest_difference(head_before(m).*stage, head_now(m).*stage) > 0;
}

const HeadTrace& head_before(const Moment& m) {
  return m.before.heads.front();
}

const HeadTrace& head_now(const Moment& m) {
  return m.trace.heads.front();
}

const arma::mat& weights_before(const Moment& m) {
  return head_before(m).weights;
}

const arma::mat& weights(const Moment& m) {
  return head_now(m).weights;
}

bool only_last_token_changed(const Moment& m) {
  if (!changed(m, &Trace::embeddings) || m.model.n_tokens() != m.start.n_tokens()) return false;
  const arma::vec rows = row_differences(m.before.embeddings, m.trace.embeddings);
  return arma::all(rows.head(rows.n_elem - 1) == 0);
}

double moved_weights(const Moment& m) {
  return largest_difference(head_before(m).weights, head_now(m).weights);
}

std::string token(const Moment& m, std::size_t i) {
  const auto& tokens = m.model.sequences.front().tokens;
  return i < tokens.size() ? "“" + tokens[i] + "”" : "nothing";
}

bool sequence_changed(const Moment& m, std::size_t s) {
  return s < std::min(m.start.sequences.size(), m.model.sequences.size()) &&
         !(m.start.sequences[s].embeddings == m.model.sequences[s].embeddings);
}

std::size_t changed_sequences(const Moment& m) {
  std::size_t count = 0;
  for (std::size_t s = 0; s < m.model.sequences.size(); ++s)
    if (sequence_changed(m, s)) ++count;
  return count;
}

}  // namespace core::lessons
