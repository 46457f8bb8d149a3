#pragma once

#include <armadillo>
#include <cmath>
#include <vector>

#include "core/positions/rotary.hpp"

namespace core::positions {

/// Two columns of a query or a key as a point of the plane.
struct Arrow {
  double x = 0, y = 0;
  friend bool operator==(const Arrow&, const Arrow&) = default;
};

/// An arrow turned to the left by an angle in radians.
inline Arrow turned(Arrow arrow, double angle) {
  const double c = std::cos(angle), s = std::sin(angle);
  return {arrow.x * c - arrow.y * s, arrow.x * s + arrow.y * c};
}

/// One pair of columns of a query and a key, before and after both were turned.
struct PairMeeting {
  PairColumns columns;
  double query_angle = 0, key_angle = 0;  ///< radians by which they were turned
  Arrow query, key, turned_query, turned_key;
  double share = 0;  ///< of the pair in the score
};

/// A query and a key at two positions, pair by pair.
struct Meeting {
  std::vector<PairMeeting> pairs;
  double unturned = 0;  ///< what the columns that do not turn add to the score
  double score = 0;     ///< before scaling
};

/// How a query meets a key, d_head numbers each, at positions that may lie between two tokens.
inline Meeting meet(const Rotary& rotary, const arma::rowvec& query, const arma::rowvec& key, double query_at,
                    double key_at) {
  Meeting meeting;
  for (const double frequency : frequencies(rotary, query.n_elem)) {
    PairMeeting pair;
    pair.columns = columns_of(rotary, meeting.pairs.size(), query.n_elem);
    const auto [a, b] = pair.columns;
    pair.query_angle = scaled_position(rotary, query_at) * frequency;
    pair.key_angle = scaled_position(rotary, key_at) * frequency;
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
