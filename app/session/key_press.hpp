#pragma once

namespace app {

/// Keys that the program handles, independent of the window system's names.
enum class Key {
  unknown,
  a,
  b,
  c,
  d,
  e,
  f,
  g,
  h,
  i,
  j,
  k,
  l,
  m,
  n,
  o,
  p,
  q,
  r,
  s,
  t,
  u,
  v,
  w,
  x,
  y,
  z,
  digit_0,
  digit_1,
  digit_2,
  digit_3,
  digit_4,
  digit_5,
  digit_6,
  digit_7,
  digit_8,
  digit_9,
  f1,
  f2,
  f3,
  f4,
  f5,
  f6,
  f7,
  f8,
  f9,
  f10,
  f11,
  f12,
  escape,
  enter,
  tab,
  delete_,
  backspace,
  left,
  right,
  up,
  down,
  home,
  end,
  page_up,
  page_down,
  bracket_left,
  bracket_right,
  question,
  slash,
  space,
  plus,
  minus
};

/// One key going down, with the modifiers that were held.
struct KeyPress {
  Key key = Key::unknown;
  bool ctrl = false, shift = false, alt = false;
  friend bool operator==(const KeyPress&, const KeyPress&) = default;
};

}  // namespace app
