#pragma once

#include <string>

#include "core/out/display_list.hpp"

namespace core::figures {

/// A figure as a PDF file of one page, which is as large as the figure: a pixel is 1/96 of an inch.
///
/// Words are text that can be selected. Throws core::Error when it cannot be drawn.
std::string pdf_of(const DisplayList& figure);

}  // namespace core::figures
