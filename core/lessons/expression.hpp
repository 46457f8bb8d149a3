#pragma once

#include <armadillo>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The small language of lessons: conditions, and texts with {expressions}.
///
///     not causal and weights[0, 0] < 1
///     The queries moved by at most {moved(queries)}.
///
/// A value is a number (0 is false), a text or a matrix. Names are those of measures.cpp; `before.` asks for
/// the value at the start of a step, `weights@1` for head 1. Operators: or, and, not, == != < <= > >=, + - &
/// (joins texts), * /; comparisons and arithmetic of matrices go cell by cell. m[i, j] is a cell, v[i] an
/// element; -1 is the last; what is not there is NaN.
namespace core::lessons {

using Value = std::variant<double, std::string, arma::mat>;

/// A name in an expression and how it is asked for.
struct Query {
  std::string_view name;
  bool before = false;              ///< at the start of the step
  std::optional<std::size_t> head;  ///< else the first
  std::vector<Value> arguments;     ///< of a function of the lesson's subject
};

/// Answers names; nothing where it does not know one.
using Names = std::function<std::optional<Value>(const Query&)>;

/// Returns whether the expression holds. Throws core::Error, which quotes it, where it cannot be read.
bool holds(std::string_view expression, const Names& names);

/// Returns the text with the values of its {expressions}, numbers with at most four decimals. Throws as
/// holds().
std::string filled(std::string_view text, const Names& names);

}  // namespace core::lessons
