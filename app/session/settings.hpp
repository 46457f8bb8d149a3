#pragma once

#include <cstddef>

#include "core/out/tables.hpp"

namespace app {

/// What it is written as; the rows of export_kinds().
enum class ExportForm { csv, npy, npz, svg, png, pdf, session, program };

/// How something is copied: how much of a matrix, and the row of core::formats::copy_forms().
struct CopyChoice {
  core::formats::CopyExtent extent = core::formats::CopyExtent::matrix;
  std::size_t form = 0;
  friend bool operator==(const CopyChoice&, const CopyChoice&) = default;
};

/// What a person has set for every model: most of it is kept from one run to the next.
struct Settings {
  bool dark = true;
  float scale = 1;      ///< of text and lengths, 1 … 3
  float text_size = 1;  ///< of text alone, on top of that
  float left_width = 0,
        right_width = 0;  ///< dragged widths of the side regions at scale 1; 0 = as the theme says
  ExportForm export_form = ExportForm::csv;
  int export_scale = 2;                             ///< of a PNG
  bool export_dark = false, export_numbers = true;  ///< of a figure
  CopyChoice copy;                                  ///< the last one
  int copy_decimals = 3;                            ///< in forms that are for people to read
  bool reduce_motion = false;                       ///< nothing flies or flashes
  float flight_speed = 1;                           ///< of numbers that fly to their place, 0.25 … 4
  bool knows_tour = false;                          ///< the tour was taken or skipped
};

}  // namespace app
