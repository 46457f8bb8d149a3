#include "core/base/palette.hpp"

namespace core::colour {
namespace {

Palette dark_palette() {
  Palette p;
  p.dark = true;
  p.ground.back = rgb(0x121417), p.ground.panel = rgb(0x191c20), p.ground.raised = rgb(0x1f2328);
  p.control.rest = rgb(0x262b31), p.control.hovered = rgb(0x30363d), p.control.active = rgb(0x3a414a);
  p.line = rgb(0x2a2f35), p.strong_line = rgb(0x3a4149);
  p.text = rgb(0xdfe3e7), p.dim = rgb(0x99a1aa), p.faint = rgb(0x747d87);
  p.accent = rgb(0x8fb4d6), p.selection = rgb(0xffffff), p.selection_inner = rgb(0x000000),
  p.operand = rgb(0xff82b8);
  p.status.warning = rgb(0xf0c24b), p.status.bad = rgb(0xff7a6e), p.status.good = rgb(0x8fcf9a);
  p.hatch.lines = rgb(0x4a515a), p.hatch.ground = rgb(0x191c20);
  p.heads = {rgb(0xe8a33d), rgb(0x5ab4ea), rgb(0x35c293), rgb(0xe9dc5a), rgb(0xe3714a), rgb(0xd487b8),
             rgb(0x9f92f3), rgb(0xb3bac2), rgb(0x546c0c), rgb(0xe4006c), rgb(0xa824a8), rgb(0x90fc78),
             rgb(0x846048), rgb(0x246c6c), rgb(0xd8f0b4), rgb(0x3cf0fc), rgb(0x0c9000), rgb(0xfcc09c),
             rgb(0x546090), rgb(0xa83c54), rgb(0x3060e4), rgb(0xfc90fc), rgb(0xcc0c30), rgb(0x849c6c),
             rgb(0x905400), rgb(0x00fca8), rgb(0x84a800), rgb(0x00783c), rgb(0xe454a8), rgb(0xfc8490),
             rgb(0x904890), rgb(0x84546c)};
  return p;
}

Palette light_palette() {
  Palette p;
  p.dark = false;
  p.ground.back = rgb(0xffffff), p.ground.panel = rgb(0xf4f5f7), p.ground.raised = rgb(0xebedf0);
  p.control.rest = rgb(0xe4e7eb), p.control.hovered = rgb(0xd8dce2), p.control.active = rgb(0xc9cfd7);
  p.line = rgb(0xdadee3), p.strong_line = rgb(0xc0c6ce);
  p.text = rgb(0x1c2127), p.dim = rgb(0x5a636e), p.faint = rgb(0x767f89);
  p.accent = rgb(0x2f6699), p.selection = rgb(0x0a0d10), p.selection_inner = rgb(0xffffff),
  p.operand = rgb(0xc2136b);
  p.status.warning = rgb(0x8a6100), p.status.bad = rgb(0xb3261e), p.status.good = rgb(0x256b35);
  p.hatch.lines = rgb(0xb4bac2), p.hatch.ground = rgb(0xf4f5f7);
  p.heads = {rgb(0xb06a00), rgb(0x1f78b4), rgb(0x0f8f66), rgb(0x8a7a00), rgb(0xc04a1c), rgb(0xb0467f),
             rgb(0x6a58c8), rgb(0x5f6873), rgb(0x480c00), rgb(0x3c9c0c), rgb(0x183000), rgb(0x241848),
             rgb(0xe40c54), rgb(0xc0846c), rgb(0xe460d8), rgb(0x0c0078), rgb(0x189ca8), rgb(0xa884c0),
             rgb(0x002430), rgb(0x849060), rgb(0x780078), rgb(0xfc3c9c), rgb(0x246000), rgb(0x900c30),
             rgb(0x6c4818), rgb(0x3c90fc), rgb(0x540030), rgb(0xe46c78), rgb(0x005448), rgb(0x844854),
             rgb(0x789c3c), rgb(0x3c3024)};
  return p;
}

}  // namespace

const Palette& palette(bool dark) {
  static const Palette dark_one = dark_palette(), light_one = light_palette();
  return dark ? dark_one : light_one;
}

}  // namespace core::colour
