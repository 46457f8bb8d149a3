#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/colour/rgb.hpp"

namespace core::figures {

/// A picture as a PNG file of 8 bits a channel; pixels are rows × columns, row after row.
///
/// Source: W3C, Portable Network Graphics.
std::string png_bytes(std::size_t rows, std::size_t columns, std::span<const colour::Rgb> pixels);

}  // namespace core::figures
