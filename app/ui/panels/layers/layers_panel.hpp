#pragma once

#include <cstddef>
#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Where the tokens along one side of a map are written: in lanes that take turns, so that names of neighbors
/// do not overlap, or only every step-th of them.
struct TokenLabels {
  std::size_t lanes = 1;  ///< token i is in lane i mod lanes; lane 0 is next to the map
  std::size_t step = 1;   ///< 1: every token has a label
  float room = 0;         ///< from the map to the end of the last lane, in pixels; 0 for no labels
};

/// The sizes of the maps of layers × heads, in pixels.
struct LayersTiling {
  float map = 64;             ///< a side of a map
  float gap = 8;              ///< between columns
  float labels = 76;          ///< of the layers, at the left
  TokenLabels rows, columns;  ///< of the first map of each layer, and of the maps of the first layer
  float header = 19;          ///< above a map: its name and role
  float bar_gap = 5, bar = 4, foot = 2;
  float top = 0;          ///< above everything: the numbers of the heads, where maps are small
  bool is_small = false;  ///< roles are abbreviated, heads are numbered once at the top

  float column(std::size_t head) const { return labels + rows.room + static_cast<float>(head) * (map + gap); }
  float pitch() const { return header + map + bar_gap + bar + foot; }
  float first_row() const { return top + header + columns.room; }
  float width(std::size_t n_heads) const { return column(n_heads) - gap; }
  float height(std::size_t n_layers) const {
    return top + columns.room + static_cast<float>(n_layers) * pitch();
  }
};

/// Returns the tiling with the largest maps of n_tokens rows that a room takes: gaps shrink first, then maps.
/// Below a smallest size the grid scrolls.
LayersTiling tile_layers(const Metrics& metrics, ImVec2 room, std::size_t n_layers, std::size_t n_heads,
                         std::size_t n_tokens);

/// Draws the weights of one head with the names of its tokens, as large as that width allows; returns the
/// height that they take.
float draw_named_head(const Frame& frame, std::size_t layer, std::size_t head, ImVec2 at, float width);

/// Draws every head of every layer of a whole model as a small map of its weights, and the logit lens of each
/// layer.
void draw_layers(const Frame& frame);

}  // namespace app::panels
