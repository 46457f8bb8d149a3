#include <cmath>
#include <map>
#include <set>

#include "core/base/text.hpp"
#include "core/check/deviations.hpp"
#include "core/graph/rounding.hpp"

namespace core::check::inference {

// Each row of the table is one line, longer than the column limit.
// clang-format off

using enum Stage;

namespace {

// Scores, their scale and their softcap.

/// Adds wrong inputs of the scores.
void add_sources(Table& t) {
  const Recipe& m = t.c.m;
  const bool is_square = m.T == m.S, norms = m.norm[Q] || m.norm[K], rotates = m.rope[Q] || m.rope[K];
  using Make = std::function<Block(Run&, const Block& q, const Block& k)>;
  const auto add = [&](bool fits, const char* words, Make make, bool by_rows = true) {
    if (!fits) return;
    const auto change = [=](const Block&, Run& run) { return make(run, run.score_input(Q), run.score_input(K)); };
    t.add_transform("scores_from", scores, words, change).ranked(std::string_view(words).find("before norm") != std::string_view::npos).by_rows = by_rows;
  };
  const auto own_heads = [](Run& run, const Block& x, const Block& y) { return run.dot_products(x, y, false); };
  if (is_square) t.add_transform("scores_from", scores, "the scores are transposed (keys · queries)", [](const Block& s, Run&) { return transposed(s); }).needs_all_rows();
  add(norms && rotates, "the scores use the queries before norm and rotation", [](Run& run, auto&, auto& k) { return run.dot_products(run[queries], k); });
  add(norms && rotates, "the scores use the keys before norm and rotation", [](Run& run, auto& q, auto&) { return run.dot_products(q, run[keys]); });
  add(norms && rotates, "the scores use queries and keys before norm and rotation", [](Run& run, auto&, auto&) { return run.dot_products(run[queries], run[keys]); });
  add(
      is_square, "the scores are queries · queries", [=](Run& run, auto& q, auto&) { return own_heads(run, q, q); }, false);
  add(
      is_square, "the scores are keys · keys",
      [=](Run& run, auto&, auto& k) {
        const Block all = index_select(k, 1, run.m.group[K]);
        return own_heads(run, all, all);
      },
      false);
  add(m.dv == m.d, "the scores are queries · values", [](Run& run, auto& q, auto&) { return run.dot_products(q, run[values]); });
  add(true, "queries and keys are divided by their lengths (cosine similarity)", [](Run& run, auto& q, auto& k) {
    const auto unit = [](const Block& x) { return apply_norm(x, {.rule = "l2", .w = Numbers(x.n[3], 1.0), .epsilon = 0}); };
    return run.dot_products(unit(q), unit(k));
  });
  if (m.rope[Q] && m.rope[K] && m.rope[Q]->dims < m.d)
    for (const bool are_rotated : {true, false})
      add(true, are_rotated ? "only the rotated columns enter the scores" : "only the columns that are not rotated enter the scores",
          [first = are_rotated ? 0 : m.rope[Q]->dims, end = are_rotated ? m.rope[Q]->dims : m.d](Run& run, auto& q, auto& k) {
            const auto part = [&](const Block& x) { return Block::of(x.n, [&](auto b, auto h, auto i, auto j) { return j >= first && j < end ? x(b, h, i, j) : 0; }); };
            return run.dot_products(part(q), part(k));
          });
  add(norms && rotates, "the scores use normalized queries that are not rotated", [](Run& run, auto&, auto& k) { return run.dot_products(run[normed_queries], k); });
  add(norms && rotates, "the scores use normalized keys that are not rotated", [](Run& run, auto& q, auto&) { return run.dot_products(q, run[normed_keys]); });
  add(norms && rotates, "the scores use normalized queries and keys that are not rotated", [](Run& run, auto&, auto&) { return run.dot_products(run[normed_queries], run[normed_keys]); });
  add(true, "the scores are minus squared distances", [](Run& run, auto& q, auto& k) {
    const auto squares = [](const Block& x) { return by_row(x, [](const double* row, std::size_t n) { return std::inner_product(row, row + n, row, 0.0); }); };
    const Block s = run.dot_products(q, k), of_q = squares(q), of_k = index_select(squares(k), 1, run.m.group[K]);
    return Block::of(s.n, [&](auto b, auto h, auto i, auto j) { return 2 * s(b, h, i, j) - of_q(b, h, i, 0) - of_k(b, h, j, 0); });
  });
}

/// Calls add(words, KV head of each head) for each rule.
void each_mapping(const Recipe& m, const std::function<void(const std::string&, std::vector<std::size_t>)>& add) {
  const std::size_t H = m.H, G = m.G, each = H / G;
  const auto by = [&](const std::string& words, auto f) {
    std::vector<std::size_t> g(H);
    for (std::size_t h = 0; h < H; ++h) g[h] = f(h);
    add(words, g);
  };
  by("are tiled over the heads (h mod KV heads) instead of repeated", [&](std::size_t h) { return h % G; });
  for (std::size_t g = 0; g < G; ++g) by("all heads use KV head " + std::to_string(g), [&](std::size_t) { return g; });
  for (std::size_t n = 1; n < G; ++n) by("every group uses the KV head " + std::to_string(n) + " further (cyclic)", [&](std::size_t h) { return (h / each + n) % G; });
  by("heads use the KV heads in reverse order", [&](std::size_t h) { return G - 1 - h / each; });
  by("head h uses KV head min(h, last)", [&](std::size_t h) { return std::min(h, G - 1); });
  if (G < 2) return;
  for (std::size_t n = 2; n < H; ++n)
    if (n != each && n != G)
      by("groups have " + std::to_string(n) + " heads instead of " + std::to_string(each) + " (head h uses KV head h // " + std::to_string(n) + ")",
         [&](std::size_t h) { return std::min(h / n, G - 1); });
  by("head h uses KV head h // KV heads", [&](std::size_t h) { return std::min(h / G, G - 1); });
  for (std::size_t n = 1; n < H; ++n) by("heads use the KV heads of " + std::to_string(n) + " heads further", [&](std::size_t h) { return (h + n) % H / each; });
}

std::string mapping_words(const std::string& rule, std::string_view sides) {
  if (rule.starts_with("are ")) return names_of(sides) + " " + rule;
  return rule + (sides == "k" ? " (keys only)" : sides == "v" ? " (values only)" : "");
}

/// Returns the closest KV head of each head if scores (K) or contexts (V) are the target; else empty.
std::vector<std::size_t> matched_heads(const Context& c, Side side) {
  const Stage stage = side == K ? scores : contexts;
  const Block* y = c.observed(stage);
  if (stage != c.target || !y || c.m.G < 2) return {};
  std::vector<std::size_t> best(c.m.H);
  Numbers least(c.m.H, infinity);
  for (std::size_t g = 0; g < c.m.G; ++g) {
    Recipe r = c.m;
    r.group[side].assign(r.H, g);
    const Run run(r);
    const Block x = side == K ? run.dot_products(c.run.score_input(Q), c.run.score_input(K)) : run.sums(c.run[dropped_weights], c.run[values]);
    if (x.n != y->n) return {};
    for (std::size_t h = 0; h < r.H; ++h) {
      double maximum = 0;
      for (std::size_t b = 0; b < x.n[0]; ++b)
        for (std::size_t k = 0; k < x.n[2] * x.n[3]; ++k) maximum = std::max(maximum, std::abs(x.row(b, h, 0)[k] - y->row(b, h, 0)[k]));
      if (maximum < least[h]) least[h] = maximum, best[h] = g;
    }
  }
  return best;
}

void add_kv_heads(Table& t) {
  const Recipe& m = t.c.m;
  if (m.H == 1) return;
  std::set<std::vector<std::size_t>> seen{m.group[K]};
  const auto add = [&](const std::string& words, std::vector<std::size_t> g, const std::string& sides) -> Deviation& {
    return t.add_sides(
        "kv_heads", sides, mapping_words(words, sides), [=](Recipe& r, Side side) { r.group[side] = g; }, {queries, scores, contexts, output});
  };
  each_mapping(m, [&](const std::string& words, std::vector<std::size_t> g) {
    if (seen.insert(g).second)
      for (const char* sides : {"kv", "k", "v"}) add(words, g, sides);
  });
  for (const Side side : {K, V})
    if (const auto g = matched_heads(t.c, side); !g.empty() && !seen.contains(g) && g != m.group[side])
      for (const char* sides : {"kv", side == K ? "k" : "v"}) add("heads use the KV heads [" + listed(g) + "]", g, sides).ranked(2);
  // Keys and values given per head, not per KV head: which KV head is repeated where.
  constexpr std::array<std::array<Stage, 3>, 2> all{{{keys, normed_keys, rotated_keys}, {values, values, values}}};
  const bool are_wide =
      std::ranges::any_of(all, [&](const auto& stages) { return std::ranges::any_of(stages, [&](Stage s) { return t.c.observed(s) && t.c.observed(s)->n[1] == m.H && m.G != m.H; }); });
  if (are_wide)
    each_mapping(m, [&](const std::string& words, std::vector<std::size_t> g) {
      for (const std::string sides : {"kv", "k", "v"})
        t.add("kv_heads_repeated", {keys, values, scores}, mapping_words(words, sides),
              [=](Recipe& r) {
                for (const char side : sides) r.group[side_of(side)] = g;
                for (const Side side : {K, V})
                  for (const Stage stage : all[side - 1])
                    r.reported.emplace_back(stage, [side](const Block& x, Run& run) { return x.n[1] == run.m.H ? x : index_select(x, 1, run.m.group[side]); });
              })
            .alone()
            .of(sides);
    });
  for (const std::string sides : {"kv", "k", "v"})
    if (m.G > 1)
      t.add_sides("kv_heads_averaged", sides, names_of(sides) + " are averaged over the KV heads",
                  [](Recipe& r, Side side) { r.transform(side_stage[side], [](const Block& x, Run&) { return index_select(mean_of_heads(x), 1, std::vector<std::size_t>(x.n[1], 0)); }); });
}

std::string scale_words(double s, const Recipe& m) {
  const double own = m.plain_scale();
  const std::string ours = number(own, m, false), of = number(s, m, false), ratio = number(s / own, m, false);
  if (std::abs(s - 1) < 1e-9) return "the scale is missing (the model has " + ours + ")";
  if (std::abs(s / own - own) < 1e-9 * own) return "the scale is applied twice: " + of + " instead of " + ours;
  if (std::abs(s * own - 1) < 1e-9) return "scores are divided by the scale: × " + of + " instead of " + ours;
  if (ratio.find("ln 2") != ratio.npos) return "the softmax counts to the base 2 (2^x without log₂ e): scores × ln 2";
  return "the scale is " + of + " instead of " + ours + ": × " + ratio;
}

void add_scales(Table& t) {
  const Recipe& m = t.c.m;
  const double own = m.plain_scale(), d = m.d, D = m.D, H = m.H, G = m.G, S = m.S;
  const auto scale_stage = [](Recipe& r, Stage stage, double f) { r.transform(stage, [f](const Block& x, Run&) { return scaled(x, f); }); };
  if (own != 0) {
    const auto rank = [&m](double s) {
      const double was = m.plain_scale();
      if (std::abs(s - 1) < 1e-9 || std::abs(s / was - was) < 1e-9 || std::abs(s / was - std::log(2.0)) < m.relative_tolerance) return 0;
      return std::min(rank_of_factor(s, m), rank_of_factor(s / was, m));
    };
    std::set<double> seen{own, 0};
    for (const double s : {1.0,
                           own * own,
                           1 / own,
                           std::pow(d, -0.5),
                           std::pow(D, -0.5),
                           std::pow(H * d, -0.5),
                           1 / d,
                           1 / D,
                           std::sqrt(d),
                           std::pow(d, -0.25),
                           own * std::log(2.0),
                           own / std::log(2.0),
                           own * 2,
                           own / 2,
                           own / std::sqrt(d),
                           own / std::sqrt(D),
                           std::pow(d / G, -0.5),
                           std::pow(G, -0.5),
                           std::pow(H, -0.5),
                           std::pow(S, -0.5),
                           std::sqrt(std::abs(own)),
                           -own,
                           std::pow(2 * d, -0.5),
                           std::pow(d / 2, -0.5),
                           std::pow(D / H, -0.5),
                           std::pow(D / G, -0.5)})
      if (std::isfinite(s) && std::abs(s - own) > 1e-12 && seen.insert(s).second)
        t.add("scale", {scaled_scores}, scale_words(s, m), [s](Recipe& r) { r.set_scale(s); }).ranked(rank(s));
    for (const double f : {1.1, 0.6, 0.3, 0.1, 0.03, 2.0, 4.0, 10.0, -1.0})
      t.fit(
           "scale_value", {scaled_scores}, {own * f}, [&m](const Numbers& x) { return scale_words(x[0], m); }, [](Recipe& r, const Numbers& x) { r.set_scale(x[0]); })
          .rank_fit = [rank](const Numbers& x) { return rank(x[0]); };
    const auto of_shape = [](const Shape& shape, const Numbers& x) {
      Block block(shape);
      block.v = x;
      return share(std::move(block));
    };
    if (m.H > 1)
      t.fit(
           "scale_by_head", {scaled_scores}, Numbers(m.H, own * 1.05), [&m](const Numbers& x) { return "the scale differs from head to head: " + listed(x, m); },
           [=](Recipe& r, const Numbers& x) {
             r.scale = of_shape({1, x.size(), 1, 1}, x);
           })
          .ranked(3);
    const auto n_given = std::ranges::count_if(t.c.given, [](const SharedBlock& s) { return s != nullptr; });
    if (m.T > 1 && m.T <= 64 && n_given > 1)
      t.fit(
           "scale_by_row", {scaled_scores}, Numbers(m.T, 1.05), [&m](const Numbers& x) { return "the scale differs from query to query: × " + listed(x, m); },
           [=](Recipe& r, const Numbers& x) {
             Numbers all = x;
             for (double& f : all) f *= own;
             r.scale = of_shape({1, 1, x.size(), 1}, all);
           })
          .ranked(3)
          .needs_all_rows();
    for (const int from : {1, 2})
      for (const double start : {1.0, 2.0, 4.0, 8.0})
        t.fit(
             "scale_of_log", {scaled_scores}, {start},
             [from](const Numbers& x) {
               return "scores are multiplied by log(position + " + std::to_string(from) + ")/log(" + digits(std::exp(x[0])) + "): a scale that grows with the length";
             },
             [=](Recipe& r, const Numbers& x) {
               Numbers all(r.T);
               for (std::size_t i = 0; i < r.T; ++i) all[i] = own * std::log(static_cast<double>(static_cast<long>(i) + r.offset() + from)) / x[0];
               r.scale = of_shape({1, 1, r.T, 1}, all);
             })
            .group_starts(std::to_string(from))
            .needs_all_rows();
    t.add("scale_early", {queries, scaled_scores}, "the scale is applied to the queries instead of the scores", [=](Recipe& r) {
       scale_stage(r, queries, own), r.set_scale(1);
     }).ranked(1);
    t.add("scale_early", {queries, scaled_scores}, "queries are multiplied by the scale and the scores again (before the scores)", [=](Recipe& r) {
       scale_stage(r, queries, own);
     }).ranked(1);
    t.add("scale_on_keys", {keys, scaled_scores}, "the scale is applied to the keys instead of the scores", [=](Recipe& r) { scale_stage(r, keys, own), r.set_scale(1); }).ranked(1);
    t.add("scale_halved", {queries, keys, scaled_scores}, "the root of the scale is applied to queries and to keys, instead of the scale to the scores", [=](Recipe& r) {
       scale_stage(r, queries, std::sqrt(own)), scale_stage(r, keys, std::sqrt(own)), r.set_scale(1);
     }).ranked(1);
  }
  const auto cap_words = [&m](double c) {
    return m.cap != 0 ? "the softcap is " + number(c, m) + " instead of " + digits(m.cap) : "scores are soft-capped (softcap is " + number(c, m) + "), which the model does not do";
  };
  const bool caps = m.cap != 0;
  if (caps) {
    t.add("cap_missing", {capped_scores}, "the softcap is missing (no logit soft-capping: the cap is missing)", [](Recipe& r) { r.cap = 0; });
    for (const auto& [form, words] : {std::pair{"not multiplied", "the softcap is tanh(s/c) without the factor c"},
                                      {"not divided", "the softcap is c·tanh(s), without dividing by c"},
                                      {"clipped", "scores are clipped at ±c instead of c·tanh(s/c)"},
                                      {"twice", "the softcap is applied twice"},
                                      {"inverse", "the softcap is tanh(s·c)/c: with multiplication and division exchanged"}})
      t.add("cap_form", {capped_scores}, words, [form = form](Recipe& r) { r.cap_form = form; }).ranked(form == std::string_view("inverse"));
  }
  for (const double start : caps ? Numbers{m.cap * 0.9, m.cap * 1.2, m.cap * 0.4, m.cap * 3, m.cap * 10} : Numbers{1, 5, 20, 50})
    t.fit(
        "cap_value", {capped_scores}, {start}, [cap_words](const Numbers& x) { return cap_words(x[0]); }, [](Recipe& r, const Numbers& x) { r.cap = x[0]; });
  for (const double c : {50.0, 30.0, 20.0, 15.0, 10.0, 5.0})
    if (c != m.cap) t.add("cap_other", {capped_scores}, cap_words(c), [c](Recipe& r) { r.cap = c; }).ranked(caps ? 1 : 2);
}

void add_orders(Table& t) {
  const Recipe& m = t.c.m;
  using enum ScoreStep;
  struct Order {
    std::array<ScoreStep, 4> steps;
    const char* words;
  };
  const auto used_of = [&](const std::array<ScoreStep, 4>& steps) {
    std::vector<ScoreStep> used;
    std::ranges::copy_if(steps, std::back_inserter(used), [&](ScoreStep step) { return m.has_step(step); });
    if (used.back() == scale && used[used.size() - 2] == mask) std::swap(used.back(), used[used.size() - 2]);  // −∞ stays −∞
    return used;
  };
  StageSet affected_stages;
  for (const ScoreStepInfo& step : score_steps) affected_stages.set(index(step.stage));
  std::set<std::vector<ScoreStep>> seen{used_of(m.step_order)};
  for (const Order& order : {Order{{softcap, scale, bias, mask}, "the softcap comes before the scale"},
                             {{bias, scale, softcap, mask}, "the bias is added before scale and softcap"},
                             {{scale, bias, softcap, mask}, "the bias is added before the softcap"},
                             {{scale, bias, mask, softcap}, "the softcap comes after bias and mask"},
                             {{scale, softcap, mask, bias}, "the bias is added after the mask"},
                             {{bias, scale, mask, softcap}, "the softcap comes last and the bias first"},
                             {{softcap, bias, scale, mask}, "the scale comes after softcap and bias"},
                             {{scale, mask, softcap, bias}, "the mask comes before the softcap"},
                             {{softcap, bias, mask, scale}, "the scale comes last"},
                             {{bias, softcap, scale, mask}, "the bias is added first, then the softcap, then the scale"}}) {
    const std::vector<ScoreStep> used = used_of(order.steps);
    if (!seen.insert(used).second) continue;
    std::string words = used.size() > 3 ? "the order is " + text::joined(used, ", ", [](ScoreStep step) { return info_of(step).word; }) + ": " + order.words
                        : used == std::vector{bias, scale, mask}    ? "the bias is added before the scale"
                        : used == std::vector{softcap, scale, mask} ? "the softcap comes before the scale (the cap comes before)"
                                                                    : order.words;
    t.add("order", affected_stages, std::move(words), [steps = order.steps](Recipe& r) { r.step_order = steps, r.has_reordered_steps = true; });
  }
}

}  // namespace

void add_scores(Table& t) {
  add_sources(t);
  add_kv_heads(t);
  add_scales(t);
  add_orders(t);
}

// Biases of the scores.

/// Adds a bias by distance of query and key alone, read off the scores of a model without one.
void add_bias_of_distances(Table& t) {
  const Context& c = t.c;
  const Recipe& m = c.m;
  const Block* y = c.observed(c.target);
  const Block& x = c.run[c.target];
  if (!is_score_step(c.target) || m.has_bias() || c.is_large || !y || x.n != y->n) return;
  const std::size_t n = m.T + m.S - 1;
  Block sums({1, m.H, 1, n}), counts = sums;
  const auto visit = [&](auto f) {
    each_cell(x.n, [&](auto b, auto h, auto i, auto j) {
      if (const double by = (*y)(b, h, i, j) - x(b, h, i, j); std::isfinite(by)) f(by, h, j + m.T - 1 - i);
    });
  };
  visit([&](double by, std::size_t h, std::size_t at) { sums.row(0, h, 0)[at] += by, ++counts.row(0, h, 0)[at]; });
  const Block means = zipped(sums, counts, [](double sum, double count) { return count > 0 ? sum / count : 0; });
  bool is_distance_bias = true;
  visit([&](double by, std::size_t h, std::size_t at) { is_distance_bias = is_distance_bias && std::abs(by - means(0, h, 0, at)) <= 3 * c.tolerance; });
  const std::size_t n_cells = static_cast<std::size_t>(std::accumulate(counts.v.begin(), counts.v.end(), 0.0));
  if (!is_distance_bias || n_cells < 2 * static_cast<std::size_t>(std::ranges::count_if(counts.v, [](double count) { return count > 0; }))) return;
  const std::size_t own = m.S - 1;
  Numbers first;  // of head 0, by distance from 0
  for (std::size_t k = 0; k <= std::min<std::size_t>(own, 11); ++k) first.push_back(means(0, 0, 0, own - k));
  t.add("distance_bias", {position_bias, stage_of(ScoreStep::bias)}, "a bias that depends on the distance alone is added, which the model does not have (relative positions; head 0, from distance 0: " + listed(first, m) + ")",
        [means](Recipe& r) { r.bias[2] = share(Block::of({1, r.H, r.T, r.S}, [&](auto, auto h, auto i, auto j) { return means(0, h, 0, j + r.T - 1 - i); })); })
      .ranked(2)
      .needs_all_rows();
}

void add_biases(Table& t) {
  const Recipe& m = t.c.m;
  add_bias_of_distances(t);
  constexpr std::array terms{"the ALiBi bias", "the relative position bias", "the given bias"};
  if (!t.c.visits({position_bias, stage_of(ScoreStep::bias)})) return;
  for (std::size_t which = 0; which < 3; ++which) {
    if (!m.bias[which]) continue;
    const std::string what = terms[which];
    const Stages affected_stages{which == 2 ? stage_of(ScoreStep::bias) : position_bias};
    for (const double f : {0.0, 2.0, -1.0, 3.0}) t.add("bias_count", affected_stages, factor_words(f, what, m), [=](Recipe& r) { r.bias_count[which] = f; });
    t.fit(
        "bias_factor", affected_stages, {1.2},
        [&m, what](const Numbers& x) {
          if (std::abs(x[0] / m.plain_scale() - 1) < 1e-7) return what + " is multiplied by the scale too (" + digits(x[0]) + "): it is added before the scale";
          return factor_words(x[0], what, m);
        },
        [=](Recipe& r, const Numbers& x) { r.bias_count[which] = x[0]; });
    const auto move = [&](const std::string& words, std::function<Block(const Block&)> change) {
      t.add("bias_moved", affected_stages, what + words, [=](Recipe& r) { r.bias[which] = share(change(*r.bias[which])); });
    };
    if (m.T == m.S) move(" is transposed", transposed);
    for (std::size_t by = 1; by < m.H; ++by)
      move(" of every head is that of the head " + std::to_string(by) + " further (cyclic)", [by](const Block& x) { return rolled(x, 1, -static_cast<long>(by)); });
    if (m.H > 1) {
      move(" is in reverse order of heads", [](const Block& x) { return reversed(x, 1); });
      move(" is averaged over the heads", mean_of_heads);
      for (std::size_t h = 0; h < std::min<std::size_t>(m.H, 8); ++h)
        move(" of head " + std::to_string(h) + " is used for all heads", [h](const Block& x) { return repeat_index(x, 1, h); });
    }
    for (const long by : {1, -1, 2, -2})
      for (const std::size_t axis : {2, 3})
        move(" is rolled by " + digits(by) + " along the " + (axis == 2 ? "queries" : "keys"), [=](const Block& x) { return rolled(x, axis, by); });
    for (const bool is_last : {true, false})
      move(std::string(" of the ") + (is_last ? "last" : "first") + " query is used for all", [=](const Block& x) { return repeat_index(x, 2, is_last ? x.n[2] - 1 : 0); });
    move(" is added as its exponential", [](const Block& x) { return mapped(x, [](double y) { return std::exp(y); }); });
    move(" runs backwards along the keys", [](const Block& x) { return reversed(x, 3); });
  }
  if (m.has_bias())
    t.add("bias_after_softmax", {stage_of(ScoreStep::bias), weights}, "the bias is added after the softmax", [](Recipe& r) {
      r.omits_bias = true;
      r.transform(weights, [](const Block& w, Run& run) {
        Block sum = w;
        for (std::size_t which = 0; which < 3; ++which)
          if (run.m.bias[which]) sum = zipped(sum, *run.m.bias[which], [&](double a, double bias) { return a + run.m.bias_count[which] * bias; });
        return sum;
      });
    });
  if (m.slopes.empty()) {
    Numbers usual(m.H);
    for (std::size_t h = 0; h < m.H; ++h) usual[h] = positions::default_slopes(m.H)[h];
    t.add("alibi_added", {position_bias, stage_of(ScoreStep::bias)}, "an ALiBi bias is added, which the model does not have (slopes " + listed(usual, m) + ")", [usual](Recipe& r) {
       r.slopes = usual, r.bias[0] = share(alibi_bias(r, usual));
     }).ranked(1);
  } else {
    const Numbers own = m.slopes;
    const std::size_t H = m.H;
    std::set<Numbers> seen{own};
    const auto slopes = [&](const std::string& words, auto of) {
      Numbers all(H);
      for (std::size_t h = 0; h < H; ++h) all[h] = of(h);
      if (seen.insert(all).second)
        t.add("alibi", {position_bias}, "the ALiBi slopes " + words + ": " + listed(all, m), [all](Recipe& r) { r.slopes = all, r.bias[0] = share(alibi_bias(r, all)); });
    };
    std::size_t power = 1;
    while (2 * power <= H) power *= 2;
    const std::size_t above = power < H ? 2 * power : H;
    const auto series = [](double h, double n) { return std::pow(2.0, -8.0 * h / n); };
    const auto usual = positions::default_slopes(H);
    slopes(power != H ? "form a uniform geometric series 2^(−8(h+1)/n) for a number of heads that is no power of two" : "form the series 2^(−8(h+1)/n)",
           [&](std::size_t h) { return series(h + 1, H); });
    slopes("are Bloom's for this number of heads", [&](std::size_t h) { return usual[h]; });
    slopes("are the first " + std::to_string(H) + " of those for " + std::to_string(above) + " heads", [&](std::size_t h) { return series(h + 1, above); });
    slopes("are those for " + std::to_string(power) + " heads carried on", [&](std::size_t h) { return series(h + 1, power); });
    slopes("begin with 1: 2^(−8h/n)", [&](std::size_t h) { return series(h, H); });
    slopes("are 2^(−(h+1))", [&](std::size_t h) { return std::pow(2.0, -(h + 1.0)); });
    slopes("are 2^(−8/n) for all heads", [&](std::size_t) { return series(1, H); });
    slopes("are 1/(h+1)", [&](std::size_t h) { return 1 / (h + 1.0); });
    slopes("are all 1", [&](std::size_t) { return 1.0; });
    slopes("are 2^(−4(h+1)/n)", [&](std::size_t h) { return series(h + 1, 2 * H); });
    slopes("are those of MPT, reordered for this number of heads", [&](std::size_t h) { return series(h < above / 2 ? 2 * h + 2 : 2 * (h - above / 2) + 1, above); });
    slopes("are reversed", [&](std::size_t h) { return own[H - 1 - h]; });
    for (std::size_t by = 1; by < H; ++by) slopes("are those of the head " + std::to_string(by) + " further (cyclic)", [&](std::size_t h) { return own[(h + by) % H]; });
    Numbers sorted = own;
    std::ranges::sort(sorted);
    double mean = 0;
    for (const double slope : own) mean += slope / static_cast<double>(H);
    slopes("are all those of head 0", [&](std::size_t) { return own[0]; });
    slopes("are all their mean", [&](std::size_t) { return mean; });
    slopes("are 1/slope", [&](std::size_t h) { return own[h] == 0 ? 1 : 1 / own[h]; });
    slopes("are their roots", [&](std::size_t h) { return std::sqrt(std::abs(own[h])); });
    slopes("are their squares", [&](std::size_t h) { return own[h] * own[h]; });
    slopes("are in the order of their size", [&](std::size_t h) { return sorted[H - 1 - h]; });
    slopes("are in the reverse order of their size", [&](std::size_t h) { return sorted[h]; });
    for (const auto& [how, words] : {std::pair{"signed", "key − query, without the absolute value"},
                                     {"key", "the key's position alone"},
                                     {"first", "counted as if the queries began at the first key"},
                                     {"sum", "query + key"},
                                     {"clipped", "only of earlier keys (later ones get none)"},
                                     {"square", "squared"},
                                     {"log", "log(1 + distance)"},
                                     {"reversed", "the key's position from the end"}})
      t.add("alibi", {position_bias}, std::string("the distance of ALiBi is ") + words, [=, how = how](Recipe& r) { r.bias[0] = share(alibi_bias(r, r.slopes, how)); });
    std::set<long> shifts{1, -1, 2, -2, 3, -3, 4, -4};
    if (m.T != m.S) shifts.insert({m.offset(), -m.offset(), -5, -6, -7, -8});
    for (const long by : shifts)
      t.add("alibi", {position_bias}, "the positions of the queries in ALiBi are " + shift_words(by), [by](Recipe& r) { r.bias[0] = share(alibi_bias(r, r.slopes, "abs", by)); });
    Numbers start = own;
    for (double& slope : start) slope *= 1.1;
    t.fit(
         "alibi_slopes", {position_bias}, start, [&m](const Numbers& x) { return "the ALiBi slopes are " + listed(x, m); },
         [](Recipe& r, const Numbers& x) { r.slopes = x, r.bias[0] = share(alibi_bias(r, x)); })
        .ranked(3);
  }
  if (!m.relative) return;
  const auto relative = [&](const std::string& words, std::function<void(RelativeBuckets&)> change) {
    t.add("relative", {position_bias}, "of the relative bias: " + words, [=](Recipe& r) {
      change(*r.relative);
      r.bias[1] = share(relative_bias(r, *r.relative));
    });
  };
  const std::string sides = m.relative->is_bidirectional ? "one-sided" : "two-sided (bidirectional)";
  relative("buckets are taken as " + sides, [](RelativeBuckets& r) { r.is_bidirectional = !r.is_bidirectional; });
  relative("buckets count query − key instead of key − query", [](RelativeBuckets& r) { r.sign = -1; });
  relative("buckets count query − key and are taken as " + sides, [](RelativeBuckets& r) { r.sign = -1, r.is_bidirectional = !r.is_bidirectional; });
  const std::size_t n = m.relative->table->n[3];
  const double own = m.relative->max_distance;
  std::set<double> distances{128, 256, 512, 1024, 2.0 * static_cast<double>(n), own * 2, own * 4};
  for (int k = 2; k < 97; ++k) distances.insert(k);
  std::map<Numbers, Numbers> same;  // largest distances with the same buckets here
  for (const double k : distances)
    if (k != own && k > static_cast<double>(n / 4)) {
      RelativeBuckets other = *m.relative;
      other.max_distance = k;
      same[relative_bias(m, other).v].push_back(k);
    }
  for (const auto& [bias, ks] : same) {
    double likeliest = ks[0];
    for (const double k : {8.0, 16.0, 32.0, 64.0, 128.0, own * 2, std::floor(own / 2)})
      if (std::ranges::find(ks, k) != ks.end()) likeliest = k;
    relative("the largest distance of the buckets is " + digits(likeliest) + " instead of " + digits(own) +
                 (ks.size() > 1 ? " (or any other of " + digits(ks.front()) + "–" + digits(ks.back()) + ", which come to the same here)" : ""),
             [=](RelativeBuckets& r) { r.max_distance = likeliest; });
  }
  for (const std::size_t k : {n / 2, 2 * n, std::size_t{32}, std::size_t{16}})
    if (k != n && k > 1) relative("distances are put into " + std::to_string(k) + " buckets instead of " + std::to_string(n), [k](RelativeBuckets& r) { r.buckets = k; });
  std::set<long> shifts{1, -1, 2, -2};
  if (m.T != m.S) shifts.insert({m.offset(), 3, 4, 5, 6, 7, 8});
  for (const long by : shifts) relative("relative positions are " + shift_words(by), [by](RelativeBuckets& r) { r.shift = by; });
  if (m.H == n) relative("the table of buckets is transposed", [](RelativeBuckets& r) { r.table = share(transposed(*r.table)); });
}

// Masks.

namespace {

std::string keys_words(const Block& masked) {
  std::vector<std::size_t> all;
  for (std::size_t j = 0; j < masked.n[3]; ++j)
    if (masked.v[j] != 0) all.push_back(j);
  if (all.empty()) return "none";
  if (all.size() > 1 && all.back() - all.front() + 1 == all.size()) return std::to_string(all.front()) + "–" + std::to_string(all.back());
  return listed(all);
}

SharedBlock padding_mask(const Recipe& m, const std::function<bool(std::size_t b, long j)>& is) {
  return share(Block::of({m.B, 1, 1, m.S}, [&](auto b, auto, auto, auto j) { return is(b, static_cast<long>(j)) ? 1.0 : 0.0; }));
}

/// Returns the given masked scores or weights and their masked value `masked`; nullptr if neither is given.
const Block* find_masked_stage(const Context& c, double& masked) {
  for (const Stage stage : {masked_scores, weights})
    if (const Block* y = c.observed(stage); y && y->n == Shape{c.m.B, c.m.H, c.m.T, c.m.S}) {
      masked = stage == weights ? 0 : -infinity;
      return y;
    }
  return nullptr;
}

/// Returns windows that the first differing row, or given masked positions, suggest.
std::set<std::pair<long, long>> window_hints(const Context& c) {
  const Recipe& m = c.m;
  std::set<std::pair<long, long>> found;
  if (!c.differing_rows.empty()) {
    const long i = static_cast<long>(c.differing_rows[0]) + m.offset();
    found.insert({{i - 1, 0}, {i - 1, -1}, {i, 0}, {i, -1}});
  }
  double masked = 0;
  if (const Block* y = find_masked_stage(c, masked)) {
    long left = -1, right = -1;
    each_cell(y->n, [&](auto b, auto h, auto t, auto s) {
      if (y->row(b, h, t)[s] == masked) return;
      const long i = static_cast<long>(t) + (m.aligns_last ? m.offset() : 0), j = static_cast<long>(s);
      left = std::max(left, i - j), right = std::max(right, j - i);
    });
    found.insert({{left, std::max(right, 0L)}, {left, -1}});
  }
  std::erase_if(found, [](const auto& window) { return window.first < 0; });
  return found;
}

/// Mask rules, each added once: rules that mask the same positions here are one.
class Masks {
 public:
  explicit Masks(Table& table) : t(table), m(table.c.m), seen_{m.visible->v} {}

