#pragma once

#include <span>
#include <string>

#include "core/files/tensor.hpp"

/// What keeping numbers as a type of tensors does to them; integers and bools count as exact.
namespace core::check {

/// Whether a number that a type does not hold may have become that in it: infinite, in types of eight bits
/// the largest or NaN as well. Source: PyTorch's conversions, of which older ones give NaN.
bool stands_for_more(formats::Dtype dtype, double kept, double number);

/// How far keeping a number as a type may take it, 0 for exact ones.
double storing_error(formats::Dtype dtype, double number);

/// The coarsest of bfloat16, float16, float32 and float64 that keeps all of the numbers as they are.
formats::Dtype coarsest_type(std::span<const double> numbers);

/// Whether numbers of float64 are kept as they are.
bool is_exact(formats::Dtype dtype);

/// "float16", "float8_e5m2": the type that takes digits away, or "".
std::string rounding_words(formats::Dtype dtype);

}  // namespace core::check
