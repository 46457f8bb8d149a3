#pragma once

#include <string>

#include "app/arguments.hpp"

namespace app {

/// What stands behind "figure" on the command line, as plain text; "" where nothing stands there.
struct FigureWords {
  std::string stage, head, sequence, out, scale, colours, range;
  bool all_heads = false, strip = false, dark = false, no_numbers = false, logarithmic = false;
};

/// The figure that is asked for, or what is wrong with the words, beginning with "figure: ".
Arguments figure_arguments(Source source, core::importing::Choices choices, const FigureWords& words);

}  // namespace app
