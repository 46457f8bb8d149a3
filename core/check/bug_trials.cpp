#include "core/check/bug_trials.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/base/least_squares.hpp"

namespace core::check {

using bugs::BugCase;
using bugs::Numbers;
using graph::infinity;

namespace {

/// Work of listing and editing a graph for one case, whatever it computes.
constexpr double cells_per_case = 500;

}  // namespace

Editing BugTrials::edited(const BugCase& bug) const {
  budget_.work.cells += cells_per_case;
  Editing now = *scene.now;
  bug.edit(now);
  return now;
}

Editing BugTrials::edited(const BugCase& first, const BugCase& second) const {
  Editing now = edited(first);
  second.edit(now);
  return now;
}

BugHit BugTrials::hit_of(const BugCase& bug, Editing now, double score) const {
  return {bug, bug.words(*scene.now), bug.bug->rank_in(context, bug),
          std::make_shared<const Editing>(std::move(now)), score};
}

// Judging.

bool BugTrials::reaches_target(const Editing& now) const {
  if (now.has_reordered_scores() || now.reported(scene.target) != scene.target) return true;
  LazyStages changed(now.graph, now.model(), *scene.stages);
  return changed.find(scene.target) && !changed.is_unchanged(scene.target);
}

double BugTrials::judge(const Editing& now, double slack) const {
  LazyStages changed(now.graph, now.model(), *scene.stages);
  double least = infinity;
  for (const Stage seen : o_.candidates_for(now, scene.target)) {
    const bool is_same = seen == scene.target && !now.has_reordered_scores() && changed.find(seen) &&
                         changed.is_unchanged(seen);
    if (is_same || !o_.has_as_many(changed, seen, scene.target) || !o_.can_compute(now, seen)) continue;
    if (scene.fits) {
      NumberDistance probed;
      probed.add(o_.stage(scene.target),
                 scene.probed(changed, seen, scene.probe_sequence, scene.probe_matrix), scene.probe,
                 o_.is_exact(), slack * scene.allowed.maximum);
      if (probed.is_infinite()) continue;
    }
    least = std::min(least, o_.distance(changed, seen, scene.target, scene.allowed, slack, scene.is_sampled));
  }
  return least;
}

// Fitting.

/// Returns the differences of the target's numbers, of its probe or of all matrices; nothing if a number is
/// not finite in one alone.
std::optional<arma::vec> BugTrials::residual(const Editing& now, bool of_probe) const {
  LazyStages changed(now.graph, now.model(), *scene.stages);
  const Stage seen = now.reported(scene.target);
  if (!o_.has_as_many(changed, seen, scene.target) || !o_.can_compute(now, seen)) return std::nullopt;
  std::vector<double> differences;
  const auto add = [&](arma::mat numbers, const arma::mat& other) {
    const arma::mat ours = with_masked_infinite(scene.target, std::move(numbers));
    if (arma::size(ours) != arma::size(other)) return false;
    for (std::size_t k = 0; k < ours.n_elem; ++k) {
      if (std::isfinite(ours[k]) != std::isfinite(other[k])) return false;
      if (std::isfinite(ours[k])) differences.push_back(ours[k] - other[k]);
    }
    return true;
  };
  if (of_probe && !add(scene.probed(changed, seen, scene.probe_sequence, scene.probe_matrix), scene.probe))
    return std::nullopt;
  for (std::size_t s = 0; !of_probe && s < o_.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < changed.n_matrices(seen); ++h)
      if (!add(changed.matrix(seen, s, h, scene.by_rows), scene.observed(s, h))) return std::nullopt;
  if (differences.empty()) return std::nullopt;
  return arma::vec(differences);
}

std::optional<BugTrials::FittedBugs> BugTrials::fit(std::vector<BugCase> bugs, std::size_t n_steps) const {
  std::vector<double> x;
  for (const BugCase& bug : bugs) x.insert(x.end(), bug.numbers.begin(), bug.numbers.end());
  // The probe determines one number, and if it is part of the only matrix, as many as it has room for.
  const std::size_t n_matrices = o_.model().sequences.size() * scene.stages->n_matrices(scene.target);
  const bool of_probe = o_.is_exact() && scene.fits &&
                        (x.size() == 1 || (n_matrices == 1 && scene.probe.n_elem >= 4 * x.size()));
  const auto with_numbers = [&](const std::vector<double>& all) {
    std::vector<BugCase> cases = bugs;
    auto next = all.begin();
    for (BugCase& bug : cases)
      for (double& number : bug.numbers) number = *next++;
    return cases;
  };
  const auto residual_at = [&](const std::vector<double>& all) {
    budget_.work.cells += cells_per_case;
    Editing now = *scene.now;
    for (const BugCase& bug : with_numbers(all)) bug.edit(now);
    return residual(now, of_probe);
  };
  auto r = residual_at(x);
  if (!r || r->n_elem < 4 * x.size()) return std::nullopt;
  double cost = arma::dot(*r, *r), damping = 1e-3;
  const double first = cost;
  for (std::size_t step = 0; step < n_steps; ++step) {
    arma::mat J(r->n_elem, x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      std::vector<double> moved = x;
      const double h = 1e-6 * (1 + std::abs(x[k]));
      moved[k] += h;
      const auto s = residual_at(moved);
      if (!s || s->n_elem != r->n_elem) return FittedBugs{with_numbers(x), cost};
      J.col(k) = (*s - *r) / h;
    }
    const arma::mat A = J.t() * J;
    const arma::vec g = J.t() * *r;
    if (!A.is_finite() || arma::any(arma::vec(A.diag()) == 0)) break;
    const double before = cost;
    for (int attempt = 0; attempt < 6; ++attempt) {
      const auto dx = least_squares(A + damping * arma::diagmat(A), -g);
      if (!dx) break;
      std::vector<double> next = x;
      for (std::size_t k = 0; k < x.size(); ++k) next[k] += (*dx)[k];
      const auto s = residual_at(next);
      if (s && s->n_elem == r->n_elem && arma::dot(*s, *s) < cost) {
        x = next, r = s, cost = arma::dot(*s, *s), damping *= 0.2;
        break;
      }
      damping *= 8;
    }
    if (cost > 0.9999 * before || arma::abs(*r).max() < 0.02 * scene.allowed.maximum ||
        (step == 8 && cost > 0.5 * first))
      break;
  }
  return FittedBugs{with_numbers(x), cost};
}

bool BugTrials::is_plausible(const BugCase& bug) const {
  if (std::ranges::any_of(bug.numbers, [](double f) { return !(std::abs(f) <= 1e5); })) return false;
  if (o_.is_coarse() && bug.numbers.size() > 1) {
    const Editing now = edited(bug);
    const graph::Node *before = scene.now->find(scene.target), *after = now.find(scene.target);
    if (before && after && before->operation.get() == after->operation.get()) return false;
  }
  return !bug.bug->is_plausible || bug.bug->is_plausible(context, bug);
}

// Cases.

const std::vector<BugCase>& BugTrials::cases(double deadline) {
  if (!cases_) cases_ = with_closest_starts(bug_cases(context), deadline);
  return *cases_;
}

std::vector<BugCase> BugTrials::with_closest_starts(std::vector<BugCase> all, double deadline) const {
  constexpr std::size_t max_starts = 3;
  std::map<const bugs::Bug*, std::size_t> n_starts;
  for (const BugCase& bug : all) n_starts[bug.bug] += bug.is_fitted;
  std::map<std::tuple<const bugs::Bug*, std::string, std::string>,
           std::vector<std::pair<double, std::size_t>>>
      costs;
  for (std::size_t k = 0; k < all.size() && budget_.should_continue(deadline); ++k) {
    const BugCase& bug = all[k];
    if (!bug.is_fitted || n_starts[bug.bug] <= max_starts) continue;
    const Editing now = edited(bug);
    if (!reaches_target(now)) continue;
    const auto r = residual(now, o_.is_exact() && scene.fits);
    costs[{bug.bug, bug.form, bug.sides}].emplace_back(r ? arma::dot(*r, *r) : infinity, k);
  }
  std::set<std::size_t> dropped;
  for (auto& [key, starts] : costs) {
    std::ranges::sort(starts);
    for (std::size_t k = max_starts; k < starts.size(); ++k) dropped.insert(starts[k].second);
  }
  std::vector<BugCase> kept;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (!dropped.contains(k)) kept.push_back(std::move(all[k]));
  return kept;
}

BugHits BugTrials::hits(const std::vector<BugCase>& cases, double deadline, double slack) {
  BugHits found;
  for (BugCase bug : cases) {
    if (!budget_.should_continue(deadline)) break;
    budget_.token.count(1);
    if (bug.is_fitted) {
      if (!reaches_target(edited(bug))) continue;
      auto fitted = fit({bug});
      if (!fitted || !is_plausible(fitted->bugs[0])) continue;
      bug = std::move(fitted->bugs[0]);
    }
    Editing now = edited(bug);
    const double score = judge(now, slack);
    if (score <= slack) found.push_back(hit_of(bug, std::move(now), score));
  }
  std::ranges::stable_sort(found, {}, &BugHit::rank);
  return found;
}

BugHits BugTrials::partial_hits(double deadline) {
  constexpr std::size_t max_partial = 400, max_tried = 10;
  const double base = scene.count_agreeing_rows(*scene.stages, scene.now->reported(scene.target));
  std::vector<std::tuple<double, int, BugHit>> partial;
  for (const BugCase& bug : cases(deadline)) {
    if (bug.is_fitted || partial.size() >= max_partial || !budget_.should_continue(deadline)) continue;
    Editing now = edited(bug);
    if (!reaches_target(now) || !o_.can_compute(now, scene.target)) continue;
    LazyStages changed(now.graph, now.model(), *scene.stages);
    const double n = scene.count_agreeing_rows(changed, now.reported(scene.target));
    if (n <= base) continue;
    BugHit hit = hit_of(bug, std::move(now), infinity);
    partial.emplace_back(-n, hit.rank, std::move(hit));
  }
  std::ranges::stable_sort(partial, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  BugHits hits;
  std::vector<Numbers> tried;
  for (auto& [n, rank, hit] : partial) {
    if (hits.size() >= max_tried) break;
    LazyStages changed(hit.edited->graph, hit.edited->model(), *scene.stages);
    Numbers own = scene.numbers_of(changed, hit.edited->reported(scene.target));
    if (std::ranges::find(tried, own) != tried.end()) continue;
    tried.push_back(std::move(own));
    hits.push_back(std::move(hit));
  }
  return hits;
}

}  // namespace core::check
