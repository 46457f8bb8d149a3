#pragma once

#include <armadillo>
#include <utility>

#include "core/graph/switches.hpp"

/// The same for what models of today add to the paper: how each mistake is made, seen and mended.
namespace core::mistakes::switches {

/// The base that most models have.
constexpr double usual_base = 10000;

template <bool Misplaced::*member>
bool misplaces(const Model& m) {
  return m.departures.misplaced.*member;
}
template <bool Misplaced::*member>
Model put_right(const Model& m) {
  return changed(m, [](Model& n) { n.departures.misplaced.*member = false; });
}
template <bool Misplaced::*member>
Model misplaced_if(const Model& m, bool counts) {
  return counts ? changed(m, [](Model& n) { n.departures.misplaced.*member = true; }) : m;
}

inline const positions::Rotary* rotary_of(const Model& m) {
  return m.additions.positions.rotary ? &*m.additions.positions.rotary : nullptr;
}
/// Whether more than one pair turns, each at a frequency of its own.
inline bool turns_pairs(const Model& m) {
  return rotary_of(m) && positions::rotated_columns(*rotary_of(m), m.d_head()) > 2;
}
template <class Change>
Model with_rotary(const Model& m, bool counts, Change change) {
  return counts ? changed(m, [&](Model& n) { change(*n.additions.positions.rotary); }) : m;
}

// What a mistake needs to be one.
inline bool has_groups(const Model& m) {
  return m.n_kv_heads.has_value();
}
inline bool has_rotary(const Model& m) {
  return rotary_of(m);
}
inline bool stretches_positions(const Model& m) {
  return rotary_of(m) && rotary_of(m)->scaling.rule != positions::ScalingRule::none;
}
inline bool has_norm(const Model& m) {
  return m.additions.normalise.has_value();
}
inline bool has_cap(const Model& m) {
  return m.additions.score_cap.has_value();
}
inline bool has_bias(const Model& m) {
  return m.additions.has_bias();
}
inline bool has_slopes(const Model& m) {
  return m.additions.positions.alibi.has_value();
}
inline bool has_sink(const Model& m) {
  return m.additions.sink.has_value();
}

// Groups of heads.
inline Model tile_groups(const Model& m) {
  return misplaced_if<&Misplaced::groups_tiled>(m, m.n_groups() > 1 && m.n_groups() < m.n_heads);
}

// Rotary positions.
inline Model leave_rotary_out(const Model& m) {
  return changed(m, [](Model& n) { n.additions.positions.rotary.reset(); });
}
inline Model pair_otherwise(const Model& m) {
  using positions::Pairs;
  return with_rotary(m, turns_pairs(m), [](positions::Rotary& r) {
    r.pairs = r.pairs == Pairs::halves ? Pairs::neighbours : Pairs::halves;
  });
}
inline Model turn_queries_alone(const Model& m) {
  return misplaced_if<&Misplaced::queries_turned_alone>(m, rotary_of(m));
}
inline Model turn_values(const Model& m) {
  const bool can = rotary_of(m) && m.d_value() == m.d_head() && !m.given.find(Stage::values);
  return misplaced_if<&Misplaced::values_turned>(m, can);
}
inline Model turn_backwards(const Model& m) {
  return misplaced_if<&Misplaced::turned_backwards>(m, rotary_of(m));
}
template <int offset>
Model shift_queries(const Model& m) {
  return rotary_of(m) ? changed(m, [](Model& n) { n.departures.misplaced.query_offset = offset; }) : m;
}
template <int offset>
bool shifts_queries(const Model& m) {
  return m.departures.misplaced.query_offset == offset;
}
inline Model take_usual_base(const Model& m) {
  return with_rotary(m, turns_pairs(m) && !rotary_of(m)->inverse_frequencies,
                     [](positions::Rotary& r) { r.base = usual_base; });
}
inline Model leave_scaling_out(const Model& m) {
  return with_rotary(m, rotary_of(m) && !rotary_of(m)->inverse_frequencies,
                     [](positions::Rotary& r) { r.scaling = {}; });
}

// Norms.
inline Model leave_norm_out(const Model& m) {
  return changed(m, [](Model& n) { n.additions.normalise.reset(); });
}
inline Model norm_after_rotation(const Model& m) {
  return misplaced_if<&Misplaced::norm_after_rotation>(m, m.additions.normalise && rotary_of(m));
}

// Scores.
inline Model leave_cap_out(const Model& m) {
  return changed(m, [](Model& n) { n.additions.score_cap.reset(); });
}
inline Model cap_before_scale(const Model& m) {
  return misplaced_if<&Misplaced::cap_before_scale>(m, m.additions.score_cap && scale_factor(m) != 1);
}
inline Model leave_position_bias_out(const Model& m) {
  return changed(m, [](Model& n) {
    n.additions.positions.alibi.reset();
    n.additions.positions.relative.reset();
  });
}
inline Model leave_score_bias_out(const Model& m) {
  return changed(m, [](Model& n) { n.additions.score_bias.clear(); });
}
inline Model bias_before_scale(const Model& m) {
  return misplaced_if<&Misplaced::bias_before_scale>(m, m.additions.has_bias() && scale_factor(m) != 1);
}
inline Model reverse_slopes(const Model& m) {
  const auto& alibi = m.additions.positions.alibi;
  if (!alibi) return m;
  arma::mat slopes(1, m.n_heads);
  for (std::size_t h = 0; h < m.n_heads; ++h)
    slopes(0, h) = positions::slope_of(*alibi, m.n_heads - 1 - h, m.n_heads);
  const bool is_the_same = arma::approx_equal(slopes, arma::mat(arma::fliplr(slopes)), "absdiff", 0);
  return is_the_same ? m
                     : changed(m, [&](Model& n) { n.additions.positions.alibi->slopes = std::move(slopes); });
}
inline Model leave_sink_out(const Model& m) {
  return changed(m, [](Model& n) { n.additions.sink.reset(); });
}

}  // namespace core::mistakes::switches