  /// Adds a rule with changed fields.
  void rule(const std::string& words, std::function<void(Recipe&)> change) {
    const auto make = [change = std::move(change)](Recipe r) {
      change(r);
      return mask_from_rules(r);
    };
    add(words, [make](const Recipe& r) { return make(r); });
  }
  /// Adds a function of the unmasked positions.
  void cells(const std::string& words, std::function<Block(const Block&)> change) {
    add(words, [change = std::move(change)](const Recipe& r) { return change(*r.visible); });
  }
  /// Adds a rule with changed fields and a further condition on positions.
  void rule_and(const std::string& words, std::function<void(Recipe&)> change, std::function<bool(long i, long j, long first)> is) {
    add(words, [change = std::move(change), is = std::move(is)](const Recipe& r) {
      Recipe other = r;
      change(other);
      Block seen = mask_from_rules(other);
      const long first = r.aligns_last ? r.offset() : 0;
      return Block::of(seen.n, [&](auto b, auto h, auto i, auto j) { return seen(b, h, i, j) != 0 && is(static_cast<long>(i) + first, static_cast<long>(j), first) ? 1.0 : 0.0; });
    });
  }

 private:
  void add(const std::string& words, std::function<Block(const Recipe&)> make) {
    if (t.c.is_large) {  // computed when it is tried
      t.add("mask", {masked_scores}, words, [make](Recipe& r) { r.visible = share(make(r)); });
      return;
    }
    Block block = make(m);
    if (!seen_.insert(block.v).second) return;
    t.add("mask", {masked_scores}, words, [seen = share(std::move(block))](Recipe& r) { r.visible = seen; });
  }

