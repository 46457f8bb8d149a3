#include "core/check/infer.hpp"

#include <cmath>
#include <ctime>
#include <map>
#include <set>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/check.hpp"
#include "core/check/scene.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/rounding.hpp"

namespace core::check::inference {
namespace {

// Search.

/// A deviation with its numbers, applied to a recipe.
struct Hit {
  const char* name;
  std::string words, sides;
  int rank;
  StageSet affected_stages;
  bool by_rows;
  SharedRecipe m;
  double score = 0, worst = 0;
};
using Hits = std::vector<Hit>;

Hit make_hit(const Scene& scene, const Deviation& row, const Numbers& x, double score) {
  Recipe changed = *scene.m;
  row.apply(changed, x);
  int rank = row.rank_of(x);
  if (std::string_view(row.name).starts_with("stage_factor") && !row.affected_stages[index(scene.target)])
    ++rank;
  return {row.name,
          row.words_of(x),
          row.sides,
          rank,
          row.affected_stages,
          row.by_rows,
          std::make_shared<const Recipe>(std::move(changed)),
          score};
}

/// Whether numbers are implausible: too large, or lists fitted to another stage than the target, which
/// rounding leaves too uncertain.
bool is_implausible(const Scene& scene, const Deviation& row, const Numbers& x) {
  if (std::ranges::any_of(x, [](double f) { return !(std::abs(f) <= 1e5); })) return true;
  const bool adds_sinks = std::string_view(row.name) == "sink_values" && !scene.m->sink;
  if (adds_sinks && std::ranges::any_of(x, [](double f) { return std::abs(f) > 15; })) return true;
  return x.size() > 1 && is_coarse(scene.of.precision) && !row.affected_stages[index(scene.target)];
}

/// Whether all numbers of a list are equal; another row has that case with one number.
bool are_all_equal(const Recipe& m, const Deviation& row, const Numbers& x) {
  const std::string_view name = row.name;
  if (x.size() < 2 ||
      !(name.ends_with("by_head") || name.ends_with("by_row") || (name == "sink_values" && !m.sink)))
    return false;
  const auto [least, maximum] = std::ranges::minmax(x);
  return maximum - least <= 1e-5 * std::max(std::abs(least), std::abs(maximum));
}

class Search {
 public:
  Search(const Case& of, const core::StopToken& token, double seconds)
      : c_(of), token_(token), begin_(std::clock()), seconds_(seconds) {}

  Inference run();

 private:
  /// Returns CPU seconds, so that results do not depend on other load of the machine.
  double now() const { return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }
  bool should_continue(double deadline) const { return token_.should_continue() && now() < deadline; }

  struct Difference {
    std::optional<Stage> stage;
    std::array<double, attention::n_stages> stage_distance{};
  };
  /// Returns the first given stage that a recipe does not match, and all distances; `accepted` are accepted.
  Difference first_difference(const Recipe& m, StageSet accepted = {}) const;
  bool confirm(Hit& hit, StageSet accepted = {}) const;
  std::vector<Deviation> candidates(const Scene& scene, double deadline) const;
  struct Found {
    Hits hits, partial;  ///< match the target; make some of its rows agree
  };
  Found hits_at(const Scene& scene, std::vector<Deviation> rows, double deadline, double slack) const;
  std::vector<Hits> search(const SharedRecipe& m, const Hits& applied, StageSet accepted, int depth,
                           double deadline) const;
  std::vector<Hits> find_pairs(Stage target, double deadline) const;
  std::vector<Hits> fit_pairs(const Scene& scene, double deadline) const;
  std::vector<Hits> explain_coarser_inputs(Stage target, double deadline, std::string& note);
  std::vector<Hits> choose_likeliest(std::vector<Hits> found) const;
  std::vector<Hits> distinct(std::vector<Hits> all) const;
  void describe(Stage first, double deadline, Inference& result) const;

