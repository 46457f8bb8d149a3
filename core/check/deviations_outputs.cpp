#include <cmath>
#include <set>

#include "core/base/text.hpp"
#include "core/check/deviations.hpp"
#include "core/graph/rounding.hpp"

namespace core::check::inference {

// Each row of the table is one line, longer than the column limit.
// clang-format off

using enum Stage;

namespace {

std::string percent(double share) {
  return digits(std::round(100 * share)) + " %";
}

// The softmax.

void add_sinks(Table& t) {
  const Recipe& m = t.c.m;
  const std::size_t H = m.H, G = m.G, each = H / G;
  t.fit("sink_values", {weights}, m.sink ? [&] { Numbers s = *m.sink; for (double& x : s) x += 0.1; return s; }() : Numbers(H, 0.0),
        [&m](const Numbers& x) { return "the sinks are " + listed(x, m) + (m.sink ? "" : ", where the model has none"); },
        [](Recipe& r, const Numbers& x) { r.sink = x; }).ranked(3);
  if (!m.sink) return;
  const Numbers s = *m.sink;
  t.add("sinks", {weights}, "the sinks are missing (or their mass is renormalized away)", [](Recipe& r) { r.sink_form = "missing"; });
  for (const auto& [form, words] : {std::pair{"base 2", "join the sum as 2^sink (a sink in base 2)"},
                                    {"not rescaled", "are not rescaled by the row's maximum"},
                                    {"linear", "are added to the sum as they are, without exp"},
                                    {"linear, rescaled", "are added as sink · exp(−maximum), without exp"},
                                    {"scaled", "are multiplied by the scale"},
                                    {"negated", "have the other sign"},
                                    {"base 2, not rescaled", "join as 2^sink and are not rescaled by the maximum"}})
    t.add("sinks", {weights}, std::string("the sinks ") + words, [form = form](Recipe& r) { r.sink_form = form; }).in_pairs = form != std::string_view("base 2, not rescaled");
  const auto values = [&](const std::string& words, auto of) {
    Numbers all(H);
    for (std::size_t h = 0; h < H; ++h) all[h] = of(h);
    t.add("sinks", {weights}, words, [all](Recipe& r) { r.sink = all; });
  };
  values("the sinks join the sum as 2^sink (a sink in base 2: sink × ln 2)", [&](std::size_t h) { return s[h] * std::log(2.0); });
  values("the sinks are multiplied by log₂ e (and taken in base e)", [&](std::size_t h) { return s[h] / std::log(2.0); });
  for (const double n : std::set<double>{2, 3, 4, static_cast<double>(H), 0.5})
    values("the sinks are counted " + (n == 2 ? "twice" : n == 0.5 ? "half" : digits(n) + " times"), [&](std::size_t h) { return s[h] + std::log(n); });
  for (std::size_t by = 1; by < H; ++by)
    values("every head uses the sink of the head " + (by <= H / 2 ? std::to_string(by) + " further" : std::to_string(H - by) + " before") + " (cyclic)",
           [&](std::size_t h) { return s[(h + by) % H]; });
  values("the sinks are in reverse order of heads", [&](std::size_t h) { return s[H - 1 - h]; });
  if (G < H) {
    values("the sinks are indexed by KV head: heads use the sinks " + listed(m.group[K]) + " (a neighbor's)", [&](std::size_t h) { return s[m.group[K][h]]; });
    values("head h uses sink h mod KV heads", [&](std::size_t h) { return s[h % G]; });
    values("all heads of a group use the sink of its first head", [&](std::size_t h) { return s[m.group[K][h] * each]; });
    values("the sinks are interleaved between groups", [&](std::size_t h) { return s[h % G * each + h / G]; });
    values("the sinks are interleaved between groups (the other way)", [&](std::size_t h) { return s[h % each * G + h / each]; });
    values("every head uses the sink of its neighbor in the group (reversed within groups)", [&](std::size_t h) { return s[h / each * each + each - 1 - h % each]; });
    values("every head uses the sink of the next head of its group (cyclic)", [&](std::size_t h) { return s[h / each * each + (h + 1) % each]; });
  }
  if (H % 2 == 0) values("neighboring heads use each other's sink", [&](std::size_t h) { return s[h ^ 1]; });
  for (std::size_t head = 0; head < std::min<std::size_t>(H, 8); ++head) values("all heads use the sink of head " + std::to_string(head), [&](std::size_t) { return s[head]; });
  double mean = 0;
  for (const double x : s) mean += x / static_cast<double>(H);
  values("all heads use the mean sink", [&](std::size_t) { return mean; });
  values("all sinks are 0", [](std::size_t) { return 0.0; });
  for (const double n : {1.0, -1.0}) values(digits(n) + " is added to the sinks", [&](std::size_t h) { return s[h] + n; });
  const auto each_sink = [](auto change) {
    return [=](Recipe& r, const Numbers& x) {
      for (double& sink : *r.sink) sink = change(sink, x[0]);
    };
  };
  t.fit(
      "sink_count", {weights}, {0.3}, [&m](const Numbers& x) { return "exp(sink) is multiplied by " + number(std::exp(x[0]), m); }, each_sink(std::plus<>()));
  for (const double start : {0.8, 1.3})
    t.fit(
        "sink_factor", {weights}, {start}, [&m](const Numbers& x) { return "the sinks are multiplied by " + number(x[0], m); }, each_sink(std::multiplies<>()));
}

/// Returns a stage of weights f(score) from the softmax input, 0 where masked (−∞).
Recipe::Transform of_scores(std::function<double(double)> f, bool normalizes) {
  return [=](const Block&, Run& run) {
    Block w = mapped(run.softmax_input(), [&](double s) { return std::isfinite(s) ? f(s) : 0; });
    return normalizes ? normalized(w) : w;
  };
}

/// Computes softmaxes over blocks of `size` keys, combined incorrectly.
Block blockwise(const Block& s, std::size_t size, std::string_view how) {
  Block w = s;
  const std::size_t n = s.n[3];
  for (std::size_t row = 0; row < s.v.size() / n; ++row) {
    const double* x = s.v.data() + row * n;
    double* to = w.v.data() + row * n;
    double top = -infinity, total = 0;
    Numbers sums;
    const std::size_t end = how == "last block" ? n / size * size : n;
    if (how == "last block") {
      for (std::size_t j = 0; j < end; ++j) top = std::max(top, x[j]);
      for (std::size_t j = 0; j < n; ++j) total += to[j] = j < end ? std::exp(x[j] - top) : 0;
      for (std::size_t j = 0; j < n; ++j) to[j] /= total;
      continue;
    }
    for (std::size_t a = 0; a < n; a += size) {
      const std::size_t b = std::min(a + size, n);
      if (how != "online") top = -infinity, total = 0;
      for (std::size_t j = a; j < b; ++j) top = std::max(top, x[j]);
      for (std::size_t j = a; j < b; ++j) total += to[j] = std::exp(x[j] - (std::isfinite(top) ? top : 0));
      if (how == "online") continue;
      sums.push_back(total > 0 ? top + std::log(total) : -infinity);
      for (std::size_t j = a; j < b; ++j) to[j] = total > 0 ? to[j] / total : 0;
    }
    if (how == "own") continue;
    Numbers shares(sums.size(), 1.0);
    if (how != "online") {
      const double maximum = *std::ranges::max_element(sums);
      total = 0;
      for (std::size_t k = 0; k < sums.size(); ++k) total += shares[k] = how == "mean"       ? std::isfinite(sums[k])
                                                                                  : how == "base 2" ? std::exp2(sums[k] - maximum)
                                                                                                    : std::exp((sums[k] - maximum) / std::log(2.0));
    }
    for (std::size_t j = 0; j < n; ++j) to[j] = to[j] * (how == "online" ? 1 : shares[j / size]) / total;
  }
  return w;
}

void add_forms(Table& t) {
  const Recipe& m = t.c.m;
  const auto field = [&](const char* words, std::function<void(Recipe&)> change) { t.add("softmax_form", {weights}, words, std::move(change)).needs_all_rows(); };
  const auto form = [&](const char* words, Recipe::Transform change) { t.add_transform("softmax_form", weights, words, std::move(change)).needs_all_rows(); };
  field("the softmax runs over the queries instead of the keys (axis)", [](Recipe& r) { r.axis = 2; });
  if (m.H > 1) field("the softmax runs over the heads", [](Recipe& r) { r.axis = 1; });
  field("the softmax is applied twice", [](Recipe& r) { r.twice = true; });
  field("rows without an unmasked key have uniform weights", [](Recipe& r) { r.empty = "uniform"; });
  field("rows without an unmasked key have zeros instead of NaN", [](Recipe& r) { r.empty = "zeros"; });
  field("rows without an unmasked key are NaN instead of zeros", [](Recipe& r) { r.empty = "nan"; });
  form("the softmax is not normalized", of_scores([](double s) { return std::exp(s); }, false));
  form("weights are sigmoids of the scores", of_scores([](double s) { return 1 / (1 + std::exp(-s)); }, false));
  form("weights are logarithms (log_softmax)", [](const Block& w, Run&) { return mapped(w, [](double x) { return std::log(x); }); });
  form("weights are ReLUs of the scores, normalized", of_scores([](double s) { return std::max(s, 0.0); }, true));
  form("weights are the scores, normalized without exp", of_scores([](double s) { return s; }, true));
  form("there is no softmax", of_scores([](double s) { return s; }, false));
  form("weights are equal for all unmasked keys (the scores are lost)", of_scores([](double) { return 1.0; }, true));
  const auto tops = [](const Block& s) { return by_row(s, [](const double* x, std::size_t n) { return *std::max_element(x, x + n); }); };
  form("all weight goes to the largest score", [=](const Block&, Run& run) {
    const Block& s = run.softmax_input();
    return zipped(s, tops(s), [](double x, double top) { return x == top ? 1.0 : 0.0; });
  });
  form("scores are divided by the number of keys instead of a softmax", of_scores([n = static_cast<double>(m.S)](double s) { return s / n; }, false));
  form("the softmax runs over queries and keys together", [=](const Block&, Run& run) {
    const Shape n = run.softmax_input().n;
    const Block s = reshaped(run.softmax_input(), {n[0], n[1], 1, n[2] * n[3]});
    return reshaped(normalized(zipped(s, tops(s), [](double x, double top) { return std::exp(x - top); })), n);
  });
  if (m.H > 1)
    form("the softmax runs over the keys of all heads together", [=](const Block&, Run& run) {
      const Block s = run.softmax_input(), of_heads = tops(s);
      Block w = s, sums({s.n[0], 1, s.n[2], 1});
      for (std::size_t b = 0; b < s.n[0]; ++b)
        for (std::size_t i = 0; i < s.n[2]; ++i) {
          double top = -infinity;
          for (std::size_t h = 0; h < s.n[1]; ++h) top = std::max(top, of_heads(b, h, i, 0));
          for (std::size_t h = 0; h < s.n[1]; ++h)
            for (std::size_t j = 0; j < s.n[3]; ++j) sums.row(b, 0, i)[0] += w.row(b, h, i)[j] = std::exp(s.row(b, h, i)[j] - top);
        }
      return zipped(w, sums, std::divides<>());
    });
  if (m.T == m.S) form("the weights are transposed", [](const Block& w, Run&) { return transposed(w); });
  if (t.c.precision == Precision::float64)
    for (const Stage stage : {weights, scores, scaled_scores, queries, keys, values, rotated_queries, rotated_keys, contexts})
      for (const Precision type : {Precision::bfloat16, Precision::float16, Precision::float32})
        t.add_transform("stage_rounded", stage, "the " + name_of(stage) + " are rounded to " + attention::name_of(type), [type](const Block& x, Run&) { return rounded(x, type); })
            .ranked(1)
            .alone();
  if (m.sink) return;
  std::vector<std::size_t> sizes{32, 64, 128, 256};
  for (std::size_t n = 16; n > 0; --n) sizes.insert(sizes.begin(), n);
  for (const auto& [how, words] : {std::pair{"online", "the online softmax does not rescale earlier blocks"},
                                   {"last block", "the last, incomplete block of keys is dropped"},
                                   {"own", "each block of keys has a softmax of its own"},
                                   {"mean", "blocks of keys are put together by equal parts, not by their sums"},
                                   {"base 2", "blocks of keys are put together by 2^(log-sum-exp) instead of e^"},
                                   {"base e", "blocks of keys are put together by e^ of a log-sum-exp to the base 2, instead of 2^"}})
    for (const std::size_t size : sizes)
      if (size < m.S && (*how != 'l' || m.S % size != 0) && (size > 1 || how == std::string_view("online")))
        t.add_transform("softmax_blocks", weights, words + (" (blocks of " + std::to_string(size) + ")"),
                   [=, how = how](const Block&, Run& run) { return blockwise(run.softmax_input(), size, how); });
}

// Dropout.

std::string dropout_words(double f, double share) {
  if (f > 1 + 1e-9) return "dropout is active with p = " + digits(1 - 1 / f, 4) + " (" + percent(share) + " of the weights dropped, the others × " + digits(f) + " = 1/(1 − p))";
  return "weights are dropped (" + percent(share) + ") and the others not rescaled" + (std::abs(f - 1) < 1e-9 ? "" : " but × " + digits(f));
}

Recipe::Transform times_mask(Block mask, double f) {
  return [mask = share(std::move(mask)), f](const Block& w, Run&) { return zipped(w, *mask, [&](double x, double kept) { return x * kept * f; }); };
}

/// Adds dropout that is read off: some weights are zero, all others scaled by one factor.
void add_observed_dropout(Table& t) {
  const Context& c = t.c;
  for (const Stage stage : {weights, dropped_weights}) {
    const Block* y = c.observed(stage);
    if (!y || c.is_large) continue;
    const Block& x = c.run[stage];
    if (x.n != y->n) continue;
    Numbers ratios;
    std::size_t n_gone = 0, n_seen_gone = 0, n_sure = 0;
    for (std::size_t k = 0; k < x.v.size(); ++k) {
      if (!std::isfinite(x.v[k]) || std::abs(x.v[k]) <= 1e-6) continue;
      ++n_sure;
      const std::size_t at = k % (x.n[2] * x.n[3]), i = at / x.n[3], j = at % x.n[3], b = k / (x.n[1] * x.n[2] * x.n[3]), h = k / (x.n[2] * x.n[3]) % x.n[1];
      if (y->v[k] == 0)
        ++n_gone, n_seen_gone += (*c.m.visible)(b, h, i, j) != 0;
      else
        ratios.push_back(y->v[k] / x.v[k]);
    }
    if (n_gone == 0 || ratios.empty()) continue;
    const double share = static_cast<double>(n_gone) / static_cast<double>(n_sure);
    const Block mask = mapped(*y, [](double w) { return w != 0 ? 1.0 : 0.0; });
    if (stage == weights && c.visited[index(weights)])
      t.add_transform("dropout_renormalized", weights,
                 "weights: " + percent(share) +
                     " of the unmasked cells are zero and the rest renormalized (a mask of no rule known here, or dropout before the weights are normalized)",
                 [kept = mask](const Block& w, Run&) { return normalized(zipped(w, kept, std::multiplies<>())); })
          .ranked(4)
          .needs_all_rows()
          .alone();
    std::ranges::nth_element(ratios, ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2));
    const double f = ratios[ratios.size() / 2];
    const bool is_one = std::abs(f - 1) <= std::max(c.estimate_tolerance, c.m.relative_tolerance);
    if (std::ranges::any_of(ratios, [&](double r) { return !(std::abs(r / f - 1) < c.estimate_tolerance); }) || share >= 0.97 || (is_one && 2 * n_seen_gone <= n_gone)) continue;
    t.add_transform("dropout_active", stage, dropout_words(is_one ? 1 : f, share), times_mask(mask, is_one ? 1 : f)).ranked(1).needs_all_rows();
  }
}

/// Adds dropout when only contexts or the output are given: solves for each weight, row by row, if there are
/// enough numbers.
void add_inferred_dropout(Table& t) {
  const Context& c = t.c;
  const Recipe& m = c.m;
  const Block* y = c.observed(c.target);
  if ((c.target != contexts && c.target != output) || !y || c.is_large || is_coarse(c.precision)) return;
  if (y->n != c.run[c.target].n || (c.target == output && m.merge != "concatenate")) return;
  const Block &w = c.run[weights], &V_all = c.run[values];
  if (w.n != Shape{m.B, m.H, m.T, m.S} || std::ranges::any_of(w.v, [](double x) { return !std::isfinite(x); })) return;
  struct System {
    std::size_t b, i;
    std::vector<std::size_t> heads;
    arma::mat A;
    arma::vec rhs;
    std::vector<std::pair<std::size_t, std::size_t>> cells;  // head, key
  };
  Block mask(w.n, 1);
  std::vector<System> rest;
  std::vector<std::size_t> solved(m.B * m.H * m.T);
  Numbers all_z;
  std::size_t spare = 0, n_rows = std::min<std::size_t>(m.T, 64);
  for (std::size_t b = 0; b < m.B; ++b)
    for (std::size_t i = 0; i < n_rows; ++i)
      for (std::size_t first = 0; first < (c.target == contexts ? m.H : 1); ++first) {
        System s{b, i, c.target == contexts ? std::vector{first} : index_range(m.H), {}, {}, {}};
        for (const std::size_t h : s.heads)
          for (std::size_t j = 0; j < m.S; ++j)
            if (w(b, h, i, j) > 1e-9) s.cells.emplace_back(h, j);
        const std::size_t n_equations = c.target == contexts ? m.dv : y->n[3];
        if (s.cells.empty() || s.cells.size() > (c.target == contexts ? std::max<std::size_t>(14, m.dv) : n_equations)) continue;
        s.A.set_size(n_equations, s.cells.size()), s.rhs.set_size(n_equations);
        for (std::size_t k = 0; k < n_equations; ++k) s.rhs[k] = y->row(b, c.target == contexts ? first : 0, i)[k] - (c.target == output && m.b[O] ? m.b[O]->v[k] : 0);
        for (std::size_t cell = 0; cell < s.cells.size(); ++cell) {
          const auto [h, j] = s.cells[cell];
          const double* value = V_all.row(b, m.group[V][h], j);
          for (std::size_t k = 0; k < n_equations; ++k) {
            double sum = c.target == contexts ? value[k] : 0;
            for (std::size_t column = 0; c.target == output && column < m.dv; ++column) sum += value[column] * (*m.W[O])(0, 0, h * m.dv + column, k);
            s.A(k, cell) = w(b, h, i, j) * sum;
          }
        }
        arma::vec z, values_of;
        arma::mat U, right;
        bool is_solved = s.A.n_cols <= s.A.n_rows && arma::svd_econ(U, values_of, right, s.A) && values_of.back() >= 1e-6 * values_of.front();
        if (is_solved) {
          z = right * ((U.t() * s.rhs) / values_of);
          is_solved = arma::abs(s.A * z - s.rhs).max() <= 10 * c.tolerance;
        }
        if (!is_solved) {
          rest.push_back(std::move(s));
          continue;
        }
        spare += s.A.n_rows - s.A.n_cols;
        for (std::size_t cell = 0; cell < s.cells.size(); ++cell) {
          all_z.push_back(z[cell]);
          mask.row(b, s.cells[cell].first, i)[s.cells[cell].second] = std::abs(z[cell]) > 0.5;
        }
        for (const std::size_t h : s.heads) solved[(b * m.H + h) * m.T + i] = 1;
      }
  Numbers kept, factors;
  std::ranges::copy_if(all_z, std::back_inserter(kept), [](double z) { return std::abs(z) > 0.5; });
  if (kept.size() >= 4 && kept.size() < all_z.size()) {
    std::ranges::sort(kept);
    const double f = kept[kept.size() / 2];
    if (kept.back() - f > 1e4 * c.estimate_tolerance * f || f - kept.front() > 1e4 * c.estimate_tolerance * f || f < 0.999) return;
    for (const double z : all_z)
      if (std::abs(z) <= 0.5 && std::abs(z) > 1e4 * c.estimate_tolerance) return;
    factors = {f};
  } else {
    for (int p = 5; p < 95; p += 5) factors.push_back(1 / (1 - p / 100.0));
  }
  for (const System& s : rest) {  // too many weights to solve for: tries all subsets, at known or usual factors
    const std::size_t n = s.A.n_cols;
    if (s.heads.size() != 1 || n > (m.H * m.T <= 160 ? 14u : 10u)) continue;
    double least = infinity, factor = 0;
    std::size_t best = 0;
    arma::vec sum(s.A.n_rows);
    for (std::size_t bits = 0; bits < std::size_t{1} << n; ++bits) {
      sum.zeros();
      for (std::size_t k = 0; k < n; ++k)
        if (bits >> k & 1) sum += s.A.col(k);
      for (const double f : factors)
        if (const double miss = arma::abs(sum * f - s.rhs).max(); miss < least) least = miss, factor = f, best = bits;
    }
    if (least > 3 * c.tolerance) {
      if (factors.size() > 1) return;
      continue;
    }
    factors = {factor};
    for (std::size_t k = 0; k < n; ++k) mask.row(s.b, s.heads[0], s.i)[s.cells[k].second] = best >> k & 1;
    solved[(s.b * m.H + s.heads[0]) * m.T + s.i] = 1;
  }
  if (factors.size() > 1) return;
  const double f = factors[0];
  if (std::abs(f - 1) < 1e-3 && (c.precision != Precision::float64 || std::abs(f - 1) > 1e-7)) return;
  std::size_t n_lost = 0, n_sure = 0, n_solved = 0;
  bool is_head = false;  // losing whole heads is another cause
  for (std::size_t b = 0; b < m.B; ++b)
    for (std::size_t h = 0; h < m.H; ++h) {
      std::size_t lost = 0, sure = 0;
      for (std::size_t i = 0; i < n_rows; ++i) {
        n_solved += solved[(b * m.H + h) * m.T + i];
        for (std::size_t j = 0; j < m.S; ++j)
          if (solved[(b * m.H + h) * m.T + i] && w(b, h, i, j) > 1e-9) ++sure, lost += mask(b, h, i, j) == 0;
      }
      is_head = is_head || lost == sure;
      n_lost += lost, n_sure += sure;
    }
  if (n_lost < 3 || is_head) return;
  const bool is_weak = static_cast<double>(n_solved) < 0.4 * static_cast<double>(m.B * m.H * n_rows);  // reported as no cause
  if (is_weak && (spare < 10 || n_sure < 20)) return;
  const std::size_t n_all = m.B * m.H * m.T;
  std::string words = dropout_words(f, static_cast<double>(n_lost) / static_cast<double>(n_sure));
  if (n_solved < n_all)
    words += "; confirmed in " + std::to_string(n_solved) + " of " + std::to_string(n_all) + " rows of heads, in the others there are more weights than numbers";
  const Block shown = *y;
  t.add("dropout_unseen", {dropped_weights, c.target}, words,
        [=, target = c.target, H = m.H, T = m.T](Recipe& r) {
          r.transform(dropped_weights, times_mask(mask, f));
          r.transform(target, [=](const Block& x, Run&) {
            return Block::of(x.n, [&](auto b, auto h, auto i, auto j) {
              bool is = true;
              for (std::size_t head = 0; head < H; ++head) is = is && (solved[(b * H + head) * T + i] || (target == contexts && head != h));
              return is ? x(b, h, i, j) : shown(b, h, i, j);
            });
          });
        })
      .ranked(is_weak ? 4 : 1)
      .needs_all_rows()
      .alone();
}

}  // namespace

