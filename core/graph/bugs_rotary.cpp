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
using graph::rotated_stage;
using graph::RotationVariant;
using graph::shift_words;
using graph::stages_of_sides;
using std::to_string;

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
  Words<const RotationEdit&, double> words;
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
Precision precision_of_digits(double n_digits) {
  return n_digits == 8 ? Precision::bfloat16 : Precision::float16;
}
/// Rounds a part of the angles; the number of digits says to what.
template <RotationVariant::Coarse part>
void round_part(RotationVariant& r, const RotationEdit&, double n_digits) {
  r.coarse.set(part);
  r.coarse_precision = precision_of_digits(n_digits);
}
std::string rounded_words(const char* part, double n_digits) {
  return std::string(part) + " are rounded to " + attention::name_of(precision_of_digits(n_digits));
}
/// Parts of the angles, in the order in which they are computed.
constexpr std::array rounded_forms{"rounded_positions", "rounded_frequencies", "rounded_angles",
                                   "rounded_cosines"};
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
    RotationChange{"backwards", "angles are negated (rotated backwards)",
                   [](RotationVariant& r, const RotationEdit&, double) { r.sign = -1; }},
    RotationChange{"over_heads", "the rotation runs over the axis of heads instead of tokens",
                   set_form<RotationVariant::Form::over_heads>},
    RotationChange{"no_minus", "the half that is rotated has lost its minus",
                   set_form<RotationVariant::Form::no_minus>},
    RotationChange{"in_place", "the rotated first half is used for the second (written in place)",
                   set_form<RotationVariant::Form::in_place>},
    RotationChange{"other_table", "the table of cosines is laid out for the other pairs",
                   set_form<RotationVariant::Form::other_table>},
    RotationChange{"exchanged", "cosine and sine are exchanged", set_form<RotationVariant::Form::exchanged>},
    RotationChange{"rounded_angles", [](const RotationEdit&, double x) { return rounded_words("angles", x); },
                   round_part<RotationVariant::of_angles>},
    RotationChange{"rounded_positions",
                   [](const RotationEdit&, double x) { return rounded_words("positions", x); },
                   round_part<RotationVariant::of_positions>},
    RotationChange{"rounded_frequencies",
                   [](const RotationEdit&, double x) { return rounded_words("frequencies", x); },
                   round_part<RotationVariant::of_frequencies>},
    RotationChange{"rounded_cosines",
                   [](const RotationEdit&, double x) { return rounded_words("cosines and sines", x); },
                   round_part<RotationVariant::of_cosines>},
    RotationChange{"last_columns",
                   [](const RotationEdit& c, double) {
                     return "the last " + to_string(c.own.n_columns) +
                            " columns are rotated instead of the first";
                   },
                   [](RotationVariant& r, const RotationEdit& c, double) {
                     r.first_column = c.before.model().d_head() - r.n_columns;
                   }},
    RotationChange{
        "frequencies_reversed", "frequencies run in reverse",
        [](RotationVariant& r, const RotationEdit&, double) { std::ranges::reverse(r.frequencies); }},
    RotationChange{"frequencies_from_second", "frequencies begin with the second (exponents 2(p + 1)/d)",
                   [](RotationVariant& r, const RotationEdit&, double) {
                     set_each_frequency(r, [](const auto&, double p, const RotationVariant& of) {
                       return std::pow(of.base, -2 * (p + 1) / width_of(of));
                     });
                   }},
    RotationChange{"frequencies_to_base", "exponents run to 1 (linspace)",
                   [](RotationVariant& r, const RotationEdit&, double) {
                     set_each_frequency(r, [](const auto& own, double p, const RotationVariant& of) {
                       return std::pow(of.base,
                                       own.size() > 1 ? -p / static_cast<double>(own.size() - 1) : 0);
                     });
                   }},
    RotationChange{"frequencies_of_columns", "exponents are p/d instead of 2p/d",
                   [](RotationVariant& r, const RotationEdit&, double) {
                     set_each_frequency(r, [](const auto&, double p, const RotationVariant& of) {
                       return std::pow(of.base, -p / width_of(of));
                     });
                   }},
    RotationChange{"frequencies_times_2pi", "frequencies are multiplied by 2π",
                   [](RotationVariant& r, const RotationEdit&, double) {
                     for (double& f : r.frequencies) f *= 2 * arma::datum::pi;
                   }},
    RotationChange{"frequencies_unscaled", "the scaling of the frequencies is missing",
                   [](RotationVariant& r, const RotationEdit&, double) {
                     set_each_frequency(r, [](const auto&, double p, const RotationVariant& of) {
                       return std::pow(of.base, -2 * p / width_of(of));
                     });
                   }},
    RotationChange{"frequencies_linear", "all frequencies are divided by the scaling factor",
                   [](RotationVariant& r, const RotationEdit& c, double) {
                     set_each_frequency(
                         r, [factor = scaling_of(c.before).factor](const auto&, double p, const auto& of) {
                           return std::pow(of.base, -2 * p / width_of(of)) / factor;
                         });
                   }},
    RotationChange{"frequencies_equal", "all pairs have one frequency",
                   [](RotationVariant& r, const RotationEdit&, double) {
                     std::ranges::fill(r.frequencies, std::vector(r.frequencies)[0]);
                   }},
};

