#include "core/base/meeting.hpp"

#include <cmath>

#include "core/base/turning.hpp"

namespace core::positions {

Arrow turned(Arrow arrow, double angle) {
  turn_pair(arrow.x, arrow.y, std::cos(angle), std::sin(angle));
  return arrow;
}

Meeting meet(const Rotary& rotary, const arma::rowvec& query, const arma::rowvec& key, double query_at,
             double key_at) {
  Meeting meeting;
  for (const double frequency : frequencies(rotary, query.n_elem)) {
    PairMeeting pair;
    pair.columns = columns_of(rotary, meeting.pairs.size(), query.n_elem);
    const auto [a, b] = pair.columns;
    pair.query_angle = angle_at(rotary, query_at, frequency);
    pair.key_angle = angle_at(rotary, key_at, frequency);
    pair.query = {query(a), query(b)}, pair.key = {key(a), key(b)};
    pair.turned_query = turned(pair.query, pair.query_angle);
    pair.turned_key = turned(pair.key, pair.key_angle);
    pair.share = pair.turned_query.x * pair.turned_key.x + pair.turned_query.y * pair.turned_key.y;
    meeting.score += pair.share;
    meeting.pairs.push_back(pair);
  }
  for (std::size_t k = turned_columns(rotary, query.n_elem); k < query.n_elem; ++k)
    meeting.unturned += query(k) * key(k);
  meeting.score += meeting.unturned;
  return meeting;
}

}  // namespace core::positions