void add_softmax(Table& t) {
  const Recipe& m = t.c.m;
  if (t.c.visits({weights})) {
    add_sinks(t);
    const auto denominator_bias = [&](double scaled, double unscaled) {
      const double n = scaled + unscaled;
      std::string words = "the softmax adds " + digits(n) + " to its sum" + (unscaled != 0 ? ", not rescaled by the row's maximum" : "");
      if (n == 1) words += unscaled != 0 ? " (softmax off by one, softmax1: exp(x − max) / (1 + Σ exp(x − max)))" : " (softmax off by one, softmax1: exp(x) / (1 + Σ exp(x)))";
      t.add("softmax_mass", {weights}, words, [=](Recipe& r) { r.denominator_bias = scaled, r.unscaled_denominator_bias = unscaled; });
    };
    for (const auto& [scaled, unscaled] : {std::pair{1.0, 0.0}, {0.0, 1.0}, {2.0, 0.0}, {0.0, 1e-3}, {0.0, 1e-6}, {0.0, 1e-2}}) denominator_bias(scaled, unscaled);
    for (const bool is_scaled : {true, false})
      t.fit(
          "softmax_mass_fitted", {weights}, {0.5},
          [&m, is_scaled](const Numbers& x) { return "the softmax adds " + number(x[0], m) + " to its sum" + (is_scaled ? "" : ", not rescaled by the maximum"); },
          [is_scaled](Recipe& r, const Numbers& x) { (is_scaled ? r.denominator_bias : r.unscaled_denominator_bias) = x[0]; });
    for (const auto& [name, place] :
         {std::pair{"its neighbor in pairs", 0}, {"the head half of the heads further", 1}, {"the next head (cyclic)", 2}, {"the head before (cyclic)", 3}})
      for (const double start : {0.5, 1.0})
        if (m.H % 2 == 0 && (m.H > 2 || place == 0))
          t.fit(
               "differential", {weights}, {start},
               [&m, name = name](const Numbers& x) {
                 return "weights of every head are less " + number(x[0], m) + " × those of " + name + " (as differential attention with λ = " + digits(x[0], m.digits) + ")";
               },
               [place = place](Recipe& r, const Numbers& x) {
                 r.transform(weights, [=, f = x[0]](const Block& w, Run&) {
                   const std::size_t H = w.n[1];
                   std::vector<std::size_t> other(H);
                   for (std::size_t h = 0; h < H; ++h) other[h] = place == 0 ? h ^ 1 : (h + (place == 1 ? H / 2 : place == 2 ? 1 : H - 1)) % H;
                   return zipped(w, index_select(w, 1, other), [f](double a, double b) { return a - f * b; });
                 });
               })
              .group_starts(name)
              .rank_fit = [](const Numbers& x) { return x[0] > 0 && x[0] < 2 ? 2 : 4; };
  }
  add_forms(t);
  if (m.drop) {
    for (const auto& [form, words] : {std::pair{"missing", "dropout is not applied"},
                                      {"not rescaled", "the kept weights are not rescaled by 1/(1 − p)"},
                                      {"by p", "the kept weights are divided by p instead of 1 − p"},
                                      {"renormalized", "the kept weights are renormalized to sum 1"},
                                      {"shrunk", "the kept weights are multiplied by 1 − p"},
                                      {"twice", "the kept weights are rescaled twice"}})
      t.add("dropout_form", {dropped_weights}, words, [form = form](Recipe& r) { r.drop_form = form; });
    t.add("dropout_inverted", {dropped_weights}, "the dropout mask is inverted", [](Recipe& r) { r.drop = share(mapped(*r.drop, [](double x) { return 1 - x; })); });
  }
  add_observed_dropout(t);
  add_inferred_dropout(t);
}

