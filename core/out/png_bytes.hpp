#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/base/rgb.hpp"

struct _cairo_surface;

namespace core::figures {

/// What has been drawn on an image of cairo's as a PNG file.
///
/// Throws core::Error when the image could not be made or drawn.
std::string png_bytes(_cairo_surface* surface);

/// A picture as a PNG file of 8 bits a channel; pixels are rows × columns, row after row, at most 32767 in
/// each direction.
std::string png_bytes(std::size_t rows, std::size_t columns, std::span<const colour::Rgb> pixels);

}  // namespace core::figures
