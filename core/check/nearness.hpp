#pragma once

#include <vector>

#include "core/check/computed.hpp"

/// How near tensors are to what is computed exactly, where none of them is exact.
namespace core::check {

/// The squares of the errors of a tensor, added up, and of how many numbers.
struct ErrorSum {
  double squares = 0;
  std::size_t n = 0;
};

/// That of each tensor, in that of its readings that is nearest; infinite where one number is finite alone.
std::vector<ErrorSum> error_sums(const std::vector<Theirs>& theirs, const Computed& exact);

/// Whether the first errors are smaller than the second by more than chance makes them, and in no tensor
/// larger.
bool is_nearer(const std::vector<ErrorSum>& first, const std::vector<ErrorSum>& second);

/// Whether the errors of tensors that coarse arithmetic may have made of the exact model are those of another
/// scale of the scores: by more than a few roundings of that scale and than chance.
bool are_of_another_scale(const std::vector<Theirs>& theirs, const Computed& exact, const Computed& coarse);

}  // namespace core::check