// Contexts, combination of heads, output.

namespace {

/// Computes attention between the heads of each token instead of between tokens.
Block attention_over_heads(Run& run, const Block& v, bool causal) {
  const Recipe& m = run.m;
  const Block &q = run.score_input(Q), &k = run.score_input(K);
  Block made({q.n[0], m.H, m.T, m.dv});
  Numbers weights(m.H);
  for (std::size_t b = 0; b < made.n[0]; ++b)
    for (std::size_t t = 0; t < m.T; ++t)
      for (std::size_t h = 0; h < m.H; ++h) {
        const std::size_t n = causal ? h + 1 : m.H;
        for (std::size_t g = 0; g < n; ++g) {
          const double* key = k.row(b, m.group[K][g], t);
          weights[g] = m.plain_scale() * std::inner_product(key, key + m.d, q.row(b, h, t), 0.0);
        }
        const double top = *std::max_element(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(n));
        double sum = 0;
        for (std::size_t g = 0; g < n; ++g) sum += weights[g] = std::exp(weights[g] - top);
        for (std::size_t g = 0; g < n; ++g)
          for (std::size_t c = 0; c < m.dv; ++c) made.row(b, h, t)[c] += weights[g] / sum * v.row(b, m.group[V][g], t)[c];
      }
  return made;
}

void add_contexts(Table& t) {
  const Recipe& m = t.c.m;
  using Make = std::function<Block(Run&, const Block& w, const Block& v)>;
  const auto add = [&](bool fits, const std::string& words, Make make, bool by_rows = true) {
    if (!fits) return;
    t.add_transform("contexts_from", contexts, words, [=](const Block&, Run& run) { return make(run, run[dropped_weights], run[values]); }).by_rows = by_rows;
  };
  const auto spread = [](const Block& x, std::size_t n) { return index_select(mean_of_heads(x), 1, std::vector<std::size_t>(n, 0)); };
  add(m.dv == m.d, "context vectors are sums of keys instead of values", [](Run& run, auto& w, auto&) { return run.sums(w, run[keys]); });
  add(m.dv == m.d && (m.rope[K] || m.norm[K]), "context vectors are sums of rotated (or normalized) keys instead of values",
      [](Run& run, auto& w, auto&) { return run.sums(w, run.score_input(K)); });
  add(
      m.T == m.S, "context vectors are computed with the weights transposed", [](Run& run, auto& w, auto& v) { return run.sums(transposed(w), v); }, false);
  add(m.drop != nullptr, "context vectors are computed with the weights before dropout", [](Run& run, auto&, auto& v) { return run.sums(run[weights], v); });
  add(true, "context vectors are computed from the values in reverse order", [=](Run& run, auto& w, auto& v) { return run.sums(w, reversed(v, 2)); });
  add(true, "context vectors are computed with scores instead of weights",
      [](Run& run, auto&, auto& v) { return run.sums(mapped(run.softmax_input(), [](double s) { return std::isfinite(s) ? s : 0; }), v); });
  add(m.T == m.S && m.H > 1 && m.d == m.dv, "attention runs over the heads of each token instead of the tokens ([tokens, heads, d_head] not transposed)",
      [](Run& run, auto&, auto& v) { return attention_over_heads(run, v, false); }, false);
  add(m.T == m.S && m.H > 1 && m.d == m.dv && m.causal, "attention runs over the heads of each token instead of the tokens ([tokens, heads, d_head] not transposed), causal over the heads",
      [](Run& run, auto&, auto& v) { return attention_over_heads(run, v, true); }, false);
  add(m.H > 1, "context vectors are averaged over the heads", [=](Run& run, auto& w, auto& v) { return spread(run.sums(w, v), w.n[1]); });
  add(m.H > 1, "context vectors are computed with weights averaged over the heads", [=](Run& run, auto& w, auto& v) { return run.sums(spread(w, w.n[1]), v); });
  add(m.sink || m.drop, "context vectors are computed with weights normalized to sum 1", [](Run& run, auto& w, auto& v) { return run.sums(normalized(w), v); });
  for (const long by : {1, -1, 2, -2})
    add(true, "weights and values are " + std::to_string(std::abs(by)) + " out of step (values rolled by " + digits(by) + ")",
        [by](Run& run, auto& w, auto& v) { return run.sums(w, rolled(v, 2, by)); });
  const auto without_rows = [&](const std::string& words, std::function<bool(std::size_t b, std::size_t i)> is_zero) {
    add(true, words, [is_zero](Run& run, auto& w, auto& v) {
      const Block x = run.sums(w, v);
      return Block::of(x.n, [&](auto b, auto h, auto i, auto j) { return is_zero(b, i) ? 0 : x(b, h, i, j); });
    }, false);
  };
  if (m.T == m.S && std::ranges::count(m.masked->v, 1.0) > 0)
    without_rows("context vectors of padded queries are zero (masked by the padding mask of the keys)", [masked = m.masked](auto b, auto i) { return (*masked)(b, 0, 0, i) != 0; });
  for (std::size_t n = 1; n < std::min<std::size_t>(m.T, 17); ++n)
    for (const bool are_last : {true, false})
      without_rows("context vectors of the " + std::string(are_last ? "last " : "first ") + (n > 1 ? std::to_string(n) + " queries" : "query") + " are zero",
                   [=, T = m.T](auto, auto i) { return are_last ? i + n >= T : i < n; });
  for (std::size_t head = 0; m.H > 1 && head < std::min<std::size_t>(m.H, 32); ++head)
    add(true, "head " + std::to_string(head) + " adds nothing (its context vectors are zero)", [head](Run& run, auto& w, auto& v) {
      Block x = run.sums(w, v);
      for (std::size_t b = 0; b < x.n[0]; ++b) std::fill_n(x.row(b, head, 0), x.n[2] * x.n[3], 0.0);
      return x;
    });
}

/// Adds each observed head as a least-squares sum of our heads.
void add_mixtures(Table& t) {
  const Context& c = t.c;
  const Stage stage = c.target;
  const Block* y = c.observed(stage);
  constexpr std::array of{queries, keys, values, normed_queries, normed_keys, rotated_queries, rotated_keys, scores, weights, contexts};
  if (!y || c.is_large || std::ranges::find(of, stage) == of.end()) return;
  const Block& x = c.run[stage];
  const std::size_t H = x.n[1], size = x.n[2] * x.n[3];
  if (x.n != y->n || H < 2) return;
  std::vector<std::pair<std::size_t, std::size_t>> cells;
  for (std::size_t b = 0; b < x.n[0]; ++b)
    for (std::size_t k = 0; k < size; ++k) {
      bool is_finite = true;
      for (std::size_t h = 0; h < H; ++h) is_finite = is_finite && std::isfinite(x.row(b, h, 0)[k]) && std::isfinite(y->row(b, h, 0)[k]);
      if (is_finite) cells.emplace_back(b, k);
    }
  if (cells.size() < 3 * H) return;
  arma::mat A(cells.size(), H), Y(cells.size(), H), mix;
  for (std::size_t r = 0; r < cells.size(); ++r)
    for (std::size_t h = 0; h < H; ++h) A(r, h) = x.row(cells[r].first, h, 0)[cells[r].second], Y(r, h) = y->row(cells[r].first, h, 0)[cells[r].second];
  if (!arma::solve(mix, A, Y, arma::solve_opts::no_approx)) return;
  mix = mix.t();  // [to][from]
  bool mixes = false;
  std::size_t maximum = 0;
  for (std::size_t h = 0; h < H; ++h) {
    std::size_t n = 0;
    for (std::size_t g = 0; g < H; ++g) {
      double& f = mix(h, g);
      if (std::abs(f) < c.estimate_tolerance) f = 0;
      if (const double near = std::round(f * 1e6) / 1e6; std::abs(near - f) < 1e-7) f = near;
      mixes = mixes || (g != h && f != 0), n += std::abs(f) > 10 * c.estimate_tolerance;
    }
    maximum = std::max(maximum, n);
  }
  if (!mixes || maximum > 3) return;  // any stage is a mixture of many heads
  std::vector<std::size_t> order(H);
  bool is_order = true, are_single = true;
  std::vector<std::string> phrases;
  for (std::size_t h = 0; h < H; ++h) {
    std::vector<std::string> sum;
    for (std::size_t g = 0; g < H; ++g)
      if (mix(h, g) != 0) {
        order[h] = g, is_order = is_order && std::abs(mix(h, g) - 1) < 1e-6;
        sum.push_back(digits(mix(h, g), 5) + " × " + std::to_string(g));
      }
    are_single = are_single && sum.size() == 1, is_order = is_order && sum.size() == 1;
    if (sum.size() != 1 || order[h] != h) phrases.push_back("head " + std::to_string(h) + " = " + text::joined(sum, " + "));
  }
  std::string words = name_of(stage) + (is_order ? ": " + order_words(order, "head") : " are mixtures of heads: " + text::joined(phrases, "; "));
  bool is_rule = is_order;
  for (std::size_t by = 1; by < H && !is_order; ++by)  // the same for all: the own head and one other
    for (const bool in_pairs : {true, false}) {
      bool are_alike = H % 2 == 0 || !in_pairs;
      const auto partner = [&](std::size_t h) { return in_pairs ? h ^ 1 : (h + by) % H; };
      for (std::size_t h = 0; h < H && are_alike; ++h)
        for (std::size_t g = 0; g < H; ++g) are_alike = are_alike && std::abs(mix(h, g) - (g == h ? mix(0, 0) : g == partner(h) ? mix(0, partner(0)) : 0)) < 1e-5;
      const double own = mix(0, 0), f = mix(0, partner(0));
      if (!are_alike || f >= 0 || own == 0) continue;
      words = name_of(stage) + " of every head are less " + digits(-f / own) + " × those of " +
              (in_pairs      ? "its neighbor (heads in pairs"
               : by <= H / 2 ? "the head " + std::to_string(by) + " further (cyclic"
                             : "the head " + std::to_string(H - by) + " before (cyclic") +
              ", as differential attention with λ = " + digits(-f / own) + ")" + (std::abs(own - 1) < 1e-9 ? "" : ", × " + digits(own));
      by = H, is_rule = true;
      break;
    }
  t.add_transform("heads_mixed", stage, words, [=](const Block& v, Run&) {
     return Block::of(v.n, [&](auto b, auto h, auto i, auto j) {
       double sum = 0;
       for (std::size_t g = 0; g < v.n[1]; ++g)
         if (mix(h, g) != 0) sum += mix(h, g) * v(b, g, i, j);
       return sum;
     });
   }).ranked(are_single ? 2 : is_rule || !is_coarse(c.precision) ? 3 : 4);  // rounding looks like a mixture too
}

/// Adds an order of rows or columns of the target, read off by their similarity to ours.
void add_read_orders(Table& t) {
  const Context& c = t.c;
  const Block* y = c.observed(c.target);
  if (!y || c.is_large || y->n != c.run[c.target].n) return;
  const Block& x = c.run[c.target];
  if (std::ranges::any_of(x.v, [](double f) { return !std::isfinite(f); }) || std::ranges::any_of(y->v, [](double f) { return !std::isfinite(f); })) return;
  for (const std::size_t axis : {2, 3}) {
    const std::size_t n = x.n[axis];
    if (n < 2 || n > 512) continue;
    const auto lines = [&](const Block& of) {
      arma::mat all(of.v.size() / n, n);
      std::vector<std::size_t> at(n);
      each_cell(of.n, [&](auto b, auto h, auto i, auto j) {
        const std::size_t line = axis == 2 ? i : j;
        all(at[line]++, line) = of.v[of.at(b, h, i, j)];
      });
      return all;
    };
    const arma::mat ours = lines(x), observed = lines(*y);
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) {
      double least = infinity;
      for (std::size_t j = 0; j < n; ++j)
        if (const double apart = arma::accu(arma::square(observed.col(i) - ours.col(j))); apart < least) least = apart, order[i] = j;
    }
    if (order == index_range(n)) continue;
    t.add_transform("order_read_off", c.target, name_of(c.target) + ": " + order_words(order, axis == 2 ? "row" : "column"), [=](const Block& v, Run&) { return index_select(v, axis, order); })
        .ranked(2)
        .needs_all_rows();
  }
}

}  // namespace

