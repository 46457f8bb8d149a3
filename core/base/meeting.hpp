#pragma once

#include <armadillo>
#include <vector>

#include "core/base/rotary.hpp"

namespace core::positions {

/// Two columns of a query or a key as a point of the plane.
struct Arrow {
  double x = 0, y = 0;
  friend bool operator==(const Arrow&, const Arrow&) = default;
};

/// An arrow turned to the left by an angle in radians.
Arrow turned(Arrow arrow, double angle);

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
Meeting meet(const Rotary& rotary, const arma::rowvec& query, const arma::rowvec& key, double query_at,
             double key_at);

}  // namespace core::positions
