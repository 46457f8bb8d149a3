#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The facts of every head of the shown sequence.
const std::vector<core::attention::HeadFacts>& head_facts(const Frame& frame);

/// "0.47 bit", "0.87", or "–" for a head without that figure; a mean weight has digits enough to tell an even
/// share of so many tokens from half as much.
std::string figure_text(core::attention::HeadFigure figure, const std::optional<double>& value,
                        std::size_t n_tokens);

/// The largest that a figure can be.
double figure_top(const Frame& frame, core::attention::HeadFigure figure);

/// What a figure is, with its ends: "mean entropy of the rows of weights, 0 to 4 bit".
std::string figure_words(const Frame& frame, core::attention::HeadFigure figure);

/// The heads in the order of the view of heads.
std::vector<std::size_t> sorted_heads(const Frame& frame);

/// Where the pictures of heads stand: equal tiles, names beside the first column and above the first row
/// alone.
struct Tiling {
  std::size_t columns = 1;
  int width = 0, height_of_one = 0;  ///< of one picture, in pixels
  bool names = true;                 ///< tokens and not only their indices
  float labels = 0, head = 0;        ///< room left of the first column and above the first row
  float gap = 0, row_gap = 0;        ///< between columns, and between rows
  float foot = 0;                    ///< below every picture
  float height = 0;                  ///< of all rows

  /// Top left of a picture, relative to all of them.
  ImVec2 picture(std::size_t place) const;
};

/// As large as all of them can be seen; where they would become too small for that, as small as they may be,
/// and it scrolls.
Tiling tile_heads(const Frame& frame, const core::attention::StageInfo& stage, std::size_t n_pictures,
                  ImVec2 room);

/// One stage of all heads at once, as small multiples.
void draw_heads(const Frame& frame);

}  // namespace app::panels