  Case c_;
  const core::StopToken& token_;
  std::clock_t begin_;
  double seconds_;
};

Search::Difference Search::first_difference(const Recipe& m, StageSet accepted) const {
  const Recipe coarse = c_.coarse(m);
  Run run(m), rounded(coarse);
  if (&m == c_.m.get() && accepted.none()) run.made = c_.base->made;
  for (const Stage stage : c_.order)
    if (accepted[index(stage)])
      run.made[index(stage)] = c_.observed[index(stage)],
      rounded.made[index(stage)] = c_.perturbed[index(stage)];
  Difference result;
  for (const Stage stage : c_.order) {
    if (accepted[index(stage)]) continue;
    const double stage_distance = result.stage_distance[index(stage)] =
        c_.stage_distance(run, stage, c_.allowed(stage, run, rounded));
    if (stage_distance > 1 && !result.stage) result.stage = stage;
    if (stage_distance > 1 && c_.is_large && &m != c_.m.get()) break;
  }
  return result;
}

/// Whether all given stages agree: computed from the start and, in low precision, also each from the given
/// stages before it.
bool Search::confirm(Hit& hit, StageSet accepted) const {
  token_.count(1);
  const Recipe& m = *hit.m;
  const Difference difference = first_difference(m, accepted);
  if (difference.stage) return false;
  if (c_.is_exact()) return true;
  if (c_.order.size() == 1) {
    hit.worst = difference.stage_distance[index(c_.order[0])];
    return true;
  }
  const Recipe coarse = c_.coarse(m);
  std::array<SharedBlock, attention::n_stages> known, perturbed;
  for (const Stage stage : c_.order) {
    if (!(m.has_reordered_steps && is_score_step(stage))) {
      Run run(m), rounded(coarse);
      run.made = known, rounded.made = perturbed;
      hit.worst = std::max(hit.worst, c_.stage_distance(run, stage, c_.allowed(stage, run, rounded)));
    }
    if (c_.given(stage).n != c_.shapes[index(stage)]) continue;
    known[index(stage)] = c_.observed[index(stage)], perturbed[index(stage)] = c_.perturbed[index(stage)];
  }
  return hit.worst <= 1;
}

std::vector<Deviation> Search::candidates(const Scene& scene, double deadline) const {
  std::vector<Deviation> rows = scene.rows();
  std::map<std::string_view, std::size_t> n_starts;
  for (const Deviation& row : rows)
    if (!row.start.empty()) ++n_starts[row.name];
  // Of many starts only the closest three are fitted.
  std::map<std::pair<std::string_view, std::string>, std::vector<std::pair<double, std::size_t>>> costs;
  for (std::size_t k = 0; k < rows.size() && should_continue(deadline); ++k) {
    if (rows[k].start.empty() || n_starts[rows[k].name] <= 3) continue;
    const Block ours = canonical(scene.target, *changed_value(scene, rows[k], rows[k].start));
    const Block& observed = scene.observed(rows[k].by_rows);
    double cost = infinity;
    if (ours.n == observed.n) {
      cost = 0;
      for (std::size_t i = 0; i < ours.v.size(); ++i)
        if (const double d = ours.v[i] - observed.v[i]; std::isfinite(d)) cost += d * d;
    }
    costs[{rows[k].name, rows[k].key}].emplace_back(cost, k);
  }
  std::set<std::size_t> dropped;
  for (auto& [key, all] : costs) {
    std::ranges::sort(all);
    for (std::size_t k = 3; k < all.size(); ++k) dropped.insert(all[k].second);
  }
  std::vector<Deviation> kept;
  for (std::size_t k = 0; k < rows.size(); ++k)
    if (!dropped.contains(k)) kept.push_back(std::move(rows[k]));
  return kept;
}

Search::Found Search::hits_at(const Scene& scene, std::vector<Deviation> rows, double deadline,
                              double slack) const {
  Found found;
  std::vector<std::tuple<double, int, Hit>> partial;
  const double base = scene.count_agreeing_rows(*scene.value);
  bool is_deadline_reduced = false;
  for (const Deviation& row : rows) {
    if (!should_continue(deadline)) break;
    token_.count(1);
    if (scene.is_large() && !is_deadline_reduced && !found.hits.empty() && found.hits.back().rank <= 1)
      is_deadline_reduced = true,
      deadline = std::min(deadline, now() + 1);  // a little longer, for equivalent deviations
    Numbers x = row.start;
    if (!x.empty()) {
      const auto fit = fit_numbers(scene, {&row}, {x});
      if (!fit) continue;
      x = fit->numbers[0];
      if (are_all_equal(*scene.m, row, x) || is_implausible(scene, row, x)) continue;
    }
    const SharedBlock value = changed_value(scene, row, x);
    const double score = scene.distance(*value, row.by_rows);
    if (score <= slack) {
      found.hits.push_back(make_hit(scene, row, x, score));
    } else if (x.empty() && partial.size() < 400 && !scene.is_large()) {
      if (const double more = scene.count_agreeing_rows(*value); more > base)
        partial.emplace_back(-more, row.rank, make_hit(scene, row, x, score));
    }
  }
  std::ranges::stable_sort(found.hits, {}, &Hit::rank);
  std::ranges::stable_sort(partial, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (auto& one : partial) found.partial.push_back(std::move(std::get<2>(one)));
  return found;
}

Hits with(Hits all, Hit hit) {
  all.push_back(std::move(hit));
  return all;
}

/// Returns explanations: lists of hits with which all given stages agree.
std::vector<Hits> Search::search(const SharedRecipe& m, const Hits& applied, StageSet accepted, int depth,
                                 double deadline) const {
  const auto target = first_difference(*m, accepted).stage;
  if (!target) return std::vector<Hits>(applied.empty() ? 0 : 1, applied);
  const double slack = c_.is_exact() ? 1 : 3;
  const Scene scene(c_, m, *target);
  Found found;
  if (!scene.is_large()) {
    found = hits_at(scene, candidates(scene, deadline), deadline, slack);
  } else {  // row by row first: early rows if they differ, then others; then the rest
    const auto is_whole = [](const Deviation& row) { return !row.by_rows; };
    for (const int pass : {0, 1, 2}) {
      if (pass == 1 && scene.selection->n_keys == 0) continue;
      const std::optional<Scene> other =
          pass == 0 ? std::nullopt : std::optional<Scene>(std::in_place, c_, m, *target, false);
      const Scene& at = other ? *other : scene;
      std::vector<Deviation> rows = candidates(at, deadline);
      std::erase_if(rows, [&](const Deviation& row) { return is_whole(row) != (pass == 2); });
      found.hits = hits_at(at, std::move(rows), deadline, slack).hits;
      if (std::ranges::any_of(found.hits, [](const Hit& h) { return h.rank <= 2; })) break;
    }
  }
  if (found.hits.empty() && depth > 0 && !scene.is_large()) {  // a second cause at the same stage
    std::vector<SharedBlock> tried;
    const double until = std::min(deadline, now() + 0.5 * (deadline - now()));
    for (const Hit& hit : found.partial) {
      if (!should_continue(until) || tried.size() >= 10) break;
      const SharedBlock value = scene.computed(*hit.m, hit.affected_stages, hit.by_rows);
      if (std::ranges::any_of(tried, [&](const SharedBlock& other) { return other->v == value->v; }))
        continue;
      tried.push_back(value);
      auto explained = search(hit.m, with(applied, hit), accepted, depth < 2 ? depth - 1 : 1, deadline);
      if (!explained.empty()) return explained;
    }
  }
  std::vector<Hits> done;
  Hits open;
  int best = 9;
  std::set<std::string> already_listed;
  for (Hit& hit : found.hits) {
    if (!already_listed.insert(hit.words).second) continue;
    if (scene.is_large() && done.size() >= 2) break;
    if (hit.rank > best && c_.is_exact()) break;  // a simpler cause explains everything
    if (confirm(hit, accepted))
      best = std::min(best, hit.rank), done.push_back(with(applied, hit));
    else
      open.push_back(std::move(hit));
  }
  if (!done.empty() || depth == 0) return done;
  // These explain this stage; another cause must follow later.
  std::vector<std::tuple<std::ptrdiff_t, int, const Hit*>> ahead;
  const auto place = [&](Stage stage) { return std::ranges::find(c_.order, stage) - c_.order.begin(); };
  for (const Hit& hit : open)
    if (hit.score <= 1)
      if (const auto next = first_difference(*hit.m, accepted).stage; next && place(*next) > place(*target))
        ahead.emplace_back(-place(*next), hit.rank, &hit);
  std::ranges::stable_sort(ahead, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (std::size_t k = 0; k < std::min<std::size_t>(ahead.size(), 12) && should_continue(deadline); ++k) {
    const Hit& hit = *std::get<2>(ahead[k]);
    for (Hits& explained : search(hit.m, with(applied, hit), accepted, depth - 1, deadline))
      done.push_back(std::move(explained));
    if (std::ranges::any_of(done, [&](const Hits& e) {
          return e.size() == applied.size() + 2 &&
                 std::ranges::all_of(e, [](const Hit& h) { return h.rank == 0; });
        }))
      break;
  }
  return done;
}

/// Finds two causes when too little is given to judge either alone.
///
/// The effect of every single change on the stage is known; pairs are tried in the order of how close the sum
/// of their effects comes to the difference, then the likeliest changes with fitted ones.
std::vector<Hits> Search::find_pairs(Stage target, double deadline) const {
  constexpr std::size_t max_per_name = 80, max_cells = 800, max_tried = 8000;
  const Scene scene(c_, c_.m, target);
  const Block& observed = scene.observed(true);
  if (c_.given(target).n != scene.value->n) return {};
  const double begin = now();
  const auto plain = [&](const Block& block) {
    const std::size_t step = std::max<std::size_t>(1, block.v.size() / max_cells);
    Numbers numbers;
    for (std::size_t k = 0; k < block.v.size(); k += step)
      numbers.push_back(std::isfinite(block.v[k]) ? block.v[k] : 0);
    return arma::vec(numbers);
  };
  const arma::vec base = plain(scene.selection ? *select_rows(target, scene.value, *scene.selection)
                                               : *scene.value),
                  want = plain(observed) - base;
  const std::vector<Deviation> rows = candidates(scene, deadline);
  std::vector<const Deviation*> live;
  std::vector<arma::vec> added;
  std::map<std::string_view, std::size_t> counts;
  for (const Deviation& row : rows) {
    if (!row.start.empty() || !row.in_pairs || row.rank > 1 || counts[row.name]++ >= max_per_name ||
        now() > begin + 0.4 * (deadline - begin))
      continue;
    const SharedBlock value = changed_value(scene, row, {});
    if (value->n != observed.n) continue;
    arma::vec add = plain(*value) - base;
    if (!add.is_finite() || arma::abs(add).max() <= scene.allowed.maximum) continue;
    live.push_back(&row);
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
      if (std::string_view(live[i]->name) != live[j]->name)
        order.push_back(
            {steps(gram(i, i) + gram(j, j) + 2 * gram(i, j) - 2 * (toward[i] + toward[j])), {i, j}});
  const std::size_t n_tried = std::min(order.size(), max_tried);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_tried), order.end());
  std::vector<Hits> found;
  const double half = now() + 0.5 * (deadline - now());
  const auto both = [&](const Deviation& one, const Deviation& two) -> std::optional<Hits> {
    Recipe first = *c_.m;
    one.apply(first, {});
    Recipe second = first;
    two.apply(second, {});
    const bool by_rows = one.by_rows && two.by_rows;
    if (scene.distance(*scene.computed(second, one.affected_stages | two.affected_stages, by_rows), by_rows) >
        1)
      return std::nullopt;
    Hit a = make_hit(scene, one, {}, 0), b = make_hit(scene, two, {}, 0);
    b.m = std::make_shared<const Recipe>(std::move(second));
    if (!confirm(b)) return std::nullopt;
    a.worst = b.worst;
    return Hits{a, b};
  };
  for (std::size_t k = 0; k < n_tried && should_continue(half); ++k) {
    const auto [i, j] = order[k].second;
    auto pair = both(*live[i], *live[j]);
    if (!pair) pair = both(*live[j], *live[i]);
    if (pair) found.push_back(std::move(*pair));
    if (found.size() >= (c_.is_exact() ? 3u : 40u)) break;
  }
  if (!found.empty()) return found;
  std::vector<std::pair<double, std::size_t>> likely;
  for (std::size_t k = 0; k < live.size(); ++k) likely.emplace_back(steps(gram(k, k) - 2 * toward[k]), k);
  std::ranges::sort(likely);
  const double until = now() + 0.6 * (deadline - now());
  for (const auto& [residual_squares, k] : likely) {
    if (!should_continue(until)) break;
    const Hit first = make_hit(scene, *live[k], {}, 0);
    const Scene next(c_, first.m, target);
    std::vector<Deviation> fits = candidates(next, until);
    std::erase_if(fits, [](const Deviation& row) { return row.start.empty(); });
    for (Hit& hit : hits_at(next, std::move(fits), until, 1).hits)
      if (confirm(hit)) found.push_back({first, hit}), found.back()[0].worst = hit.worst;
    if (!found.empty()) return found;
  }
  return fit_pairs(scene, deadline);
}

/// Fits two deviations together, those that come closest alone.
std::vector<Hits> Search::fit_pairs(const Scene& scene, double deadline) const {
  struct SingleFit {
    double residual_squares;
    std::size_t row;
    Numbers x;
  };
  const std::vector<Deviation> rows = candidates(scene, deadline);
  std::vector<SingleFit> alone;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].start.empty() || !rows[k].in_pairs) continue;
    if (!should_continue(deadline)) return {};
    if (const auto fit = fit_numbers(scene, {&rows[k]}, {rows[k].start}, 10);
        fit && std::isfinite(fit->residual_squares))
      alone.push_back({fit->residual_squares, k, fit->numbers[0]});
  }
  std::ranges::stable_sort(alone, {}, &SingleFit::residual_squares);
  if (alone.size() > 24) alone.resize(24);
  std::vector<std::tuple<double, std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < alone.size(); ++i)
    for (std::size_t j = i + 1; j < alone.size(); ++j)
      if (std::string_view(rows[alone[i].row].name) != rows[alone[j].row].name)
        order.emplace_back(alone[i].residual_squares + alone[j].residual_squares, i, j);
  std::ranges::sort(order);
  // Many fits are equivalent; the likeliest is chosen from the first few.
  std::vector<Hits> found;
  for (const auto& [residual_squares, i, j] : order) {
    const Deviation &one = rows[alone[i].row], &two = rows[alone[j].row];
    for (const Numbers& start : {alone[i].x, one.start}) {
      if (!should_continue(deadline) || found.size() >= 4) return found;
      const auto fit = fit_numbers(scene, {&one, &two}, {start, two.start});
      if (!fit) continue;
      const Numbers &x = fit->numbers[0], &y = fit->numbers[1];
      if (are_all_equal(*scene.m, one, x) || are_all_equal(*scene.m, two, y) ||
          is_implausible(scene, one, x) || is_implausible(scene, two, y))
        continue;
      Recipe both = *scene.m;
      one.apply(both, x), two.apply(both, y);
      const bool by_rows = one.by_rows && two.by_rows;
      if (scene.distance(*scene.computed(both, one.affected_stages | two.affected_stages, by_rows), by_rows) >
          1)
        continue;
      Hit a = make_hit(scene, one, x, 0), b = make_hit(scene, two, y, 0);
      b.m = std::make_shared<const Recipe>(std::move(both));
      if (!confirm(b)) continue;
      a.worst = b.worst;
      found.push_back({a, b});
      break;
    }
  }
  return found;
}

