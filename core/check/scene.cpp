#include "core/check/scene.hpp"

#include <cmath>

#include "core/base/number.hpp"
#include "core/graph/rounding.hpp"

namespace core::check::inference {
namespace {

/// Returns the coarsest format that represents every number of a tensor; nullopt if it has too few.
std::optional<Precision> precision_of(const Block& block) {
  const std::size_t step = std::max<std::size_t>(1, block.v.size() / 50000);
  std::vector<double> numbers;
  for (std::size_t k = 0; k < block.v.size(); k += step)
    if (const double x = block.v[k]; std::isfinite(x) && x != 0 && std::abs(x) != 1) numbers.push_back(x);
  if (numbers.size() < 12) return std::nullopt;
  for (const Precision p : {Precision::bfloat16, Precision::float16, Precision::float32})
    if (std::ranges::all_of(numbers, [&](double x) { return attention::rounded(p, x) == x; })) return p;
  return Precision::float64;
}

/// Whether a query attends to a key after the first n_keys.
bool sees_beyond(std::size_t n_keys, const Block& visible, const std::vector<std::size_t>& queries) {
  for (std::size_t b = 0; b < visible.n[0]; ++b)
    for (std::size_t h = 0; h < visible.n[1]; ++h)
      for (const std::size_t i : queries)
        for (std::size_t j = n_keys; j < visible.n[3]; ++j)
          if (visible.row(b, h, i)[j] != 0) return true;
  return false;
}

bool is_square(Stage stage) {
  return attention::info(stage).columns == attention::Columns::tokens;
}

}  // namespace

double unit_roundoff(Precision precision) {
  return attention::rounding_error(precision, 1) > 0 ? attention::rounding_error(precision, 1) : 0x1p-53;
}

SharedRecipe with_known_digits(Precision precision, Recipe recipe) {
  recipe.relative_tolerance = precision == Precision::float64   ? 1e-7
                              : precision == Precision::float32 ? 1e-5
                              : precision == Precision::float16 ? 2e-3
                                                                : 1.5e-2;
  recipe.digits = precision == Precision::float64 ? 6 : precision == Precision::float32 ? 5 : 3;
  return std::make_shared<const Recipe>(std::move(recipe));
}

Block canonical(Stage stage, Block block) {
  if (!is_score_step(stage)) return block;
  const std::size_t n = block.n[3];
  for (std::size_t row = 0; n > 0 && row < block.v.size() / n; ++row) {
    double* x = block.v.data() + row * n;
    const auto n_masked = std::count_if(x, x + n, [](double s) { return s < masked_threshold; });
    if (n_masked > 0 && n_masked < static_cast<std::ptrdiff_t>(n))
      for (std::size_t j = 0; j < n; ++j)
        if (x[j] < masked_threshold) x[j] = -infinity;
  }
  return block;
}

Case::Case(const Recipe& model, const Given& given) {
  std::array<std::optional<Precision>, attention::n_stages> own;
  for (const Stage stage : run_stages())
    for (const auto& [of, block] : given)
      if (of == stage && model.has(stage)) {
        order.push_back(stage);
        own[index(stage)] = precision_of(block);
        observed[index(stage)] = share(canonical(stage, block));
      }
  perturbed = observed;
  for (const Stage stage : order)
    if (own[index(stage)] == Precision::float32) {
      std::size_t k = 0;
      perturbed[index(stage)] = share(mapped(*observed[index(stage)], [&](double x) {
        const std::size_t mixed = ++k * 0x9E3779B97F4A7C15u;  // pseudo-random sign
        return x + (mixed >> 63 ? 0.5 : -0.5) * attention::rounding_error(Precision::float32, x);
      }));
    }
  // A stage that is not given has the precision of the next given one.
  std::optional<Precision> next;
  for (auto stage = run_stages().rbegin(); stage != run_stages().rend(); ++stage) {
    if (own[index(*stage)]) next = own[index(*stage)];
    precisions[index(*stage)] = next.value_or(Precision::float64);
  }
  for (const Stage stage : run_stages()) {
    if (own[index(stage)]) next = own[index(stage)];
    const bool is_behind = std::none_of(std::ranges::find(run_stages(), stage), run_stages().end(),
                                        [&](Stage s) { return own[index(s)].has_value(); });
    if (is_behind && next) precisions[index(stage)] = *next;
    for (const Precision p : {Precision::bfloat16, Precision::float16, Precision::float32})
      if (own[index(stage)] == p && unit_roundoff(p) > unit_roundoff(precision)) precision = p;
  }
  m = with_known_digits(precision, model);
  base = std::make_shared<Run>(*m);
  is_large = m->B * m->H * m->T * std::max(m->S, m->D) > many_numbers && m->T > 24;
  for (const Stage stage : order) shapes[index(stage)] = base->shared(stage)->n;
}

Recipe Case::coarse(const Recipe& recipe) const {
  Recipe rounded = recipe;
  rounded.precision = precisions;
  return rounded;
}

DifferenceLimits Case::allowed(Stage stage, Run& exact, Run& rounded) const {
  if (is_exact()) {
    double size = 0;
    bool has = false;
    for (const double x : given(stage).v)
      if (std::isfinite(x) && x > masked_threshold) size = std::max(size, std::abs(x)), has = true;
    return {1e-9 * (has ? size : 1) + 1e-13, infinity};
  }
  const bool is_kept = is_large && !is_coarse(precision);  // float32 errors hardly depend on the recipe
  if (is_kept && noise[index(stage)]) return *noise[index(stage)];
  const SharedBlock a = exact.seen(stage), b = rounded.seen(stage);
  double maximum = 0, squares = 0, size = 0, sizes = 0;
  std::size_t n = 0;
  for (std::size_t k = 0; k < a->v.size(); ++k) {
    if (!std::isfinite(a->v[k]) || !std::isfinite(b->v[k])) continue;
    const double d = std::abs(a->v[k] - b->v[k]);
    maximum = std::max(maximum, d), squares += d * d, size = std::max(size, std::abs(a->v[k])),
    sizes += a->v[k] * a->v[k], ++n;
  }
  if (n == 0) size = 1, sizes = 1, n = 1;
  const double unit = unit_roundoff(precisions[index(stage)]), floor = 1e-9 * size + 1e-13,
               count = static_cast<double>(n);
  const DifferenceLimits made{6 * maximum + 4 * unit * size + floor,
                              3 * std::sqrt(squares / count) + unit * std::sqrt(sizes / count) + floor};
  if (is_kept) noise[index(stage)] = made;
  return made;
}

double Case::distance(Stage stage, const Block& ours, const DifferenceLimits& allowed,
                      const Block& other) const {
  if (ours.n != other.n) return infinity;
  const Block own = is_score_step(stage) ? canonical(stage, ours) : Block();
  const std::vector<double>& x = is_score_step(stage) ? own.v : ours.v;
  const bool are_weights = stage == Stage::weights || stage == Stage::dropped_weights;
  double maximum = 0, squares = 0;
  std::size_t n = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double a = x[k], b = other.v[k];
    if (are_weights && !is_exact() && ((a == 0 && b > 1e-6) || (b == 0 && a > 1e-4)))
      return infinity;  // masked weights are exactly 0
    double d = std::abs(a - b);
    if (!std::isfinite(d)) {
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      return infinity;
    }
    if (is_score_step(stage) && std::abs(b) > -masked_threshold) d *= 1e-6;
    maximum = std::max(maximum, d), squares += d * d, ++n;
  }
  if (n == 0) return 0;
  return allowed.max_rms == infinity
             ? maximum / allowed.maximum
             : std::max(maximum / allowed.maximum,
                        std::sqrt(squares / static_cast<double>(n)) / allowed.max_rms);
}

