#include "core/check/deviations.hpp"

#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

#include "core/base/text.hpp"
#include "core/graph/rounding.hpp"

namespace core::check::inference {

// Each row of the table is one line, longer than the column limit.
// clang-format off

using enum Stage;

std::vector<Deviation> deviations(const Context& context) {
  Table table{context};
  for (const auto add : {add_projections, add_norms, add_rotations, add_scores, add_biases, add_masks, add_softmax, add_outputs, add_reports}) add(table);
  // Of equivalent causes the first is reported, so the least specific ones come last.
  constexpr std::array<std::string_view, 9> general{"bias_moved", "stage_factor",   "stage_factor_by_head", "input_factor", "heads_mixed",
                                                    "order_read_off", "vector_added",         "mask_cells",   "rotation_recovered"};
  std::ranges::stable_partition(table.rows, [&](const Deviation& row) { return std::ranges::find(general, row.name) == general.end(); });
  std::erase_if(table.rows, [&](const Deviation& row) { return (row.affected_stages & context.visited).none(); });
  return std::move(table.rows);
}

Deviation& Table::add(const char* name, Stages affected_stages, std::string words, Change<> change) {
  rows.push_back({name, affected_stages, std::move(words), [change = std::move(change)](Recipe& m, const Numbers&) { change(m); }});
  return rows.back();
}

Deviation& Table::add_transform(const char* name, Stage stage, std::string words, Recipe::Transform change) {
  return add(name, {stage}, std::move(words), [=, change = std::move(change)](Recipe& m) { m.transform(stage, change); });
}

Deviation& Table::add_sides(const char* name, const std::string& sides, std::string words, Change<Side> change, const std::array<Stage, 4>& stages) {
  return add(name, stages_of(sides, stages), std::move(words), [=, change = std::move(change)](Recipe& m) {
           for (const char side : sides) change(m, side_of(side));
         }).of(sides);
}

Deviation& Table::fit(const char* name, Stages affected_stages, Numbers start, std::function<std::string(const Numbers&)> describe_fit, Change<const Numbers&> change) {
  rows.push_back({.name = name, .affected_stages = affected_stages, .words = "", .apply = std::move(change), .start = std::move(start), .describe_fit = std::move(describe_fit), .rank = 2});
  return rows.back();
}

Deviation& Table::fit_sides(const char* name, const std::string& sides, double start, std::function<std::string(double)> describe_fit, Change<Side, double> change,
                            const std::array<Stage, 4>& stages) {
  const auto change_all = [=, change = std::move(change)](Recipe& m, const Numbers& x) {
    for (const char side : sides) change(m, side_of(side), x[0]);
  };
  return fit(name, stages_of(sides, stages), {start}, [describe_fit = std::move(describe_fit)](const Numbers& x) { return describe_fit(x[0]); }, change_all).of(sides);
}

// Numbers in words.

std::string digits(double f, int n) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", n, f == 0 ? 0.0 : f);
  std::string words = text;
  for (std::size_t at = 0; (at = words.find('-', at)) != words.npos; at += 3) words.replace(at, 1, "−");
  return words;
}