void add_outputs(Table& t) {
  const Recipe& m = t.c.m;
  if (t.c.visits({contexts})) add_contexts(t);
  for (const auto& [how, words] : {std::pair{"reshape", "the heads are combined by a reshape without the transpose"},
                                   {"interleaved", "the heads are combined as [d_head, heads] (columns interleaved; or the output projection's rows are in that order)"},
                                   {"concatenate", "the heads are combined by concatenation"}})
    if (m.H > 1 && how != m.merge) t.add("merge", {concatenated}, words, [how = how](Recipe& r) { r.merge = how; }).needs_all_rows();
  if (m.H > 1 && m.W[O]) {
    const auto only = [&](const std::string& words, std::size_t first, std::size_t end) {
      t.add("heads_not_summed", {output}, words, [=](Recipe& r) {
        r.W[O] = share(Block::of(r.W[O]->n, [&](auto b, auto h, auto i, auto j) { return i / r.dv >= first && i / r.dv < end ? (*r.W[O])(b, h, i, j) : 0; }));
      });
    };
    for (std::size_t n = 2; n <= m.H; ++n)
      for (std::size_t part = 0; m.H % n == 0 && n <= 8 && part < n; ++part)
        only("only heads " + std::to_string(part * m.H / n) + "–" + std::to_string((part + 1) * m.H / n - 1) + " reach the output (one of " + std::to_string(n) + " parts, not summed with the others)",
             part * m.H / n, (part + 1) * m.H / n);
  }
  if (m.d % 2 == 0 && m.d > 2)
    for (const std::string sides : {"qk", "q", "k"})
      for (const bool to_neighbors : {true, false}) {
        std::vector<std::size_t> order(m.d);
        for (std::size_t j = 0; j < m.d; ++j) order[j] = to_neighbors ? j % 2 * (m.d / 2) + j / 2 : j % (m.d / 2) * 2 + j / (m.d / 2);
        t.add_sides("column_order", sides,
                    "the columns of each head of the " + names_of(sides) + " are in the order of the other rotary pairs (" +
                        (to_neighbors ? "halves to neighbors" : "neighbors to halves") + "): a weight converted once too often or not at all",
                    [=](Recipe& r, Side side) { r.transform(side_stage[side], [=](const Block& x, Run&) { return index_select(x, 3, order); }); })
            .ranked(1);
      }
  if (m.cross && m.transforms.empty() && m.T != m.S && m.W[K] && m.W[K]->n[2] == m.D && !m.bias[2])
    t.add("self_instead_of_cross", {keys, values}, "keys and values are projected from the embeddings instead of the key embeddings (self- instead of cross-attention)",
          [](Recipe& r) {
            r.x[K] = r.x[V] = r.x[Q], r.S = r.T;
            r.masked = share(Block({r.B, 1, 1, r.S}));
            r.pos[K] = r.pos[Q] = positions_from(r.pos[K]->v[0], r.S);
            r.visible = share(mask_from_rules(r));
            if (r.bias[0]) r.bias[0] = share(alibi_bias(r, r.slopes));
            if (r.bias[1]) r.bias[1] = share(relative_bias(r, *r.relative));
          })
        .needs_all_rows();
  for (const Stage stage : {queries, keys, values, contexts})
    for (const auto& order : usual_orders(has_key_rows(stage) ? m.G : m.H))
      t.add_transform("head_order", stage, name_of(stage) + ": " + order_words(order, "head"), [=](const Block& x, Run&) { return index_select(x, 1, order); });
  for (const Stage stage : {output, contexts, queries}) {
    if (!t.c.has(stage)) continue;
    const std::string the_stage = "the " + name_of(stage);
    const auto move = [&](const std::string& words, Recipe::Transform change) { t.add_transform("rows_moved", stage, the_stage + words, std::move(change)).needs_all_rows(); };
    move(" are read in the other order (rows and columns exchanged by a reshape)", [](const Block& x, Run&) { return reshaped(transposed(x), x.n); });
    move(" are in reverse order of rows", [](const Block& x, Run&) { return reversed(x, 2); });
    for (const long by : {1, -1})
      if (stage != queries) move(" are rolled by " + digits(by) + " rows", [by](const Block& x, Run&) { return rolled(x, 2, by); });
  }
  if (t.c.has(output)) {
    const std::size_t width = m.W[O]->n[3];
    const bool is_square = m.W[O]->n[2] == width, has_residual = m.x[Q]->n[3] == width;
    const auto residual = [](double f) { return [f](const Block& y, Run& run) { return zipped(y, *run.m.x[Q], [f](double a, double x) { return a + f * x; }); }; };
    const auto project = [](const Block& y, const Recipe& r) {
      const Block x = transposed(*r.W[O]);
      return Block::of({y.n[0], 1, y.n[2], x.n[2]}, [&](auto b, auto, auto i, auto j) { return std::inner_product(y.row(b, 0, i), y.row(b, 0, i) + y.n[3], x.row(0, 0, j), 0.0); });
    };
    if (has_residual) {
      t.add_transform("residual", output, "the residual (the input of the layer) is already added", residual(1));
      t.fit(
          "residual_factor", {output}, {0.5}, [&m](const Numbers& x) { return number(x[0], m) + " × the embeddings are added to the output"; },
          [=](Recipe& r, const Numbers& x) { r.transform(output, residual(x[0])); });
    }
    const auto form = [&](const char* words, Recipe::Transform change) { t.add_transform("output_form", output, words, std::move(change)); };
    form("the output projection is missing", [](const Block&, Run& run) { return run[concatenated]; });
    if (is_square) form("the output projection is applied twice", [=](const Block& y, Run& run) { return project(y, run.m); });
    if (is_square && m.b[O])
      form("the bias of the output is added before the projection",
           [=](const Block&, Run& run) { return project(zipped(run[concatenated], *run.m.b[O], std::plus<>()), run.m); });
    for (const double epsilon : {1e-5, 1e-6, 1e-12}) {
      const auto norm = [=](const char* rule) { return [=](const Block& y, Run&) { return apply_norm(y, {.rule = rule, .w = Numbers(y.n[3], 1.0), .epsilon = epsilon}); }; };
      form("the output went through a LayerNorm (without weights)", norm("layer"));
      form("the output went through an RMSNorm (without weights)", norm("rms"));
      if (has_residual) form("the residual is added and a LayerNorm applied", [=](const Block& y, Run& run) { return norm("layer")(residual(1)(y, run), run); });
    }
  }
  const Block* y = t.c.observed(t.c.target);
  constexpr std::array with_vectors{queries, keys, values, normed_queries, normed_keys, output};
  if (y && !t.c.is_large && std::ranges::find(with_vectors, t.c.target) != with_vectors.end() && y->n == t.c.run[t.c.target].n && y->n[2] * y->n[0] > 2) {
    const Block& x = t.c.run[t.c.target];
    Block mean({1, x.n[1], 1, x.n[3]});
    each_cell(x.n, [&](auto b, auto h, auto i, auto j) { mean.row(0, h, 0)[j] += ((*y)(b, h, i, j) - x(b, h, i, j)) / static_cast<double>(x.n[0] * x.n[2]); });
    t.add_transform("vector_added", t.c.target,
               "one and the same vector is added to every row of the " + name_of(t.c.target) + " (a bias that the model does not have): " + listed(mean.v, m, 6),
               [mean](const Block& v, Run&) { return zipped(v, mean, std::plus<>()); })
        .ranked(3);
  }
  add_mixtures(t);
  add_read_orders(t);
}

