#pragma once

#include "core/base/rotary.hpp"

namespace core::positions {

/// Radians by which a pair of that frequency is turned at a position, which may lie between two tokens.
inline double angle_at(const Rotary& rotary, double position, double frequency) {
  return scaled_position(rotary, position) * frequency;
}

/// The two numbers of a pair turned to the left. Source: Su et al. 2021, equation 13.
template <class Number>
void turn_pair(Number& first, Number& second, Number cosine, Number sine) {
  const Number x = first, y = second;
  first = x * cosine - y * sine;
  second = x * sine + y * cosine;
}

}  // namespace core::positions
