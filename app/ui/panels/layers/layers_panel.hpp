#pragma once

#include <cstddef>

#include "app/theme/theme.hpp"
#include "app/ui/frame.hpp"

namespace app::panels {

/// How the maps of layers × heads stand: sizes in pixels.
struct LayersTiling {
  float map = 64;        ///< a side of a map
  float gap = 8;         ///< between columns
  float labels = 100;    ///< of the layers, at the left
  float row_tokens = 0;  ///< room for the tokens of the first map's rows, or 0 for none
  float header = 24;     ///< above a map; 0 where the heads' numbers stand once above all
  float bar_gap = 6, bar = 4, foot = 10;
  float top = 0;  ///< above the first row

  float column(std::size_t head) const {
    return labels + row_tokens + static_cast<float>(head) * (map + gap);
  }
  float pitch() const { return header + map + bar_gap + bar + foot; }
  float width(std::size_t n_heads) const { return column(n_heads) - gap; }
};

/// The largest maps that a room takes, of so many numbers a side; below 60 pixels it scrolls.
LayersTiling tile_layers(const Metrics& metrics, ImVec2 room, std::size_t n_layers, std::size_t n_heads,
                         std::size_t n_numbers);

/// Every head of every layer of a whole model as a small map of its weights, with what each layer would
/// guess.
void draw_layers(const Frame& frame);

}  // namespace app::panels