std::string sides_words(const BugCase& c) {
  return c.sides == "qk" ? "" : "of the " + stages_of_sides(c.sides) + " alone: ";
}

void edit_rotation(Editing& e, const BugCase& c, ProjectionName part) {
  const auto own = e.rotation(part);
  if (!own) return;
  const Editing before = e;
  const RotationEdit changes = changes_of(before, *own, c);
  e.change_rotation(part, [&](RotationVariant& r) {
    for (const RotationChange& change : rotation_changes)
      if (const auto x = changes.number(change.form)) change.apply(r, changes, *x);
  });
}
std::string rotation_words(const Editing& before, const BugCase& c) {
  const auto own = before.rotation(c.sides.starts_with('q') ? ProjectionName::query : ProjectionName::key);
  const RotationEdit changes = changes_of(before, *own, c);
  std::vector<std::string> phrases;
  for (const RotationChange& change : rotation_changes)
    if (const auto x = changes.number(change.form)) phrases.push_back(change.words(changes, *x));
  if (c.numbers.size() > 1 && c.form.starts_with("rounded"))
    phrases = {"the angle is computed in " +
               std::string(attention::name_of(precision_of_digits(c.numbers[0]))) + ": " +
               text::joined(phrases, ", ")};
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
    for (unsigned parts = 1; parts < 1u << rounded_forms.size(); ++parts) {  // real code rounds several
      Trial several;
      for (std::size_t k = 0; k < rounded_forms.size(); ++k)
        if (parts >> k & 1) {
          several.form += (several.form.empty() ? "" : "+") + std::string(rounded_forms[k]);
          several.numbers.push_back(n_digits);
        }
      kinds.back().push_back(std::move(several));
    }
  return kinds;
}

void try_rotations(const BugContext& c, BugCases& to) {
  const auto own = c.now.rotation(ProjectionName::query);
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
  const auto own = c.now.rotation(ProjectionName::query);
  if (!own || !rotates(c.now) || own->n_columns < 4) return;
  for (const char* sides : query_key_sides)
    for (int k = 0; k < 40; ++k) {
      const double start = std::log(20.0) + (std::log(3e7) - std::log(20.0)) * k / 39.0;
      to.fit({start * 1.001}, "", sides);
    }
}

int fitted_base_rank(const BugContext&, const BugCase& of) {
  return of.numbers[0] > 2 && of.numbers[0] < 19 ? 2 : 4;
}

void add_rotation(Editing& e, const BugCase& c, double base, ProjectionName part) {
  const Model& m = e.model();
  const bool is_query = part == ProjectionName::query;
  const Stage normed = is_query ? Stage::normed_queries : Stage::normed_keys;
  const Stage stage = e.find(normed) ? normed : graph::projected_stages[static_cast<std::size_t>(part)];
  positions::Rotary rotary;
  rotary.base = base, rotary.dimensions = m.d_head();
  rotary.pairs = c.form == "halves" ? positions::Pairs::halves : positions::Pairs::neighbors;
  const graph::Rotate rotate(stage, rotary, is_query ? position_of_query(m, 0) : position_of_key(m, 0));
  e.insert_after(stage, RotationVariant(rotate, m.d_head(), is_query ? m.n_tokens() : m.n_keys()));
}

