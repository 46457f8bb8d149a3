#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "core/files/config.hpp"
#include "core/files/json.hpp"

/// What a configuration has under any of several keys; lists and objects say nothing where a number is asked.
namespace core::formats::checkpoints {

using Keys = std::initializer_list<const char*>;

/// No model has more of anything, and neither sums nor products of two such counts can wrap.
constexpr std::size_t most_counted = std::size_t{1} << 24;

/// The first of those members that is there and not null.
std::optional<Json> any_member(const Json& top, Keys keys);
/// Throws core::Error when it is no whole number from 1 to most_counted.
std::optional<std::size_t> count(const Json& top, Keys keys);
std::optional<double> number(const Json& top, Keys keys);
bool is_on(const Json& top, Keys keys);
std::string text_of(const Json& top, const char* key);

/// The fraction of a head's columns that turn in models of a type whose configuration says none. Source: the
/// configurations' defaults in transformers.
double usual_fraction(const std::string& type);

/// What it says of positions, norms, caps and windows. Throws core::Error as Json does.
ConfigPositions positions_in(const Json& top);

}  // namespace core::formats::checkpoints