// Choice.

/// Returns the numbers of every stage of a recipe, to recognize equivalent causes.
Numbers signature(const Recipe& recipe) {
  constexpr std::size_t maximum = 4000;
  const bool is_large = recipe.B * recipe.H * recipe.T * std::max(recipe.S, recipe.D) > many_numbers &&
                        recipe.transforms.empty() && recipe.T > 8;
  RowSelection to;
  for (std::size_t k = 0; k < 8; ++k) to.rows.push_back(k * (recipe.T - 1) / 7);
  const Recipe thin = is_large ? select_queries(recipe, to) : Recipe();
  Run run(is_large ? thin : recipe);
  Numbers all;
  for (const Stage stage : run_stages()) {
    const SharedBlock value = run.seen(stage);
    double size = 0;
    for (const double x : value->v)
      if (std::isfinite(x)) size = std::max(size, std::abs(x));
    for (std::size_t k = 0; k < std::min(maximum, value->v.size()); ++k)
      all.push_back(std::isfinite(value->v[k]) && size > 0 ? value->v[k] / size : 0);
  }
  return all;
}

int rank_of(const Hits& e) {
  int sum = 0;
  for (const Hit& hit : e) sum += hit.rank;
  return sum;
}
double worst_of(const Hits& e) {
  return std::ranges::max(e, {}, &Hit::worst).worst;
}