std::string added_rotation_words(const BugCase& c, const std::string& base) {
  return "the " + stages_of_sides(c.sides) + " are rotated (base " + base + ", pairs of " + c.form +
         "), which the model does not do";
}
bool can_be_rotated(const BugContext& c) {
  return !rotates(c.now) && c.model().d_head() % 2 == 0;
}

// Rotations that are read off.

using Complex = std::complex<double>;
constexpr std::array query_and_key{ProjectionName::query, ProjectionName::key};

const char* name_of_rule(RotationVariant::PairRule rule) {
  return rule == RotationVariant::PairRule::halves ? "halves" : "neighbors";
}

/// Queries and keys before their rotation, and after it as observed.
class ObservedRotation {
 public:
  /// Rotations of all pairs, and how far the numbers are from being rotated by them.
  struct PairAngles {
    double miss = graph::infinity;
    RotationVariant::PairRule rule = RotationVariant::PairRule::halves;
    std::size_t n_columns = 0;
    std::array<std::vector<Complex>, 2> rotations = {};  ///< [(sequence · n_rows + row) · n_pairs + pair]
  };

  explicit ObservedRotation(const BugContext& c) : c_(c) {
    for (const ProjectionName part : query_and_key) {
      const bool is_query = part == ProjectionName::query;
      const Stage normed = is_query ? Stage::normed_queries : Stage::normed_keys;
      Side& side = sides_[static_cast<std::size_t>(part)];
      side.before = c.now.find(normed) ? normed : graph::projected_stages[static_cast<std::size_t>(part)];
      side.after = c.observed(rotated_stage(part));
      side.n = c.stages.n_matrices(side.before);
      side.n_rows = c.stages.matrix(side.before, 0, 0).n_rows();
      fits_ = fits_ && side.after && side.after->size() == side.n * c.model().sequences.size() &&
              (*side.after)[0].n_rows() == side.n_rows && (*side.after)[0].n_cols() == c.model().d_head();
    }
  }
  bool fits() const { return fits_; }
  std::size_t n_rows(std::size_t side) const { return sides_[side].n_rows; }

  PairAngles read(RotationVariant::PairRule rule, std::size_t n_columns) const {
    PairAngles reading{0, rule, n_columns};
    for (std::size_t side = 0; side < 2; ++side)
      for (std::size_t s = 0; s < c_.model().sequences.size(); ++s)
        for (std::size_t row = 0; row < n_rows(side); ++row) read_row(reading, side, s, row);
    return reading;
  }

 private:
  struct Side {
    Stage before = Stage::queries;
    const std::vector<SharedMatrix>* after = nullptr;
    std::size_t n = 0, n_rows = 0;
  };

  void read_row(PairAngles& reading, std::size_t nth_side, std::size_t s, std::size_t row) const {
    const Side& side = sides_[nth_side];
    const std::size_t n_pairs = reading.n_columns / 2;
    const bool are_halves = reading.rule == RotationVariant::PairRule::halves;
    std::vector<const arma::mat*> before, after;
    double size = 0;
    for (std::size_t h = 0; h < side.n; ++h) {
      before.push_back(&*c_.stages.matrix(side.before, s, h)),
          after.push_back(&*(*side.after)[s * side.n + h]);
      size = std::max(size, arma::abs(*before.back()).max());
    }
    const auto pair_of = [&](const arma::mat& of, std::size_t p) {
      return Complex(of(row, are_halves ? p : 2 * p), of(row, are_halves ? p + n_pairs : 2 * p + 1));
    };
    for (std::size_t p = 0; p < n_pairs; ++p) {
      Complex rotation = 0;
      for (std::size_t h = 0; h < side.n; ++h)
        rotation += pair_of(*after[h], p) * std::conj(pair_of(*before[h], p));
      rotation /= std::max(std::abs(rotation), 1e-300);
      reading.rotations[nth_side].push_back(rotation);
      for (std::size_t h = 0; h < side.n; ++h)
        reading.miss = std::max(reading.miss,
                                std::abs(pair_of(*after[h], p) - pair_of(*before[h], p) * rotation) / size);
    }
    for (std::size_t h = 0; h < side.n; ++h)
      for (std::size_t j = reading.n_columns; j < before[h]->n_cols; ++j)
        reading.miss = std::max(reading.miss, std::abs((*before[h])(row, j) - (*after[h])(row, j)) / size);
  }

