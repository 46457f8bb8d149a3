#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <optional>
#include <set>

#include "core/base/text.hpp"
#include "core/graph/bugs.hpp"

/// Bugs of rotary positions.
namespace core::bugs {
namespace {

using graph::digits;
using graph::RotationVariant;
using graph::shift_words;
using graph::stages_of_sides;
using std::to_string;

Stage rotated_stage(ProjectionName part) {
  return part == ProjectionName::query ? Stage::rotated_queries : Stage::rotated_keys;
}

/// Returns the rotation as it is now, nothing where there is none.
std::optional<RotationVariant> rotation_of(Editing e, ProjectionName part) {
  std::optional<RotationVariant> found;
  e.change_rotation(part, [&](RotationVariant& own) { found.emplace(own); });
  return found;
}
bool rotates(const Editing& e) {
  return e.find(Stage::rotated_queries) && e.find(Stage::rotated_keys);
}
positions::Scaling scaling_of(const Editing& e) {
  const auto rotary = rotary_of(e.model());
  return rotary ? rotary->scaling : positions::Scaling();
}

// RotationEdit of a rotation. A case may combine two: form "other_pairs+base", with a number for each.

struct RotationEdit {
  const Editing& before;
  const RotationVariant& own;  ///< before the changes
  std::vector<std::pair<std::string_view, double>> all = {};

