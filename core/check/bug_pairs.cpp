#include "core/check/bug_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace core::check {
namespace {

using bugs::BugCase;

class PairSearch {
 public:
  PairSearch(BugTrials& trials, const Observation& of, SearchBudget budget,
             const std::function<bool(BugHit&)>& confirm)
      : trials_(trials), scene_(trials.scene), o_(of), budget_(budget), confirm_(confirm) {}

  /// Computes the effects of cases that are not fitted.
  void compute_effects(double deadline);
  bool has_effects() const { return !live_.empty(); }
  std::vector<BugHits> try_sums(double deadline);
  std::vector<BugHits> try_titles(double deadline);
  std::vector<BugHits> fit_after_likeliest(double deadline);
  std::vector<BugHits> fit_both(double deadline);

 private:
  template <class MatrixOf>
  arma::vec some_numbers(MatrixOf matrix_of) const;
  arma::vec some_numbers(LazyStages& stages) const {
    return some_numbers(
        [&](std::size_t s, std::size_t h) { return scene_.probed(stages, scene_.target, s, h); });
  }
  /// Rounds squares that remain: those equal up to rounding keep the order of the table, which has the most
  /// common cases first.
  double in_steps(double squares) const { return std::round(squares / unit_); }
  std::optional<BugHits> both(const BugCase& first, const BugCase& second);

  BugTrials& trials_;
  const BugScene& scene_;
  const Observation& o_;
  SearchBudget budget_;
  const std::function<bool(BugHit&)>& confirm_;
  std::vector<const BugCase*> live_;  ///< cases with an effect
  arma::mat gram_;                    ///< products of their effects
  arma::vec toward_;                  ///< products of each with the difference
  double unit_ = 1;
};

/// Returns numbers of the target, about as many for each size; none if a matrix has another shape.
template <class MatrixOf>
arma::vec PairSearch::some_numbers(MatrixOf matrix_of) const {
  constexpr std::size_t max_numbers = 800;
  const std::size_t n_sequences = o_.model().sequences.size(),
                    n_matrices = scene_.stages->n_matrices(scene_.target), n_cells = scene_.probe.n_elem,
                    step = std::max<std::size_t>(1, n_sequences * n_matrices * n_cells / max_numbers);
  std::vector<double> numbers;
  std::size_t k = 0;
  for (std::size_t s = 0; s < n_sequences; ++s)
    for (std::size_t h = 0; h < n_matrices; ++h) {
      const arma::mat all = matrix_of(s, h);
      if (arma::size(all) != arma::size(scene_.probe)) return {};
      for (std::size_t cell = 0; cell < n_cells; ++cell, ++k)
        if (k % step == 0) numbers.push_back(std::isfinite(all[cell]) ? all[cell] : 0);
    }
  return arma::vec(numbers);
}

void PairSearch::compute_effects(double deadline) {
  constexpr std::size_t max_per_cause = 80;
  const arma::vec base = some_numbers(*scene_.stages),
                  want =
                      some_numbers([&](std::size_t s, std::size_t h) { return scene_.probed(s, h); }) - base;
  std::vector<arma::vec> effects;
  std::map<std::string_view, std::size_t> counts;
  for (const BugCase& bug : trials_.cases(deadline)) {
    if (!budget_.should_continue(deadline)) break;
    if (bug.is_fitted || !bug.bug->in_pairs || bug.bug->rank_in(trials_.context, bug) > 1 ||
        counts[cause_of(*bug.bug)]++ >= max_per_cause)
      continue;
    const Editing now = trials_.edited(bug);
    if (!trials_.reaches_target(now) || !o_.can_compute(now, scene_.target)) continue;
    LazyStages changed(now.graph, now.model(), *scene_.stages);
    if (!o_.has_as_many(changed, scene_.target, scene_.target)) continue;
    arma::vec effect = some_numbers(changed);
    if (effect.n_elem != base.n_elem) continue;
    effect -= base;
    if (!effect.is_finite() || arma::abs(effect).max() <= scene_.allowed.maximum) continue;
    live_.push_back(&bug);
    effects.push_back(std::move(effect));
  }
  arma::mat all(base.n_elem, effects.size());
  for (std::size_t k = 0; k < effects.size(); ++k) all.col(k) = effects[k];
  gram_ = all.t() * all;
  toward_ = all.t() * want;
  unit_ = 1e-9 * (arma::dot(want, want) + 1e-300);
}

std::optional<BugHits> PairSearch::both(const BugCase& first, const BugCase& second) {
  Editing with_second = trials_.edited(first, second);
  if (trials_.judge(with_second, 1) > 1) return std::nullopt;
  BugHit one = trials_.hit_of(first, trials_.edited(first), 0),
         two = trials_.hit_of(second, std::move(with_second), 0);
  two.words = second.words(*one.edited);
  if (!confirm_(two)) return std::nullopt;
  one.worst = two.worst;
  return BugHits{std::move(one), std::move(two)};
}

/// Tries pairs of cases, those first whose effects add up to the difference.
std::vector<BugHits> PairSearch::try_sums(double deadline) {
  constexpr std::size_t max_tried = 8000;
  const std::size_t max_found = o_.is_exact() ? 3 : 40;
  std::vector<std::tuple<double, std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < live_.size(); ++i)
    for (std::size_t j = i + 1; j < live_.size(); ++j)
      if (cause_of(*live_[i]->bug) != cause_of(*live_[j]->bug))
        order.emplace_back(
            in_steps(gram_(i, i) + gram_(j, j) + 2 * gram_(i, j) - 2 * (toward_[i] + toward_[j])), i, j);
  const std::size_t n_tried = std::min(order.size(), max_tried);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_tried), order.end());
  std::vector<BugHits> found;
  for (std::size_t k = 0; k < n_tried && found.size() < max_found && budget_.should_continue(deadline); ++k) {
    const auto [squares, i, j] = order[k];
    auto pair = both(*live_[i], *live_[j]);
    if (!pair) pair = both(*live_[j], *live_[i]);
    if (pair) found.push_back(std::move(*pair));
  }
  return found;
}