  const BugContext& c_;
  std::array<Side, 2> sides_;
  bool fits_ = true;
};

/// Returns the reading by the pairs that fit best: the model's own if they fit.
ObservedRotation::PairAngles best_reading(const BugContext& c, const ObservedRotation& observed,
                                          const RotationVariant& own) {
  ObservedRotation::PairAngles best;
  const auto consider = [&](RotationVariant::PairRule rule, std::size_t n_columns) {
    if (best.miss < 3 * c.estimate_tolerance) return;
    auto reading = observed.read(rule, n_columns);
    if (reading.miss < best.miss * 0.5 || best.n_columns == 0) best = std::move(reading);
  };
  consider(own.pair_rule == RotationVariant::PairRule::halves ? RotationVariant::PairRule::halves
                                                              : RotationVariant::PairRule::neighbors,
           own.n_columns);
  for (const RotationVariant::PairRule rule :
       {RotationVariant::PairRule::halves, RotationVariant::PairRule::neighbors}) {
    consider(rule, own.n_columns);
    for (std::size_t n = c.model().d_head() / 2 * 2; n >= 2; n -= 2) consider(rule, n);
  }
  return best;
}

/// Returns the angle of each pair from one row to the next.
Numbers steps_of(const ObservedRotation& observed, const ObservedRotation::PairAngles& reading) {
  const std::size_t n_pairs = reading.n_columns / 2;
  std::vector<Complex> steps(n_pairs);
  for (std::size_t side = 0; side < 2; ++side) {
    const auto& all = reading.rotations[side];
    for (std::size_t at = 0; at < all.size() / n_pairs; ++at)
      for (std::size_t p = 0; p < n_pairs && at % observed.n_rows(side) > 0; ++p)
        steps[p] += all[at * n_pairs + p] * std::conj(all[(at - 1) * n_pairs + p]);
  }
  Numbers angles;
  for (const Complex& step : steps) angles.push_back(std::arg(step));
  return angles;
}

/// Returns the whole positions that come closest to the rotations of queries or keys: n_rows × n_sequences.
arma::mat closest_positions(const Model& m, const std::vector<Complex>& rotations, std::size_t n_rows,
                            const Numbers& frequencies) {
  const long n_keys = static_cast<long>(m.n_keys()), first = -2 * n_keys - 8, end = 4 * n_keys + 72;
  const std::size_t n_pairs = frequencies.size();
  std::vector<Complex> at_place;
  for (long place = first; place < end; ++place)
    for (const double frequency : frequencies)
      at_place.push_back(std::polar(1.0, static_cast<double>(place) * frequency));
  arma::mat places(n_rows, rotations.size() / n_pairs / n_rows);
  for (std::size_t at = 0; at < places.n_elem; ++at) {
    double least = graph::infinity;
    for (long place = first; place < end; ++place) {
      const Complex* expected = &at_place[static_cast<std::size_t>(place - first) * n_pairs];
      double apart = 0;
      for (std::size_t p = 0; p < n_pairs; ++p) apart += std::abs(rotations[at * n_pairs + p] - expected[p]);
      if (apart < least - 1e-12) least = apart, places[at] = static_cast<double>(place);
    }
  }
  return places;
}