  std::optional<double> number(std::string_view form) const {
    const auto found = std::ranges::find(all, form, &std::pair<std::string_view, double>::first);
    return found == all.end() ? std::nullopt : std::optional(found->second);
  }
  /// Returns how many columns are rotated after the changes.
  std::size_t n_columns() const {
    return static_cast<std::size_t>(number("columns").value_or(static_cast<double>(own.n_columns)));
  }
};

RotationEdit changes_of(const Editing& before, const RotationVariant& own, const BugCase& c) {
  RotationEdit changes{before, own};
  std::size_t begin = 0;
  for (const double number : c.numbers) {
    const std::size_t end = std::min(c.form.find('+', begin), c.form.size());
    changes.all.emplace_back(std::string_view(c.form).substr(begin, end - begin), number);
    begin = end + 1;
  }
  return changes;
}

struct RotationChange {
  const char* form;
  std::string (*words)(const RotationEdit&, double x);
  void (*apply)(RotationVariant&, const RotationEdit&, double x);
};

/// Sets frequencies by base, number of columns and exponents, those that change and those that stay.
void set_frequencies(RotationVariant& r, const RotationEdit& c, double) {
  const std::size_t n = c.n_columns();
  r.set_frequencies(c.number("base").value_or(c.own.base), n,
                    c.number("exponents").value_or(static_cast<double>(n)), scaling_of(c.before));
}

std::string exponents_words(const RotationEdit& c, double over) {
  const Model& m = c.before.model();
  const double n = static_cast<double>(c.n_columns());
  return "the frequencies are of exponents 2p/" + digits(over) + " (" +
         (over == static_cast<double>(m.d_head())    ? "the head width"
          : over == static_cast<double>(m.d_model()) ? "d_model"
                                                     : "the part") +
         ") instead of 2p/" + digits(n) + " (as base " + digits(std::pow(c.own.base, n / over)) + ")";
}

std::string columns_words(const RotationEdit& c, double n) {
  const bool are_all = n == static_cast<double>(c.before.model().d_head());
  return (are_all ? "all " : "") + digits(n) + " columns are rotated instead of " +
         to_string(c.own.n_columns) + (are_all ? " (the partial rotation is ignored)" : "");
}

/// Describes a base, as a rule if it has one.
std::string base_words(const Editing& e, const RotationVariant& own, double base) {
  if (own.rotary.inverse_frequencies)
    return "the frequencies are those of base " + digits(base) +
           " without scaling, instead of the given ones";
  const double was = own.base, n = static_cast<double>(own.n_columns),
               width = static_cast<double>(e.model().d_head()),
               d_model = static_cast<double>(e.model().d_model()),
               exponent = was > 0 && was != 1 ? std::log(base) / std::log(was) : 0;
  const auto part = [&](double of) { return "(" + digits(n) + "/" + digits(of) + ")"; };
  const std::pair<double, std::string> powers[] = {
      {0.5, "½ (the base raised to the half: exponents p/d instead of 2p/d)"},
      {2, "2 (exponents 4p/d)"},
      {0.25, "¼"},
      {n / width,
       part(width) + ": frequencies over the head width " + digits(width) + " instead of " + digits(n)},
      {n / d_model, part(d_model) + ": frequencies over d_model"},
      {n > 2 ? n / (n - 2) : 9e9, part(n - 2)},
      {(n - 2) / n, "(" + digits(n - 2) + "/" + digits(n) + ")"}};
  std::string known;
  for (const auto& [value, words] : powers)
    if (known.empty() && value != 1 && std::abs(exponent - value) < 1e-7)
      known = " = " + digits(was) + "^" + words;
  for (const double s : {2.0, 4.0, 8.0, 16.0, 32.0, 0.5, 0.25, 0.125})
    if (known.empty() && n > 2 && std::abs(base / was / std::pow(s, n / (n - 2)) - 1) < 1e-6)
      known = " = " + digits(was) + " · " + digits(s) + "^(d/(d−2)), as NTK scaling by " + digits(s);
  return "the rotary base is " + digits(base, std::max(e.words.n_digits(), 3)) + known + " instead of " +
         digits(was);
}

/// Sets the frequencies of a changed scaling rule.
template <class Change>
void change_scaling(RotationVariant& r, const RotationEdit& c, Change change) {
  positions::Scaling scaling = scaling_of(c.before);
  change(scaling);
  r.set_frequencies(r.base, r.n_columns, static_cast<double>(r.n_columns), scaling);
}

/// Sets each frequency by its pair, the frequencies before, and the base.
template <class Frequency>
void set_each_frequency(RotationVariant& r, Frequency frequency) {
  const std::vector<double> own = r.frequencies;
  for (std::size_t p = 0; p < own.size(); ++p) r.frequencies[p] = frequency(own, static_cast<double>(p), r);
}
double width_of(const RotationVariant& r) {
  return static_cast<double>(r.n_columns);
}

template <RotationVariant::Form form>
void set_form(RotationVariant& r, const RotationEdit&, double) {
  r.form = form;
}
/// Rounds a part of the angles; the number of digits says to what.
template <RotationVariant::Coarse part>
void round_part(RotationVariant& r, const RotationEdit&, double n_digits) {
  r.coarse = part;
  r.coarse_precision = n_digits == 8 ? Precision::bfloat16 : Precision::float16;
}
std::string rounded_words(const char* part, double n_digits) {
  return std::string(part) + " are rounded to " + (n_digits == 8 ? "bfloat16" : "float16");
}
constexpr const char* scaling_has = "the scaling of the frequencies has ";

/// In the order of their words.
constexpr std::array rotation_changes{
    RotationChange{"other_pairs",
                   [](const RotationEdit& c, double) {
                     return std::string(
                         c.own.pair_rule == RotationVariant::PairRule::halves
                             ? "pairs are neighbors (2p, 2p + 1) instead of halves"
                             : "pairs are halves (p, p + d/2) instead of neighbors (2p, 2p + 1)");
                   },
                   [](RotationVariant& r, const RotationEdit&, double) {
                     r.pair_rule = r.pair_rule == RotationVariant::PairRule::halves
                                       ? RotationVariant::PairRule::neighbors
                                       : RotationVariant::PairRule::halves;
                   }},
    RotationChange{"halves_of_head",
                   [](const RotationEdit& c, double) {
                     return "pairs are halves of the whole head (p, p + " +
                            to_string(c.before.model().d_head() / 2) + ") though only " +
                            to_string(c.own.n_columns) + " columns are rotated";
                   },
                   [](RotationVariant& r, const RotationEdit&, double) {
                     r.pair_rule = RotationVariant::PairRule::halves_of_head;
                   }},
    RotationChange{"exponents", exponents_words, set_frequencies},
    RotationChange{"columns", columns_words, set_frequencies},
    RotationChange{"base",
                   [](const RotationEdit& c, double base) { return base_words(c.before, c.own, base); },
                   set_frequencies},
    RotationChange{"scaling_factor",
                   [](const RotationEdit&, double x) { return scaling_has + ("factor " + digits(x)); },
                   [](RotationVariant& r, const RotationEdit& c, double x) {
                     change_scaling(r, c, [x](positions::Scaling& s) { s.factor = x; });
                   }},
    RotationChange{"scaling_length_times",
                   [](const RotationEdit&, double x) {
                     return scaling_has + std::string(x == 2      ? "twice the original length"
                                                      : x == 0.5  ? "half the original length"
                                                      : x == 0.25 ? "a quarter of the original length"
                                                                  : "4 times the original length");
                   },
                   [](RotationVariant& r, const RotationEdit& c, double x) {
                     change_scaling(r, c, [x](positions::Scaling& s) { s.original *= x; });
                   }},
    RotationChange{
        "scaling_length",
        [](const RotationEdit&, double x) { return scaling_has + ("the original length " + digits(x)); },
        [](RotationVariant& r, const RotationEdit& c, double x) {
          change_scaling(r, c, [x](positions::Scaling& s) { s.original = x; });
        }},
    RotationChange{"scaling_factors_exchanged",
                   [](const RotationEdit&, double) {
                     return scaling_has + std::string("its low and high factors exchanged");
                   },
                   [](RotationVariant& r, const RotationEdit& c, double) {
                     change_scaling(r, c, [](positions::Scaling& s) { std::swap(s.low, s.high); });
                   }},
    RotationChange{"scaling_low_as_high",
                   [](const RotationEdit&, double) {
                     return scaling_has + std::string("the low factor of the high one");
                   },
                   [](RotationVariant& r, const RotationEdit& c, double) {
                     change_scaling(r, c, [](positions::Scaling& s) { s.low = s.high; });
                   }},
    RotationChange{"scaling_high_as_low",
                   [](const RotationEdit&, double) {
                     return scaling_has + std::string("the high factor of the low one");
                   },
                   [](RotationVariant& r, const RotationEdit& c, double) {
                     change_scaling(r, c, [](positions::Scaling& s) { s.high = s.low; });
                   }},
    RotationChange{"scaling_factors_1",
                   [](const RotationEdit&, double) { return scaling_has + std::string("both factors 1"); },
                   [](RotationVariant& r, const RotationEdit& c, double) {
                     change_scaling(r, c, [](positions::Scaling& s) { s.low = s.high = 1; });
                   }},
    RotationChange{
        "backwards",
        [](const RotationEdit&, double) { return std::string("angles are negated (rotated backwards)"); },
        [](RotationVariant& r, const RotationEdit&, double) { r.sign = -1; }},
    RotationChange{"over_heads",
                   [](const RotationEdit&, double) {
                     return std::string("the rotation runs over the axis of heads instead of tokens");
                   },
                   set_form<RotationVariant::Form::over_heads>},
    RotationChange{"no_minus",
                   [](const RotationEdit&, double) {
                     return std::string("the half that is rotated has lost its minus");
                   },
                   set_form<RotationVariant::Form::no_minus>},
    RotationChange{"in_place",
                   [](const RotationEdit&, double) {
                     return std::string("the rotated first half is used for the second (written in place)");
                   },
                   set_form<RotationVariant::Form::in_place>},
    RotationChange{"other_table",
                   [](const RotationEdit&, double) {
                     return std::string("the table of cosines is laid out for the other pairs");
                   },
                   set_form<RotationVariant::Form::other_table>},
    RotationChange{"exchanged",
                   [](const RotationEdit&, double) { return std::string("cosine and sine are exchanged"); },
                   set_form<RotationVariant::Form::exchanged>},
    RotationChange{"rounded_angles", [](const RotationEdit&, double x) { return rounded_words("angles", x); },
                   round_part<RotationVariant::Coarse::angles>},
    RotationChange{"rounded_positions",
                   [](const RotationEdit&, double x) { return rounded_words("positions", x); },
                   round_part<RotationVariant::Coarse::positions>},
    RotationChange{"rounded_frequencies",
                   [](const RotationEdit&, double x) { return rounded_words("frequencies", x); },
                   round_part<RotationVariant::Coarse::frequencies>},
    RotationChange{"rounded_cosines",
                   [](const RotationEdit&, double x) { return rounded_words("cosines and sines", x); },
                   round_part<RotationVariant::Coarse::cosines_and_sines>},
    RotationChange{"last_columns",
                   [](const RotationEdit& c, double) {
                     return "the last " + to_string(c.own.n_columns) +
                            " columns are rotated instead of the first";
                   },
                   [](RotationVariant& r, const RotationEdit& c, double) {
                     r.first_column = c.before.model().d_head() - r.n_columns;
                   }},
    RotationChange{
        "frequencies_reversed",
        [](const RotationEdit&, double) { return std::string("frequencies run in reverse"); },
        [](RotationVariant& r, const RotationEdit&, double) { std::ranges::reverse(r.frequencies); }},
    RotationChange{"frequencies_from_second",
                   [](const RotationEdit&, double) {
                     return std::string("frequencies begin with the second (exponents 2(p + 1)/d)");
                   },
                   [](RotationVariant& r, const RotationEdit&, double) {
                     set_each_frequency(r, [](const auto&, double p, const RotationVariant& of) {
                       return std::pow(of.base, -2 * (p + 1) / width_of(of));
                     });
                   }},
    RotationChange{"frequencies_to_base",
                   [](const RotationEdit&, double) { return std::string("exponents run to 1 (linspace)"); },
                   [](RotationVariant& r, const RotationEdit&, double) {
                     set_each_frequency(r, [](const auto& own, double p, const RotationVariant& of) {
                       return std::pow(of.base,
                                       own.size() > 1 ? -p / static_cast<double>(own.size() - 1) : 0);
                     });
                   }},
    RotationChange{
        "frequencies_of_columns",
        [](const RotationEdit&, double) { return std::string("exponents are p/d instead of 2p/d"); },
        [](RotationVariant& r, const RotationEdit&, double) {
          set_each_frequency(r, [](const auto&, double p, const RotationVariant& of) {
            return std::pow(of.base, -p / width_of(of));
          });
        }},
    RotationChange{
        "frequencies_times_2pi",
        [](const RotationEdit&, double) { return std::string("frequencies are multiplied by 2π"); },
        [](RotationVariant& r, const RotationEdit&, double) {
          for (double& f : r.frequencies) f *= 2 * arma::datum::pi;
        }},
    RotationChange{
        "frequencies_unscaled",
        [](const RotationEdit&, double) { return std::string("the scaling of the frequencies is missing"); },
        [](RotationVariant& r, const RotationEdit&, double) {
          set_each_frequency(r, [](const auto&, double p, const RotationVariant& of) {
            return std::pow(of.base, -2 * p / width_of(of));
          });
        }},
    RotationChange{"frequencies_linear",
                   [](const RotationEdit&, double) {
                     return std::string("all frequencies are divided by the scaling factor");
                   },
                   [](RotationVariant& r, const RotationEdit& c, double) {
                     set_each_frequency(
                         r, [factor = scaling_of(c.before).factor](const auto&, double p, const auto& of) {
                           return std::pow(of.base, -2 * p / width_of(of)) / factor;
                         });
                   }},
    RotationChange{"frequencies_equal",
                   [](const RotationEdit&, double) { return std::string("all pairs have one frequency"); },
                   [](RotationVariant& r, const RotationEdit&, double) {
                     std::ranges::fill(r.frequencies, std::vector(r.frequencies)[0]);
                   }},
};

std::string sides_words(const BugCase& c) {
  return c.sides == "qk" ? "" : "of the " + stages_of_sides(c.sides) + " alone: ";
}

void edit_rotation(Editing& e, const BugCase& c, ProjectionName part) {
  const auto own = rotation_of(e, part);
  if (!own) return;
  const Editing before = e;
  const RotationEdit changes = changes_of(before, *own, c);
  e.change_rotation(part, [&](RotationVariant& r) {
    for (const RotationChange& change : rotation_changes)
      if (const auto x = changes.number(change.form)) change.apply(r, changes, *x);
  });
}
std::string rotation_words(const Editing& before, const BugCase& c) {
  const auto own =
      rotation_of(before, c.sides.starts_with('q') ? ProjectionName::query : ProjectionName::key);
  const RotationEdit changes = changes_of(before, *own, c);
  std::vector<std::string> phrases;
  for (const RotationChange& change : rotation_changes)
    if (const auto x = changes.number(change.form)) phrases.push_back(change.words(changes, *x));
  return sides_words(c) + "rotary positions: " + text::joined(phrases, "; ");
}

/// Change to try, alone and, of the first five kinds, with one of another kind.
struct Trial {
  std::string form;
  Numbers numbers;
  bool has(std::string_view change) const { return form.find(change) != form.npos; }
};

std::vector<std::vector<Trial>> trials_of(const Editing& e, const RotationVariant& own) {
  const Model& m = e.model();
  const double d = static_cast<double>(m.d_head()), n = static_cast<double>(own.n_columns),
               d_model = static_cast<double>(m.d_model());
  const bool is_partial = n != d, is_listed = own.rotary.inverse_frequencies.has_value();
  std::vector<std::vector<Trial>> kinds(5);
  const auto add = [&](std::size_t kind, std::string form, double x = 0) {
    kinds[kind].push_back({std::move(form), {x}});
  };
  add(0, "other_pairs");
  if (own.pair_rule == RotationVariant::PairRule::halves && is_partial) add(0, "halves_of_head");
  add(1, "backwards");
  for (double columns = 2; columns <= d; columns += 2) {
    const bool is_usual = columns == d || columns == static_cast<double>(m.d_head() / 2) ||
                          columns == static_cast<double>(m.d_head() / 4) || columns == 2 * n ||
                          columns == static_cast<double>(own.n_columns / 2);
    if (columns != n && (d <= 32 || is_usual)) add(2, "columns", columns);
  }
  if (is_partial) add(3, "exponents", d);
  if (d_model != n && d_model > 0) add(3, "exponents", d_model);
  add(3, "base", std::sqrt(own.base));
  add(3, "base", own.base * own.base);
  for (const double base : {100.0, 1000.0, 10000.0, 20000.0, 25000.0, 40000.0, 50000.0, 100000.0, 150000.0,
                            160000.0, 250000.0, 500000.0, 1e6, 5e6, 8e6, 1e7})
    if (base != own.base || is_listed) add(3, "base", base);
  if (is_partial) {
    kinds[4].push_back({"exponents+columns", {n, d}});
    kinds.emplace_back();
  }
  for (const char* form : {"over_heads", "no_minus", "in_place", "other_table", "exchanged"})
    add(kinds.size() - 1, form);
  if (is_partial) kinds.push_back({{"last_columns", {0}}});
  kinds.emplace_back();
  for (const char* form : {"frequencies_reversed", "frequencies_from_second", "frequencies_to_base",
                           "frequencies_of_columns", "frequencies_times_2pi", "frequencies_equal"})
    add(kinds.size() - 1, form);
  const positions::Scaling scaling = scaling_of(e);
  if (scaling.rule != positions::ScalingRule::none) {
    add(kinds.size() - 1, "frequencies_unscaled");
    if (scaling.factor != 1) add(kinds.size() - 1, "frequencies_linear");
  }
  if (scaling.rule == positions::ScalingRule::llama3) {
    kinds.emplace_back();
    const auto add_if = [&](bool changes, const char* form, double x = 0) {
      if (changes) add(kinds.size() - 1, form, x);
    };
    for (const double f : {2.0, 4.0, 8.0, 16.0, 32.0, 64.0}) add_if(f != scaling.factor, "scaling_factor", f);
    for (const double f : {2.0, 0.5, 4.0, 0.25}) add_if(true, "scaling_length_times", f);
    for (const double length : {2048.0, 4096.0, 8192.0, 131072.0})
      add_if(length != scaling.original, "scaling_length", length);
    const bool differ = scaling.low != scaling.high;
    add_if(differ, "scaling_factors_exchanged");
    add_if(differ, "scaling_low_as_high");
    add_if(differ, "scaling_high_as_low");
    add_if(scaling.low != 1 || scaling.high != 1, "scaling_factors_1");
  }
  kinds.emplace_back();
  for (const double n_digits : {8, 11})
    for (const char* form : {"rounded_angles", "rounded_positions", "rounded_frequencies", "rounded_cosines"})
      add(kinds.size() - 1, form, n_digits);
  return kinds;
}

void try_rotations(const BugContext& c, BugCases& to) {
  const auto own = rotation_of(c.now, ProjectionName::query);
  if (!own || !rotates(c.now)) return;
  const auto kinds = trials_of(c.now, *own);
  for (const char* sides : query_key_sides)
    for (const auto& kind : kinds)
      for (const Trial& one : kind) to.add(one.numbers, one.form, sides);
  for (std::size_t a = 0; a < 5; ++a)
    for (std::size_t b = a + 1; b < 5; ++b)
      for (const Trial& one : kinds[a])
        for (const Trial& two : kinds[b]) {
          if ((one.has("columns") && two.has("columns")) || (one.has("exponents") && two.has("exponents")))
            continue;
          Numbers numbers = one.numbers;
          numbers.insert(numbers.end(), two.numbers.begin(), two.numbers.end());
          to.add(std::move(numbers), one.form + "+" + two.form, "qk");
        }
}

/// Fits ln of the base.
void fit_bases(const BugContext& c, BugCases& to) {
  const auto own = rotation_of(c.now, ProjectionName::query);
  if (!own || !rotates(c.now) || own->n_columns < 4) return;
  for (const char* sides : query_key_sides)
    for (int k = 0; k < 40; ++k) {
      const double start = std::log(20.0) + (std::log(3e7) - std::log(20.0)) * k / 39.0;
      to.fit({start * 1.001}, "", sides);
    }
}

void add_rotation(Editing& e, const BugCase& c, ProjectionName part) {
  const Model& m = e.model();
  const bool is_query = part == ProjectionName::query;
  const Stage normed = is_query ? Stage::normed_queries : Stage::normed_keys;
  const Stage stage = e.find(normed) ? normed : graph::projected_stages[static_cast<std::size_t>(part)];
  positions::Rotary rotary;
  rotary.base = c.numbers[0], rotary.dimensions = m.d_head();
  rotary.pairs = c.form == "halves" ? positions::Pairs::halves : positions::Pairs::neighbors;
  const graph::Rotate rotate(stage, rotary, is_query ? position_of_query(m, 0) : position_of_key(m, 0));
  e.insert_after(stage, RotationVariant(rotate, m.d_head(), is_query ? m.n_tokens() : m.n_keys()));
}

// Positions.

/// Row of queries or keys whose position is changed.
struct PlacedRow {
  const Editing& before;
  const std::vector<double>& places;  ///< of all rows
  std::size_t sequence, row;
  long key;  ///< index of the key at the same place
  double own() const { return places[row]; }
};

/// Change of positions, with its numbers; words is {} if the row of the table is only for other words.
struct PositionRule {
  const char* form;
  std::string (*words)(const Editing&, const BugCase&);
  double (*place)(const PlacedRow&, const Numbers&);
};

/// Returns "all positions" for queries and keys, else "the positions of the queries".
std::string whose_positions(const BugCase& c) {
  return c.sides == "qk" ? "all positions" : "the positions of the " + stages_of_sides(c.sides);
}
long n_later_keys(const Editing& e) {
  return static_cast<long>(e.model().n_keys()) - static_cast<long>(e.model().n_tokens());
}
std::string last_keys(const Editing& e, double first) {
  return "the last " + digits(static_cast<double>(e.model().n_keys()) - first) + " keys ";
}

constexpr std::array position_rules{
    PositionRule{"shift",
                 [](const Editing&, const BugCase& c) {
                   return whose_positions(c) + " are " + shift_words(c.numbers[0]);
                 },
                 [](const PlacedRow& r, const Numbers& x) { return r.own() + x[0]; }},
    PositionRule{"at",
                 [](const Editing&, const BugCase& c) {
                   return std::string(c.sides == "qk"  ? "every query and key"
                                      : c.sides == "q" ? "every query"
                                                       : "every key") +
                          " is at position " + digits(c.numbers[0]);
                 },
                 [](const PlacedRow&, const Numbers& x) { return x[0]; }},
    PositionRule{"queries_from",
                 [](const Editing&, const BugCase& c) {
                   return "queries are counted from " + std::string(c.numbers[0] == 0 ? "position 0" : "1") +
                          ", not from the end of the earlier keys";
                 },
                 [](const PlacedRow& r, const Numbers& x) { return r.own() - r.places[0] + x[0]; }},
    PositionRule{"keys_from_first_query",
                 [](const Editing&, const BugCase&) {
                   return std::string("keys are counted from the position of the first query");
                 },
                 [](const PlacedRow& r, const Numbers&) {
                   return r.own() - r.places[0] + rotation_of(r.before, ProjectionName::query)->places[0][0];
                 }},
    PositionRule{
        "new_keys_alone",
        [](const Editing&, const BugCase&) {
          return std::string("the cached keys are not rotated, only the new ones are");
        },
        [](const PlacedRow& r, const Numbers&) { return r.key < n_later_keys(r.before) ? 0 : r.own(); }},
    PositionRule{"new_keys_from_0",
                 [](const Editing&, const BugCase&) {
                   return std::string("the last keys are counted from 0 (cache and new keys apart)");
                 },
                 [](const PlacedRow& r, const Numbers&) {
                   const long n_before = n_later_keys(r.before);
                   return r.key >= n_before ? static_cast<double>(r.key - n_before) : r.own();
                 }},
    PositionRule{"backwards",
                 [](const Editing&, const BugCase&) { return std::string("positions run backwards"); },
                 [](const PlacedRow& r, const Numbers&) { return r.places[r.places.size() - 1 - r.row]; }},
    PositionRule{
        "in_documents",
        [](const Editing&, const BugCase&) { return std::string("positions restart in each document"); },
        [](const PlacedRow& r, const Numbers&) {
          const auto& documents = r.before.model().mask.documents;
          const auto first = std::ranges::find(documents, documents[r.row]);
          return static_cast<double>(r.row) - static_cast<double>(first - documents.begin());
        }},
    PositionRule{"along_padding",
                 [](const Editing&, const BugCase& c) {
                   return "positions are counted along the padding mask" +
                          std::string(c.numbers[0] != 0 ? ", padding at 1" : " (padding does not count)");
                 },
                 [](const PlacedRow& r, const Numbers& x) {
                   const auto& hidden = r.before.model().mask.hidden_keys;
                   const auto is_padded = [&](std::size_t key) {
                     return !hidden.empty() && std::ranges::binary_search(hidden[r.sequence], key);
                   };
                   if (x[0] != 0 && is_padded(r.row)) return 1.0;
                   double n_seen = 0;
                   for (std::size_t key = 0; key <= r.row; ++key) n_seen += !is_padded(key);
                   return std::max(n_seen - 1, 0.0);
                 }},
    PositionRule{"times",
                 [](const Editing&, const BugCase& c) {
                   return whose_positions(c) + " are multiplied by " + digits(c.numbers[0]);
                 },
                 [](const PlacedRow& r, const Numbers& x) { return r.own() * x[0]; }},
    PositionRule{
        "restart_every",
        [](const Editing&, const BugCase& c) { return "positions restart every " + digits(c.numbers[0]); },
        [](const PlacedRow& r, const Numbers& x) { return r.own() - x[0] * std::floor(r.own() / x[0]); }},
    PositionRule{"grouped",
                 [](const Editing&, const BugCase& c) {
                   return "positions go up every " + digits(c.numbers[0]) + " tokens (grouped)";
                 },
                 [](const PlacedRow& r, const Numbers& x) { return std::floor(r.own() / x[0]); }},
    PositionRule{"stop",
                 [](const Editing&, const BugCase& c) { return "positions stop at " + digits(c.numbers[0]); },
                 [](const PlacedRow& r, const Numbers& x) { return std::min(r.own(), x[0]); }},
    PositionRule{"last_at",
                 [](const Editing& e, const BugCase& c) {
                   return last_keys(e, c.numbers[0]) +
                          (c.sides == "k" ? "are at position " + digits(c.numbers[1])
                                          : "and every query there are at position " + digits(c.numbers[1]) +
                                                " (each generated token alone)");
                 },
                 [](const PlacedRow& r, const Numbers& x) {
                   return static_cast<double>(r.key) >= x[0] ? x[1] : r.own();
                 }},
    PositionRule{
        "restart_at",
        [](const Editing&, const BugCase& c) { return "positions restart at key " + digits(c.numbers[0]); },
        [](const PlacedRow& r, const Numbers& x) {
          return static_cast<double>(r.key) >= x[0] ? static_cast<double>(r.key) - x[0] : r.own();
        }},
    PositionRule{"shift_from",
                 [](const Editing&, const BugCase& c) {
                   return "positions are " + shift_words(c.numbers[1]) + " from key " + digits(c.numbers[0]) +
                          " on";
                 },
                 [](const PlacedRow& r, const Numbers& x) {
                   return static_cast<double>(r.key) >= x[0] ? r.own() + x[1] : r.own();
                 }},
};

const PositionRule& position_rule(const BugCase& c) {
  return *std::ranges::find(position_rules, c.form, &PositionRule::form);
}

/// Sets each position by a function of its row.
template <class Place>
void set_positions(Editing& e, ProjectionName part, bool by_sequence, Place place) {
  const Editing before = e;
  const long first_key = part == ProjectionName::query ? n_later_keys(e) : 0;
  e.change_rotation(part, [&](RotationVariant& r) {
    auto own = r.places;
    if (by_sequence && own.size() == 1) own.resize(e.model().sequences.size(), own[0]);
    r.places = own;
    for (std::size_t s = 0; s < own.size(); ++s)
      for (std::size_t row = 0; row < own[s].size(); ++row)
        r.places[s][row] = place(PlacedRow{before, own[s], s, row, static_cast<long>(row) + first_key});
  });
}

void edit_positions(Editing& e, const BugCase& c, ProjectionName part) {
  const PositionRule& rule = position_rule(c);
  set_positions(e, part, c.form == "along_padding",
                [&](const PlacedRow& row) { return rule.place(row, c.numbers); });
}

void try_shifts(const BugContext& c, BugCases& to, bool shows) {
  std::vector<double> sizes;
  for (int n = 1; n <= 40; ++n) sizes.push_back(n);
  sizes.insert(sizes.end(), {64, 128, 256, 512});
  for (const std::string sides : {"q", "k", "qk"})
    for (const double size : sizes)
      for (const double n : {-size, size})
        if (shows || sides == "q" || (sides == "k" && size <= 8)) to.add({n}, "shift", sides);
  const double n_keys = static_cast<double>(c.model().n_keys()),
               n_tokens = static_cast<double>(c.model().n_tokens());
  for (const double n :
       std::set<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, n_keys - 1, n_keys, n_tokens - 1, n_tokens}) {
    to.add({n}, "at", "q");
    if (n < 2 || shows) to.add({n}, "at", "k");
    if (n == 0 || shows) to.add({n}, "at", "qk");
  }
}

/// Tries positions that change from a key on.
void try_restarts(double n_keys, BugCases& to) {
  for (double key = 1; key < std::min(n_keys, 33.0); ++key) {
    for (const double place : {0.0, 1.0})
      if (n_keys - key <= 16) {
        to.add({key, place}, "last_at", "qk");
        to.add({key, place}, "last_at", "k");
      }
    to.add({key}, "restart_at", "qk");
    for (const double by : {1.0, -1.0}) to.add({key, by}, "shift_from", "qk");
  }
}

void try_positions(const BugContext& c, BugCases& to) {
  if (!rotates(c.now)) return;
  const Model& m = c.model();
  const double n_keys = static_cast<double>(m.n_keys());
  const bool is_square = m.n_tokens() == m.n_keys();
  // Elsewhere only distances matter.
  const bool shows = c.target == Stage::rotated_queries || c.target == Stage::rotated_keys;
  try_shifts(c, to, shows);
  if (!is_square) {
    for (const double first : {0, 1}) to.add({first}, "queries_from", "q");
    for (const char* form : {"keys_from_first_query", "new_keys_alone", "new_keys_from_0"})
      to.add({}, form, "k");
  }
  to.add({}, "backwards", is_square ? "qk" : "k");
  if (!m.mask.documents.empty() && is_square) to.add({}, "in_documents", "qk");
  const bool is_padded =
      std::ranges::any_of(m.mask.hidden_keys, [](const auto& keys) { return !keys.empty(); });
  if (is_square && is_padded)
    for (const double at : {0, 1}) to.add({at}, "along_padding", "qk");
  for (const double f : {0.5, 2.0, 0.25, 4.0, 0.125, 8.0})
    for (const char* sides : query_key_sides) to.add({f}, "times", sides);
  for (const double n : {2, 3, 4, 5, 6, 8})
    if (n < n_keys) {
      to.add({n}, "restart_every", "qk");
      to.add({n}, "grouped", "qk");
    }
  for (double n = 2; n < std::min(n_keys, 17.0); ++n) to.add({n - 1}, "stop", "qk");
  try_restarts(n_keys, to);
}

void scale_positions(Editing& e, const BugCase& c, ProjectionName part) {
  set_positions(e, part, false, [&](const PlacedRow& row) { return row.own() * c.numbers[0]; });
}
void shift_positions(Editing& e, const BugCase& c, ProjectionName part) {
  set_positions(e, part, false, [&](const PlacedRow& row) { return row.own() + c.numbers[0]; });
}

void rotate_twice(Editing& e, const BugCase&, ProjectionName part) {
  auto again = rotation_of(e, part);
  if (!again) return;
  again->inputs[0].source = rotated_stage(part);
  e.graph.wrap(rotated_stage(part), *again);
}
void rotate_values(Editing& e, const BugCase&, ProjectionName) {
  auto rotation = rotation_of(e, ProjectionName::key);
  if (!rotation) return;
  rotation->inputs[0].source = Stage::values;
  e.graph.wrap(Stage::values, *rotation);
}

/// Lists queries and keys, together and alone, where they are rotated.
void try_rotated_sides(const BugContext& c, BugCases& to) {
  if (!rotates(c.now)) return;
  for (const char* sides : query_key_sides) to.add({}, "", sides);
}

const std::array rotary_rows{
    Bug{.name = "rotary_added",
        .edit = add_rotation,
        .words =
            [](const Editing&, const BugCase& c) {
              return "the " + stages_of_sides(c.sides) + " are rotated (base " + digits(c.numbers[0]) +
                     ", pairs of " + c.form + "), which the model does not do";
            },
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (rotates(c.now) || c.model().d_head() % 2 != 0) return;
              for (const char* sides : query_key_sides)
                for (const char* form : {"halves", "neighbors"})
                  for (const double base : {1e4, 1e5, 5e5, 1e6}) to.add({base}, form, sides);
            }},
    Bug{.name = "rotary_missing",
        .edit = [](Editing& e, const BugCase&, ProjectionName part) { e.leave_out(rotated_stage(part)); },
        .words = [](const Editing&,
                    const BugCase& c) { return "the " + stages_of_sides(c.sides) + " are not rotated"; },
        .cases = try_rotated_sides},
    Bug{.name = "rotary",
        .edit = edit_rotation,
        .words = rotation_words,
        .cases = try_rotations,
        .rank_of = [](const BugContext&, const BugCase& of) { return of.numbers.size() > 1 ? 1 : 0; }},
    Bug{.name = "rotary_base",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName part) {
              const positions::Scaling scaling = scaling_of(e);
              e.change_rotation(part, [&](RotationVariant& r) {
                r.set_frequencies(std::exp(c.numbers[0]), r.n_columns, width_of(r), scaling);
              });
            },
        .words =
            [](const Editing& before, const BugCase& c) {
              return sides_words(c) +
                     base_words(before, *rotation_of(before, ProjectionName::query), std::exp(c.numbers[0]));
            },
        .cases = fit_bases,
        .rank_of = [](const BugContext&,
                      const BugCase& of) { return of.numbers[0] > 2 && of.numbers[0] < 19 ? 2 : 4; }},
    Bug{.name = "positions",
        .edit = edit_positions,
        .words = [](const Editing& before, const BugCase& c) { return position_rule(c).words(before, c); },
        .cases = try_positions},
    Bug{.name = "position_factor",
        .edit = scale_positions,
        .words =
            [](const Editing& before, const BugCase& c) {
              return "the positions of the " + stages_of_sides(c.sides) + " are multiplied by " +
                     before.words.number(c.numbers[0]);
            },
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const char* sides : query_key_sides)
                for (int k = 0; rotates(c.now) && k < 40; ++k)
                  to.fit({std::exp(-3 + 6 * k / 39.0)}, "", sides);
            },
        .rank = 2},
    Bug{.name = "position_shift",
        .edit = shift_positions,
        .words =
            [](const Editing&, const BugCase& c) {
              return "the positions of the " + stages_of_sides(c.sides) + " are " +
                     shift_words(std::round(c.numbers[0] * 1e6) / 1e6);
            },
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const char* sides : {"q", "k"})
                for (int k = 0; rotates(c.now) && k < 35; ++k) to.fit({-8.25 + 0.5 * k}, "", sides);
            },
        .rank = 2},
    Bug{.name = "rotary_twice",
        .edit = rotate_twice,
        .words = [](const Editing&,
                    const BugCase& c) { return "the " + stages_of_sides(c.sides) + " are rotated twice"; },
        .cases = try_rotated_sides},
    Bug{.name = "rotary_on_values",
        .edit = rotate_values,
        .words = [](const Editing&, const BugCase&) { return std::string("the values are rotated too"); },
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (rotates(c.now) && c.model().d_value() == c.model().d_head()) to.add();
            }},
};

}  // namespace

std::span<const Bug> rotary_bugs() {
  return rotary_rows;
}

}  // namespace core::bugs
