#include <array>
#include <set>

#include "core/graph/bugs.hpp"

/// Bugs of projections, of their inputs, and of the norms of queries and keys.
namespace core::bugs {
namespace {

using graph::projections_of_sides;

/// Returns the sides whose projections have a bias: "qkv".
std::string sides_with_bias(const Editing& e) {
  std::string sides;
  for (const char side : std::string_view("qkvo")) {
    constexpr std::string_view letters = "qkvo";
    if (!e.bias(static_cast<ProjectionName>(letters.find(side))).is_empty()) sides += side;
  }
  return sides;
}

/// Returns the sets of some of these sides, the whole and "qkv" first, then the smaller ones.
std::vector<std::string> sets_of(const std::string& sides) {
  std::vector<std::string> sets{sides};
  if (sides == "qkvo") sets.emplace_back("qkv");
  for (std::size_t size = 1; size < sides.size(); ++size)
    for (unsigned bits = 1; bits < 1u << sides.size(); ++bits) {
      std::string set;
      for (std::size_t i = 0; i < sides.size(); ++i)
        if (bits >> i & 1) set += sides[i];
      if (set.size() == size && set != "qkv") sets.push_back(set);
    }
  return sets;
}

std::string bias_words(const Editing& e, const BugCase& c) {
  return e.words.factor(c.numbers[0], "the bias of " + projections_of_sides(c.sides));
}
void scale_bias(Editing& e, const BugCase& c, ProjectionName part) {
  e.set_bias(part, e.bias(part) * c.numbers[0]);
}

void try_bias_counts(const BugContext& c, BugCases& to) {
  const std::string with_bias = sides_with_bias(c.now);
  if (with_bias.empty()) return;
  for (const std::string& sides : sets_of(with_bias))
    for (const double f : std::set<double>{0, 2, -1, 3, 4, static_cast<double>(c.model().n_heads)})
      if (f != 1) to.add({f}, "", sides);
}
void fit_bias_factors(const BugContext& c, BugCases& to) {
  for (const char side : sides_with_bias(c.now)) to.fit({1.1}, "", std::string(1, side));
}

constexpr std::array rows{
    Bug{.name = "projection_bias", .edit = scale_bias, .words = bias_words, .cases = try_bias_counts},
    Bug{.name = "projection_bias_factor",
        .edit = scale_bias,
        .words = bias_words,
        .cases = fit_bias_factors,
        .rank = 2},
};

}  // namespace

std::span<const Bug> projection_bugs() {
  return rows;
}

}  // namespace core::bugs