/// Fits a bug after each case, those first that come closest alone.
std::vector<BugHits> PairSearch::fit_after_likeliest(double deadline) {
  std::vector<std::pair<double, std::size_t>> likely;
  for (std::size_t k = 0; k < live_.size(); ++k)
    likely.emplace_back(in_steps(gram_(k, k) - 2 * toward_[k]), k);
  std::ranges::sort(likely);
  std::vector<BugHits> found;
  for (const auto& [squares, k] : likely) {
    if (!budget_.should_continue(deadline) || !found.empty()) break;
    const BugHit first = trials_.hit_of(*live_[k], trials_.edited(*live_[k]), 0);
    BugTrials next(o_, first.edited, scene_.target, budget_);
    std::vector<BugCase> fits = next.cases(deadline);
    std::erase_if(fits, [](const BugCase& bug) { return !bug.is_fitted; });
    for (BugHit& hit : next.hits(fits, deadline, 1))
      if (confirm_(hit)) found.push_back({first, hit}), found.back()[0].worst = hit.worst;
  }
  return found;
}

/// Tries all pairs of bugs with titles, whose effects need not add up.
std::vector<BugHits> PairSearch::try_titles(double deadline) {
  std::vector<const BugCase*> titled;
  for (const BugCase* bug : live_)
    if (!titles_of(*bug, *scene_.now).empty()) titled.push_back(bug);
  std::vector<BugHits> found;
  for (const BugCase* first : titled)
    for (const BugCase* second : titled) {
      if (!budget_.should_continue(deadline)) return found;
      if (first == second) continue;
      if (auto pair = both(*first, *second)) found.push_back(std::move(*pair));
    }
  return found;
}

/// Fits two bugs together, those that come closest alone.
std::vector<BugHits> PairSearch::fit_both(double deadline) {
  constexpr std::size_t max_alone = 24, max_found = 4, n_first_steps = 10;
  struct Alone {
    double squares;
    BugCase start;
    std::vector<double> numbers;
  };
  std::vector<Alone> alone;
  for (const BugCase& bug : trials_.cases(deadline)) {
    if (!bug.is_fitted || !bug.bug->in_pairs) continue;
    if (!budget_.should_continue(deadline)) return {};
    const auto fitted = trials_.fit({bug}, n_first_steps);
    if (fitted && std::isfinite(fitted->squares))
      alone.push_back({fitted->squares, bug, fitted->bugs[0].numbers});
  }
  std::ranges::stable_sort(alone, {}, &Alone::squares);
  if (alone.size() > max_alone) alone.resize(max_alone);
  std::vector<std::tuple<double, std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < alone.size(); ++i)
    for (std::size_t j = i + 1; j < alone.size(); ++j)
      if (cause_of(*alone[i].start.bug) != cause_of(*alone[j].start.bug))
        order.emplace_back(alone[i].squares + alone[j].squares, i, j);
  std::ranges::sort(order);
  std::vector<BugHits> found;  // many fits are equivalent; the likeliest is chosen from the first few
  for (const auto& [squares, i, j] : order)
    for (const std::vector<double>& start : {alone[i].numbers, alone[i].start.numbers}) {
      if (!budget_.should_continue(deadline) || found.size() >= max_found) return found;
      BugCase one = alone[i].start;
      one.numbers = start;
      const auto fitted = trials_.fit({one, alone[j].start});
      if (!fitted ||
          !std::ranges::all_of(fitted->bugs, [&](const BugCase& bug) { return trials_.is_plausible(bug); }))
        continue;
      if (auto pair = both(fitted->bugs[0], fitted->bugs[1])) {
        found.push_back(std::move(*pair));
        break;
      }
    }
  return found;
}

}  // namespace

std::vector<BugHits> find_bug_pairs(BugTrials& trials, const Observation& of, SearchBudget budget,
                                    double deadline, const std::function<bool(BugHit&)>& confirm) {
  if (!trials.scene.fits) return {};
  PairSearch pairs(trials, of, budget, confirm);
  pairs.compute_effects(budget.part_of(0.6, deadline));
  if (!pairs.has_effects()) return {};
  auto found = pairs.try_sums(budget.part_of(0.5, deadline));
  if (found.empty()) found = pairs.fit_after_likeliest(budget.part_of(0.6, deadline));
  if (found.empty()) found = pairs.try_titles(budget.part_of(0.5, deadline));
  if (found.empty()) found = pairs.fit_both(deadline);
  return found;
}

}  // namespace core::check
