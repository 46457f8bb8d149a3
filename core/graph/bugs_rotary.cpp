#include <cmath>

#include "core/graph/bugs.hpp"

/// Bugs of rotary positions.
namespace core::bugs {
namespace {

constexpr std::array query_key_sides{"qk", "q", "k"};

/// Lists queries and keys, together and alone, where they are rotated.
void try_rotated_sides(const BugContext& c, BugCases& to) {
  if (!c.now.find(Stage::rotated_queries)) return;
  for (const char* sides : query_key_sides) to.add({}, "", sides);
}

/// Returns the rotation of the queries, or nullptr.
const graph::Rotate* rotation_of(const Editing& e) {
  return e.get<graph::Rotate>(Stage::rotated_queries);
}
/// Returns the base of a graph's rotation, which an earlier bug may have changed.
double base_of(const graph::Rotate& rotate) {
  const auto* variant = dynamic_cast<const graph::RotationVariant*>(&rotate);
  return variant ? variant->base : rotate.rotary.base;
}

void set_base(Editing& e, double base, ProjectionName side) {
  e.change_rotation(side, [base](graph::RotationVariant& r) {
    r.set_frequencies(base, r.n_columns, static_cast<double>(r.n_columns), r.rotary.scaling);
  });
}

std::string only_of_sides(std::string_view sides) {
  return sides == "qk" ? "" : "of the " + graph::stages_of_sides(sides) + " alone: ";
}

std::string base_words(const Editing& e, double base) {
  const graph::Rotate& rotate = *rotation_of(e);
  if (rotate.rotary.inverse_frequencies)
    return "the frequencies are those of base " + graph::digits(base) +
           " without scaling, instead of the given ones";
  const double was = base_of(rotate),
               d = static_cast<double>(positions::rotated_columns(rotate.rotary, e.model().d_head())),
               d_head = static_cast<double>(e.model().d_head()),
               d_model = static_cast<double>(e.model().d_model()),
               exponent = was > 0 && was != 1 ? std::log(base) / std::log(was) : 0;
  const auto of = [](double n) { return graph::digits(n); };
  const std::pair<double, std::string> powers[] = {
      {0.5, "½ (the base raised to the half: exponents p/d instead of 2p/d)"},
      {2, "2 (exponents 4p/d)"},
      {0.25, "¼"},
      {d / d_head, "(" + of(d) + "/" + of(d_head) + "): frequencies over the head width " + of(d_head) +
                       " instead of " + of(d)},
      {d / d_model, "(" + of(d) + "/" + of(d_model) + "): frequencies over d_model"},
      {d > 2 ? d / (d - 2) : 9e9, "(" + of(d) + "/" + of(d - 2) + ")"},
      {(d - 2) / d, "(" + of(d - 2) + "/" + of(d) + ")"}};
  std::string known;
  for (const auto& [value, words] : powers)
    if (known.empty() && value != 1 && std::abs(exponent - value) < 1e-7)
      known = " = " + of(was) + "^" + words;
  for (const double s : {2.0, 4.0, 8.0, 16.0, 32.0, 0.5, 0.25, 0.125})
    if (known.empty() && d > 2 && std::abs(base / was / std::pow(s, d / (d - 2)) - 1) < 1e-6)
      known = " = " + of(was) + " · " + of(s) + "^(d/(d−2)), as NTK scaling by " + of(s);
  return "the rotary base is " + graph::digits(base, std::max(e.words.n_digits(), 3)) + known +
         " instead of " + of(was);
}

void try_bases(const BugContext& c, BugCases& to) {
  const graph::Rotate* rotate = rotation_of(c.now);
  if (!rotate) return;
  const double own = base_of(*rotate);
  for (const char* sides : query_key_sides) {
    to.add({std::sqrt(own)}, "", sides), to.add({own * own}, "", sides);
    for (const double base : {100.0, 1000.0, 10000.0, 20000.0, 25000.0, 40000.0, 50000.0, 100000.0, 150000.0,
                              160000.0, 250000.0, 500000.0, 1e6, 5e6, 8e6, 1e7})
      if (base != own || rotate->rotary.inverse_frequencies) to.add({base}, "", sides);
  }
}
/// Fits the logarithm of the base, from many places.
void fit_base(const BugContext& c, BugCases& to) {
  constexpr int n_starts = 40;
  const graph::Rotate* rotate = rotation_of(c.now);
  if (!rotate || positions::rotated_columns(rotate->rotary, c.model().d_head()) < 4) return;
  const double least = std::log(20.0), greatest = std::log(3e7);
  for (const char* sides : query_key_sides)
    for (int k = 0; k < n_starts; ++k)
      to.fit({(least + (greatest - least) * k / (n_starts - 1)) * 1.001}, "", sides);
}

constexpr std::array rotary_rows{
    Bug{.name = "rotary_missing",
        .edit =
            [](Editing& e, const BugCase&, ProjectionName part) {
              e.leave_out(part == ProjectionName::query ? Stage::rotated_queries : Stage::rotated_keys);
            },
        .words =
            [](const Editing&, const BugCase& c) {
              return "the " + graph::stages_of_sides(c.sides) + " are not rotated";
            },
        .cases = try_rotated_sides},
    Bug{.name = "rotary:base",
        .edit = [](Editing& e, const BugCase& c, ProjectionName side) { set_base(e, c.numbers[0], side); },
        .words =
            [](const Editing& e, const BugCase& c) {
              return only_of_sides(c.sides) + "rotary positions: " + base_words(e, c.numbers[0]);
            },
        .cases = try_bases},
    Bug{.name = "rotary_base",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName side) { set_base(e, std::exp(c.numbers[0]), side); },
        .words =
            [](const Editing& e, const BugCase& c) {
              return only_of_sides(c.sides) + base_words(e, std::exp(c.numbers[0]));
            },
        .cases = fit_base,
        .rank_of = [](const BugContext&,
                      const BugCase& c) { return c.numbers[0] > 2 && c.numbers[0] < 19 ? 2 : 4; }},
};

}  // namespace

std::span<const Bug> rotary_bugs() {
  return rotary_rows;
}

}  // namespace core::bugs
