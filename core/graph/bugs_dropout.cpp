#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/least_squares.hpp"
#include "core/graph/bugs.hpp"

/// Bugs of dropout, and dropout that is active where the model has none.
namespace core::bugs {
namespace {

using graph::digits;
using graph::OperationInputs;

double dropout_rate(const Model& m) {
  return m.dropout.active() ? m.dropout.rate : 0;
}
/// Computes the weights after dropout from weights and dropout mask.
void compute_dropout(Editing& e, arma::mat (*function)(const arma::mat& weights, const arma::mat& is_kept),
                     double factor) {
  e.compute(Stage::dropped_weights, {{Stage::weights, "i:"}, {Stage::dropout_mask, "i:"}},
            [=](const OperationInputs& in) {
              return arma::mat(function(in[0], arma::conv_to<arma::mat>::from(in[1] != 0)) * factor);
            });
}
arma::mat kept(const arma::mat& weights, const arma::mat& is_kept) {
  return weights % is_kept;
}

/// Form of dropout: what is kept, and its factor at rate p.
struct DropoutForm {
  const char* form;
  const char* words;
  double (*factor)(double p);
  arma::mat (*kept)(const arma::mat& weights, const arma::mat& is_kept) = bugs::kept;
};
constexpr std::array dropout_forms{
    DropoutForm{"missing", "dropout is not applied", [](double) { return 1.0; },
                [](const arma::mat& weights, const arma::mat&) { return weights; }},
    DropoutForm{"not_rescaled", "the kept weights are not rescaled by 1/(1 − p)", [](double) { return 1.0; }},
    DropoutForm{"by_p", "the kept weights are divided by p instead of 1 − p", [](double p) { return 1 / p; }},
    DropoutForm{
        "renormalized", "the kept weights are renormalized to sum 1", [](double) { return 1.0; },
        [](const arma::mat& weights, const arma::mat& is_kept) { return normalized(weights % is_kept); }},
    DropoutForm{"shrunk", "the kept weights are multiplied by 1 − p", [](double p) { return 1 - p; }},
    DropoutForm{"twice", "the kept weights are rescaled twice",
                [](double p) { return 1 / (1 - p) / (1 - p); }},
};
std::string percent(double share) {
  return digits(std::round(100 * share)) + " %";
}
/// Numbers: the factor of kept weights, and the share of dropped ones.
std::string dropout_words(const Editing&, const BugCase& c) {
  const double f = c.numbers[0];
  if (f > 1 + 1e-9)
    return "dropout is active with p = " + digits(1 - 1 / f, 4) + " (" + percent(c.numbers[1]) +
           " of the weights dropped, the others × " + digits(f) + " = 1/(1 − p))";
  return "weights are dropped (" + percent(c.numbers[1]) + ") and the others not rescaled" +
         (std::abs(f - 1) < 1e-9 ? "" : " but × " + digits(f));
}

/// Weights where others were observed as zero: how many of them, and the factors of the others.
struct ObservedDropout {
  double n_zero = 0, n_zero_unmasked = 0, n = 0;
  Numbers factors;
  double share() const { return n_zero / n; }
};
std::optional<ObservedDropout> observed_dropout(const BugContext& c, Stage stage) {
  const auto* given = stage == c.target ? c.observed(stage) : nullptr;
  const std::size_t n_heads = c.model().n_heads;
  if (!given || c.is_large || given->size() != c.model().sequences.size() * n_heads) return std::nullopt;
  ObservedDropout found;
  for (std::size_t k = 0; k < given->size(); ++k) {
    const std::size_t s = k / n_heads, h = k % n_heads;
    const arma::mat &ours = c.stages.matrix(stage, s, h), &theirs = (*given)[k],
                    &unmasked = c.stages.matrix(Stage::mask, s, c.stages.n_matrices(Stage::mask) > 1 ? h : 0);
    if (arma::size(ours) != arma::size(theirs)) return std::nullopt;
    for (std::size_t at = 0; at < ours.n_elem; ++at) {
      if (!std::isfinite(ours[at]) || std::abs(ours[at]) <= 1e-6) continue;
      ++found.n;
      if (theirs[at] == 0)
        ++found.n_zero, found.n_zero_unmasked += unmasked[at] != 0;
      else
        found.factors.push_back(theirs[at] / ours[at]);
    }
  }
  return found.n_zero == 0 || found.factors.empty() ? std::nullopt : std::optional(std::move(found));
}
void add_observed(const BugContext& c, BugCases& to, Numbers numbers) {
  to.add(std::move(numbers), attention::info(c.target).name);
  to.all.back().observed = std::make_shared<const std::vector<SharedMatrix>>(*c.observed(c.target));
}
void read_off_renormalized(const BugContext& c, BugCases& to) {
  if (const auto found = observed_dropout(c, Stage::weights)) add_observed(c, to, {found->share()});
}
void read_off_dropout(const BugContext& c, BugCases& to) {
  for (const Stage stage : {Stage::weights, Stage::dropped_weights}) {
    auto found = observed_dropout(c, stage);
    if (!found) continue;
    const auto middle = found->factors.begin() + static_cast<std::ptrdiff_t>(found->factors.size() / 2);
    std::ranges::nth_element(found->factors, middle);
    const double f = *middle;
    const bool is_one = std::abs(f - 1) <= std::max(c.estimate_tolerance, c.now.words.tolerance()),
               is_mask = is_one && 2 * found->n_zero_unmasked <= found->n_zero;
    const auto differs = [&](double factor) { return !(std::abs(factor / f - 1) < c.estimate_tolerance); };
    if (found->share() < 0.97 && !is_mask && std::ranges::none_of(found->factors, differs))
      add_observed(c, to, {is_one ? 1 : f, found->share()});
  }
}
/// Wraps weights in a function of those that were not observed as zero.
void drop_observed(Editing& e, const BugCase& c, arma::mat (*function)(arma::mat kept, double), double x) {
  e.wrap(
      stage_named(c.form),
      [observed = c.observed, function, x](const OperationInputs& in) {
        const arma::mat& theirs = (*observed)[in.sequence * in.model.n_heads + in.head];
        arma::mat w = in[0];
        if (theirs.n_rows != in.model.n_tokens() || theirs.n_cols != w.n_cols) return w;
        for (std::size_t j = 0; j < w.n_cols; ++j)
          for (std::size_t a = 0; a < w.n_rows; ++a)
            if (theirs(in.row(a), j) == 0) w(a, j) = 0;
        return function(std::move(w), x);
      },
      {}, "i:");
}

// Dropout that context vectors or the output alone show.

/// Solves for the factor of each weight of a row; none if they are not certain. `added` is what each weight
/// adds: [column of the row][weight].
arma::vec factors_of_weights(const BugContext& c, const arma::mat& added, const arma::vec& row) {
  constexpr arma::uword max_solved = 32;
  const double max_condition = 0.1 / c.estimate_tolerance;
  const bool is_small = added.n_cols > 0 && added.n_cols <= std::min<arma::uword>(added.n_rows, max_solved);
  if (!is_small || !(condition_number(added) < max_condition)) return {};
  const auto factors = least_squares(added, row);
  const bool is_solved = factors && arma::abs(added * *factors - row).max() <= 10 * c.tolerance;
  return is_solved ? arma::vec(*factors) : arma::vec();
}
/// Returns the factors of all weights that are certain in the observed context vectors or output.
Numbers certain_factors(const BugContext& c, const std::vector<SharedMatrix>& given) {
  constexpr std::size_t max_rows = 64;
  const Model& m = c.model();
  const bool is_output = c.target == Stage::output;
  const arma::mat projection = c.now.weight(ProjectionName::output),
                  output_bias = c.now.bias(ProjectionName::output);
  Numbers all;
  for (std::size_t k = 0; k < given.size(); ++k) {
    const std::size_t n_heads = is_output ? m.n_heads : 1, first = is_output ? 0 : k % m.n_heads,
                      s = is_output ? k : k / m.n_heads;
    std::vector<arma::mat> values(n_heads);  // by key, as they add to a row
    for (std::size_t h = 0; h < n_heads; ++h) {
      values[h] = c.stages.matrix(Stage::values, s, c.now.graph.kv_head[first + h]);
      const std::size_t width = values[h].n_cols;
      if (is_output) values[h] = arma::mat(values[h] * projection.rows(h * width, (h + 1) * width - 1));
    }
    for (std::size_t i = 0; i < std::min(m.n_tokens(), max_rows); ++i) {
      arma::mat added;
      for (std::size_t h = 0; h < n_heads; ++h) {
        const arma::vec w = c.stages.matrix(Stage::dropped_weights, s, first + h)->row(i).t();
        const arma::uvec keys = arma::find(w > 1e-9);
        added = arma::join_cols(added, arma::mat(arma::diagmat(w(keys)) * values[h].rows(keys)));
      }
      arma::vec row = given[k]->row(i).t();
      if (is_output && !output_bias.is_empty()) row -= output_bias.t();
      const arma::vec factors = factors_of_weights(c, added.t(), row);
      all.insert(all.end(), factors.begin(), factors.end());
    }
  }
  return all;
}
/// Adds dropout if every certain weight is dropped or multiplied by one factor.
void infer_dropout(const BugContext& c, BugCases& to) {
  constexpr double accuracy = 1e-3;
  const auto* given = c.observed(c.target);
  const bool is_coarse = c.precision == Precision::bfloat16 || c.precision == Precision::float16,
             is_output = c.target == Stage::output && c.now.has_projection(ProjectionName::output);
  if ((!is_output && c.target != Stage::contexts) || !given || c.is_large || is_coarse ||
      given->size() != c.model().sequences.size() * (is_output ? 1 : c.model().n_heads) ||
      arma::size(*(*given)[0]) != arma::size(*c.stages.matrix(c.target, 0, 0)))
    return;
  Numbers factors = certain_factors(c, *given);
  std::ranges::sort(factors);
  const auto n_dropped = static_cast<std::size_t>(
      std::ranges::count_if(factors, [](double f) { return std::abs(f) < accuracy; }));
  if (n_dropped < 3 || factors.size() < n_dropped + 4) return;
  const double f = factors[(n_dropped + factors.size()) / 2];
  const bool is_dropout = f > 1 + accuracy && std::abs(factors[n_dropped] - f) < accuracy * f &&
                          std::abs(factors.back() - f) < accuracy * f;
  if (is_dropout) add_observed(c, to, {});
}

const std::array dropout_rows{
    Bug{.name = "dropout_form",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              const DropoutForm& form = of_form(dropout_forms, c.form);
              compute_dropout(e, form.kept, form.factor(dropout_rate(e.model())));
            },
        .words = form_words<dropout_forms>,
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const DropoutForm& form : dropout_forms)
                if (has_dropout(c.model())) to.add({}, form.form);
            }},
    Bug{.name = "dropout_inverted",
        .edit =
            [](Editing& e, const BugCase&, ProjectionName) {
              const auto dropped = [](const arma::mat& weights, const arma::mat& is_kept) {
                return arma::mat(weights % (1 - is_kept));
              };
              compute_dropout(e, dropped, dropout_scale(e.model().dropout));
            },
        .words = "the dropout mask is inverted",
        .fits = [](const Editing& e) { return has_dropout(e.model()); }},
    Bug{.name = "dropout_renormalized",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              drop_observed(
                  e, c, [](arma::mat kept, double) { return normalized(std::move(kept)); }, 1);
            },
        .words =
            [](const Editing&, const BugCase& c) {
              return "weights: " + percent(c.numbers[0]) +
                     " of the unmasked cells are zero and the rest renormalized (a mask of no rule known "
                     "here, or dropout before the weights are normalized)";
            },
        .cases = read_off_renormalized,
        .rank = 4,
        .in_pairs = false},
    Bug{.name = "dropout_active",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              drop_observed(
                  e, c, [](arma::mat kept, double f) { return arma::mat(kept * f); }, c.numbers[0]);
            },
        .words = dropout_words,
        .cases = read_off_dropout,
        .rank = 1},
    Bug{.name = "dropout_active:inferred",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              e.wrap(stage_named(c.form), [observed = c.observed](const OperationInputs& in) {
                const std::size_t n = observed->size() / in.model.sequences.size();
                const arma::mat& theirs = (*observed)[in.sequence * n + in.head];
                return theirs.n_rows == in.model.n_tokens() ? in.selected(theirs) : in[0];
              });
            },
        .words = "dropout is active: compare in eval mode",
        .cases = infer_dropout,
        .rank = 1,
        .in_pairs = false},
};

}  // namespace

std::span<const Bug> dropout_bugs() {
  return dropout_rows;
}

}  // namespace core::bugs