// Values reported under the name of a stage but not used in the computation.

void add_reports(Table& t) {
  const Context& c = t.c;
  const Recipe& m = c.m;
  const Stage stage = c.target;
  const Block* y = c.observed(stage);
  const std::string the_stage = "the " + name_of(stage);
  const auto add_named = [&](const char* name, const std::string& words, Recipe::Transform change) -> Deviation& {
    return t.add(name, {stage}, words, [=](Recipe& r) { r.reported.emplace_back(stage, change); }).needs_all_rows().alone();
  };
  const auto add = [&](const std::string& words, Recipe::Transform change) { add_named("reported", words, std::move(change)); };
  constexpr std::array with_forms{weights, dropped_weights, scores, scaled_scores, masked_scores, contexts};
  if (y && std::ranges::find(with_forms, stage) != with_forms.end()) {
    const Shape x = c.run[stage].n, n = y->n;
    if (n == Shape{x[0], 1, x[2], x[3]} && x[1] > 1) {
      add(the_stage + " are given averaged over the heads", [](const Block& v, Run&) { return mean_of_heads(v); });
      add(the_stage + " are given summed over the heads", [](const Block& v, Run&) { return scaled(mean_of_heads(v), static_cast<double>(v.n[1])); });
      for (const bool is_most : {true, false})
        add("of " + the_stage + " the " + (is_most ? "largest" : "smallest") + " of all heads is given", [is_most](const Block& v, Run&) {
          Block best = index_select(v, 1, {0});
          for (std::size_t h = 1; h < v.n[1]; ++h) best = zipped(best, index_select(v, 1, {h}), [&](double a, double b) { return is_most ? std::max(a, b) : std::min(a, b); });
          return best;
        });
      for (std::size_t h = 0; h < x[1]; ++h) add("of " + the_stage + " head " + std::to_string(h) + " alone is given", [h](const Block& v, Run&) { return index_select(v, 1, {h}); });
    }
    if (stage == weights && n == Shape{x[0], x[1], x[2], x[3] + 1})
      for (const bool is_last : {false, true})
        add("the weights are given with the sink's column", [is_last](const Block& v, Run&) {
          return Block::of({v.n[0], v.n[1], v.n[2], v.n[3] + 1}, [&](auto b, auto h, auto i, auto j) {
            if (j != (is_last ? v.n[3] : 0)) return v(b, h, i, is_last ? j : j - 1);
            double rest = 1;
            for (std::size_t k = 0; k < v.n[3]; ++k) rest -= v(b, h, i, k);
            return rest;
          });
        });
    if (n != x && n == Shape{x[0], x[1], x[3], x[2]}) add(the_stage + " are given transposed", [](const Block& v, Run&) { return transposed(v); });
    if (n != x && n == Shape{x[0], x[2], x[1], x[3]})
      add(the_stage + " are given with rows and heads exchanged", [](const Block& v, Run&) {
        return Block::of({v.n[0], v.n[2], v.n[1], v.n[3]}, [&](auto b, auto h, auto i, auto j) { return v(b, i, h, j); });
      });
    if (n[3] < x[3] && n == Shape{x[0], x[1], x[2], n[3]})
      for (const bool is_last : {true, false}) {
        std::vector<std::size_t> order = index_range(n[3]);
        if (!is_last)
          for (std::size_t& j : order) j += x[3] - n[3];
        add(the_stage + " are given without their " + (is_last ? "last " : "first ") + std::to_string(x[3] - n[3]) + " keys",
            [order](const Block& v, Run&) { return index_select(v, 3, order); });
      }
  }
  for (const Stage other : run_stages())  // another stage under this name
    if (y && !c.is_large && other != stage && !(stage == output && other == concatenated) && (c.has(other) || is_score_step(other)) && c.run[other].n == y->n) {
      double maximum = 0;
      for (std::size_t k = 0; k < y->v.size(); ++k)
        if (const double a = c.run[other].v[k], b = y->v[k]; !(a == b || (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && b < -5000)))
          maximum = std::max(maximum, std::isfinite(a - b) ? std::abs(a - b) : infinity);
      if (maximum <= c.tolerance)
        add_named("reported_as", "what is given as " + name_of(stage) + " are the " + name_of(other), [other](const Block&, Run& run) { return run[other]; }).ranked(1);
    }
  if (m.drop && stage == weights) add_named("reported_after_dropout", "the weights are given after dropout", [](const Block&, Run& run) { return run[dropped_weights]; });
  const bool is_plain = m.transforms.empty() && !m.norm[Q] && !m.sink && !m.has_bias() && m.cap == 0 && (!m.rope[Q] || m.rope[Q]->dims == m.d) && m.scaling.rule == positions::ScalingRule::none;
  for (const std::size_t n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    const std::size_t width = m.H * m.d;
    if (!is_plain || n == m.H || width % n != 0 || m.G * n % m.H != 0 || m.G * n / m.H == 0 || (m.rope[Q] && width / n % 2 != 0) || m.dv != m.d || !m.overrides.empty()) continue;
    t.add("heads_other", {queries, keys, values}, "there are " + std::to_string(n) + " heads instead of " + std::to_string(m.H),
          [=](Recipe& r) {
            const bool is_own = std::abs(r.plain_scale() - 1 / std::sqrt(static_cast<double>(r.d))) < 1e-12;
            r.G = r.G * n / r.H, r.H = n, r.d = r.dv = width / n;
            r.group[K].resize(n);
            for (std::size_t h = 0; h < n; ++h) r.group[K][h] = h / (n / r.G);
            r.group[V] = r.group[K];
            if (is_own) r.set_scale(1 / std::sqrt(static_cast<double>(r.d)));
            for (auto& rope : r.rope)
              if (rope) rope->dims = r.d, rope->inverse_frequencies = frequencies_of(rope->base, r.d, static_cast<double>(r.d));
          })
        .needs_all_rows()
        .alone();
  }
}

}  // namespace core::check::inference
