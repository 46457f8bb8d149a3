#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/graph/bugs.hpp"

/// Bugs of the norms of queries and keys.
namespace core::bugs {
namespace {

using graph::digits;
using graph::normed_stage;
using graph::NormVariant;
using graph::stages_of_sides;

ProjectionName other_side(ProjectionName part) {
  return part == ProjectionName::query ? ProjectionName::key : ProjectionName::query;
}

/// Returns the norm as it is now, nothing where queries and keys have none.
std::optional<NormVariant> norm_of(Editing e, ProjectionName part) {
  std::optional<NormVariant> found;
  e.change_norm(part, [&](NormVariant& own) { found.emplace(own); });
  return found;
}

/// Change of a norm. Changes of different kinds can be combined, but for those of ε.
struct NormEdit {
  enum class Kind { divisor, over, factors, epsilon_place, epsilon };
  const char* form;
  Kind kind;
  const char* words;
  void (*apply)(NormVariant&);
  bool (*is_own)(const NormVariant&);  ///< the norm is like that
};
using Kind = NormEdit::Kind;

template <NormVariant::Divisor divisor>
void divide_by(NormVariant& n) {
  n.divisor = divisor;
}
template <NormVariant::Divisor divisor>
bool divides_by(const NormVariant& n) {
  return n.divisor == divisor;
}
template <NormVariant::Over over>
void run_over(NormVariant& n) {
  n.run_over(over);
}
template <NormVariant::Over over>
bool runs_over(const NormVariant& n) {
  return n.scope == over || n.n_heads == 1;
}
template <NormVariant::Factors factors>
void multiply_by(NormVariant& n) {
  n.factors = factors;
}
template <NormVariant::EpsilonPlace place>
void put_epsilon(NormVariant& n) {
  n.epsilon_place = place;
}
bool never(const NormVariant&) {
  return false;
}

constexpr std::array norm_changes{
    NormEdit{"rms", Kind::divisor, "is an RMSNorm (no mean taken off)",
             divide_by<NormVariant::Divisor::root_mean_square>,
             divides_by<NormVariant::Divisor::root_mean_square>},
    NormEdit{"layer", Kind::divisor, "is a LayerNorm (mean taken off)",
             divide_by<NormVariant::Divisor::deviation>, divides_by<NormVariant::Divisor::deviation>},
    NormEdit{"length", Kind::divisor, "divides by the length, without √d (L2 instead of RMS)",
             divide_by<NormVariant::Divisor::length>, never},
    NormEdit{"sample_deviation", Kind::divisor, "divides by the deviation with n − 1",
             divide_by<NormVariant::Divisor::sample_deviation>, never},
    NormEdit{"variance", Kind::divisor, "divides by the deviation without taking the mean off",
             divide_by<NormVariant::Divisor::deviation_uncentered>, never},
    NormEdit{"over_head", Kind::over, "runs over each head instead of all heads at once",
             run_over<NormVariant::Over::head>, runs_over<NormVariant::Over::head>},
    NormEdit{"over_all_heads", Kind::over, "runs over all heads at once instead of each head",
             run_over<NormVariant::Over::all_heads>, runs_over<NormVariant::Over::all_heads>},
    NormEdit{"over_tokens", Kind::over, "runs over the tokens", run_over<NormVariant::Over::tokens>, never},
    NormEdit{"one_plus_w", Kind::factors, "multiplies by 1 + w instead of w",
             multiply_by<NormVariant::Factors::one_plus_w>, never},
    NormEdit{"no_weights", Kind::factors, "has no weights", multiply_by<NormVariant::Factors::none>, never},
    NormEdit{"weights_first", Kind::factors, "multiplies by the weights before it divides",
             multiply_by<NormVariant::Factors::before>, never},
    NormEdit{"w_minus_one", Kind::factors, "multiplies by w − 1",
             multiply_by<NormVariant::Factors::w_minus_one>, never},
    NormEdit{"epsilon_outside", Kind::epsilon_place, "adds ε outside the root",
             put_epsilon<NormVariant::EpsilonPlace::outside_root>, never},
    NormEdit{"no_epsilon", Kind::epsilon_place, "has no ε", put_epsilon<NormVariant::EpsilonPlace::none>,
             never},
    NormEdit{"epsilon_at_least", Kind::epsilon_place, "takes ε as the least length",
             put_epsilon<NormVariant::EpsilonPlace::at_least>, never},
};

/// Form "layer", "layer+one_plus_w", "missing", "weights_of_other", or "epsilon" with its number.
void edit_norm(Editing& e, const BugCase& c, ProjectionName part) {
  if (c.form == "missing") return e.leave_out(normed_stage(part));
  if (c.form == "weights_of_other") {
    if (const auto other = norm_of(e, other_side(part)))
      e.change_norm(part, [&](NormVariant& n) { n.w = other->w; });
    return;
  }
  if (c.form == "epsilon") return e.change_norm(part, [&](NormVariant& n) { n.epsilon = c.numbers[0]; });
  const std::size_t plus = c.form.find('+');
  e.change_norm(part, [&](NormVariant& n) {
    find_form(norm_changes, c.form.substr(0, plus))->apply(n);
    if (plus != c.form.npos) find_form(norm_changes, c.form.substr(plus + 1))->apply(n);
  });
}

std::string epsilon_words(double epsilon, double own, int n_digits = 6) {
  return "has ε = " + digits(epsilon, n_digits) + " instead of " + digits(own);
}

std::string norm_words(const Editing& before, const BugCase& c) {
  const std::string the_norm = "the norm of the " + stages_of_sides(c.sides) + " ";
  if (c.form == "missing") return the_norm + "is missing";
  if (c.form == "weights_of_other")
    return the_norm + "has the weights of the " + stages_of_sides(c.sides == "q" ? "k" : "q");
  if (c.form == "epsilon")
    return the_norm + epsilon_words(c.numbers[0], norm_of(before, ProjectionName::query)->epsilon);
  const std::size_t plus = c.form.find('+');
  const std::string words = find_form(norm_changes, c.form.substr(0, plus))->words;
  return the_norm + words +
         (plus == c.form.npos
              ? ""
              : std::string(" and ") + find_form(norm_changes, c.form.substr(plus + 1))->words);
}

void try_norms(const BugContext& c, BugCases& to) {
  const auto own = norm_of(c.now, ProjectionName::query);
  if (!own) return;
  std::vector<const NormEdit*> changes;
  for (const NormEdit& change : norm_changes)
    if (!change.is_own(*own)) changes.push_back(&change);
  for (const char* sides : query_key_sides) {
    to.add({}, "missing", sides);
    for (const NormEdit* change : changes) to.add({}, change->form, sides);
    for (const double epsilon : {1e-3, 1e-5, 1e-6, 1e-8, 1e-12, 1e-4, 1e-2})
      if (epsilon != own->epsilon) to.add({epsilon}, "epsilon", sides);
    for (const NormEdit* one : changes)
      for (const NormEdit* two : changes)
        if (one->kind < two->kind && two->kind < Kind::epsilon_place)
          to.add({}, one->form + std::string("+") + two->form, sides);
  }
  for (const char* side : {"k", "q"}) to.add({}, "weights_of_other", side);
}

/// Fits ln ε.
void fit_epsilon(const BugContext& c, BugCases& to) {
  if (!norm_of(c.now, ProjectionName::query)) return;
  for (const char* sides : query_key_sides)
    for (const double start : {std::log(1e-2), 0.0}) to.fit({start}, "", sides);
}

void fit_norm_weights(const BugContext& c, BugCases& to) {
  for (const char* side : {"k", "q"}) {
    const ProjectionName part = *side == 'q' ? ProjectionName::query : ProjectionName::key;
    const auto own = norm_of(c.now, part);
    if (own && c.observed(normed_stage(part))) to.fit(Numbers(own->w.begin(), own->w.end()), "", side);
  }
}

void swap_weights(Editing& e, const BugCase&, ProjectionName) {
  const auto q = norm_of(e, ProjectionName::query), k = norm_of(e, ProjectionName::key);
  if (!q || !k) return;
  e.change_norm(ProjectionName::query, [&](NormVariant& n) { n.w = k->w; });
  e.change_norm(ProjectionName::key, [&](NormVariant& n) { n.w = q->w; });
}

void norm_twice(Editing& e, const BugCase&, ProjectionName) {
  for (const ProjectionName part : {ProjectionName::query, ProjectionName::key})
    if (auto again = norm_of(e, part)) {
      again->inputs[0].source = normed_stage(part);
      e.graph.wrap(normed_stage(part), *again);
    }
}

NormVariant new_norm(const Editing& e, Stage stage, NormVariant::Divisor divisor, double epsilon) {
  const bool has_key_rows = e.find(stage)->heads == graph::NodeHeads::per_kv_head;
  return {stage, divisor, epsilon, has_key_rows ? e.model().kv_heads() : e.model().n_heads,
          e.model().d_head()};
}

void add_norm(Editing& e, const BugCase& c, ProjectionName part) {
  const Stage stage = graph::projected_stages[static_cast<std::size_t>(part)];
  const NormVariant::Divisor divisor = c.form == "rms"      ? NormVariant::Divisor::root_mean_square
                                       : c.form == "length" ? NormVariant::Divisor::length
                                                            : NormVariant::Divisor::deviation;
  e.insert_after(stage, new_norm(e, stage, divisor, c.numbers[0]));
}
std::string added_words(const Editing&, const BugCase& c) {
  return "the " + stages_of_sides(c.sides) + " are normalized (" +
         (c.form == "rms"      ? "RMSNorm"
          : c.form == "length" ? "to length 1"
                               : "LayerNorm") +
         "), which the model does not do";
}

const std::array norm_rows{
    Bug{.name = "norm_on_values",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              e.graph.wrap(Stage::values,
                           new_norm(e, Stage::values, NormVariant::Divisor::root_mean_square, c.numbers[0]));
            },
        .words = "the values are normalized too",
        .cases =
            [](const BugContext& c, BugCases& to) {
              const auto own = norm_of(c.now, ProjectionName::query);
              for (const double epsilon : {own ? own->epsilon : 1e-6, 1e-5}) to.add({epsilon});
            }},
    Bug{.name = "norm_added",
        .edit = add_norm,
        .words = added_words,
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (c.now.find(Stage::normed_queries)) return;
              for (const char* sides : query_key_sides)
                for (const char* form : {"rms", "length", "layer"})
                  for (const double epsilon : {1e-6, 1e-5, 0.0, 1e-12}) to.add({epsilon}, form, sides);
            }},
    Bug{.name = "norm",
        .edit = edit_norm,
        .words = norm_words,
        .cases = try_norms,
        .rank_of = [](const BugContext&,
                      const BugCase& of) { return of.form.find('+') == of.form.npos ? 0 : 1; }},
    Bug{.name = "norm_epsilon",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName part) {
              e.change_norm(part, [&](NormVariant& n) { n.epsilon = std::exp(c.numbers[0]); });
            },
        .words =
            [](const Editing& before, const BugCase& c) {
              return "the norm of the " + stages_of_sides(c.sides) + " " +
                     epsilon_words(std::exp(c.numbers[0]), norm_of(before, ProjectionName::query)->epsilon,
                                   before.words.n_digits());
            },
        .cases = fit_epsilon,
        .rank = 2},
    Bug{.name = "norm_weights",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName part) {
              e.change_norm(part, [&](NormVariant& n) { n.w = arma::rowvec(c.numbers); });
            },
        .words = "the norm of the {stages} has the weights {list}",
        .cases = fit_norm_weights,
        .rank = 3},
    Bug{.name = "norm_weights_swapped",
        .edit = swap_weights,
        .words = "the norms of queries and keys have each other's weights",
        .fits = [](const Editing& e) { return e.find(Stage::normed_queries) != nullptr; }},
    Bug{.name = "norm_twice",
        .edit = norm_twice,
        .words = "queries and keys are normalized twice",
        .fits = [](const Editing& e) { return e.find(Stage::normed_queries) != nullptr; }},
};

}  // namespace

std::span<const Bug> norm_bugs() {
  return norm_rows;
}

}  // namespace core::bugs
