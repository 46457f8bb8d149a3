#include "core/check/bug_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/text.hpp"
#include "core/check/bug_scene.hpp"
#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

using bugs::BugCase;
using bugs::BugContext;
using bugs::Numbers;
using graph::infinity;

/// Work of listing and editing a graph for one case, whatever it computes.
constexpr double cells_per_case = 500;

/// A bug in a graph.
struct Hit {
  BugCase bug;
  std::string words;
  int rank = 0;
  std::shared_ptr<const Editing> edited;
  double score = 0, worst = 0;
};
using Hits = std::vector<Hit>;

int rank_of(const Hits& hits) {
  return std::accumulate(hits.begin(), hits.end(), 0, [](int sum, const Hit& hit) { return sum + hit.rank; });
}
double worst_of(const Hits& hits) {
  return std::ranges::max(hits, {}, &Hit::worst).worst;
}
Hits with(Hits all, Hit hit) {
  all.push_back(std::move(hit));
  return all;
}

/// Stages that are taken as observed though nothing explains them.
using AcceptedStages = attention::StageSet;

class BugSearch {
 public:
  BugSearch(const Observation& of, const core::StopToken& token, graph::Work& work, double max_cells)
      : o_(of), token_(token), work_(work), max_cells_(max_cells) {}

  BugSearchResult run();
  /// Returns those of the found bugs that explain the stages of this observation too.
  std::vector<FoundBugs> confirmed(const std::vector<FoundBugs>& found);

 private:
  double spent() const { return work_.cells; }
  bool should_continue(double deadline) const { return token_.should_continue() && spent() < deadline; }

  Editing edited(const BugScene& scene, const BugCase& bug) {
    work_.cells += cells_per_case;
    Editing now = *scene.now;
    bug.edit(now);
    return now;
  }
  Hit hit_of(const BugScene& scene, const BugContext& context, const BugCase& bug, Editing now,
             double score) {
    return {bug, bug.words(*scene.now), bug.bug->rank_in(context, bug),
            std::make_shared<const Editing>(std::move(now)), score};
  }

  struct FirstDifference {
    std::optional<Stage> stage;
    std::vector<Stage> agreeing;
    double worst = 0;
  };
  FirstDifference first_difference(const Editing& now, const AcceptedStages& accepted = {});
  bool confirm(Hit& hit, const AcceptedStages& accepted = {});
  double judge(const BugScene& scene, const Editing& now, double slack);
  std::optional<arma::vec> residual(const BugScene& scene, const Editing& now, bool of_probe);
  struct FittedBugs {
    std::vector<BugCase> bugs;
    double squares = infinity;
  };
  std::optional<FittedBugs> fit(const BugScene& scene, std::vector<BugCase> bugs, std::size_t n_steps = 24);
  /// Fits the numbers of a case that has some to fit; false if that fails or they cannot be meant.
  bool fit_plausibly(const BugScene& scene, const BugContext& context, BugCase& bug);
  bool is_plausible(const BugScene& scene, const BugContext& context, const BugCase& bug) const;
  bool reaches_target(const BugScene& scene, const Editing& now) const;
  std::vector<BugCase> candidates(const BugScene& scene, const BugContext& context, double deadline);
  Hits hits_at(const BugScene& scene, const BugContext& context, const std::vector<BugCase>& cases,
               double deadline, double slack);
  Hits partial_hits(const BugScene& scene, const BugContext& context, const std::vector<BugCase>& cases,
                    double deadline);
  std::vector<Hits> search(const std::shared_ptr<const Editing>& now, const Hits& applied,
                           const AcceptedStages& accepted, int depth, double deadline);
  std::vector<Hits> find_pairs(Stage target, double deadline);
  std::vector<Hits> fit_pairs(const BugScene& scene, const BugContext& context, double deadline);
  std::vector<Hits> explain_coarser_inputs(Stage target, double deadline, std::string& note);
  std::vector<Hits> choose_likeliest(std::vector<Hits> found);
  std::vector<Hits> distinct(std::vector<Hits> all);
  Numbers signature(const Editing& now);
  void describe(Stage first, double deadline, BugSearchResult& result);

  const Observation& o_;
  const core::StopToken& token_;
  graph::Work& work_;
  double max_cells_;
};

