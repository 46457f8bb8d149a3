#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tests::rules {

/// The lines of C++ text that declare a static or thread_local variable that can change, in a function, in a
/// class or at namespace scope: line numbers from 1. Static functions and constants are free.
std::vector<std::size_t> mutable_statics(std::string_view text);

}  // namespace tests::rules