double Case::stage_distance(Run& run, Stage stage, const DifferenceLimits& allowed) const {
  double score = distance(stage, *run.seen(stage), allowed, given(stage));
  if (score > 1 && run.m.has_reordered_steps && is_score_step(stage))
    for (const ScoreStep step : run.m.step_order)
      score = std::min(score, distance(stage, *run.seen(stage_of(step)), allowed, given(stage)));
  return score;
}

// Sampling of rows of large stages.

SharedBlock select_rows(Stage stage, const SharedBlock& block, const RowSelection& to) {
  if (!block) return block;
  Block made = *block;
  const std::vector<std::size_t> keys = index_range(to.n_keys);
  if (has_key_rows(stage)) return to.n_keys ? share(index_select(made, 2, keys)) : block;
  if (made.n[2] > 1 || to.rows.back() == 0) made = index_select(made, 2, to.rows);
  if (to.n_keys && is_square(stage) && made.n[3] > 1) made = index_select(made, 3, keys);
  return share(std::move(made));
}

Recipe select_queries(Recipe m, const RowSelection& to) {
  const std::size_t T = m.T;
  const auto square = [&](SharedBlock& block) { block = select_rows(Stage::weights, block, to); };
  square(m.visible), square(m.drop);
  for (SharedBlock& bias : m.bias) square(bias);
  m.x[Q] = select_rows(Stage::output, m.x[Q], to);
  for (const Side side : {K, V}) m.x[side] = select_rows(Stage::keys, m.x[side], to);
  m.pos[Q] = share(index_select(*m.pos[Q], 3, to.rows));
  if (to.n_keys) m.pos[K] = share(index_select(*m.pos[K], 3, index_range(to.n_keys))), m.S = to.n_keys;
  if (m.scale->n[2] == T && T > 1) m.scale = select_rows(Stage::output, m.scale, to);
  for (auto& [stage, block] : m.overrides) block = select_rows(stage, block, to);
  m.T = to.rows.size();
  return m;
}