BugSearch::FirstDifference BugSearch::first_difference(const Editing& now, const AcceptedStages& accepted) {
  const auto both = o_.stages_of(now, accepted.none());
  both->exact.count_in(work_);
  if (both->coarse) both->coarse->count_in(work_);
  for (const Stage stage : o_.order())
    if (accepted[graph::index(stage)])
      o_.give(both->exact, stage, false), o_.give(both->rounded(), stage, true);
  FirstDifference result;
  for (const Stage stage : o_.order()) {
    if (accepted[graph::index(stage)]) continue;
    double least = infinity;
    for (const Stage seen : o_.candidates_for(now, stage)) {
      if (!o_.can_compute(now, seen) || !o_.has_as_many(both->exact, seen, stage)) continue;
      const AllowedDifference allowed = o_.allowed(stage, seen, both->exact, both->rounded());
      least = std::min(least, o_.distance(both->exact, seen, stage, allowed, 1));
    }
    result.worst = std::max(result.worst, least);
    if (least <= 1) {
      if (result.stage) result.agreeing.push_back(stage);
      continue;
    }
    if (!result.stage) result.stage = stage;
    if (o_.is_large() && &now != &o_.right()) break;
  }
  return result;
}

/// Whether all observed stages agree: computed from the start and, in low precision, also each from the
/// observed stages before it.
bool BugSearch::confirm(Hit& hit, const AcceptedStages& accepted) {
  token_.count(1);
  const Editing& now = *hit.edited;
  const FirstDifference whole = first_difference(now, accepted);
  if (whole.stage) return false;
  if (o_.is_exact()) return true;
  hit.worst = o_.order().size() == 1 ? whole.worst : 0;
  if (o_.order().size() == 1) return true;
  const auto both = o_.stages_of(now, false);
  both->exact.count_in(work_), both->coarse->count_in(work_);
  for (const Stage stage : o_.order()) {
    if (!(now.has_reordered_scores() && is_score_step_stage(stage))) {
      const Stage seen = now.reported(stage);
      if (!o_.has_as_many(both->exact, seen, stage)) return false;
      const AllowedDifference allowed = o_.allowed(stage, seen, both->exact, *both->coarse);
      hit.worst = std::max(hit.worst, o_.distance(both->exact, seen, stage, allowed, 1));
      if (hit.worst > 1) return false;
    }
    if (!o_.has_same_shape(o_.right_stages(), stage, stage) || now.reported(stage) != stage) continue;
    o_.give(both->exact, stage, false), o_.give(*both->coarse, stage, true);
  }
  return true;
}

bool BugSearch::reaches_target(const BugScene& scene, const Editing& now) const {
  if (now.has_reordered_scores() || now.reported(scene.target) != scene.target) return true;
  LazyStages changed(now.graph, now.model(), *scene.stages);
  return changed.find(scene.target) && !changed.is_unchanged(scene.target);
}

/// Returns the distance of the target after an edit, ∞ as soon as it is more than `slack`.
double BugSearch::judge(const BugScene& scene, const Editing& now, double slack) {
  LazyStages changed(now.graph, now.model(), *scene.stages);
  double least = infinity;
  for (const Stage seen : o_.candidates_for(now, scene.target)) {
    const bool is_same = seen == scene.target && !now.has_reordered_scores() && changed.find(seen) &&
                         changed.is_unchanged(seen);
    if (is_same || !o_.has_as_many(changed, seen, scene.target) || !o_.can_compute(now, seen)) continue;
    if (scene.fits) {
      NumberDistance probed;
      probed.add(scene.target, scene.probed(changed, seen, scene.probe_sequence, scene.probe_matrix),
                 scene.probe, o_.is_exact(), slack * scene.allowed.maximum);
      if (probed.is_infinite()) continue;
    }
    least = std::min(least, o_.distance(changed, seen, scene.target, scene.allowed, slack, scene.is_sampled));
  }
  return least;
}

// Fitting.