/// Numbers: the rotated columns, then the frequencies; observed: positions of queries and of keys.
void read_off_rotation(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  const bool is_seen = c.target == Stage::rotated_queries || c.target == Stage::rotated_keys;
  if (!is_seen || c.is_large || !rotates(c.now)) return;
  const auto own = c.now.rotation(ProjectionName::query);
  const ObservedRotation observed(c);
  if (!own || !observed.fits()) return;
  const auto reading = best_reading(c, observed, *own);
  if (reading.miss > std::max(3 * c.estimate_tolerance, 1e-6)) return;
  std::vector<Numbers> all_frequencies;
  if (reading.n_columns == own->n_columns) all_frequencies.push_back(own->frequencies);
  if (m.n_keys() > 1) all_frequencies.push_back(steps_of(observed, reading));
  for (const Numbers& frequencies : all_frequencies) {
    Numbers numbers = frequencies;
    numbers.insert(numbers.begin(), static_cast<double>(reading.n_columns));
    to.add(std::move(numbers), name_of_rule(reading.rule));
    std::vector<SharedMatrix> places;
    for (std::size_t side = 0; side < 2; ++side)
      places.emplace_back(closest_positions(m, reading.rotations[side], observed.n_rows(side), frequencies));
    to.all.back().observed = std::make_shared<const std::vector<SharedMatrix>>(std::move(places));
  }
}
void rotate_as_observed(Editing& e, const BugCase& c, ProjectionName) {
  for (const ProjectionName part : query_and_key)
    e.change_rotation(part, [&](RotationVariant& r) {
      r.pair_rule = c.form == name_of_rule(RotationVariant::PairRule::halves)
                        ? RotationVariant::PairRule::halves
                        : RotationVariant::PairRule::neighbors;
      r.n_columns = static_cast<std::size_t>(c.numbers[0]);
      r.frequencies.assign(c.numbers.begin() + 1, c.numbers.end());
      const arma::mat& places = (*c.observed)[static_cast<std::size_t>(part)];
      r.places.clear();
      for (std::size_t s = 0; s < places.n_cols; ++s)
        r.places.emplace_back(places.begin_col(s), places.end_col(s));
    });
}

/// Describes positions of queries or keys that differ from the model's, as a rule if possible.
std::string positions_words(const Editing& before, const arma::vec& now, const std::vector<double>& was,
                            const std::string& who) {
  const std::size_t n = now.n_elem;
  std::vector<std::size_t> moved, jumps;
  for (std::size_t i = 0; i < n; ++i) {
    if (now[i] != was[i]) moved.push_back(i);
    if (i > 0 && now[i] - now[i - 1] != 1) jumps.push_back(i);
  }
  const auto are_equal = [](const arma::vec& x) { return arma::all(x == x[0]); };
  const std::string positions = "the positions of the " + who;
  if (are_equal(now - arma::vec(was)))
    return moved.empty() ? "" : positions + " are " + shift_words(now[0] - was[0]);
  if (n > 1 && are_equal(now)) return "all " + who + " are at position " + digits(now[0]);
  if (moved.size() > 1 && std::ranges::all_of(moved, [&](std::size_t i) { return now[i] == now[moved[0]]; }))
    return who + " " + to_string(moved.front()) + "–" + to_string(moved.back()) + " are at position " +
           digits(now[moved[0]]);
  if (jumps.size() == 1)
    return positions + " restart at row " + to_string(jumps[0]) + " with " + digits(now[jumps[0]]);
  return positions + " are " + before.words.list({now.begin(), now.end()});
}

