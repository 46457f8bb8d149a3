#pragma once

#include <string>

#include "core/out/display_list.hpp"

namespace core::figures {

/// A figure as SVG 1.1: words are text that can be selected, large grids of cells an embedded PNG.
///
/// The same figure gives the same bytes. Characters that XML does not know become U+FFFD.
std::string svg_text(const DisplayList& figure);

/// Text as it may stand in XML, between tags or in a quoted attribute; what is not UTF-8 becomes U+FFFD.
std::string xml_escaped(std::string_view text);

}  // namespace core::figures