/// Returns explanations without equivalent ones, the simplest first.
std::vector<Hits> Search::distinct(std::vector<Hits> all) const {
  std::ranges::stable_sort(all, [](const Hits& a, const Hits& b) {
    return std::pair{a.size(), rank_of(a)} < std::pair{b.size(), rank_of(b)};
  });
  std::vector<std::pair<Numbers, Hits>> kept;
  for (Hits& e : all) {
    Numbers own = signature(*e.back().m);
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

/// Returns the simplest distinct explanations; in low precision those that fit about as well as the best.
std::vector<Hits> Search::choose_likeliest(std::vector<Hits> found) const {
  if (found.empty()) return found;
  if (!c_.is_exact()) {
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
      family += hit.name + std::string(";");
      // One change on several sides counts once, but positions of queries and of keys are distinct.
      std::string words = hit.words;
      has_sides = has_sides && !hit.sides.empty() && std::string_view(hit.name) != "positions";
      for (const std::string& part :
           {names_of(hit.sides), std::string(" (keys only)"), std::string(" (values only)")})
        if (const std::size_t at = words.find(part); has_sides && at != words.npos)
          words.erase(at, part.size());
      key += words + ";";
    }
    if (rank_of(e) > lowest || (has_sides && already_listed[key] > 0) || already_listed[family] >= 2)
      continue;
    ++already_listed[key], ++already_listed[family];
    std::set<Side> blind;  // named sides that no given stage depends on
    for (const Hit& hit : e)
      for (const char side : hit.sides)
        if (std::ranges::none_of(c_.order,
                                 [&](Stage s) { return downstream(side_stage[side_of(side)])[index(s)]; }))
          blind.insert(side_of(side));
    if (!blind.empty())
      e.back().words += " (" +
                        text::joined(
                            std::vector(blind.begin(), blind.end()), ", ",
                            [](Side side) { return name_of(side_stage[side]); }, " and ") +
                        " cannot be judged from what is given)";
    out.push_back(std::move(e));
    if (out.size() == 5) break;
  }
  return out;
}

// Description.

std::string shape_text(const Shape& shape) {
  return formats::shape_text({shape.begin(), shape.end()});
}

/// Describes the pattern of a difference that nothing explains.
std::string described(const Scene& scene) {
  const Block ours = canonical(scene.target, *scene.value), &observed = scene.of.given(scene.target);
  const std::string name = name_of(scene.target);
  if (ours.n != observed.n)
    return name + " have the shape " + shape_text(observed.n) + ", ours " + shape_text(ours.n);
  std::size_t n_differing = 0, n_more = 0, n_less = 0;
  double maximum = 0;
  for (std::size_t k = 0; k < ours.v.size(); ++k) {
    const double x = ours.v[k], y = observed.v[k], difference_size = abs_difference(x, y);
    n_more += std::isinf(y) && !std::isinf(x), n_less += std::isinf(x) && !std::isinf(y);
    if (difference_size <= scene.allowed.maximum) continue;
    ++n_differing;
    if (std::isfinite(difference_size)) maximum = std::max(maximum, difference_size);
  }
  const std::vector<std::size_t> sequences = scene.differing_indices(0);
  std::vector<HeadDifference> heads;
  for (const std::size_t b : sequences)
    for (std::size_t h = 0; h < ours.n[1]; ++h)
      heads.push_back({h, matrix_of(observed, b, h), matrix_of(ours, b, h)});
  std::vector<std::string> words;
  if (sequences.size() < ours.n[0])
    words.push_back("only sequences " + listed(sequences) + " of " + std::to_string(ours.n[0]));
  const bool are_keys = attention::info(scene.target).columns == attention::Columns::tokens;
  const PatternOptions stage{ours.n[1], are_keys, [&](double) { return scene.allowed.maximum; }};
  if (!heads.empty()) words.push_back(describe_pattern(heads, stage));
  std::erase(words, "");
  if (n_more + n_less > 0)
    words.push_back(std::to_string(n_more) + " cells masked that are not in the model, " +
                    std::to_string(n_less) + " seen that we hide");
  if (scene.target == Stage::weights) {
    const Block rows =
        by_row(observed, [](const double* x, std::size_t n) { return std::accumulate(x, x + n, 0.0); });
    const auto [low, high] = std::ranges::minmax(rows.v);
    if (std::isfinite(low) && std::isfinite(high) && (std::abs(low - 1) > 1e-3 || std::abs(high - 1) > 1e-3))
      words.push_back("rows sum to " + digits(low, 4) + " … " + digits(high, 4));
  }
  if (words.empty())
    words.push_back(
        digits(std::round(100.0 * static_cast<double>(n_differing) / static_cast<double>(ours.v.size()))) +
        " % of the cells, the largest difference " + digits(maximum, 4));
  return name + ": " + text::joined(words, "; ") + ", by nothing known here";
}

/// Explains tensors given in a finer format than the computation before them used: the difference must
/// correlate with that of rounding, not only be as large.
std::vector<Hits> Search::explain_coarser_inputs(Stage target, double deadline, std::string& note) {
  const Case own = c_;
  std::vector<Stage> before;
  for (const Stage stage : run_stages()) {
    if (stage == target) break;
    if (!c_.observed[index(stage)]) before.push_back(stage);
  }
  const auto same_rounding = [&](const Recipe& m) {
    Recipe coarse = m;
    coarse.precision = c_.precisions;
    Run exact(m), rounded(coarse);
    const SharedBlock a = exact.seen(target), b = rounded.seen(target);
    const Block& observed = c_.given(target);
    if (a->n != observed.n) return false;
    double xy = 0, xx = 0, yy = 0;
    for (std::size_t k = 0; k < observed.v.size(); ++k) {
      const double x = observed.v[k] - a->v[k], y = b->v[k] - a->v[k];
      if (std::isfinite(x) && std::isfinite(y)) xy += x * y, xx += x * x, yy += y * y;
    }
    return xy > 0.7 * std::sqrt(xx * yy) && xy > 0;
  };
  for (const Precision coarse : {Precision::bfloat16, Precision::float16}) {
    if (std::ranges::none_of(
            before, [&](Stage s) { return unit_roundoff(coarse) > unit_roundoff(own.precisions[index(s)]); }))
      continue;
    c_ = own;
    for (const Stage s : before)
      if (unit_roundoff(coarse) > unit_roundoff(c_.precisions[index(s)])) c_.precisions[index(s)] = coarse;
    c_.precision = coarse;
    c_.m = with_known_digits(coarse, *own.m);
    const std::string words = "what comes before the " + name_of(target) + " was computed in " +
                              attention::name_of(coarse) + ", though they are given in " +
                              attention::name_of(own.precision);
    if (!first_difference(*c_.m).stage && same_rounding(*c_.m)) {
      note = words;
      return {};
    }
    auto found = search(c_.m, {}, {}, 1, deadline);
    std::erase_if(found, [&](const Hits& e) { return !same_rounding(*e.back().m); });
    if (!found.empty()) {
      note = words;
      return found;
    }
  }
  c_ = own;
  return {};
}

/// Describes a difference that nothing explains, accepts it as given and examines later stages.
void Search::describe(Stage first, double deadline, Inference& result) const {
  StageSet accepted;
  SharedRecipe current = c_.m;
  while (const auto target = first_difference(*current, accepted).stage) {
    if (target != first || !result.partly.empty()) {
      auto rest =
          should_continue(deadline) ? search(current, {}, accepted, 1, deadline) : std::vector<Hits>();
      if (rest = choose_likeliest(std::move(rest)); !rest.empty()) {
        for (const Hit& hit : rest[0]) result.partly.push_back(hit.words);
        return;
      }
    }
    const Scene scene(c_, current, *target);
    const Hit* best = nullptr;
    const Found found =
        should_continue(deadline) ? hits_at(scene, candidates(scene, deadline), deadline, 1) : Found();
    for (const Hit& hit : found.hits)
      if (!best && hit.score <= 1 && hit.rank <= 2) best = &hit;
    if (best)
      if (const auto next = first_difference(*best->m, accepted).stage; next && next != target) {
        result.partly.push_back(best->words);
        current = best->m;
        continue;
      }
    result.described.push_back(described(scene));
    if (c_.given(*target).n != scene.value->n) return;
    accepted.set(index(*target));
  }
}

Inference Search::run() {
  Inference result;
  result.precision = c_.precision;
  const Difference difference = first_difference(*c_.m);
  if (!difference.stage) {
    result.agrees = true;
    return result;
  }
  const Stage target = *difference.stage;
  for (auto stage = std::ranges::find(c_.order, target); stage != c_.order.end(); ++stage)
    if (difference.stage_distance[index(*stage)] <= 1) result.agreeing_after.push_back(*stage);
  result.is_harmless = !result.agreeing_after.empty() && result.agreeing_after.back() == c_.order.back();
  auto found = search(c_.m, {}, {}, 2, 0.45 * seconds_);
  if (found.empty()) {
    found = explain_coarser_inputs(target, now() + 0.15 * seconds_, result.note);
    if (found.empty() && !result.note.empty()) {
      result.agrees = true;
      return result;
    }
  }
  const auto is_table = [](const Hits& e) {
    return std::ranges::any_of(e, [](const Hit& h) { return h.rank >= 4; });
  };
  std::vector<Hits> tables;
  if (std::ranges::all_of(found, is_table)) {
    tables = std::move(found);
    found = token_.should_continue() ? find_pairs(target, std::max(0.85 * seconds_, now() + 0.3 * seconds_))
                                     : std::vector<Hits>();
    if (!found.empty() && is_coarse(c_.precision) &&
        c_.order.size() == 1) {  // rounding makes pairs in one tensor uncertain
      for (const Hits& e : choose_likeliest(std::move(found)))
        if (result.partly.empty())
          result.partly = {"perhaps " + text::joined(e, "; and ", &Hit::words) +
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
    describe(target, std::max(seconds_, now() + 0.1 * seconds_), result);
    return result;
  }
  for (const Hits& e : choose_likeliest(std::move(found))) {
    Cause cause{{}, {}, *e.back().m, rank_of(e)};
    for (const Hit& hit : e) {
      cause.names.push_back(hit.name), cause.sentences.push_back(hit.words);
      cause.rank += hit.sides.size() > 1;  // the table of mistakes counts several
    }
    result.causes.push_back(std::move(cause));
  }
  return result;
}

}  // namespace

Inference infer(const Recipe& model, const Given& given, const core::StopToken& token, double seconds) {
  return Search(Case(model, given), token, seconds).run();
}

attention::Model override_stages(attention::Model model, const Recipe& recipe) {
  const auto reference = recipe_of(model);
  if (!reference) return model;
  Run ours(*reference), observed(recipe);
  for (const Stage stage : run_stages()) {
    if (!attention::can_be_given(stage) || !reference->has(stage) || !attention::info(stage).present(model))
      continue;
    const SharedBlock a = ours.shared(stage), b = observed.shared(stage);
    double difference_size = 0, size = 0;
    for (std::size_t k = 0; a->n == b->n && k < a->v.size(); ++k)
      difference_size = std::max(difference_size, abs_difference(a->v[k], b->v[k])),
      size = std::max(size, std::isfinite(a->v[k]) ? std::abs(a->v[k]) : 0);
    if (difference_size <= 1e-9 * size) continue;
    ours.made[index(stage)] = b;
    attention::GivenStage given{stage, {}};
    for (std::size_t s = 0; s < b->n[0]; ++s)
      for (std::size_t h = 0; h < b->n[1]; ++h) given.matrices.emplace_back(matrix_of(*b, s, h));
    set_given_stage(model, std::move(given));
  }
  if (!model.projections || !model.projections->output || !recipe.W[O]) return model;
  if (recipe.merge == "reshape") model.merge = attention::CombineRule::reshape_without_transpose;
  attention::Linear& linear = *model.projections->output;
  arma::mat weight = *linear.weight;
  for (std::size_t i = 0; i < weight.n_rows; ++i) {
    const std::size_t row = recipe.merge == "interleaved" ? i % recipe.dv * recipe.H + i / recipe.dv : i;
    for (std::size_t j = 0; j < weight.n_cols; ++j) weight(i, j) = (*recipe.W[O])(0, 0, row, j);
  }
  linear.weight = std::move(weight);
  if (linear.bias && recipe.b[O]) linear.bias = arma::mat(arma::rowvec(recipe.b[O]->v));
  return model;
}

}  // namespace core::check::inference