Scene::Scene(const Case& c, SharedRecipe recipe, Stage at, bool is_early)
    : of(c), m(std::move(recipe)), target(at), run(*m) {
  bool has_known = false;
  for (const Stage stage : c.order) {
    if (stage == target) break;
    if (c.given(stage).n == c.shapes[index(stage)])
      known[index(stage)] = c.observed[index(stage)], has_known = true;
  }
  run.made = known;
  if (m == c.m && !has_known) run.made = c.base->made;
  value = run.seen(target);
  const Recipe coarse = c.coarse(*m);
  Run rounded(coarse);
  rounded.made = known;
  for (std::size_t k = 0; k < known.size(); ++k)
    if (known[k]) rounded.made[k] = c.perturbed[k];
  allowed = c.allowed(target, run, rounded);
  const Recipe& r = *m;
  if (!c.is_large || has_key_rows(target) || value->n != c.given(target).n) return;
  RowSelection to;
  to.rows = index_range(4);
  for (std::size_t k = 0; k < 6; ++k) to.rows.push_back(4 + k * (r.T - 5) / 5);
  std::sort(to.rows.begin(), to.rows.end());
  to.rows.erase(std::unique(to.rows.begin(), to.rows.end()), to.rows.end());
  if (const RowSelection early{index_range(20), 20};
      is_early && r.T == r.S && !sees_beyond(early.n_keys, *r.visible, early.rows)) {
    if (c.distance(target, *select_rows(target, value, early), allowed,
                   *select_rows(target, c.observed[index(target)], early)) > 1)
      to = early;
  }
  selection = to;
  selected_observed_ = select_rows(target, c.observed[index(target)], to);
  for (const Stage stage : run_stages())
    selected_values_[index(stage)] = select_rows(stage, run.made[index(stage)], to);
}

/// Returns the target and its inputs, back to the known stages.
StageSet Scene::visited() const {
  StageSet all = set_of({target});
  for (StageSet before; before != all;) {
    before = all;
    for (const Stage to : run_stages())
      if (before[index(to)]) all |= inputs_of(to);
    for (const Stage stage : run_stages())
      if (known[index(stage)] && stage != target) all.reset(index(stage));
  }
  return all;
}

std::vector<std::size_t> Scene::differing_indices(std::size_t axis) const {
  const Block ours = canonical(target, *value), &other = of.given(target);
  if (ours.n != other.n) return {};
  std::vector<bool> differ(ours.n[axis]);
  each_cell(ours.n, [&](auto b, auto h, auto i, auto j) {
    if (abs_difference(ours(b, h, i, j), other(b, h, i, j)) <= allowed.maximum) return;
    differ[std::array{b, h, i, j}[axis]] = true;
  });
  std::vector<std::size_t> lines;
  for (std::size_t k = 0; k < differ.size(); ++k)
    if (differ[k]) lines.push_back(k);
  return lines;
}

std::vector<Deviation> Scene::rows() const {
  Run own = run;
  const double estimate_tolerance = of.is_exact()                        ? 1e-7
                                    : of.precision == Precision::float32 ? 1e-4
                                    : of.precision == Precision::float16 ? 1e-2
                                                                         : 3e-2;
  const auto differing_rows = has_key_rows(target) ? std::vector<std::size_t>() : differing_indices(2);
  return deviations({*m, target, of.observed, own, visited(), allowed.maximum, estimate_tolerance,
                     of.precision, is_large(), differing_rows});
}

SharedBlock Scene::computed(const Recipe& changed, StageSet affected_stages, bool by_rows) const {
  const StageSet stale = downstream(affected_stages);
  const bool is_selected = by_rows && selection;
  const bool all_keys =
      is_selected && selection->n_keys &&
      (changed.S != changed.T || sees_beyond(selection->n_keys, *changed.visible, selection->rows));
  RowSelection to = is_selected ? *selection : RowSelection();
  if (all_keys) to.n_keys = 0;
  const Recipe thin = is_selected ? select_queries(changed, to) : Recipe();
  Run other(is_selected ? thin : changed);
  for (const Stage stage : run_stages()) {
    const std::size_t k = index(stage);
    if (!known[k] && (!run.made[k] || stale[k])) continue;
    other.made[k] = !is_selected ? run.made[k]
                    : all_keys   ? select_rows(stage, run.made[k], to)
                                 : selected_values_[k];
  }
  SharedBlock made = other.seen(target);
  if (all_keys && is_square(target)) made = share(index_select(*made, 3, index_range(selection->n_keys)));
  if (changed.has_reordered_steps && is_score_step(target) && distance(*made, by_rows) > 1)
    for (const ScoreStep step : changed.step_order) {
      SharedBlock another = other.seen(stage_of(step));
      if (all_keys) another = share(index_select(*another, 3, index_range(selection->n_keys)));
      if (distance(*another, by_rows) < distance(*made, by_rows)) made = another;
    }
  return made;
}