  Table& t;
  const Recipe& m;
  std::set<Numbers> seen_;
};

void add_windows(Masks& masks, const Context& c) {
  const Recipe& m = c.m;
  const long S = m.S;
  const std::set<std::pair<long, long>> hints = window_hints(c);
  const auto side = [](long n) { return n < 0 ? "no limit" : std::to_string(n); };
  const auto text_of = [&](long a, long b) { return "[" + side(a) + ", " + side(b) + "]"; };
  std::set<long> widths;
  for (const auto& [a, b] : hints) widths.insert(a);
  if (!m.window) {
    for (long w = 0; w < std::min(S, c.is_large ? 0L : 32L); ++w) widths.insert(w);
    for (int k = 5; k < 14; ++k)
      for (const long less : {0, 1})
        if ((1L << k) - less < S) widths.insert((1L << k) - less);
    for (const long w : widths) {
      masks.rule("a sliding window of " + std::to_string(w) + " to the left is applied, which the model does not have", [w](Recipe& r) { r.window = {w, -1}; });
      if (!m.causal) masks.rule("a sliding window of " + std::to_string(w) + " to both sides is applied, which the model does not have", [w](Recipe& r) { r.window = {w, w}; });
    }
    for (long w = 2; w < std::min(S, 17L); ++w)
      masks.rule_and(
          "queries see their own block of " + std::to_string(w) + " keys alone", [](Recipe&) {}, [w](long i, long j, long) { return i / w == j / w; });
    return;
  }
  const auto [l, r] = *m.window;
  masks.rule("the sliding window is missing (or hides nothing here)", [](Recipe& o) { o.window.reset(); });
  const std::map<std::pair<long, long>, std::string> names{{{l, l}, "the same on both sides"},
                                                           {{2 * l, r}, "twice as wide on the left"},
                                                           {{r, l}, "the other way round"},
                                                           {{l, l / 2}, "(w, w/2)"},
                                                           {{l / 2, r / 2}, "half as wide on both sides"},
                                                           {{l / 2, r}, "half as wide on the left"},
                                                           {{l - 1, r}, "one smaller on the left (counted with the query itself)"},
                                                           {{l + 1, r}, "one larger on the left"}};
  std::set<std::pair<long, long>> done{{l, r}};
  const auto window = [&](long a, long b) {
    if (!done.emplace(a, b).second) return;
    const auto name = names.find({a, b});
    masks.rule("the sliding window is " + text_of(a, b) + " instead of " + text_of(l, r) + (name == names.end() ? "" : ": " + name->second), [=](Recipe& o) { o.window = {a, b}; });
  };
  const long maximum = c.is_large ? 0 : std::min(S, 64L);
  for (long a = -1; a <= maximum; ++a) widths.insert(a);
  for (int k = 6; k < 14; ++k) widths.insert({(1L << k) - 1, 1L << k});
  widths.insert({l - 1, l + 1, l / 2, 2 * l});
  for (const long a : widths)
    if (a >= -1 && (!c.is_large || a <= S)) window(a, r);
  for (const auto& [shape, name] : names) window(shape.first, shape.second);
  if (!m.causal || r != 0)
    for (long a = -1; a <= std::min(maximum, 32L); ++a)
      for (long b = -1; b <= std::min(maximum, 32L); ++b) window(a, b);
  for (const auto& [a, b] : hints) window(a, b);
  const auto none = [](Recipe& o) { o.window.reset(); };
  if (l > 0)
    for (const long n : {2, 3, 4, 5, 6, 8, 16, 32, 64, 128})
      if (n < static_cast<long>(m.T))
        masks.rule_and("queries of each block of " + std::to_string(n) + " see back to where the sliding window of its first query begins", none,
                       [n, l = l](long i, long j, long first) { return j >= (i - first) / n * n + first - l; });
  if (l > 0)
    for (const long w : {l, l + 1})
      masks.rule_and("the sliding window is cut in blocks of " + std::to_string(w) + " (a query sees its own block)", none, [w](long i, long j, long) { return i / w == j / w; });
  if (m.T != m.S) {
    masks.rule_and("the sliding window is counted from the query's row, not from its position behind the earlier keys", none,
                   [l = l, r = r, is_causal = m.causal](long i, long j, long first) { return (l < 0 || j >= i - first - l) && (r < 0 || is_causal || j <= i - first + r); });
    masks.rule_and("the sliding window keeps the first keys instead of the last", none, [l = l](long, long j, long) { return j <= l; });
  }
  if (m.causal) {
    masks.rule("the sliding window replaces the causal mask", [](Recipe& o) { o.causal = false; });
    masks.rule("the sliding window reaches " + std::to_string(l) + " to both sides and is not causal", [l = l](Recipe& o) { o.causal = false, o.window = {l, l}; });
  }
}

void add_cache(Masks& masks, const Recipe& m) {
  for (long n = 1; n < std::min(static_cast<long>(m.S), 9L); ++n)
    for (const bool is_last : {true, false})
      masks.rule("the " + std::string(is_last ? "last " : "first ") + std::to_string(n) + (n > 1 ? " keys are" : " key is") + " masked (or missing from the cache)",
                 [=](Recipe& r) { r.masked = padding_mask(r, [&](std::size_t, long j) { return is_last ? j >= static_cast<long>(r.S) - n : j < n; }); });
}

void add_padding(Masks& masks, const Recipe& m) {
  const Block h = *m.masked;
  const long S = m.S;
  const auto is_padded = [h](std::size_t b, long j) { return j >= 0 && j < static_cast<long>(h.n[3]) && h(b, 0, 0, static_cast<std::size_t>(j)) != 0; };
  const auto keys = [&](const std::string& words, const std::function<bool(std::size_t, long)>& is, bool says_keys = true) {
    const SharedBlock moved = padding_mask(m, is);
    masks.rule("the padding mask " + words + (says_keys ? " (keys " + keys_words(*moved) + " are masked instead of " + keys_words(h) + ")" : ""),
               [moved](Recipe& r) { r.masked = moved; });
  };
  masks.rule("the padding mask is missing", [](Recipe& r) { r.masked = padding_mask(r, [](auto, auto) { return false; }); });
  for (const long n : {1, -1, 2, -2, 3, -3}) {
    if (std::abs(n) >= S) continue;
    keys("is shifted by " + std::to_string(std::abs(n)) + " to the " + (n > 0 ? "right" : "left"), [&](std::size_t b, long j) { return is_padded(b, j - n); });
    if (n < 0) keys("begins " + std::to_string(-n) + " early", [&](std::size_t b, long j) { return is_padded(b, j - n) || is_padded(b, j); });
    keys("is rolled by " + digits(n), [&](std::size_t b, long j) { return is_padded(b, ((j - n) % S + S) % S); });
  }
  keys(
      "is inverted (the real keys are masked)", [&](std::size_t b, long j) { return !is_padded(b, j); }, false);
  keys("is at the other end", [&](std::size_t b, long j) { return is_padded(b, S - 1 - j); });
  if (m.T == m.S) {
    masks.rule("the padding mask hides the padded rows (queries) instead of the keys",
               [](Recipe& r) { r.masked_queries = r.masked, r.masked = padding_mask(r, [](auto, auto) { return false; }); });
    masks.rule("the padding mask hides the padded rows (queries) too", [](Recipe& r) { r.masked_queries = r.masked; });
  }
  if (m.B > 1) {
    for (std::size_t by = 1; by < m.B; ++by)
      masks.rule("every sequence has the padding mask of the sequence " + std::to_string(by) + " further (cyclic)",
                 [by](Recipe& r) { r.masked = share(rolled(*r.masked, 0, -static_cast<long>(by))); });
    masks.rule("all sequences have the padding mask of sequence 0", [](Recipe& r) { r.masked = share(repeat_index(*r.masked, 0, 0)); });
    keys(
        "of any sequence is that of all",
        [&](std::size_t, long j) {
          for (std::size_t b = 0; b < m.B; ++b)
            if (is_padded(b, j)) return true;
          return false;
        },
        false);
    masks.cells("padding masks are laid over heads instead of sequences ([batch · heads] read as [heads · batch])", [H = m.H](const Block& v) {
      return Block::of({v.n[0], H, v.n[2], v.n[3]}, [&](auto b, auto head, auto i, auto j) { return v((b * H + head) % v.n[0], 0, i, j); });
    });
  }
  masks.rule("the padding mask replaces the causal mask", [](Recipe& r) { r.causal = false; });
}

}  // namespace

void add_masks(Table& t) {
  const Context& c = t.c;
  const Recipe& m = c.m;
  if (!c.visits({masked_scores})) return;
  Masks masks(t);
  const bool is_square = m.T == m.S, pads = std::ranges::count(m.masked->v, 1.0) > 0;
  const std::string other_end = m.aligns_last ? "first" : "last";
  const auto align = [](Recipe& r) { r.aligns_last = !r.aligns_last; };
  if (!is_square && (m.causal || m.window)) masks.rule("the mask puts the queries at the " + other_end + " keys (aligned " + other_end + ")", align);
  if (!is_square && !pads) add_cache(masks, m);
  if (m.causal) {
    masks.rule("the causal mask is missing", [](Recipe& r) { r.causal = false; });
    for (const long n : {1, -1, 2, -2, 3, -3, 4, -4})
      masks.rule(n > 0     ? "the causal mask lets every query see " + std::to_string(n) + (n > 1 ? " keys ahead" : " key ahead")
                 : n == -1 ? "the causal mask hides a query's own key (strict: the diagonal too)"
                           : "the causal mask hides a query's own and " + std::to_string(-n - 1) + " more keys",
                 [n](Recipe& r) { r.shift = n; });
    if (is_square) masks.cells("the causal mask is transposed (a query sees itself and what comes after)", transposed);
  } else {
    masks.rule("a causal mask is applied, which the model does not have", [](Recipe& r) { r.causal = true; });
    if (!is_square)
      masks.rule("a causal mask is applied from the first key on (aligned " + other_end + "), which the model does not have", [=](Recipe& r) { r.causal = true, align(r); });
    masks.rule("a strict causal mask is applied, which the model does not have", [](Recipe& r) { r.causal = true, r.shift = -1; });
  }
  add_windows(masks, c);
  if (!m.causal && is_square)
    masks.cells("the mask hides what comes before (transposed causal), which the model does not do",
                [](const Block& v) { return Block::of(v.n, [&](auto b, auto h, auto i, auto j) { return j >= i ? v(b, h, i, j) : 0; }); });
  if (pads)
    add_padding(masks, m);
  else if (is_square)
    add_cache(masks, m);
  if (const auto doc = m.documents; !doc.empty()) {
    masks.rule("documents are ignored", [](Recipe& r) { r.documents.clear(); });
    for (const long n : {1, -1, 2, -2, 3})
      masks.rule("documents begin " + std::to_string(std::abs(n)) + (n > 0 ? " later" : " earlier"), [=](Recipe& r) {
        const long last = static_cast<long>(doc.size()) - 1;
        for (long i = 0; i <= last; ++i) r.documents[i] = doc[std::clamp(i - n, 0L, last)];
      });
    masks.rule("documents replace the causal mask (all of the document is seen)", [](Recipe& r) { r.causal = false; });
    if (m.window) masks.rule("documents and sliding window are both ignored", [](Recipe& r) { r.documents.clear(), r.window.reset(); });
    masks.rule_and(
        "documents are told apart the other way round (a query sees the other documents)", [](Recipe& r) { r.documents.clear(); },
        [doc](long i, long j, long) {
          const auto of = [&](long place) { return doc[static_cast<std::size_t>(std::clamp(place, 0L, static_cast<long>(doc.size()) - 1))]; };
          return of(i) != of(j);
        });
  }
  if (m.prefix > 0) {
    masks.rule("the prefix is not visible to everyone (it is ignored)", [](Recipe& r) { r.prefix = 0; });
    for (const long n : {1, -1, 2, -2, 3, 4})
      if (const long length = static_cast<long>(m.prefix) + n; length > 0 && length <= static_cast<long>(m.S))
        masks.rule("the prefix has " + std::to_string(length) + " keys instead of " + std::to_string(m.prefix), [=](Recipe& r) { r.prefix = length; });
  } else if (m.causal || m.window) {
    for (std::size_t n = 1; n < std::min<std::size_t>(m.S, 9); ++n)
      masks.rule("the first " + std::to_string(n) + " keys are visible to every query (a prefix or kept sink tokens), which the model does not do",
                 [n](Recipe& r) { r.prefix = n; });
  }
  if (!m.cells.empty()) {
    masks.rule("the single cells of the mask are ignored", [](Recipe& r) { r.cells.clear(); });
    masks.rule("the single cells of the mask are transposed", [](Recipe& r) {
      std::erase_if(r.cells, [&](const auto& cell) { return cell.column >= r.T || cell.row >= r.S; });
      for (auto& cell : r.cells) std::swap(cell.row, cell.column);
    });
    masks.rule("the single cells of the mask are inverted", [](Recipe& r) {
      for (auto& cell : r.cells) cell.visible = !cell.visible;
    });
  }
  masks.cells("the mask is inverted (masked positions are attended to)", [](const Block& v) { return mapped(v, [](double x) { return 1 - x; }); });
  masks.cells("the mask is missing altogether", [](const Block& v) { return Block(v.n, 1); });
  if (is_square) {
    masks.cells("the mask is transposed", transposed);
    masks.cells("the mask runs backwards along the keys", [](const Block& v) { return reversed(v, 3); });
    masks.cells("the mask hides the diagonal too", [](const Block& v) { return Block::of(v.n, [&](auto b, auto h, auto i, auto j) { return i == j ? 0 : v(b, h, i, j); }); });
  }
  for (std::size_t head = 0; m.H > 1 && head < std::min<std::size_t>(m.H, 8); ++head)
    for (const bool alone : {false, true})
      masks.cells((alone ? "only head " : "head ") + std::to_string(head) + (alone ? " is masked" : " is not masked"), [=, H = m.H](const Block& v) {
        return Block::of({v.n[0], H, v.n[2], v.n[3]}, [&](auto b, auto h, auto i, auto j) { return (h == head) != alone ? 1 : v(b, h, i, j); });
      });
  for (const long n : {1, -1})
    for (const std::size_t axis : {3, 2})
      masks.cells("the mask is rolled by " + digits(n) + " along the " + (axis == 3 ? "keys" : "queries"), [=](const Block& v) { return rolled(v, axis, n); });
  for (const bool is_last : {true, false})
    masks.cells(std::string("the mask of the ") + (is_last ? "last" : "first") + " query is used for all", [=](const Block& v) { return repeat_index(v, 2, is_last ? v.n[2] - 1 : 0); });
  double masked = 0;
  if (const Block* y = find_masked_stage(c, masked); y && !c.is_large) {  // the mask read off, if no rule gives it
    Block seen = mapped(*y, [&](double x) { return x != masked ? 1.0 : 0.0; });
    std::vector<std::pair<std::size_t, std::size_t>> more, less;
    each_cell(seen.n, [&](auto b, auto h, auto i, auto j) {
      const double own = (*m.visible)(b, h, i, j);
      auto& list = own != 0 ? less : more;
      if (own != seen(b, h, i, j) && std::ranges::find(list, std::pair{i, j}) == list.end()) list.emplace_back(i, j);
    });
    const auto some = [](const auto& list) {
      const auto cell = [](const auto& at) { return "(" + std::to_string(at.first) + ", " + std::to_string(at.second) + ")"; };
      return list.size() <= 6 ? text::joined(list, ", ", cell) : std::to_string(list.size()) + " cells, the first " + cell(list[0]);
    };
    std::vector<std::string> words;
    if (!more.empty()) words.push_back("attended to though masked: " + some(more));
    if (!less.empty()) words.push_back("masked though attended to: " + some(less));
    if (!words.empty())
      t.add("mask_cells", {masked_scores}, "the mask differs by no rule known here; " + text::joined(words, "; "), [block = share(std::move(seen))](Recipe& r) {
         r.visible = block;
       }).ranked(4);
  }
  const bool hides = std::ranges::count(m.visible->v, 0.0) > 0;
  for (const auto& [how, words] : {std::pair{"times", "the scores are multiplied by the mask (masked ones become 0, or a tiny number such as −1e-9, instead of −∞)"},
                                   {"plus", "the mask is added as 0 and 1 (a boolean mask taken as numbers)"},
                                   {"renormalize", "masked weights are set to zero after the softmax and the rest renormalized"},
                                   {"zero", "masked weights are set to zero after the softmax and not renormalized"},
                                   {"-inf", "masked scores become −∞ before the softmax"}}) {
    const std::string_view method = how;
    if (method != "plus" && (method == m.method || !hides)) continue;
    if (method == "renormalize" && m.sink && !c.observed(masked_scores)) continue;
    t.add("mask_method", {masked_scores, weights}, words, [method](Recipe& r) { r.method = method; });
  }
  if (!hides) return;
  for (const char* how : {"value", "plus value"}) {
    const bool adds = *how == 'p';
    const auto words = [&m, adds](double v) {
      return adds ? digits(v, m.digits) + " is added to masked scores instead of −∞" : "masked scores become " + digits(v, m.digits) + " instead of −∞";
    };
    for (const double fill : {-10.0, -100.0, -1000.0, 1.0, 100.0, -5.0, -50.0, -1e4, -1e9, -1.0})
      if (!adds || fill != -1) t.add("mask_value", {masked_scores}, words(fill), [=](Recipe& r) { r.method = how, r.mask_value = fill; }).ranked(1);
    for (const double start : {-2.0, 0.5, -8.0})
      t.fit(
           "mask_value_fitted", {masked_scores}, {start}, [words](const Numbers& x) { return words(x[0]); },
           [how](Recipe& r, const Numbers& x) { r.method = how, r.mask_value = x[0]; })
          .group_starts(how);
  }
}

}  // namespace core::check::inference