bool are_close(const Numbers& a, const Numbers& b, double tolerance) {
  return std::ranges::equal(a, b, [&](double x, double y) { return std::abs(x / y - 1) <= tolerance; });
}
/// Describes how frequencies differ from the model's.
std::vector<std::string> frequencies_words(const Editing& before, const RotationVariant& own,
                                           Numbers frequencies) {
  const double tolerance = before.words.tolerance();
  std::vector<std::string> phrases;
  if (are_close(frequencies, own.frequencies, tolerance)) return phrases;
  if (std::ranges::all_of(frequencies, [](double f) { return f < 0; })) {
    phrases.emplace_back("angles are negated");
    for (double& f : frequencies) f = -f;
  }
  const std::size_t n = frequencies.size();
  const double factor = n == own.frequencies.size() ? frequencies[0] / own.frequencies[0] : 0;
  Numbers unscaled = frequencies;
  for (double& f : unscaled) f /= factor;
  if (factor > 0 && std::abs(factor - 1) > tolerance &&
      are_close(unscaled, own.frequencies, 10 * tolerance)) {
    phrases.push_back("frequencies are multiplied by " + before.words.number(factor));
  } else if (!are_close(frequencies, own.frequencies, 10 * tolerance)) {
    bool has_base = n > 1 && std::ranges::all_of(frequencies, [](double f) { return f > 0; });
    const double log_base = has_base ? -std::log(frequencies[n - 1] / frequencies[0]) /
                                           static_cast<double>(n - 1) * static_cast<double>(n)
                                     : 0;
    for (std::size_t p = 0; has_base && p < n; ++p)
      has_base =
          std::abs(frequencies[0] * std::exp(-log_base * static_cast<double>(p) / static_cast<double>(n)) /
                       frequencies[p] -
                   1) < 10 * tolerance;
    if (!has_base) phrases.push_back("inverse frequencies are " + before.words.list(frequencies));
    if (has_base && std::abs(log_base - std::log(own.base)) > tolerance)
      phrases.push_back(base_words(before, own, std::exp(log_base)));
    if (has_base && std::abs(std::log(frequencies[0])) > tolerance)
      phrases.push_back("frequencies are multiplied by " + before.words.number(frequencies[0]));
  }
  return phrases;
}
std::string observed_rotation_words(const Editing& before, const BugCase& c) {
  const auto own = before.rotation(ProjectionName::query), own_of_keys = before.rotation(ProjectionName::key);
  const std::string own_rule = name_of_rule(own->pair_rule);
  const auto n_columns = static_cast<std::size_t>(c.numbers[0]);
  std::vector<std::string> phrases;
  if (c.form != own_rule) phrases.push_back("pairs are " + c.form + " instead of " + own_rule);
  if (n_columns != own->n_columns)
    phrases.push_back(to_string(n_columns) + " columns are rotated instead of " + to_string(own->n_columns));
  for (std::string& words : frequencies_words(before, *own, {c.numbers.begin() + 1, c.numbers.end()}))
    phrases.push_back(std::move(words));
  for (const ProjectionName part : query_and_key) {
    const bool is_query = part == ProjectionName::query;
    const arma::mat& places = (*c.observed)[static_cast<std::size_t>(part)];
    std::string words = positions_words(before, places.col(0), (is_query ? own : own_of_keys)->places[0],
                                        is_query ? "queries" : "keys");
    if (!words.empty()) phrases.push_back(std::move(words));
  }
  return "rotary positions: " + text::joined(phrases, "; ");
}

const std::array rotary_rows{
    Bug{.name = "rotary_added",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName part) { add_rotation(e, c, c.numbers[0], part); },
        .words = [](const Editing&,
                    const BugCase& c) { return added_rotation_words(c, digits(c.numbers[0])); },
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (!can_be_rotated(c)) return;
              for (const char* sides : query_key_sides)
                for (const char* form : {"halves", "neighbors"})
                  for (const double base : {1e4, 1e5, 5e5, 1e6}) to.add({base}, form, sides);
            }},
    Bug{.name = "rotary_added:fitted",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName part) { add_rotation(e, c, std::exp(c.numbers[0]), part); },
        .words =
            [](const Editing& before, const BugCase& c) {
              return added_rotation_words(c, before.words.number(std::exp(c.numbers[0])));
            },
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (!can_be_rotated(c) || c.model().d_head() < 4) return;
              for (const char* sides : query_key_sides)
                for (const char* form : {"halves", "neighbors"})
                  for (double start = 4; start < 18; ++start) to.fit({start}, form, sides);
            },
        .rank_of = fitted_base_rank},
    Bug{.name = "rotary",
        .edit = edit_rotation,
        .words = rotation_words,
        .cases = try_rotations,
        .rank_of = [](const BugContext&, const BugCase& of) { return of.numbers.size() > 1 ? 1 : 0; }},
    Bug{.name = "rotary_base:fitted",
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
                     base_words(before, *before.rotation(ProjectionName::query), std::exp(c.numbers[0]));
            },
        .cases = fit_bases,
        .rank_of = fitted_base_rank},
    Bug{.name = "rotation_recovered",
        .edit = rotate_as_observed,
        .words = observed_rotation_words,
        .cases = read_off_rotation,
        .rank = 3,
        .is_last = true},
};

}  // namespace

std::span<const Bug> rotary_bugs() {
  return rotary_rows;
}

}  // namespace core::bugs
