#include <algorithm>
#include <array>
#include <cmath>
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

// Factors of stages.

constexpr std::array scaled_stages{
    Stage::queries,         Stage::keys,         Stage::values,  Stage::normed_queries, Stage::normed_keys,
    Stage::rotated_queries, Stage::rotated_keys, Stage::weights, Stage::contexts,       Stage::output};

Stage stage_named(std::string_view name) {
  return std::ranges::find(attention::stages(), name,
                           [](const auto& row) { return std::string_view(row.name); })
      ->stage;
}

void fit_stage_factors(const BugContext& c, BugCases& to) {
  for (const Stage stage : scaled_stages)
    if (c.now.find(stage)) to.fit({1.1}, attention::info(stage).name);
}

/// Returns the heads that share one factor, while the others have none; none if that is not so.
std::vector<std::size_t> few_scaled_heads(const Editing& e, const Numbers& factors) {
  std::vector<std::size_t> heads;
  for (std::size_t h = 0; h < factors.size(); ++h)
    if (std::abs(factors[h] - 1) > 2 * e.words.tolerance()) heads.push_back(h);
  const auto is_alike = [&](std::size_t h) {
    return std::abs(factors[h] - factors[heads[0]]) < 3 * e.words.tolerance();
  };
  return heads.size() < factors.size() && std::ranges::all_of(heads, is_alike) ? heads
                                                                               : std::vector<std::size_t>();
}

void fit_head_factors(const BugContext& c, BugCases& to) {
  for (const Stage stage : scaled_stages) {
    const graph::Node* node = c.now.find(stage);
    const std::size_t n = node ? graph::n_matrices(*node, c.model()) : 0;
    if (stage != Stage::output && n > 1) to.fit(Numbers(n, 1.1), attention::info(stage).name);
  }
}

std::string head_factor_words(const Editing& e, const BugCase& c) {
  const auto heads = few_scaled_heads(e, c.numbers);
  const std::string name = graph::words_of(stage_named(c.form));
  if (heads.empty()) return name + " are multiplied by a factor for each head: " + e.words.list(c.numbers);
  return name + (heads.size() > 1 ? " of heads " : " of head ") + graph::list_of(heads) +
         " are multiplied by " + e.words.number(c.numbers[heads[0]]);
}

/// Whether numbers differ from head to head: another bug has the case where they do not.
bool are_uneven(const BugContext&, const BugCase& c) {
  const auto [least, greatest] = std::ranges::minmax(c.numbers);
  return greatest - least > 1e-5 * std::max(std::abs(least), std::abs(greatest));
}

constexpr std::array projection_rows{
    Bug{.name = "projection_bias", .edit = scale_bias, .words = bias_words, .cases = try_bias_counts},
    Bug{.name = "projection_bias_factor",
        .edit = scale_bias,
        .words = bias_words,
        .cases = fit_bias_factors,
        .rank = 2},
    Bug{.name = "stage_factor",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { e.scale(stage_named(c.form), c.numbers[0]); },
        .words =
            [](const Editing& e, const BugCase& c) {
              const Stage stage = stage_named(c.form);
              return (stage == Stage::output ? "the output is" : graph::words_of(stage) + " are") +
                     (" multiplied by " + e.words.number(c.numbers[0]));
            },
        .cases = fit_stage_factors,
        .rank_of =
            [](const BugContext& context, const BugCase& c) {
              return context.now.words.rank_of_factor(c.numbers[0]) + (stage_named(c.form) != context.target);
            },
        .is_last = true},
    Bug{.name = "stage_factor_by_head",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              e.wrap(stage_named(c.form), [factors = c.numbers](const graph::OperationInputs& in) {
                return arma::mat(in[0] * factors[in.head]);
              });
            },
        .words = head_factor_words,
        .cases = fit_head_factors,
        .rank_of =
            [](const BugContext& context, const BugCase& c) {
              return (few_scaled_heads(context.now, c.numbers).empty() ? 3 : 2) +
                     (stage_named(c.form) != context.target);
            },
        .is_last = true,
        .is_plausible = are_uneven},
};

}  // namespace

std::span<const Bug> projection_bugs() {
  return projection_rows;
}

}  // namespace core::bugs