namespace {

bool is_near(double a, double b, double relative_tolerance) {
  return std::abs(a - b) <= relative_tolerance * std::max(std::abs(a), 1e-12);
}

/// Returns the name of a known number, or "".
std::string known_number(double f, const Recipe& m) {
  const double d = m.d, D = m.D, H = m.H, G = m.G, relative_tolerance = m.relative_tolerance;
  const auto is = [&](double value) { return std::isfinite(value) && is_near(value, f, relative_tolerance); };
  const std::pair<double, const char*> known[] = {{0, "0"},
                                                  {1, "1"},
                                                  {-1, "−1"},
                                                  {std::sqrt(d), "√d_head"},
                                                  {1 / std::sqrt(d), "1/√d_head"},
                                                  {1 / d, "1/d_head"},
                                                  {d, "d_head"},
                                                  {std::sqrt(D), "√d_model"},
                                                  {1 / std::sqrt(D), "1/√d_model"},
                                                  {1 / D, "1/d_model"},
                                                  {D, "d_model"},
                                                  {std::pow(d, -0.25), "d_head^−¼"},
                                                  {std::pow(d, 0.25), "d_head^¼"},
                                                  {std::sqrt(D / H), "√(d_model/heads)"},
                                                  {std::sqrt(H / D), "1/√(d_model/heads)"},
                                                  {std::sqrt(d * H), "√(heads · d_head)"},
                                                  {1 / std::sqrt(d * H), "1/√(heads · d_head)"},
                                                  {std::sqrt(d / D), "√(d_head/d_model)"},
                                                  {std::sqrt(D / d), "√(d_model/d_head)"},
                                                  {H, "the number of heads"},
                                                  {1 / H, "1/heads"},
                                                  {std::sqrt(H), "√heads"},
                                                  {1 / std::sqrt(H), "1/√heads"},
                                                  {H / G, "heads per KV head"},
                                                  {std::log(2.0), "ln 2"},
                                                  {1 / std::log(2.0), "log₂ e"}};
  for (const auto& [value, words] : known)
    if (is(value)) return words;
  if (const double s = m.plain_scale(); s > 0)
    for (const auto& [value, words] : {std::pair{s, "the scale"}, {1 / s, "1/scale"}, {s * s, "scale²"}, {std::sqrt(s), "√scale"}})
      if (is(value)) return words;
  if (m.cap != 0 && is(m.cap)) return "the softcap";
  if (m.cap != 0 && is(1 / m.cap)) return "1/softcap";
  for (const double a : {1.0, 0.707, 0.8})
    for (const double s : {2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 64.0, 128.0}) {
      if (a != 1 && (s == 2 || relative_tolerance >= 1e-3)) continue;
      const double y = 0.1 * a * std::log(s) + 1;
      const std::string of = digits(s) + (a == 1 ? "" : " (" + digits(a) + ")");
      if (is(y)) return "YaRN's mscale of factor " + of;
      if (is(1 / y)) return "1/mscale of YaRN's factor " + of;
      if (is(y * y)) return "YaRN's mscale² of factor " + of;
      if (is(1 / y / y)) return "1/mscale² of YaRN's factor " + of + ": mscale² is missing";
    }
  if (m.scaling.rule != positions::ScalingRule::none) {
    if (is(m.scaling.factor)) return "the scaling factor";
    if (is(1 / m.scaling.factor)) return "1/the scaling factor";
    if (is(0.1 * std::log(m.scaling.factor) + 1)) return "YaRN's mscale";
  }
  for (int n = 2; n < 17; ++n) {
    if (is(n)) return std::to_string(n);
    if (is(-n)) return "−" + std::to_string(n);
    if (is(1.0 / n)) return "1/" + std::to_string(n);
  }
  for (int n = 2; relative_tolerance < 1e-3 && n < 1025; ++n) {
    if (is(1 / std::sqrt(n))) return "1/√" + std::to_string(n);
    if (is(std::sqrt(n))) return "√" + std::to_string(n);
  }
  for (const double p : {0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8, 0.9}) {
    if (is(1 / (1 - p))) return "1/(1 − " + digits(p) + ")";
    if (is(1 - p)) return "1 − " + digits(p);
    if (is(1 / p)) return "1/" + digits(p);
  }
  return "";
}

/// Whether a number has at most two significant digits.
bool has_two_digits(double f, const Recipe& m) {
  char two[32];
  std::snprintf(two, sizeof two, "%.2g", f);
  return std::abs(f - std::atof(two)) <= m.relative_tolerance * std::abs(f);
}

}  // namespace

std::string number(double f, const Recipe& m, bool is_plain) {
  if (std::abs(f) < m.relative_tolerance) f = 0;
  const std::string text = digits(f, m.digits);
  if (is_plain && has_two_digits(f, m)) return text;
  const std::string words = known_number(f, m);
  return words.empty() || words == text ? text : text + " = " + words;
}

int rank_of_factor(double f, const Recipe& m) {
  const bool has_name = number(f, m).find('=') != std::string::npos || std::abs(f - std::round(f)) < 1e-9;
  return has_name || has_two_digits(f, m) ? 1 : 2;
}

std::string listed(const Numbers& numbers, const Recipe& m, std::size_t maximum) {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < std::min(maximum, numbers.size()); ++k) words.push_back(digits(std::abs(numbers[k]) < m.relative_tolerance ? 0 : numbers[k], m.digits));
  return "[" + text::joined(words, ", ") + (numbers.size() > maximum ? ", …]" : "]");
}

std::string listed(const std::vector<std::size_t>& numbers, std::size_t maximum) {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < std::min(maximum, numbers.size()); ++k) words.push_back(std::to_string(numbers[k]));
  return text::joined(words, ", ") + (numbers.size() > maximum ? ", …" : "");
}

