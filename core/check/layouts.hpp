#pragma once

#include <span>
#include <string_view>

namespace core::check {

/// A way in which the features of heads stand in a tensor, by the names of its axes.
struct Layout {
  const char* name;     ///< "bthd"
  const char* letters;  ///< of its axes: s sequence, h head, r row, c column, j the columns of all heads
  const char* about;    ///< "heads after tokens"
};

/// Those that a person can ask for; queries, keys, values and contexts are then read in that one alone.
std::span<const Layout> layouts();

/// The layout of that name, or nullptr.
const Layout* find_layout(std::string_view name);

/// The layout with these letters, or nullptr.
const Layout* layout_of(std::string_view letters);

}  // namespace core::check
