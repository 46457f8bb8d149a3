#include "core/graph/order.hpp"

#include <algorithm>

namespace core::attention {
namespace {

Chain prepared(const Model& m, Stage first, Stage normed, Stage rotated) {
  const bool norms = m.additions.normalise.has_value(), turns = m.additions.positions.rotary.has_value(),
             norms_last = m.departures.misplaced.norm_after_rotation;
  Chain chain;
  chain.add(first);
  if (norms && !norms_last) chain.add(normed);
  if (turns) chain.add(rotated);
  if (norms && norms_last) chain.add(normed);
  return chain;
}

}  // namespace

bool Chain::contains(Stage stage) const {
  return std::find(begin(), end(), stage) != end();
}

Stage Chain::before(Stage stage) const {
  return *(std::find(begin(), end(), stage) - 1);
}

Chain query_chain(const Model& m) {
  return prepared(m, Stage::queries, Stage::normed_queries, Stage::rotated_queries);
}

Chain key_chain(const Model& m) {
  return prepared(m, Stage::keys, Stage::normed_keys, Stage::rotated_keys);
}

Chain score_chain(const Model& m) {
  const Misplaced& d = m.departures.misplaced;
  const bool caps = m.additions.score_cap.has_value(), biases = m.additions.has_bias();
  Chain chain;
  chain.add(Stage::scores);
  if (caps && d.cap_before_scale) chain.add(Stage::capped_scores);
  if (biases && d.bias_before_scale) chain.add(Stage::biased_scores);
  chain.add(Stage::scaled_scores);
  if (caps && !d.cap_before_scale) chain.add(Stage::capped_scores);
  if (biases && !d.bias_before_scale) chain.add(Stage::biased_scores);
  return chain;
}

positions::Rotary rotation_of(const Model& m) {
  positions::Rotary rotary = *m.additions.positions.rotary;
  if (!m.departures.misplaced.turned_backwards) return rotary;
  arma::rowvec backwards(positions::frequencies(rotary, m.d_head()));
  rotary.inverse_frequencies = arma::mat(-backwards);
  return rotary;
}

std::int64_t turned_from(const Model& m, Stage stage) {
  return stage == Stage::queries ? position_of_query(m, 0) + m.departures.misplaced.query_offset
                                 : position_of_key(m, 0);
}

}  // namespace core::attention