std::string factor_words(double f, const std::string& what, const Recipe& m) {
  if (std::abs(f) < m.relative_tolerance) return what + " is missing";
  if (std::abs(f - 2) < m.relative_tolerance) return what + " is added twice";
  if (std::abs(f + 1) < m.relative_tolerance) return what + " has the other sign";
  return what + " counts " + number(f, m) + " times";
}

std::string shift_words(double n) {
  return digits(std::abs(n)) + (n < 0 ? " behind" : " ahead");
}

std::string name_of(Stage stage) {
  std::string name = attention::info(stage).name;
  std::ranges::replace(name, '_', ' ');
  return name;
}

Side side_of(char letter) {
  return letter == 'q' ? Q : letter == 'k' ? K : letter == 'v' ? V : O;
}

std::string names_of(std::string_view sides) {
  return text::joined(
      sides, ", ", [](char side) { return name_of(side_stage[side_of(side)]); }, " and ");
}

std::vector<std::size_t> index_range(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

namespace {

std::vector<std::size_t> made_order(std::size_t n, const std::function<std::size_t(std::size_t)>& of) {
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = of(i);
  return order;
}

/// Returns the order of reading [k, n/k] as [n/k, k].
std::vector<std::size_t> interleaved(std::size_t n, std::size_t k) {
  return made_order(n, [&](std::size_t i) { return i % k * (n / k) + i / k; });
}

}  // namespace

std::vector<std::vector<std::size_t>> usual_orders(std::size_t n) {
  std::vector<std::vector<std::size_t>> all{index_range(n)};
  const auto add = [&](std::vector<std::size_t> order) {
    if (std::ranges::find(all, order) == all.end()) all.push_back(std::move(order));
  };
  for (std::size_t by = 1; by < n; ++by) add(made_order(n, [&](std::size_t i) { return (i + by) % n; }));
  add(made_order(n, [&](std::size_t i) { return n - 1 - i; }));
  for (std::size_t k = 2; k < n; ++k)
    if (n % k == 0) add(interleaved(n, k));
  if (n % 2 == 0) add(made_order(n, [](std::size_t i) { return i ^ 1; }));
  all.erase(all.begin());
  return all;
}

std::string order_words(const std::vector<std::size_t>& order, const std::string& what) {
  const std::size_t n = order.size();
  if (n > 0 && std::ranges::all_of(order, [&](std::size_t one) { return one == order[0]; })) return "all " + what + "s are " + what + " " + std::to_string(order[0]);
  for (std::size_t by = 1; by < n; ++by)
    if (order == made_order(n, [&](std::size_t i) { return (i + by) % n; }))
      return "every " + what + " is " + what + (by <= n / 2 ? " +" + std::to_string(by) : " −" + std::to_string(n - by)) + " (cyclic)";
  if (order == made_order(n, [&](std::size_t i) { return n - 1 - i; })) return what + "s are in reverse order";
  for (std::size_t k = 2; k < n; ++k)
    if (n % k == 0 && order == interleaved(n, k)) return what + "s are interleaved (read as [" + std::to_string(n / k) + ", " + std::to_string(k) + "])";
  if (n > 1 && n % 2 == 0 && order == made_order(n, [](std::size_t i) { return i ^ 1; })) return "neighboring " + what + "s are exchanged";
  return what + "s are laid out as [" + listed(order) + "]";
}

StageSet stages_of(std::string_view sides, const std::array<Stage, 4>& stages) {
  StageSet all;
  for (const char side : sides) all.set(index(stages[side_of(side)]));
  return all;
}

// Projections.

namespace {

constexpr std::array usual_sides{"qkv", "q", "k", "v", "qk", "kv", "qv"};

/// Returns "the query and key projections".
std::string projections_of(std::string_view sides) {
  if (sides == "qkvo") return "all projections";
  constexpr std::array names{"query", "key", "value", "output"};
  return "the " +
         text::joined(
             sides, ", ", [&](char side) { return std::string(names[side_of(side)]); }, " and ") +
         (sides.size() > 1 ? " projections" : " projection");
}

/// Replaces each column of some concatenated projections by another of their columns.
void rearrange(Recipe& m, std::string_view sides, const std::vector<std::size_t>& source) {
  const Recipe old = m;
  std::vector<std::pair<Side, std::size_t>> places;
  for (const char side : sides)
    for (std::size_t j = 0; j < old.width(side_of(side)); ++j) places.emplace_back(side_of(side), j);
  const bool has_bias = std::ranges::any_of(sides, [&](char side) { return old.b[side_of(side)] != nullptr; });
  std::size_t at = 0;
  for (const char letter : sides) {
    const Side side = side_of(letter);
    Block W(old.W[side]->n), b({1, 1, 1, W.n[3]});
    for (std::size_t j = 0; j < W.n[3]; ++j) {
      const auto& [from, column] = places[source[at++]];
      for (std::size_t i = 0; i < W.n[2]; ++i) W.row(0, 0, i)[j] = (*old.W[from])(0, 0, i, column);
      if (old.b[from]) b.v[j] = old.b[from]->v[column];
    }
    m.W[side] = share(std::move(W));
    if (has_bias) m.b[side] = share(std::move(b));
  }
}

/// Returns the column of [Wq | Wk | Wv], or of [Wk | Wv], at each column of a fused weight.
std::vector<std::size_t> fused_columns(const Recipe& m, std::string_view how, std::string_view sides) {
  const bool has_queries = sides.find('q') != sides.npos;
  std::vector<std::size_t> all;
  const auto add = [&](char side, std::size_t g, std::size_t c) {
    const std::size_t start = side == 'q' ? 0 : (has_queries ? m.H * m.d : 0) + (side == 'v' ? m.G * m.d : 0);
    all.push_back(start + g * m.d + c);
  };
  const auto heads = [&](char side) { return side == 'q' ? m.H : m.G; };
  if (how == "bands" || how == "heads last") {
    for (const char side : sides)
      for (std::size_t k = 0; k < heads(side) * m.d; ++k) how == "bands" ? add(side, k / m.d, k % m.d) : add(side, k % heads(side), k / heads(side));
  } else if (how == "by head") {
    for (std::size_t g = 0; g < m.G; ++g)
      for (const char side : sides) {
        const std::size_t n = heads(side) / m.G;
        for (std::size_t k = 0; k < n * m.d; ++k) add(side, g * n + k / m.d, k % m.d);
      }
  } else {
    const std::size_t outer = how == "columns" ? m.G : m.d, inner = how == "columns" ? m.d : m.G;
    for (std::size_t a = 0; a < outer; ++a)
      if (how == "columns")
        for (std::size_t c = 0; c < inner; ++c)
          for (const char side : sides) add(side, a, c);
      else
        for (const char side : sides)
          for (std::size_t h = 0; h < inner; ++h) add(side, h, a);
  }
  return all;
}

std::string fused_words(std::string_view how, bool has_queries) {
  const std::string all = has_queries ? "q, k, v" : "k, v";
  return how == "bands"           ? has_queries ? "as bands [Q | K | V]" : "as bands [K | V]"
         : how == "by head"       ? has_queries ? "head by head (a group's queries, its key, its value)" : "head by head (a key, its value)"
         : how == "columns"       ? "column by column ([head][column][" + all + "])"
         : how == "columns first" ? "with heads last ([column][" + all + "][head])"
         : has_queries            ? "with heads last in each of Q, K, V"
                                  : "with heads last in each of K, V";
}

void add_fused(Table& t) {
  const Recipe& m = t.c.m;
  constexpr std::array hows{"bands", "by head", "columns", "columns first", "heads last"};
  const auto add = [&](const std::string& sides, std::string_view stored, std::string_view cut, std::string order) {
    std::string words = "the fused " + std::string(sides == "kv" ? "KV" : "QKV") + " weight is stored " + fused_words(stored, sides == "qkv");
    if (order != sides) words += " in the order " + text::joined(order, ", ", [](char c) { return std::string(1, c); });
    t.add(sides == "kv" ? "fused_kv" : "fused_layout", stages_of(sides), words + " but cut " + fused_words(cut, sides == "qkv"), [=](Recipe& r) {
       const auto from = fused_columns(r, stored, order), to = fused_columns(r, cut, sides);
       std::vector<std::size_t> source(to.size());
       for (std::size_t i = 0; i < to.size(); ++i) source[to[i]] = from[i];
       rearrange(r, sides, source);
     }).of(sides);
  };
  if (!m.W[K] || !m.W[V] || m.dv != m.d) return;
  for (const std::string sides : {"qkv", "kv"}) {
    if (sides == "qkv" ? m.cross || !m.W[Q] || m.H == 1 : m.G == 1) continue;
    const bool is_even = sides == "kv" || m.G == m.H;
    add(sides, "by head", "bands", sides);
    for (const std::string_view stored : hows)
      for (const std::string_view cut : hows) {
        const bool is_usual = stored == "by head" && cut == "bands", is_split = stored == "bands" && cut == "heads last";
        const bool fits = is_even || (!stored.starts_with("columns") && !cut.starts_with("columns"));
        if (stored != cut && !is_usual && !is_split && fits) add(sides, stored, cut, sides);
      }
    if (sides == "qkv" && m.G != m.H)
      for (const char* order : {"kqv", "kvq", "vqk", "vkq"})
        for (const char* how : {"bands", "by head"}) add(sides, how, how, order);
  }
}

void add_inputs(Table& t) {
  const Recipe& m = t.c.m;
  const auto add = [&](const std::string& sides, const std::string& words, std::function<Block(const Recipe&, const Block&)> change) {
    t.add_sides("input", sides, "the input of the " + names_of(sides) + " " + words, [=](Recipe& r, Side side) { r.x[side] = share(change(r, *r.x[side])); });
  };
  const auto rows = [](auto place) {
    return [=](const Recipe&, const Block& x) {
      std::vector<std::size_t> order(x.n[2]);
      for (long i = 0; i < static_cast<long>(order.size()); ++i) order[i] = place(i, static_cast<long>(order.size()));
      return index_select(x, 2, order);
    };
  };
  const long S = m.S;
  for (const std::string& sides : m.cross ? std::vector<std::string>{"kv", "k", "v"} : std::vector<std::string>{"qkv", "k", "v", "kv", "q"}) {
    for (const long by : {1, -1, 2, -2}) {
      if (std::abs(by) >= S) continue;
      add(sides, "is that of " + std::to_string(std::abs(by)) + (by > 0 ? " earlier" : " later") + " (a stale cache: rows shifted)",
          rows([=](long i, long n) { return std::clamp(i - by, 0L, n - 1); }));
      if (std::abs(by) != 2 || S != 2) add(sides, "is rolled by " + digits(by), rows([=](long i, long n) { return ((i - by) % n + n) % n; }));
    }
    add(sides, "is in reverse order", rows([](long i, long n) { return n - 1 - i; }));
    if (sides.find('q') == sides.npos)
      for (const long by : {1, 2, 3, 4, -1, -2, -3, -4})
        if (std::abs(by) < S)
          add(sides, "is zero in the " + std::string(by > 0 ? "last " : "first ") + std::to_string(std::abs(by)) + " rows (not written to the cache)",
              [=](const Recipe&, const Block& x) {
                return Block::of(x.n, [&](auto b, auto h, auto i, auto j) {
                  const bool is_zero = by > 0 ? i + by >= x.n[2] : i < static_cast<std::size_t>(-by);
                  return is_zero ? 0 : x(b, h, i, j);
                });
              });
    if (m.B > 1) add(sides, "is that of another sequence of the batch", [](const Recipe&, const Block& x) { return rolled(x, 0, 1); });
  }
  for (const std::string& sides : m.cross ? std::vector<std::string>{"q", "kv"} : std::vector<std::string>{"qkv", "q", "kv"})
    for (const double epsilon : {1e-5, 1e-6, 0.0})
      for (const char* rule : {"layer", "rms"})
        add(sides, "went through " + std::string(*rule == 'l' ? "a LayerNorm" : "an RMSNorm") + " (without weights) once more",
            [=](const Recipe&, const Block& x) { return apply_norm(x, {.rule = rule, .w = Numbers(x.n[3], 1.0), .epsilon = epsilon}); });
  if (m.cross && m.x[Q]->n == m.x[K]->n)
    for (const char* sides : {"kv", "k", "v", "q"})
      add(sides, "is the other side's (the key embeddings and the embeddings are confused)", [=](const Recipe& old, const Block&) { return *old.x[*sides == 'q' ? K : Q]; });
  for (const std::string& sides : m.cross ? std::vector<std::string>{"q", "kv"} : std::vector<std::string>{"qkv"})
    for (const double f : {0.2, 0.5, 1.1, 2.0, 3.0, 5.0, 9.0})
      t.fit_sides(
           "input_factor", sides, f, [&m, sides](double x) { return "the input of the " + names_of(sides) + " is multiplied by " + number(x, m); },
           [](Recipe& r, Side side, double x) { r.x[side] = share(scaled(*r.x[side], x)); })
          .group_starts(sides)
          .rank_fit = [&m](const Numbers& x) { return rank_of_factor(x[0], m); };
}

void add_factors(Table& t) {
  const Recipe& m = t.c.m;
  const auto is_uneven = [&m](double f) { return std::abs(f - 1) > 2 * m.relative_tolerance; };
  for (const Stage stage : {queries, keys, values, normed_queries, normed_keys, rotated_queries, rotated_keys, weights, contexts, output}) {
    if (!t.c.has(stage)) continue;
    const std::string what = (stage == output ? "the output is" : name_of(stage) + " are") + std::string(" multiplied by ");
    t.fit(
         "stage_factor", {stage}, {1.1}, [&m, what](const Numbers& x) { return what + number(x[0], m); },
         [=](Recipe& r, const Numbers& x) { r.transform(stage, [f = x[0]](const Block& v, Run&) { return scaled(v, f); }); })
        .rank_fit = [&m](const Numbers& x) { return rank_of_factor(x[0], m); };
    const std::size_t n = has_key_rows(stage) ? m.G : m.H;
    if (stage == output || n < 2) continue;
    const auto few = [=](const Numbers& x) {  // heads that share one factor, while the others have none
      std::vector<std::size_t> heads;
      for (std::size_t h = 0; h < x.size(); ++h)
        if (is_uneven(x[h])) heads.push_back(h);
      return heads.size() < x.size() && std::ranges::all_of(heads, [&](std::size_t h) { return std::abs(x[h] - x[heads[0]]) < 3 * m.relative_tolerance; }) ? heads : std::vector<std::size_t>();
    };
    t.fit(
         "stage_factor_by_head", {stage}, Numbers(n, 1.1),
         [=, &m](const Numbers& x) {
           const auto heads = few(x);
           if (heads.empty()) return name_of(stage) + " are multiplied by a factor for each head: " + listed(x, m);
           return name_of(stage) + (heads.size() > 1 ? " of heads " : " of head ") + listed(heads) + " are multiplied by " + number(x[heads[0]], m);
         },
         [=](Recipe& r, const Numbers& x) {
           r.transform(stage, [x](const Block& v, Run&) { return zipped(v, Block::of({1, x.size(), 1, 1}, [&](auto, auto h, auto, auto) { return x[h]; }), std::multiplies<>()); });
         })
        .rank_fit = [=](const Numbers& x) { return few(x).empty() ? 3 : 2; };
  }
}

}  // namespace

void add_projections(Table& t) {
  const Recipe& m = t.c.m;
  std::string with_bias;
  for (const char side : std::string_view("qkvo"))
    if (m.b[side_of(side)]) with_bias += side;
  std::vector<std::string> sets{with_bias};
  if (with_bias == "qkvo") sets.push_back("qkv");
  for (std::size_t size = 1; size < with_bias.size(); ++size)
    for (unsigned bits = 1; bits < 1u << with_bias.size(); ++bits) {
      std::string set;
      for (std::size_t i = 0; i < with_bias.size(); ++i)
        if (bits >> i & 1) set += with_bias[i];
      if (set.size() == size && set != "qkv") sets.push_back(set);
    }
  const auto multiply = [](Recipe& r, Side side, double f) { r.b[side] = share(scaled(*r.b[side], f)); };
  if (!with_bias.empty())
    for (const std::string& set : sets)
      for (const double f : std::set<double>{0, 2, -1, 3, 4, static_cast<double>(m.H)})
        if (f != 1) t.add_sides("projection_bias", set, factor_words(f, "the bias of " + projections_of(set), m), [=](Recipe& r, Side side) { multiply(r, side, f); });
  for (const char side : with_bias) {
    const std::string one(1, side);
    t.fit_sides("projection_bias_factor", one, 1.1, [&m, one](double x) { return factor_words(x, "the bias of " + projections_of(one), m); }, multiply);
    for (const char to : std::string_view("qkvo"))
      if (to != side && m.width(side_of(to)) == m.b[side_of(side)]->n[3])
        t.add("bias_of_another", stages_of(std::string(1, to)), projections_of(std::string(1, to)) + " adds the bias of " + projections_of(one),
              [=](Recipe& r) { r.b[side_of(to)] = r.b[side_of(side)]; });
  }
  std::vector<std::string> all(usual_sides.begin(), usual_sides.end());
  all.insert(all.end(), {"o", "qkvo"});
  for (const std::string& set : all) {
    if (!std::ranges::all_of(set, [&](char side) { return m.W[side_of(side)] != nullptr; })) continue;
    const bool is_square = std::ranges::all_of(set, [&](char s) { return m.W[side_of(s)]->n[2] == m.W[side_of(s)]->n[3]; });
    t.add_sides("projection_transposed", set,
            "the weight of " + projections_of(set) + " is " + (is_square ? "transposed" : "read in the other order (reshaped instead of transposed)"),
            [](Recipe& r, Side side) { r.W[side] = share(reshaped(transposed(*r.W[side]), r.W[side]->n)); });
  }
  const std::string_view letters = "qkv";
  for (std::size_t code = 0; code < 27; ++code) {
    const std::string from{letters[code / 9], letters[code / 3 % 3], letters[code % 3]};
    bool fits = from != letters;
    std::vector<std::string> words;
    StageSet affected_stages;
    for (std::size_t s = 0; s < 3; ++s) {
      const Side of = side_of(from[s]);
      fits = fits && m.W[s] && m.W[of] && m.W[s]->n == m.W[of]->n;
      if (from[s] == letters[s]) continue;
      words.push_back(names_of(letters.substr(s, 1)) + " come from " + projections_of(from.substr(s, 1)));
      affected_stages.set(index(side_stage[s]));
    }
    if (fits)
      t.add("projections_exchanged", affected_stages, text::joined(words, "; "), [=](Recipe& r) {
        const Recipe old = r;
        for (std::size_t s = 0; s < 3; ++s) r.W[s] = old.W[side_of(from[s])], r.b[s] = old.b[side_of(from[s])];
      });
  }
  for (const auto& [how, words] :
       {std::pair{"view", "by a view as [heads, tokens, d_head] without a transpose"}, {"interleaved", "interleaved, as [d_head, heads] instead of [heads, d_head]"}})
    for (const std::string set : usual_sides)
      if (m.H > 1 && (m.G > 1 || set == "q"))
        t.add_sides("head_split", set, "the heads of the " + names_of(set) + " are cut " + words, [how = how](Recipe& r, Side side) { r.split[side] = how; }).needs_all_rows();
  add_fused(t);
  add_inputs(t);
  add_factors(t);
}

// Norms of queries and keys.

namespace {

/// One deviation of a norm, and its kind.
struct NormChange {
  int kind;
  std::string words;
  std::function<void(NormSpec&)> apply;
};

std::vector<NormChange> norm_changes(const Recipe& m) {
  const NormSpec& own = *m.norm[Q];
  std::vector<NormChange> all;
  for (const auto& [rule, words] : {std::pair{"rms", "is an RMSNorm (no mean taken off)"},
                                    {"layer", "is a LayerNorm (mean taken off)"},
                                    {"l2", "divides by the length, without √d (L2 instead of RMS)"},
                                    {"layer, n - 1", "divides by the deviation with n − 1"},
                                    {"variance", "divides by the deviation without taking the mean off"}})
    if (own.rule != rule) all.push_back({0, words, [rule = rule](NormSpec& n) { n.rule = rule; }});
  if (m.H > 1 && own.over == "all heads") all.push_back({1, "runs over each head instead of all heads at once", [](NormSpec& n) { n.over = "head"; }});
  if (m.H > 1 && own.over != "all heads") all.push_back({1, "runs over all heads at once instead of each head", [](NormSpec& n) { n.over = "all heads"; }});
  all.push_back({1, "runs over the tokens", [](NormSpec& n) { n.over = "tokens"; }});
  for (const auto& [form, words] : {std::pair{"1 + w", "multiplies by 1 + w instead of w"},
                                    {"none", "has no weights"},
                                    {"before", "multiplies by the weights before it divides"},
                                    {"w - 1", "multiplies by w − 1"}})
    all.push_back({2, words, [form = form](NormSpec& n) { n.form = form; }});
  for (const auto& [epsilon_place, words] : {std::pair{"outside", "adds ε outside the root"}, {"none", "has no ε"}, {"at least", "takes ε as the least length"}})
    all.push_back({3, words, [epsilon_place = epsilon_place](NormSpec& n) { n.epsilon_place = epsilon_place; }});
  for (const double e : {1e-3, 1e-5, 1e-6, 1e-8, 1e-12, 1e-4, 1e-2})
    if (e != own.epsilon) all.push_back({4, "has ε = " + digits(e) + " instead of " + digits(own.epsilon), [e](NormSpec& n) { n.epsilon = e; }});
  return all;
}

}  // namespace

void add_norms(Table& t) {
  const Recipe& m = t.c.m;
  for (const double epsilon : {m.norm[Q] ? m.norm[Q]->epsilon : 1e-6, 1e-5})
    t.add_transform("norm_on_values", values, "the values are normalized too", [=](const Block& v, Run&) { return apply_norm(v, {.w = Numbers(v.n[3], 1.0), .epsilon = epsilon}); });
  if (!m.norm[Q] && !m.norm[K]) {
    for (const std::string sides : query_key_sides)
      for (const auto& [rule, words] : {std::pair{"rms", "RMSNorm"}, {"l2", "to length 1"}, {"layer", "LayerNorm"}})
        for (const double epsilon : {1e-6, 1e-5, 0.0, 1e-12})
          t.add_sides(
              "norm_added", sides, "the " + names_of(sides) + " are normalized (" + words + "), which the model does not do",
              [=, rule = rule](Recipe& r, Side side) { r.norm[side] = NormSpec{.rule = rule, .w = Numbers(r.d, 1.0), .epsilon = epsilon}; }, normed_stage);
    return;
  }
  if (!m.norm[Q] || !m.norm[K]) return;
  const std::vector<NormChange> changes = norm_changes(m);
  for (const std::string sides : query_key_sides) {
    const std::string the_norm = "the norm of the " + names_of(sides) + " ";
    const auto add = [&](const std::string& words, std::function<void(NormSpec&)> change) -> Deviation& {
      return t.add_sides("norm", sides, the_norm + words, [=](Recipe& r, Side side) { change(*r.norm[side]); }, normed_stage);
    };
    t.add_sides("norm", sides, the_norm + "is missing", [](Recipe& r, Side side) { r.omits_norm[side] = true; }, normed_stage);
    for (const NormChange& one : changes) add(one.words, one.apply).by_rows = one.words != "runs over the tokens";
    for (std::size_t a = 0; a < changes.size(); ++a)
      for (std::size_t b = a + 1; b < changes.size() && changes[b].kind < 3; ++b)
        if (changes[a].kind != changes[b].kind)
          add(changes[a].words + " and " + changes[b].words, [one = changes[a].apply, two = changes[b].apply](NormSpec& n) { one(n), two(n); }).ranked(1).needs_all_rows();
    for (const double start : {std::log(1e-2), 0.0})
      t.fit_sides(
          "norm_epsilon", sides, start, [&m, the_norm](double x) { return the_norm + "has ε = " + digits(std::exp(x), m.digits) + " instead of " + digits(m.norm[Q]->epsilon); },
          [](Recipe& r, Side side, double x) { r.norm[side]->epsilon = std::exp(x); }, normed_stage);
  }
  for (const Side side : {K, Q}) {
    const std::string sides(1, "qk"[side]), others(1, "kq"[side]);
    t.add_sides(
        "norm", sides, "the norm of the " + names_of(sides) + " has the weights of the " + names_of(others),
        [](Recipe& r, Side of) { r.norm[of]->w = r.norm[of == Q ? K : Q]->w; }, normed_stage);
    if (t.c.observed(normed_stage[side]))
      t.fit(
           "norm_weights", stages_of(sides, normed_stage), m.norm[side]->w,
           [&m, sides](const Numbers& x) { return "the norm of the " + names_of(sides) + " has the weights " + listed(x, m); },
           [=](Recipe& r, const Numbers& x) { r.norm[side]->w = x; })
          .ranked(3);
  }
  t.add("norm_weights_swapped", {normed_queries, normed_keys}, "the norms of queries and keys have each other's weights", [](Recipe& r) { std::swap(r.norm[Q]->w, r.norm[K]->w); });
  t.add("norm_twice", {normed_queries, normed_keys}, "queries and keys are normalized twice", [](Recipe& r) {
    for (const Side side : {Q, K}) r.transform(normed_stage[side], [side](const Block& x, Run& run) { return apply_norm(x, *run.m.norm[side]); });
  });
  if (m.rope[Q] && m.rope[K])
    t.add("norm_after_rotation", {normed_queries, normed_keys, rotated_queries, rotated_keys, scores}, "the norm comes after the rotation instead of before it",
          [](Recipe& r) { r.norms_last = true; });
}

}  // namespace core::check::inference