double Scene::count_agreeing_rows(const Block& ours) const {
  const Block& other = of.given(target);
  const std::size_t n = ours.n[3];
  if (ours.n != other.n || n < 3) return 0;
  double rows = 0;
  for (std::size_t row = 0; row < ours.v.size() / n; ++row) {
    bool agree = true, same_zeros = true;
    for (std::size_t j = 0; j < n; ++j) {
      const double a = ours.v[row * n + j], b = other.v[row * n + j];
      agree = agree && (a == b || std::abs(a - b) <= allowed.maximum),
      same_zeros = same_zeros && (a == 0) == (b == 0);
    }
    rows += agree + (target == Stage::weights && same_zeros ? 0.5 : 0);
  }
  return rows;
}

// Fitting.

SharedBlock changed_value(const Scene& scene, const Deviation& row, const Numbers& x) {
  Recipe changed = *scene.m;
  row.apply(changed, x);
  return scene.computed(changed, row.affected_stages, row.by_rows);
}

std::optional<Fit> fit_numbers(const Scene& scene, const std::vector<const Deviation*>& rows,
                               const std::vector<Numbers>& starts, std::size_t n_steps) {
  bool by_rows = true;
  StageSet affected_stages;
  Numbers x;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    by_rows = by_rows && rows[k]->by_rows, affected_stages |= rows[k]->affected_stages;
    x.insert(x.end(), starts[k].begin(), starts[k].end());
  }
  const Block& observed = scene.observed(by_rows);
  if (observed.v.size() < 4 * x.size()) return std::nullopt;
  const auto split = [&](const Numbers& all) {
    std::vector<Numbers> parts;
    auto at = all.begin();
    for (const Numbers& start : starts)
      parts.emplace_back(at, at + static_cast<std::ptrdiff_t>(start.size())),
          at += static_cast<std::ptrdiff_t>(start.size());
    return parts;
  };
  const auto residual = [&](const Numbers& all) -> std::optional<arma::vec> {
    Recipe changed = *scene.m;
    const std::vector<Numbers> parts = split(all);
    for (std::size_t k = 0; k < rows.size(); ++k) rows[k]->apply(changed, parts[k]);
    const Block ours = canonical(scene.target, *scene.computed(changed, affected_stages, by_rows));
    if (ours.n != observed.n) return std::nullopt;
    std::vector<double> r;
    r.reserve(ours.v.size());
    for (std::size_t k = 0; k < ours.v.size(); ++k) {
      if (std::isfinite(ours.v[k]) != std::isfinite(observed.v[k])) return std::nullopt;
      if (std::isfinite(ours.v[k])) r.push_back(ours.v[k] - observed.v[k]);
    }
    if (r.empty()) return std::nullopt;
    return arma::vec(r);
  };
  auto r = residual(x);
  if (!r) return std::nullopt;
  double cost = arma::dot(*r, *r), damping = 1e-3;
  const double first = cost;
  for (std::size_t step = 0; step < n_steps; ++step) {
    arma::mat J(r->n_elem, x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      Numbers perturbed = x;
      const double h = 1e-6 * (1 + std::abs(x[k]));
      perturbed[k] += h;
      const auto s = residual(perturbed);
      if (!s || s->n_elem != r->n_elem) return Fit{split(x), cost};
      J.col(k) = (*s - *r) / h;
    }
    const arma::mat A = J.t() * J;
    const arma::vec g = J.t() * *r;
    if (!A.is_finite() || arma::any(arma::vec(A.diag()) == 0)) break;
    const double before = cost;
    for (int attempt = 0; attempt < 6; ++attempt) {
      arma::vec dx;
      if (!arma::solve(dx, A + damping * arma::diagmat(A), -g, arma::solve_opts::no_approx)) break;
      Numbers next = x;
      for (std::size_t k = 0; k < x.size(); ++k) next[k] += dx[k];
      const auto s = residual(next);
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
  return Fit{split(x), cost};
}

}  // namespace core::check::inference
