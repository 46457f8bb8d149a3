#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tests::rules {

/// How much a class or struct offers to those outside it; what stands in types within it counts for these.
struct TypeSize {
  std::string name;
  std::size_t members = 0;    ///< public ones that hold something
  std::size_t functions = 0;  ///< public ones, overloads and constructors each
};

/// Every class and struct of C++ text, in the order in which they begin.
std::vector<TypeSize> type_sizes(std::string_view text);

}  // namespace tests::rules
