#pragma once

#include <cstddef>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

/// A, B and their difference beside each other, a stage below the other; without an A, the ways to come to
/// one.
void draw_compare(const Frame& frame);

/// Where the three columns of the comparison stand, relative to the left edge, in pixels.
struct CompareLayout {
  float width = 0;  ///< of all
  float label_a = 0,
        label = 0;   ///< room for row names left of A's pictures, and for indices left of the others
  float column = 0;  ///< the widest picture
  int square = 0, height = 0;  ///< of a token × token picture; every picture is as high
  bool column_tokens = true;   ///< names above the columns

  /// Left edge of the labels of column 0 (A), 1 (B) or 2 (the difference).
  float left(std::size_t k) const {
    return k == 0 ? 0 : label_a + column + gap + (static_cast<float>(k) - 1) * (label + column + gap);
  }
  /// Left edge of its pictures.
  float picture(std::size_t k) const { return left(k) + (k == 0 ? label_a : label); }
  /// The width of a picture with so many columns of features.
  int features(const Metrics& metrics, std::size_t n_columns) const;

  float gap = 0;  ///< between the columns
};

/// Three pictures of n_tokens × n_tokens beside each other in that width.
CompareLayout lay_out_comparison(const Metrics& metrics, std::size_t n_tokens, float width);

/// One stage of A, of B and their difference as pictures beside each other, linked cell by cell; returns how
/// high they are.
///
/// swapped: A stands in B's place too.
float draw_compared_maps(const Frame& frame, const CompareLayout& layout, const ComparedStage& stage,
                         ImVec2 at, bool swapped);

/// The ways to come to an A: snapshots and files, and experiments that change one thing.
void draw_references(widgets::Pen& pen);

}  // namespace app::panels