/// Returns the differences of the target's numbers, of its probe or of all matrices; nothing if a number is
/// not finite in one alone.
std::optional<arma::vec> BugSearch::residual(const BugScene& scene, const Editing& now, bool of_probe) {
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

/// Fits the numbers of bugs by Levenberg–Marquardt.
std::optional<BugSearch::FittedBugs> BugSearch::fit(const BugScene& scene, std::vector<BugCase> bugs,
                                                    std::size_t n_steps) {
  std::vector<double> x;
  for (const BugCase& bug : bugs) x.insert(x.end(), bug.numbers.begin(), bug.numbers.end());
  const bool of_probe = x.size() == 1 && o_.is_exact() && scene.fits;
  const auto with_numbers = [&](const std::vector<double>& all) {
    std::vector<BugCase> cases = bugs;
    auto next = all.begin();
    for (BugCase& bug : cases)
      for (double& number : bug.numbers) number = *next++;
    return cases;
  };
  const auto residual_at = [&](const std::vector<double>& all) {
    work_.cells += cells_per_case;
    Editing now = *scene.now;
    for (const BugCase& bug : with_numbers(all)) bug.edit(now);
    return residual(scene, now, of_probe);
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
      arma::vec dx;
      if (!arma::solve(dx, A + damping * arma::diagmat(A), -g, arma::solve_opts::no_approx)) break;
      std::vector<double> next = x;
      for (std::size_t k = 0; k < x.size(); ++k) next[k] += dx[k];
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

/// Whether numbers can be meant: none too large, and no list fitted to another stage than the target, which
/// coarse rounding leaves too uncertain.
bool BugSearch::is_plausible(const BugScene& scene, const BugContext& context, const BugCase& bug) const {
  if (std::ranges::any_of(bug.numbers, [](double f) { return !(std::abs(f) <= 1e5); })) return false;
  const bool is_coarse = o_.precision() == Precision::float16 || o_.precision() == Precision::bfloat16;
  if (is_coarse && bug.numbers.size() > 1) {
    Editing now = *scene.now;
    bug.edit(now);
    const graph::Node *before = scene.now->find(scene.target), *after = now.find(scene.target);
    if (before && after && before->operation.get() == after->operation.get()) return false;
  }
  return !bug.bug->is_plausible || bug.bug->is_plausible(context, bug);
}

bool BugSearch::fit_plausibly(const BugScene& scene, const BugContext& context, BugCase& bug) {
  if (!bug.is_fitted) return true;
  auto fitted = fit(scene, {bug});
  if (!fitted || !is_plausible(scene, context, fitted->bugs[0])) return false;
  bug = std::move(fitted->bugs[0]);
  return true;
}

// Single bugs.

/// Returns the cases to try; of many places where a fit may begin, only the closest three.
std::vector<BugCase> BugSearch::candidates(const BugScene& scene, const BugContext& context,
                                           double deadline) {
  constexpr std::size_t max_starts = 3;
  std::vector<BugCase> cases = bug_cases(context);
  std::map<const bugs::Bug*, std::size_t> n_starts;
  for (const BugCase& bug : cases) n_starts[bug.bug] += bug.is_fitted;
  std::map<std::tuple<const bugs::Bug*, std::string, std::string>,
           std::vector<std::pair<double, std::size_t>>>
      costs;
  for (std::size_t k = 0; k < cases.size() && should_continue(deadline); ++k) {
    const BugCase& bug = cases[k];
    if (!bug.is_fitted || n_starts[bug.bug] <= max_starts) continue;
    const Editing now = edited(scene, bug);
    if (!reaches_target(scene, now)) continue;
    const auto r = residual(scene, now, o_.is_exact() && scene.fits);
    costs[{bug.bug, bug.form, bug.sides}].emplace_back(r ? arma::dot(*r, *r) : infinity, k);
  }
  std::set<std::size_t> dropped;
  for (auto& [key, all] : costs) {
    std::ranges::sort(all);
    for (std::size_t k = max_starts; k < all.size(); ++k) dropped.insert(all[k].second);
  }
  std::vector<BugCase> kept;
  for (std::size_t k = 0; k < cases.size(); ++k)
    if (!dropped.contains(k)) kept.push_back(std::move(cases[k]));
  return kept;
}

Hits BugSearch::hits_at(const BugScene& scene, const BugContext& context, const std::vector<BugCase>& cases,
                        double deadline, double slack) {
  Hits found;
  for (BugCase bug : cases) {
    if (!should_continue(deadline)) break;
    token_.count(1);
    if (bug.is_fitted && (!reaches_target(scene, edited(scene, bug)) || !fit_plausibly(scene, context, bug)))
      continue;
    Editing now = edited(scene, bug);
    const double score = judge(scene, now, slack);
    if (score <= slack) found.push_back(hit_of(scene, context, bug, std::move(now), score));
  }
  std::ranges::stable_sort(found, {}, &Hit::rank);
  return found;
}

/// Returns bugs that make some rows of the target agree: half of a pair at one stage.
Hits BugSearch::partial_hits(const BugScene& scene, const BugContext& context,
                             const std::vector<BugCase>& cases, double deadline) {
  constexpr std::size_t max_partial = 400, max_tried = 10;
  const double base = scene.count_agreeing_rows(*scene.stages, scene.now->reported(scene.target));
  std::vector<std::tuple<double, int, Hit>> partial;
  for (const BugCase& bug : cases) {
    if (bug.is_fitted || partial.size() >= max_partial || !should_continue(deadline)) continue;
    Editing now = edited(scene, bug);
    if (!reaches_target(scene, now) || !o_.can_compute(now, scene.target)) continue;
    LazyStages changed(now.graph, now.model(), *scene.stages);
    const double n = scene.count_agreeing_rows(changed, now.reported(scene.target));
    if (n <= base) continue;
    Hit hit = hit_of(scene, context, bug, std::move(now), infinity);
    partial.emplace_back(-n, hit.rank, std::move(hit));
  }
  std::ranges::stable_sort(partial, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  Hits hits;
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

/// Returns explanations: lists of hits with which all observed stages agree.
std::vector<Hits> BugSearch::search(const std::shared_ptr<const Editing>& now, const Hits& applied,
                                    const AcceptedStages& accepted, int depth, double deadline) {
  const auto target = first_difference(*now, accepted).stage;
  if (!target) return std::vector<Hits>(applied.empty() ? 0 : 1, applied);
  const BugScene scene(o_, now, *target, work_);
  const BugContext context = scene.context();
  const std::vector<BugCase> cases = candidates(scene, context, deadline);
  Hits found = hits_at(scene, context, cases, deadline, o_.is_exact() ? 1 : 3);
  if (found.empty() && depth > 0 && !o_.is_large()) {  // a second bug at the same stage
    const double until = spent() + 0.5 * (deadline - spent());
    for (const Hit& hit : partial_hits(scene, context, cases, until)) {
      if (!should_continue(until)) break;
      auto explained = search(hit.edited, with(applied, hit), accepted, depth < 2 ? depth - 1 : 1, deadline);
      if (!explained.empty()) return explained;
    }
  }
  std::vector<Hits> done;
  Hits open;
  int best = 9;
  std::set<std::string> already_listed;
  for (Hit& hit : found) {
    if (!already_listed.insert(hit.words).second) continue;
    if (o_.is_large() && done.size() >= 2) break;
    if (hit.rank > best && o_.is_exact()) break;  // a simpler bug explains everything
    if (confirm(hit, accepted))
      best = std::min(best, hit.rank), done.push_back(with(applied, hit));
    else
      open.push_back(std::move(hit));
  }
  if (!done.empty() || depth == 0) return done;
  // These explain this stage; another bug must follow later.
  std::vector<std::tuple<std::ptrdiff_t, int, const Hit*>> ahead;
  const auto place = [&](Stage stage) { return std::ranges::find(o_.order(), stage) - o_.order().begin(); };
  for (const Hit& hit : open)
    if (hit.score <= 1)
      if (const auto next = first_difference(*hit.edited, accepted).stage;
          next && place(*next) > place(*target))
        ahead.emplace_back(-place(*next), hit.rank, &hit);
  std::ranges::stable_sort(ahead, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (std::size_t k = 0; k < std::min<std::size_t>(ahead.size(), 12) && should_continue(deadline); ++k) {
    const Hit& hit = *std::get<2>(ahead[k]);
    for (Hits& explained : search(hit.edited, with(applied, hit), accepted, depth - 1, deadline))
      done.push_back(std::move(explained));
    if (std::ranges::any_of(done, [&](const Hits& e) {
          return e.size() == applied.size() + 2 &&
                 std::ranges::all_of(e, [](const Hit& h) { return h.rank == 0; });
        }))
      break;
  }
  return done;
}

// Pairs.

/// Finds two bugs when too little is given to judge either alone.
///
/// The effect of every single change on the stage is known; pairs are tried in the order of how close the sum
/// of their effects comes to the difference, then the likeliest changes with fitted ones.
std::vector<Hits> BugSearch::find_pairs(Stage target, double deadline) {
  constexpr std::size_t max_per_name = 80, max_cells = 800, max_tried = 8000;
  const auto right = std::make_shared<const Editing>(o_.right());
  const BugScene scene(o_, right, target, work_);
  if (!scene.fits) return {};
  const BugContext context = scene.context();
  const double begin = spent();
  const std::size_t n_sequences = o_.model().sequences.size(), n_matrices = scene.stages->n_matrices(target),
                    n_cells = scene.probe.n_elem,
                    step = std::max<std::size_t>(1, n_sequences * n_matrices * n_cells / max_cells);
  const auto some_of = [&](const auto& matrix_of) {
    std::vector<double> numbers;
    std::size_t k = 0;
    for (std::size_t s = 0; s < n_sequences; ++s)
      for (std::size_t h = 0; h < n_matrices; ++h) {
        const arma::mat all = matrix_of(s, h);
        if (arma::size(all) != arma::size(scene.probe)) return arma::vec();
        for (std::size_t cell = 0; cell < n_cells; ++cell, ++k)
          if (k % step == 0) numbers.push_back(std::isfinite(all[cell]) ? all[cell] : 0);
      }
    return arma::vec(numbers);
  };
  const auto computed = [&](LazyStages& stages) {
    return some_of([&](std::size_t s, std::size_t h) { return scene.probed(stages, target, s, h); });
  };
  const arma::vec base = computed(*scene.stages),
                  want = some_of([&](std::size_t s, std::size_t h) { return scene.probed(s, h); }) - base;
  const std::vector<BugCase> cases = candidates(scene, context, deadline);
  std::vector<const BugCase*> live;
  std::vector<arma::vec> added;
  std::map<std::string_view, std::size_t> counts;
  for (const BugCase& bug : cases) {
    if (bug.is_fitted || !bug.bug->in_pairs || bug.bug->rank_in(context, bug) > 1 ||
        counts[cause_of(*bug.bug)]++ >= max_per_name || spent() > begin + 0.4 * (deadline - begin))
      continue;
    const Editing now = edited(scene, bug);
    if (!reaches_target(scene, now) || !o_.can_compute(now, target)) continue;
    LazyStages changed(now.graph, now.model(), *scene.stages);
    if (!o_.has_as_many(changed, target, target)) continue;
    arma::vec add = computed(changed);
    if (add.n_elem != base.n_elem) continue;
    add -= base;
    if (!add.is_finite() || arma::abs(add).max() <= scene.allowed.maximum) continue;
    live.push_back(&bug);
    added.push_back(std::move(add));
  }
  if (live.empty()) return {};
  arma::mat A(base.n_elem, live.size());
  for (std::size_t k = 0; k < live.size(); ++k) A.col(k) = added[k];
  const arma::mat gram = A.t() * A;
  const arma::vec toward = A.t() * want;
  // Remainders equal up to rounding keep the order of the table, which has the most common first.
  const double unit = 1e-9 * (arma::dot(want, want) + 1e-300);
  const auto steps = [&](double squares) { return std::round(squares / unit); };
  std::vector<std::pair<double, std::pair<std::size_t, std::size_t>>> order;
  for (std::size_t i = 0; i < live.size(); ++i)
    for (std::size_t j = i + 1; j < live.size(); ++j)
      if (cause_of(*live[i]->bug) != cause_of(*live[j]->bug))
        order.push_back(
            {steps(gram(i, i) + gram(j, j) + 2 * gram(i, j) - 2 * (toward[i] + toward[j])), {i, j}});
  const std::size_t n_tried = std::min(order.size(), max_tried);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_tried), order.end());
  std::vector<Hits> found;
  const auto both = [&](const BugCase& one, const BugCase& two) -> std::optional<Hits> {
    Editing first = edited(scene, one);
    Editing second = first;
    two.edit(second);
    if (judge(scene, second, 1) > 1) return std::nullopt;
    Hit a = hit_of(scene, context, one, std::move(first), 0),
        b = hit_of(scene, context, two, std::move(second), 0);
    if (!confirm(b)) return std::nullopt;
    a.worst = b.worst;
    return Hits{a, b};
  };
  const double half = spent() + 0.5 * (deadline - spent());
  for (std::size_t k = 0; k < n_tried && should_continue(half); ++k) {
    const auto [i, j] = order[k].second;
    auto pair = both(*live[i], *live[j]);
    if (!pair) pair = both(*live[j], *live[i]);
    if (pair) found.push_back(std::move(*pair));
    if (found.size() >= (o_.is_exact() ? 3u : 40u)) break;
  }
  if (!found.empty()) return found;
  std::vector<std::pair<double, std::size_t>> likely;
  for (std::size_t k = 0; k < live.size(); ++k) likely.emplace_back(steps(gram(k, k) - 2 * toward[k]), k);
  std::ranges::sort(likely);
  const double until = spent() + 0.6 * (deadline - spent());
  for (const auto& [squares, k] : likely) {
    if (!should_continue(until)) break;
    const Hit first = hit_of(scene, context, *live[k], edited(scene, *live[k]), 0);
    const BugScene next(o_, first.edited, target, work_);
    const BugContext next_context = next.context();
    std::vector<BugCase> fits = candidates(next, next_context, until);
    std::erase_if(fits, [](const BugCase& bug) { return !bug.is_fitted; });
    for (Hit& hit : hits_at(next, next_context, fits, until, 1))
      if (confirm(hit)) found.push_back({first, hit}), found.back()[0].worst = hit.worst;
    if (!found.empty()) return found;
  }
  return fit_pairs(scene, context, deadline);
}

/// Fits two bugs together, those that come closest alone.
std::vector<Hits> BugSearch::fit_pairs(const BugScene& scene, const BugContext& context, double deadline) {
  constexpr std::size_t max_alone = 24, max_found = 4, n_first_steps = 10;
  struct Alone {
    double squares;
    BugCase start;
    std::vector<double> numbers;
  };
  std::vector<Alone> alone;
  for (const BugCase& bug : candidates(scene, context, deadline)) {
    if (!bug.is_fitted || !bug.bug->in_pairs) continue;
    if (!should_continue(deadline)) return {};
    const auto fitted = fit(scene, {bug}, n_first_steps);
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
  std::vector<Hits> found;  // many fits are equivalent; the likeliest is chosen from the first few
  for (const auto& [squares, i, j] : order)
    for (const std::vector<double>& start : {alone[i].numbers, alone[i].start.numbers}) {
      if (!should_continue(deadline) || found.size() >= max_found) return found;
      BugCase one = alone[i].start;
      one.numbers = start;
      const auto fitted = fit(scene, {one, alone[j].start});
      if (!fitted || !std::ranges::all_of(
                         fitted->bugs, [&](const BugCase& bug) { return is_plausible(scene, context, bug); }))
        continue;
      Editing first = edited(scene, fitted->bugs[0]);
      Editing second = first;
      fitted->bugs[1].edit(second);
      if (judge(scene, second, 1) > 1) continue;
      Hit a = hit_of(scene, context, fitted->bugs[0], std::move(first), 0),
          b = hit_of(scene, context, fitted->bugs[1], std::move(second), 0);
      if (!confirm(b)) continue;
      a.worst = b.worst;
      found.push_back({a, b});
      break;
    }
  return found;
}

// Choice.

/// Returns numbers of every stage of a graph, to recognize equivalent bugs.
Numbers BugSearch::signature(const Editing& now) {
  constexpr std::size_t max_of_stage = 4000;
  LazyStages stages(now.graph, now.model(), o_.right_stages());
  Numbers all;
  for (const Stage stage : compared_stages()) {
    const Stage seen = stages.find(now.reported(stage)) ? now.reported(stage) : stage;
    if (!stages.find(seen) || !o_.can_compute(now, seen)) continue;
    Numbers own;
    double size = 0;
    for (std::size_t s = 0; s < now.model().sequences.size(); ++s)
      for (std::size_t h = 0; h < stages.n_matrices(seen) && own.size() < max_of_stage; ++h)
        for (const double x : *stages.matrix(seen, s, h, o_.is_large() && !has_key_rows(seen))) {
          own.push_back(std::isfinite(x) ? x : 0);
          size = std::max(size, std::abs(own.back()));
        }
    for (const double x : own) all.push_back(size > 0 ? x / size : 0);
  }
  return all;
}

/// Returns explanations without equivalent ones, the simplest first.
std::vector<Hits> BugSearch::distinct(std::vector<Hits> all) {
  std::ranges::stable_sort(all, [](const Hits& a, const Hits& b) {
    return std::pair{a.size(), rank_of(a)} < std::pair{b.size(), rank_of(b)};
  });
  std::vector<std::pair<Numbers, Hits>> kept;
  for (Hits& e : all) {
    Numbers own = signature(*e.back().edited);
    const bool is_known = std::ranges::any_of(kept, [&](const auto& other) {
      if (std::ranges::equal(other.second, e, {}, &Hit::words, &Hit::words)) return true;
      if (own.size() != other.first.size()) return false;
      for (std::size_t k = 0; k < own.size(); ++k)
        if (std::abs(own[k] - other.first[k]) > 3e-7) return false;
      return true;
    });
    if (!is_known) kept.emplace_back(std::move(own), std::move(e));
  }
  std::vector<Hits> result;
  for (auto& [own, e] : kept) result.push_back(std::move(e));
  return result;
}

/// Returns the projections that a hit names, but no observed stage depends on.
std::vector<std::string> blind_sides(const Observation& of, const Hit& hit) {
  using enum Stage;
  const auto stages_after = [](char side) -> std::vector<Stage> {
    std::vector<Stage> after{scores,        scaled_scores, capped_scores, position_bias,
                             biased_scores, masked_scores, weights,       dropped_weights};
    if (side == 'q') after.insert(after.end(), {queries, normed_queries, rotated_queries});
    if (side == 'k') after.insert(after.end(), {keys, normed_keys, rotated_keys});
    if (side == 'v') after = {values};
    if (side == 'o') return {output};
    after.insert(after.end(), {contexts, concatenated, output});
    return after;
  };
  std::vector<std::string> blind;
  for (const char side : hit.bug.sides)
    if (std::ranges::none_of(stages_after(side), [&](Stage stage) { return of.is_observed(stage); }))
      blind.push_back(graph::stages_of_sides(std::string(1, side)));
  return blind;
}

/// Returns the simplest distinct explanations; in low precision those that fit about as well as the best.
std::vector<Hits> BugSearch::choose_likeliest(std::vector<Hits> found) {
  constexpr std::size_t max_listed = 5;
  if (found.empty()) return found;
  if (!o_.is_exact()) {
    const double best = worst_of(std::ranges::min(found, {}, worst_of));
    std::erase_if(found, [&](const Hits& e) { return worst_of(e) > std::max(1.5 * best, 0.1); });
  }
  const std::size_t shortest = std::ranges::min(found, {}, &Hits::size).size();
  std::erase_if(found, [&](const Hits& e) { return e.size() != shortest; });
  found = distinct(std::move(found));
  const int lowest = rank_of(std::ranges::min(found, {}, rank_of));
  std::vector<Hits> out;
  std::map<std::string, int> already_listed;
  for (Hits& e : found) {
    std::string family, key;
    bool has_sides = true;
    for (const Hit& hit : e) {
      const std::string cause(cause_of(*hit.bug.bug));
      family += cause + ";";
      // One change on several sides counts once, but positions of queries and of keys are distinct.
      std::string words = hit.words;
      has_sides = has_sides && !hit.bug.sides.empty() && cause != "positions";
      for (const std::string& part : {graph::stages_of_sides(hit.bug.sides), std::string(" (keys only)"),
                                      std::string(" (values only)")})
        if (const std::size_t at = words.find(part); has_sides && at != words.npos)
          words.erase(at, part.size());
      key += words + ";";
    }
    if (rank_of(e) > lowest || (has_sides && already_listed[key] > 0) || already_listed[family] >= 2)
      continue;
    ++already_listed[key], ++already_listed[family];
    std::set<std::string> listed;
    std::vector<std::string> blind;
    for (const Hit& hit : e)
      for (const std::string& name : blind_sides(o_, hit))
        if (listed.insert(name).second) blind.push_back(name);
    if (!blind.empty())
      e.back().words +=
          " (" + text::joined(blind, ", ", {}, " and ") + " cannot be judged from what is given)";
    out.push_back(std::move(e));
    if (out.size() == max_listed) break;
  }
  return out;
}

// Description.

/// Explains stages given in a finer precision than the computation before them used: the difference must
/// correlate with that of rounding, not only be as large.
std::vector<Hits> BugSearch::explain_coarser_inputs(Stage target, double deadline, std::string& note) {
  for (const Precision coarse : {Precision::bfloat16, Precision::float16}) {
    bool is_coarser = false;
    for (const Stage stage : compared_stages()) {
      if (stage == target) break;
      is_coarser = is_coarser || (!o_.is_observed(stage) &&
                                  relative_rounding(coarse) > relative_rounding(o_.precision(stage)));
    }
    if (!is_coarser) continue;
    const Observation rounded(std::make_shared<const Model>(o_.model()), o_.stages(),
                              CoarserInputs{target, coarse});
    const auto has_same_rounding = [&](const Editing& now) {
      const auto both = rounded.stages_of(now);
      if (!rounded.has_same_shape(both->exact, target, target)) return false;
      double xy = 0, xx = 0, yy = 0;
      for (std::size_t s = 0; s < o_.model().sequences.size(); ++s)
        for (std::size_t h = 0; h < both->exact.n_matrices(target); ++h) {
          const arma::mat &exact = both->exact.matrix(target, s, h),
                          &ours = both->rounded().matrix(target, s, h), &other = o_.matrix(target, s, h);
          for (std::size_t k = 0; k < exact.n_elem; ++k) {
            const double x = other[k] - exact[k], y = ours[k] - exact[k];
            if (std::isfinite(x) && std::isfinite(y)) xy += x * y, xx += x * x, yy += y * y;
          }
        }
      return xy > 0.7 * std::sqrt(xx * yy) && xy > 0;
    };
    const std::string words = "what comes before the " + graph::words_of(target) + " was computed in " +
                              attention::name_of(coarse) + ", though they are given in " +
                              attention::name_of(o_.precision());
    BugSearch again(rounded, token_, work_, max_cells_);
    if (!again.first_difference(rounded.right()).stage && has_same_rounding(rounded.right())) {
      note = words;
      return {};
    }
    auto found = again.search(std::make_shared<const Editing>(rounded.right()), {}, {}, 1, deadline);
    std::erase_if(found, [&](const Hits& e) { return !has_same_rounding(*e.back().edited); });
    if (found.empty()) continue;
    note = words;
    return again.choose_likeliest(std::move(found));
  }
  return {};
}

/// Describes a difference that nothing explains, accepts it as observed and examines later stages.
void BugSearch::describe(Stage first, double deadline, BugSearchResult& result) {
  AcceptedStages accepted;
  auto current = std::make_shared<const Editing>(o_.right());
  while (const auto target = first_difference(*current, accepted).stage) {
    if (target != first || !result.partly.empty()) {
      auto rest =
          should_continue(deadline) ? search(current, {}, accepted, 1, deadline) : std::vector<Hits>();
      if (rest = choose_likeliest(std::move(rest)); !rest.empty()) {
        for (const Hit& hit : rest[0]) result.partly.push_back(hit.words);
        return;
      }
    }
    const BugScene scene(o_, current, *target, work_);
    const BugContext context = scene.context();
    const Hits hits = should_continue(deadline)
                          ? hits_at(scene, context, candidates(scene, context, deadline), deadline, 1)
                          : Hits();
    const auto best = std::ranges::find_if(hits, [](const Hit& hit) { return hit.rank <= 2; });
    if (best != hits.end())
      if (const auto next = first_difference(*best->edited, accepted).stage; next && next != target) {
        result.partly.push_back(best->words);
        current = best->edited;
        continue;
      }
    result.described.push_back(scene.difference_words());
    if (!scene.fits) return;
    accepted.set(graph::index(*target));
  }
}

BugSearchResult BugSearch::run() {
  BugSearchResult result;
  result.precision = o_.precision();
  const FirstDifference difference = first_difference(o_.right());
  if (!difference.stage) {
    result.agrees = true;
    return result;
  }
  const Stage target = *difference.stage;
  result.agreeing_after = difference.agreeing;
  result.is_harmless = !result.agreeing_after.empty() && result.agreeing_after.back() == o_.order().back();
  const double begin = spent(), all = max_cells_ - begin;
  auto found = search(std::make_shared<const Editing>(o_.right()), {}, {}, 2, begin + 0.45 * all);
  bool is_chosen = false;
  if (found.empty()) {
    found = explain_coarser_inputs(target, spent() + 0.15 * all, result.note);
    is_chosen = !found.empty();
    if (found.empty() && !result.note.empty()) {
      result.agrees = true;
      return result;
    }
  }
  const auto is_table = [](const Hits& e) {
    return std::ranges::any_of(e, [](const Hit& h) { return h.rank >= 4; });
  };
  const bool is_coarse = o_.precision() == Precision::float16 || o_.precision() == Precision::bfloat16;
  std::vector<Hits> tables;
  if (std::ranges::all_of(found, is_table)) {
    tables = std::move(found);
    found = token_.should_continue() ? find_pairs(target, std::max(begin + 0.85 * all, spent() + 0.3 * all))
                                     : std::vector<Hits>();
    if (!found.empty() && is_coarse && o_.order().size() == 1) {  // rounding makes such pairs uncertain
      const auto likely = choose_likeliest(std::move(found));
      if (!likely.empty())
        result.partly = {"perhaps " + text::joined(likely.front(), "; and ", &Hit::words) +
                         " (bfloat16 or float16 leave room for others)"};
      return result;
    }
  }
  if (found.empty() && !tables.empty()) {  // true, but no rule: reported as a description
    for (const Hit& hit : tables[0])
      hit.rank < 4 ? result.partly.push_back(hit.words)
                   : result.described.push_back(hit.words + " (with just that everything given agrees)");
    return result;
  }
  if (found.empty()) {
    describe(target, std::max(begin + all, spent() + 0.1 * all), result);
    return result;
  }
  if (!is_chosen) found = choose_likeliest(std::move(found));
  for (const Hits& e : found) {
    FoundBugs one{{}, {}, e.back().edited, rank_of(e)};
    for (const Hit& hit : e) {
      one.bugs.push_back(hit.bug), one.sentences.push_back(hit.words);
      one.rank += hit.bug.sides.size() > 1;  // the table of mistakes counts several
    }
    result.found.push_back(std::move(one));
  }
  return result;
}

std::vector<FoundBugs> BugSearch::confirmed(const std::vector<FoundBugs>& found) {
  std::vector<FoundBugs> kept;
  for (FoundBugs one : found) {
    Editing now = o_.right();
    for (const BugCase& bug : one.bugs) bug.edit(now);
    Hit hit{.bug = one.bugs.back(), .words = {}, .edited = std::make_shared<const Editing>(std::move(now))};
    if (!confirm(hit)) continue;
    one.edited = hit.edited;
    kept.push_back(std::move(one));
  }
  return kept;
}

}  // namespace

BugSearchResult find_bugs(std::shared_ptr<const Model> model, std::vector<ObservedStage> stages,
                          const core::StopToken& token, double max_cells) {
  constexpr std::size_t n_first = 20;
  graph::Work work;
  const Observation whole(model, stages);
  BugSearch search(whole, token, work, max_cells);
  if (const auto first = first_tokens(*model, n_first)) {
    const Observation few(first, first_rows(stages, n_first));
    BugSearchResult on_first = BugSearch(few, token, work, 0.5 * max_cells).run();
    on_first.found = search.confirmed(on_first.found);
    on_first.work = work;
    if (!on_first.found.empty()) return on_first;
  }
  BugSearchResult result = search.run();
  result.work = work;
  return result;
}

}  // namespace core::check
