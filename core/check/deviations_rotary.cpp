#include <cmath>
#include <complex>
#include <set>

#include "core/base/text.hpp"
#include "core/check/deviations.hpp"
#include "core/graph/rounding.hpp"

namespace core::check::inference {

// Each row of the table is one line, longer than the column limit.
// clang-format off

using enum Stage;

// Rotary positions.

namespace {

/// Changes of a rotation, applied together.
struct RopeChange {
  std::optional<std::size_t> dims = {};
  std::optional<double> base = {}, over = {};
  const char *pairs = nullptr, *form = nullptr, *frequencies = nullptr;
  double sign = 1;
  std::optional<positions::Scaling> scaling = {};
  std::optional<std::pair<std::string_view, Precision>> coarse = {};
  std::size_t first_column = 0;
  const char* of_scaling = "";

  void apply(Recipe& m, Side side) const {
    Rope& r = *m.rope[side];
    const auto rescaled = [&](double of_base, std::size_t n, double width, const positions::Scaling& by) {
      positions::Rotary rotary;
      rotary.base = std::pow(of_base, static_cast<double>(n) / width), rotary.dimensions = n, rotary.scaling = by;
      std::vector<double> all = positions::frequencies(rotary, n);
      for (double& f : all)
        if (by.rule == positions::ScalingRule::linear) f = positions::angle_at(rotary, 1, f);
      return all;
    };
    if (base || dims || over) {
      r.dims = dims.value_or(r.dims), r.base = base.value_or(r.base);
      r.inverse_frequencies = rescaled(r.base, r.dims, over.value_or(static_cast<double>(r.dims)), m.scaling);
    }
    if (pairs) r.pairs = pairs;
    if (form) r.form = form;
    if (coarse) r.coarse = coarse;
    if (sign < 0) r.sign = sign;
    if (first_column) r.first_column = first_column;
    const double width = static_cast<double>(r.dims);
    if (scaling) r.inverse_frequencies = rescaled(r.base, r.dims, width, *scaling);
    if (!frequencies) return;
    const std::string_view how = frequencies;
    const std::vector<double> plain = frequencies_of(r.base, r.dims, width), own = r.inverse_frequencies;
    for (std::size_t p = 0; p < own.size(); ++p) {
      const double at = static_cast<double>(p);
      r.inverse_frequencies[p] = how == "reversed"          ? own[own.size() - 1 - p]
                     : how == "from the second" ? std::pow(r.base, -2 * (at + 1) / width)
                     : how == "to the base"     ? std::pow(r.base, own.size() > 1 ? -at / static_cast<double>(own.size() - 1) : 0)
                     : how == "of columns"      ? std::pow(r.base, -at / width)
                     : how == "times 2π"        ? own[p] * 2 * arma::datum::pi
                     : how == "unscaled"        ? plain[p]
                     : how == "linear"          ? plain[p] / m.scaling.factor
                                                : own[0];
    }
  }
};

std::string base_words(const Recipe& m, double base) {
  const Rope& r = *m.rope[Q];
  if (r.is_listed) return "the frequencies are those of base " + digits(base) + " without scaling, instead of the given ones";
  const double was = r.base, d = r.dims, e = was > 0 && was != 1 ? std::log(base) / std::log(was) : 0;
  std::string known;
  const std::pair<double, std::string> powers[] = {
      {0.5, "½ (the base raised to the half: exponents p/d instead of 2p/d)"},
      {2, "2 (exponents 4p/d)"},
      {0.25, "¼"},
      {d / m.d, "(" + digits(d) + "/" + std::to_string(m.d) + "): frequencies over the head width " + std::to_string(m.d) + " instead of " + digits(d)},
      {d / m.D, "(" + digits(d) + "/" + std::to_string(m.D) + "): frequencies over d_model"},
      {d > 2 ? d / (d - 2) : 9e9, "(" + digits(d) + "/" + digits(d - 2) + ")"},
      {(d - 2) / d, "(" + digits(d - 2) + "/" + digits(d) + ")"}};
  for (const auto& [value, words] : powers)
    if (known.empty() && value != 1 && std::abs(e - value) < 1e-7) known = " = " + digits(was) + "^" + words;
  for (const double s : {2.0, 4.0, 8.0, 16.0, 32.0, 0.5, 0.25, 0.125})
    if (known.empty() && d > 2 && std::abs(base / was / std::pow(s, d / (d - 2)) - 1) < 1e-6)
      known = " = " + digits(was) + " · " + digits(s) + "^(d/(d−2)), as NTK scaling by " + digits(s);
  return "the rotary base is " + digits(base, std::max(m.digits, 3)) + known + " instead of " + digits(was);
}

std::string rope_words(const Recipe& m, const RopeChange& p, std::string_view sides) {
  const Rope& r = *m.rope[side_of(sides[0])];
  std::vector<std::string> phrases;
  const auto add = [&](const std::string& words) { phrases.push_back(words); };
  const std::string_view pairs = p.pairs ? p.pairs : "", form = p.form ? p.form : "", f = p.frequencies ? p.frequencies : "";
  if (pairs == "halves") add("pairs are halves (p, p + d/2) instead of neighbors (2p, 2p + 1)");
  if (pairs == "neighbors") add("pairs are neighbors (2p, 2p + 1) instead of halves");
  if (pairs == "halves of the head")
    add("pairs are halves of the whole head (p, p + " + std::to_string(m.d / 2) + ") though only " + std::to_string(r.dims) + " columns are rotated");
  const std::size_t dims = p.dims.value_or(r.dims);
  if (p.over)
    add("the frequencies are of exponents 2p/" + digits(*p.over) + " (" +
        (*p.over == m.d   ? "the head width"
         : *p.over == m.D ? "d_model"
                          : "the part") +
        ") instead of 2p/" + std::to_string(dims) + " (as base " + digits(std::pow(r.base, dims / *p.over)) + ")");
  if (p.dims)
    add((dims == m.d ? "all " : "") + std::to_string(dims) + " columns are rotated instead of " + std::to_string(r.dims) +
        (dims == m.d ? " (the partial rotation is ignored)" : ""));
  if (p.base) add(base_words(m, *p.base));
  if (p.scaling) add("the scaling of the frequencies has " + std::string(p.of_scaling));
  if (p.sign < 0) add("angles are negated (rotated backwards)");
  if (form == "heads") add("the rotation runs over the axis of heads instead of tokens");
  if (form == "no minus") add("the half that is rotated has lost its minus");
  if (form == "in place") add("the rotated first half is used for the second (written in place)");
  if (form == "other table") add("the table of cosines is laid out for the other pairs");
  if (form == "exchanged") add("cosine and sine are exchanged");
  if (p.coarse) add(std::string(p.coarse->first) + " are rounded to " + attention::name_of(p.coarse->second));
  if (p.first_column) add("the last " + std::to_string(r.dims) + " columns are rotated instead of the first");
  if (f == "reversed") add("frequencies run in reverse");
  if (f == "from the second") add("frequencies begin with the second (exponents 2(p + 1)/d)");
  if (f == "to the base") add("exponents run to 1 (linspace)");
  if (f == "of columns") add("exponents are p/d instead of 2p/d");
  if (f == "times 2π") add("frequencies are multiplied by 2π");
  if (f == "unscaled") add("the scaling of the frequencies is missing");
  if (f == "linear") add("all frequencies are divided by the scaling factor");
  if (f == "all equal") add("all pairs have one frequency");
  return (sides == "qk" ? "" : "of the " + names_of(sides) + " alone: ") + "rotary positions: " + text::joined(phrases, "; ");
}

/// Returns changes by kind; two of the first five kinds can be combined.
std::vector<std::vector<RopeChange>> rope_changes(const Recipe& m) {
  const Rope& r = *m.rope[Q];
  const std::size_t d = m.d, dims = r.dims;
  std::vector<std::vector<RopeChange>> all(5);
  all[0].push_back({.pairs = r.pairs == "halves" ? "neighbors" : "halves"});
  if (r.pairs == "halves" && dims != d) all[0].push_back({.pairs = "halves of the head"});
  all[1].push_back({.sign = -1});
  for (std::size_t n = 2; n <= d; n += 2)
    if (n != dims && (d <= 32 || n == d || n == d / 2 || n == d / 4 || n == 2 * dims || n == dims / 2)) all[2].push_back({.dims = n});
  if (dims != d) all[3].push_back({.over = static_cast<double>(d)});
  if (m.D != dims && m.D > 0) all[3].push_back({.over = static_cast<double>(m.D)});
  all[3].push_back({.base = std::sqrt(r.base)});
  all[3].push_back({.base = r.base * r.base});
  for (const double base : {100.0, 1000.0, 10000.0, 20000.0, 25000.0, 40000.0, 50000.0, 100000.0, 150000.0, 160000.0, 250000.0, 500000.0, 1e6, 5e6, 8e6, 1e7})
    if (base != r.base || r.is_listed) all[3].push_back({.base = base});
  if (dims != d) {
    all[4].push_back({.dims = d, .over = static_cast<double>(dims)});
    all.push_back({});
  }
  for (const char* form : {"heads", "no minus", "in place", "other table", "exchanged"}) all.back().push_back({.form = form});
  if (dims != d) all.push_back({{.first_column = d - dims}});
  all.push_back({});
  for (const char* f : {"reversed", "from the second", "to the base", "of columns", "times 2π", "all equal"}) all.back().push_back({.frequencies = f});
  const bool is_scaled = m.scaling.rule != positions::ScalingRule::none;
  if (is_scaled) all.back().push_back({.frequencies = "unscaled"});
  if (is_scaled && m.scaling.factor != 1) all.back().push_back({.frequencies = "linear"});
  if (m.scaling.rule == positions::ScalingRule::llama3) {
    all.push_back({});
    const auto add = [&](positions::Scaling s, const char* words) {
      if (s != m.scaling) all.back().push_back({.scaling = s, .of_scaling = words});
    };
    const positions::Scaling own = m.scaling;
    const auto with = [&](auto change) {
      positions::Scaling s = own;
      change(s);
      return s;
    };
    for (const auto& [f, words] : {std::pair{2.0, "factor 2"}, {4.0, "factor 4"}, {8.0, "factor 8"}, {16.0, "factor 16"}, {32.0, "factor 32"}, {64.0, "factor 64"}})
      add(with([f = f](auto& s) { s.factor = f; }), words);
    for (const auto& [f, words] :
         {std::pair{2.0, "twice the original length"}, {0.5, "half the original length"}, {4.0, "4 times the original length"}, {0.25, "a quarter of the original length"}})
      add(with([f = f](auto& s) { s.original *= f; }), words);
    for (const auto& [n, words] :
         {std::pair{2048.0, "the original length 2048"}, {4096.0, "the original length 4096"}, {8192.0, "the original length 8192"}, {131072.0, "the original length 131072"}})
      add(with([n = n](auto& s) { s.original = n; }), words);
    add(with([](auto& s) { std::swap(s.low, s.high); }), "its low and high factors exchanged");
    add(with([](auto& s) { s.low = s.high; }), "the low factor of the high one");
    add(with([](auto& s) { s.high = s.low; }), "the high factor of the low one");
    add(with([](auto& s) { s.low = s.high = 1; }), "both factors 1");
  }
  all.push_back({});
  for (const Precision type : {Precision::bfloat16, Precision::float16})
    for (const char* what : {"angles", "positions", "frequencies", "cosines and sines"}) all.back().push_back({.coarse = std::pair{std::string_view(what), type}});
  return all;
}

SharedBlock positions_of(std::size_t n, const std::function<double(std::size_t)>& at) {
  return share(Block::of({1, 1, 1, n}, [&](auto, auto, auto, auto j) { return at(j); }));
}

/// Calls add(words, query positions or nullptr, key positions or nullptr) for all rules of positions.
void each_position_rule(const Context& c, const std::function<void(const std::string&, SharedBlock, SharedBlock)>& add) {
  const Recipe& m = c.m;
  const SharedBlock q = m.pos[Q], k = m.pos[K], none;
  const bool shows = c.target == rotated_queries || c.target == rotated_keys;  // elsewhere only distances matter
  const auto both = [&](const std::string& words, auto f, bool queries = true, bool keys = true) {
    add(words, queries ? share(mapped(*q, f)) : none, keys ? share(mapped(*k, f)) : none);
  };
  std::vector<int> shifts = {64, 128, 256, 512};
  for (int n = 40; n > 0; --n) shifts.insert(shifts.begin(), n);
  for (const std::string_view sides : {"q", "k", "qk"})
    for (const int size : shifts)
      for (const int n : {-size, size})
        if (shows || sides == "q" || (sides == "k" && size <= 8))
          both((sides == "qk" ? "all positions are " : "the positions of the " + names_of(sides) + " are ") + shift_words(n), [n](double p) { return p + n; }, sides != "k",
               sides != "q");
  std::set<long> places{0, 1, 2, 3, 4, 5, 6, 7, 8};
  for (const long n : {m.S, m.T}) places.insert({n - 1, n});
  for (const long n : places) {
    const auto at = [n](double) { return static_cast<double>(n); };
    const std::string at_position = " is at position " + std::to_string(n);
    both("every query" + at_position, at, true, false);
    if (n < 2 || shows) both("every key" + at_position, at, false, true);
    if (n == 0 || shows) both("every query and key" + at_position, at);
  }
  const double first_q = q->v[0], first_k = k->v[0];
  const long ahead = m.offset();
  if (m.T != m.S) {
    for (const int n : {0, 1})
      both(
          "queries are counted from " + std::string(n ? "1" : "position 0") + ", not from the end of the earlier keys", [=](double p) { return p - first_q + n; }, true, false);
    both(
        "keys are counted from the position of the first query", [=](double p) { return p - first_k + first_q; }, false, true);
    add("the cached keys are not rotated, only the new ones are", none, positions_of(m.S, [&](std::size_t j) { return static_cast<long>(j) < ahead ? 0 : (*k)(0, 0, 0, j); }));
    add("the last keys are counted from 0 (cache and new keys apart)", none,
        positions_of(m.S, [&](std::size_t j) { return static_cast<long>(j) >= ahead ? static_cast<double>(static_cast<long>(j) - ahead) : (*k)(0, 0, 0, j); }));
  }
  add("positions run backwards", m.T == m.S ? share(reversed(*q, 3)) : none, share(reversed(*k, 3)));
  if (!m.documents.empty() && m.T == m.S) {
    const SharedBlock restarted =
        positions_of(m.S, [&](std::size_t j) { return static_cast<double>(j - static_cast<std::size_t>(std::ranges::find(m.documents, m.documents[j]) - m.documents.begin())); });
    add("positions restart in each document", restarted, restarted);
  }
  if (m.T == m.S && std::ranges::count(m.masked->v, 1.0) > 0)
    for (const bool at_one : {false, true}) {
      Block count({m.B, 1, 1, m.S});
      for (std::size_t b = 0; b < m.B; ++b) {
        double seen = 0;
        for (std::size_t j = 0; j < m.S; ++j) {
          const bool is_padded = (*m.masked)(b, 0, 0, j) != 0;
          seen += !is_padded;
          count.row(b, 0, 0)[j] = at_one && is_padded ? 1 : std::max(seen - 1, 0.0);
        }
      }
      const SharedBlock counts = share(std::move(count));
      add("positions are counted along the padding mask" + std::string(at_one ? ", padding at 1" : " (padding does not count)"), counts, counts);
    }
  for (const double f : {0.5, 2.0, 0.25, 4.0, 0.125, 8.0}) {
    const auto scale = [f](double p) { return p * f; };
    both("all positions are multiplied by " + digits(f), scale);
    both("the positions of the queries are multiplied by " + digits(f), scale, true, false);
    both("the positions of the keys are multiplied by " + digits(f), scale, false, true);
  }
  for (const long n : {2, 3, 4, 5, 6, 8})
    if (n < static_cast<long>(m.S)) {
      const double by = static_cast<double>(n);
      both("positions restart every " + std::to_string(n), [by](double p) { return p - by * std::floor(p / by); });
      both("positions go up every " + std::to_string(n) + " tokens (grouped)", [by](double p) { return std::floor(p / by); });
    }
  for (long n = 2; n < std::min(static_cast<long>(m.S), 17L); ++n) both("positions stop at " + std::to_string(n - 1), [n](double p) { return std::min(p, n - 1.0); });
  for (long s = 1; s < std::min(static_cast<long>(m.S), 33L); ++s) {
    const auto from = [&](auto f, bool queries) {
      const auto at = [&](const Block& own, long first) {
        return [&, first](std::size_t i) {
          const long place = static_cast<long>(i) + first;
          return place >= s ? f(place, own(0, 0, 0, i)) : own(0, 0, 0, i);
        };
      };
      return std::pair{queries ? positions_of(m.T, at(*q, ahead)) : none, positions_of(m.S, at(*k, 0))};
    };
    const std::string last = "the last " + std::to_string(static_cast<long>(m.S) - s) + " keys ";
    for (const double n : {0.0, 1.0})
      if (static_cast<long>(m.S) - s <= 16) {
        const auto at = [n](long, double) { return n; };
        const auto one = from(at, true), two = from(at, false);
        add(last + "and every query there are at position " + digits(n) + " (each generated token alone)", one.first, one.second);
        add(last + "are at position " + digits(n), two.first, two.second);
      }
    const auto restarted = from([s](long place, double) { return static_cast<double>(place - s); }, true);
    add("positions restart at key " + std::to_string(s), restarted.first, restarted.second);
    for (const double n : {1.0, -1.0}) {
      const auto moved = from([n](long, double p) { return p + n; }, true);
      add("positions are " + shift_words(n) + " from key " + std::to_string(s) + " on", moved.first, moved.second);
    }
  }
}

std::string list_words(const Block& found, const Block& own, const std::string& who, const Recipe& m) {
  const std::size_t n = found.n[3];
  std::vector<double> now(found.v.begin(), found.v.begin() + static_cast<std::ptrdiff_t>(n)), was(n), behind_by(n);
  std::vector<std::size_t> other, jumps;
  for (std::size_t i = 0; i < n; ++i) {
    was[i] = own(0, 0, 0, i), behind_by[i] = now[i] - was[i];
    if (behind_by[i] != 0) other.push_back(i);
    if (i > 0 && now[i] - now[i - 1] != 1) jumps.push_back(i);
  }
  const auto all_same = [](const std::vector<double>& x) { return std::ranges::all_of(x, [&](double y) { return y == x[0]; }); };
  if (all_same(behind_by)) return behind_by[0] == 0 ? "" : "the positions of the " + who + " are " + shift_words(behind_by[0]);
  if (n > 1 && all_same(now)) return "all " + who + " are at position " + digits(now[0]);
  if (other.size() > 1 && std::ranges::all_of(other, [&](std::size_t i) { return now[i] == now[other[0]]; }))
    return who + " " + std::to_string(other.front()) + "–" + std::to_string(other.back()) + " are at position " + digits(now[other[0]]);
  if (jumps.size() == 1) return "the positions of the " + who + " restart at row " + std::to_string(jumps[0]) + " with " + digits(now[jumps[0]]);
  return "the positions of the " + who + " are " + listed(now, m);
}

/// Adds pairs, frequencies and positions read off the rotated rows, pair by pair.
void add_recovered(Table& t) {
  using Complex = std::complex<double>;
  const Context& c = t.c;
  const Recipe& m = c.m;
  std::array<const Block*, 2> from, to;
  for (const Side side : {Q, K}) {
    to[side] = c.observed(rotated_stage[side]);
    if (!to[side] || !m.rope[side] || c.is_large) return;
    from[side] = c.run.shared(m.norm[side] ? normed_stage[side] : side_stage[side]).get();
    if (from[side]->n != to[side]->n) return;
  }
  struct Found {
    double miss = arma::datum::inf;
    const char* pairs = "";
    std::size_t dims = 0;
    std::array<std::vector<Complex>, 2> rotations;  // [sequence · rows + row][pair]
  } best;
  const auto read = [&](const char* pairs, std::size_t dims) {
    const std::size_t n = dims / 2;
    Found found{0, pairs, dims, {}};
    for (const Side side : {Q, K}) {
      const Block &x = *from[side], &y = *to[side];
      double size = 0;
      for (const double number : x.v) size = std::max(size, std::abs(number));
      for (std::size_t b = 0; b < x.n[0]; ++b)
        for (std::size_t i = 0; i < x.n[2]; ++i) {
          const auto pair = [&](const Block& of, std::size_t h, std::size_t p) {
            const bool halves = std::string_view(pairs) == "halves";
            return Complex(of(b, h, i, halves ? p : 2 * p), of(b, h, i, halves ? p + n : 2 * p + 1));
          };
          for (std::size_t p = 0; p < n; ++p) {
            Complex rotation = 0;
            for (std::size_t h = 0; h < x.n[1]; ++h) rotation += pair(y, h, p) * std::conj(pair(x, h, p));
            rotation /= std::max(std::abs(rotation), 1e-300);
            found.rotations[side].push_back(rotation);
            for (std::size_t h = 0; h < x.n[1]; ++h) found.miss = std::max(found.miss, std::abs(pair(y, h, p) - pair(x, h, p) * rotation) / size);
          }
          for (std::size_t h = 0; h < x.n[1]; ++h)
            for (std::size_t j = dims; j < m.d; ++j) found.miss = std::max(found.miss, std::abs(x(b, h, i, j) - y(b, h, i, j)) / size);
        }
    }
    return found;
  };
  const Rope& own = *m.rope[Q];
  const auto consider = [&](const char* pairs, std::size_t dims) {
    if (best.miss < 3 * c.estimate_tolerance) return;
    Found found = read(pairs, dims);
    if (found.miss < best.miss * 0.5 || best.dims == 0) best = std::move(found);
  };
  consider(own.pairs == "halves" ? "halves" : "neighbors", own.dims);
  for (const char* pairs : {"halves", "neighbors"}) {
    consider(pairs, own.dims);
    for (std::size_t n = m.d / 2 * 2; n >= 2; n -= 2) consider(pairs, n);
  }
  if (best.miss > std::max(3 * c.estimate_tolerance, 1e-6)) return;
  const std::size_t n = best.dims / 2;
  std::vector<Complex> steps(n);
  for (const Side side : {Q, K}) {
    const std::size_t rows = from[side]->n[2];
    for (std::size_t at = 0; at < best.rotations[side].size() / n; ++at)
      if (at % rows > 0)
        for (std::size_t p = 0; p < n; ++p) steps[p] += best.rotations[side][at * n + p] * std::conj(best.rotations[side][(at - 1) * n + p]);
  }
  std::vector<Numbers> rates;
  if (best.dims == own.dims) rates.push_back(own.inverse_frequencies);
  Numbers measured(n);
  for (std::size_t p = 0; p < n; ++p) measured[p] = std::arg(steps[p]);
  if (m.T > 1 || m.S > 1) rates.push_back(measured);
  for (const Numbers& rate : rates) {
    std::array<SharedBlock, 2> places;
    for (const Side side : {Q, K}) {
      Block found({from[side]->n[0], 1, 1, from[side]->n[2]});
      for (std::size_t at = 0; at < found.v.size(); ++at) {
        double least = arma::datum::inf;
        for (long place = -2 * static_cast<long>(m.S) - 8; place < 4 * static_cast<long>(m.S) + 72; ++place) {
          double off = 0;
          for (std::size_t p = 0; p < n; ++p) off += std::abs(best.rotations[side][at * n + p] - std::polar(1.0, static_cast<double>(place) * rate[p]));
          if (off < least - 1e-12) least = off, found.v[at] = static_cast<double>(place);
        }
      }
      places[side] = share(std::move(found));
    }
    std::vector<std::string> phrases;
    if (best.pairs != own.pairs) phrases.push_back("pairs are " + std::string(best.pairs) + " instead of " + std::string(own.pairs));
    if (best.dims != own.dims) phrases.push_back(std::to_string(best.dims) + " columns are rotated instead of " + std::to_string(own.dims));
    const auto are_own = [&](const Numbers& of, double relative_tolerance) {
      if (of.size() != own.inverse_frequencies.size()) return false;
      for (std::size_t p = 0; p < of.size(); ++p)
        if (std::abs(of[p] / own.inverse_frequencies[p] - 1) > relative_tolerance) return false;
      return true;
    };
    if (!are_own(rate, m.relative_tolerance)) {
      Numbers forward_rate = rate;
      if (std::ranges::all_of(rate, [](double f) { return f < 0; })) {
        phrases.push_back("angles are negated");
        for (double& f : forward_rate) f = -f;
      }
      const double factor = forward_rate.size() == own.inverse_frequencies.size() ? forward_rate[0] / own.inverse_frequencies[0] : 0;
      Numbers unscaled = forward_rate;
      for (double& f : unscaled) f /= factor;
      if (factor > 0 && std::abs(factor - 1) > m.relative_tolerance && are_own(unscaled, 10 * m.relative_tolerance)) {
        phrases.push_back("frequencies are multiplied by " + number(factor, m));
      } else if (!are_own(forward_rate, 10 * m.relative_tolerance)) {
        bool is_straight = n > 1 && std::ranges::all_of(forward_rate, [](double f) { return f > 0; });
        const double slope = is_straight ? std::log(forward_rate[n - 1] / forward_rate[0]) / static_cast<double>(n - 1) * static_cast<double>(best.dims) / 2 : 0;
        for (std::size_t p = 0; is_straight && p < n; ++p)
          is_straight = std::abs(forward_rate[0] * std::exp(slope * 2 * static_cast<double>(p) / static_cast<double>(best.dims)) / forward_rate[p] - 1) < 10 * m.relative_tolerance;
        if (!is_straight) phrases.push_back("inverse frequencies are " + listed(forward_rate, m));
        if (is_straight && std::abs(slope + std::log(own.base)) > m.relative_tolerance) phrases.push_back(base_words(m, std::exp(-slope)));
        if (is_straight && std::abs(std::log(forward_rate[0])) > m.relative_tolerance) phrases.push_back("frequencies are multiplied by " + number(forward_rate[0], m));
      }
    }
    for (const Side side : {Q, K})
      if (const std::string words = list_words(*places[side], *m.pos[side], side == Q ? "queries" : "keys", m); !words.empty()) phrases.push_back(words);
    t.add("rotation_recovered", {rotated_queries, rotated_keys}, "rotary positions: " + text::joined(phrases, "; "), [places, rate, pairs = best.pairs, dims = best.dims](Recipe& r) {
       for (const Side side : {Q, K}) {
         r.rope[side]->pairs = pairs, r.rope[side]->dims = dims, r.rope[side]->inverse_frequencies = rate;
         r.pos[side] = places[side];
       }
     }).ranked(3);
  }
}

}  // namespace

void add_rotations(Table& t) {
  const Recipe& m = t.c.m;
  if (!t.c.visits({rotated_queries, rotated_keys, normed_queries, normed_keys, values, scores})) return;
  if (!m.rope[Q] || !m.rope[K]) {
    for (const std::string sides : query_key_sides)
      for (const char* pairs : {"halves", "neighbors"})
        for (const double base : {1e4, 1e5, 5e5, 1e6})
          if (m.d % 2 == 0)
            t.add_sides(
                "rotary_added", sides, "the " + names_of(sides) + " are rotated (base " + digits(base) + ", pairs of " + pairs + "), which the model does not do",
                [=](Recipe& r, Side side) { r.rope[side] = Rope{.inverse_frequencies = frequencies_of(base, r.d, static_cast<double>(r.d)), .pairs = pairs, .dims = r.d, .base = base}; },
                rotated_stage);
    return;
  }
  for (const std::string sides : query_key_sides)
    t.add_sides("rotary_missing", sides, "the " + names_of(sides) + " are not rotated", [](Recipe& r, Side side) { r.omits_rotation[side] = true; }, rotated_stage);
  const auto changes = rope_changes(m);
  const auto add = [&](const std::string& sides, const RopeChange& rope_change) -> Deviation& {
    return t.add_sides("rotary", sides, rope_words(m, rope_change, sides), [=](Recipe& r, Side side) { rope_change.apply(r, side); }, rotated_stage);
  };
  for (const std::string sides : query_key_sides)
    for (const auto& kind : changes)
      for (const RopeChange& one : kind) add(sides, one).ranked(one.dims && one.over ? 1 : 0);
  for (std::size_t a = 0; a < 5; ++a)
    for (std::size_t b = a + 1; b < 5; ++b)
      for (const RopeChange& one : changes[a])
        for (const RopeChange& two : changes[b]) {
          if ((one.dims && two.dims) || (one.over && two.over)) continue;
          RopeChange both = one;
          if (two.dims) both.dims = two.dims;
          if (two.base) both.base = two.base;
          if (two.over) both.over = two.over;
          if (two.sign < 0) both.sign = -1;
          if (two.form) both.form = two.form;
          add("qk", both).ranked(1);
        }
  if (m.rope[Q]->dims >= 4)
    for (const std::string sides : query_key_sides)
      for (int k = 0; k < 40; ++k) {
        const double start = std::log(20.0) + (std::log(3e7) - std::log(20.0)) * k / 39.0;
        t.fit_sides(
             "rotary_base", sides, start * 1.001, [&m, sides](double x) { return (sides == "qk" ? "" : "of the " + names_of(sides) + " alone: ") + base_words(m, std::exp(x)); },
             [](Recipe& r, Side side, double x) { RopeChange{.base = std::exp(x)}.apply(r, side); }, rotated_stage)
            .group_starts(sides)
            .rank_fit = [](const Numbers& x) { return x[0] > 2 && x[0] < 19 ? 2 : 4; };
      }
  each_position_rule(t.c, [&](const std::string& words, SharedBlock q, SharedBlock k) {
    const std::string sides = std::string(q ? "q" : "") + (k ? "k" : "");
    t.add("positions", stages_of(sides, rotated_stage), words, [q = std::move(q), k = std::move(k)](Recipe& r) {
       if (q) r.pos[Q] = q;
       if (k) r.pos[K] = k;
     }).of(sides);
  });
  for (const std::string sides : query_key_sides) {
    const auto add_fit = [&](const char* name, double start, std::function<std::string(double)> describe_fit, auto change) {
      t.fit_sides(
           name, sides, start, [what = "the positions of the " + names_of(sides) + " are ", describe_fit](double x) { return what + describe_fit(x); },
           [=](Recipe& r, Side side, double x) { r.pos[side] = share(mapped(*r.pos[side], [&](double p) { return change(p, x); })); }, rotated_stage)
          .group_starts(sides);
    };
    for (int k = 0; k < 40; ++k) add_fit("position_factor", std::exp(-3 + 6 * k / 39.0), [&m](double x) { return "multiplied by " + number(x, m); }, std::multiplies<>());
    for (int k = 0; sides != "qk" && k < 35; ++k) add_fit("position_shift", -8.25 + 0.5 * k, [](double x) { return shift_words(std::round(x * 1e6) / 1e6); }, std::plus<>());
    t.add_sides(
        "rotary_twice", sides, "the " + names_of(sides) + " are rotated twice",
        [](Recipe& r, Side side) { r.transform(rotated_stage[side], [side](const Block& x, Run& run) { return apply_rope(x, *run.m.rope[side], *run.m.pos[side]); }); }, rotated_stage);
  }
  if (m.dv == m.d)
    t.add_transform("rotary_on_values", values, "the values are rotated too", [](const Block& x, Run& run) { return apply_rope(x, *run.m.rope[K], *run.m.pos[K]); });
  add_recovered(t);
}

}  // namespace core::check::inference
