#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/graph/bugs.hpp"

/// Bugs of the biases of the scores: ALiBi, relative position bias, attention bias.
namespace core::bugs {
namespace {

using graph::AddBiases;
using graph::digits;
using graph::OperationInputs;
using graph::shift_words;
using graph::StageFunction;
using std::to_string;

// Which bias: form "positions" or "given".

bool has_given_bias(const Editing& e) {
  return e.find(Stage::biased_scores) && !e.model().additions.score_bias.empty();
}
std::vector<const char*> biases_of(const Editing& e) {
  std::vector<const char*> all;
  if (e.find(Stage::position_bias)) all.push_back("positions");
  if (has_given_bias(e)) all.push_back("given");
  return all;
}
std::string bias_named(const Editing& e, std::string_view form) {
  return form == "given"                          ? "the given bias"
         : e.model().additions.positions.relative ? "the relative position bias"
                                                  : "the ALiBi bias";
}

/// Wraps a bias in a function of it, input 0, of which all rows of all heads can be read.
void change_bias(Editing& e, std::string_view form, StageFunction::Function function) {
  const auto all_rows = [function = std::move(function)](const OperationInputs& in) {
    return in.selected(function(in));
  };
  if (form == "positions") return e.wrap(Stage::position_bias, all_rows, {}, "::");
  const auto* own = e.get<AddBiases>(Stage::biased_scores);
  if (!own) return;
  if (const Stage* before = own->inputs.back().stage()) return e.wrap(*before, all_rows, {}, "::");
  const Stage changed = e.graph.next_internal();
  StageFunction bias({own->inputs.back()}, all_rows);
  bias.inputs[0].cells = "::";
  e.graph.nodes.push_back(
      {changed, graph::NodeHeads::per_head, false, graph::SharedOperation(std::move(bias))});
  e.change<AddBiases>(Stage::biased_scores, [&](AddBiases& sum) { sum.inputs.back().source = changed; });
  e.graph.sort();
}

void scale_score_bias(Editing& e, const BugCase& c, ProjectionName) {
  change_bias(e, c.form, [f = c.numbers[0]](const OperationInputs& in) { return arma::mat(in[0] * f); });
}
std::string count_words(const Editing& before, const BugCase& c) {
  return before.words.factor(c.numbers[0], bias_named(before, c.form));
}
std::string factor_words(const Editing& before, const BugCase& c) {
  if (std::abs(c.numbers[0] / scale_factor(before.model()) - 1) < 1e-7)
    return bias_named(before, c.form) + " is multiplied by the scale too (" + digits(c.numbers[0]) +
           "): it is added before the scale";
  return count_words(before, c);
}

/// Other bias in place of the right one. Form "given:rolled_keys".
struct MovedBias {
  const char* form;
  Words<double> words;
  arma::mat (*moved)(const OperationInputs&, double x);
};

arma::mat rolled(const arma::mat& x, double by, int axis) {
  const long n = static_cast<long>(axis == 0 ? x.n_rows : x.n_cols), s = static_cast<long>(by);
  return arma::shift(x, (s % n + n) % n, axis);
}
arma::mat row_for_all(const arma::mat& x, std::size_t row) {
  return arma::repmat(x.row(row), x.n_rows, 1);
}

constexpr std::array moved_biases{
    MovedBias{"transposed", " is transposed",
              [](const OperationInputs& in, double) { return arma::mat(in[0].t()); }},
    MovedBias{"next_heads", " of every head is that of the head {0} further (cyclic)",
              [](const OperationInputs& in, double by) {
                return in.of_head(0, (in.head + static_cast<std::size_t>(by)) % in.model.n_heads);
              }},
    MovedBias{
        "heads_reversed", " is in reverse order of heads",
        [](const OperationInputs& in, double) { return in.of_head(0, in.model.n_heads - 1 - in.head); }},
    MovedBias{"averaged", " is averaged over the heads",
              [](const OperationInputs& in, double) {
                return arma::mat(sum_of_heads(in) / static_cast<double>(in.model.n_heads));
              }},
    MovedBias{"one_head", " of head {0} is used for all heads",
              [](const OperationInputs& in, double h) { return in.of_head(0, static_cast<std::size_t>(h)); }},
    MovedBias{"rolled_queries", " is rolled by {0} along the queries",
              [](const OperationInputs& in, double by) { return rolled(in[0], by, 0); }},
    MovedBias{"rolled_keys", " is rolled by {0} along the keys",
              [](const OperationInputs& in, double by) { return rolled(in[0], by, 1); }},
    MovedBias{"last_query", " of the last query is used for all",
              [](const OperationInputs& in, double) { return row_for_all(in[0], in[0].n_rows - 1); }},
    MovedBias{"first_query", " of the first query is used for all",
              [](const OperationInputs& in, double) { return row_for_all(in[0], 0); }},
    MovedBias{"exponential", " is added as its exponential",
              [](const OperationInputs& in, double) { return arma::mat(arma::exp(in[0])); }},
    MovedBias{"keys_reversed", " runs backwards along the keys",
              [](const OperationInputs& in, double) { return arma::mat(arma::fliplr(in[0])); }},
};

std::pair<std::string, const MovedBias*> moved_of(const BugCase& c) {
  const std::size_t colon = c.form.find(':');
  return {c.form.substr(0, colon), &of_form(moved_biases, c.form.substr(colon + 1))};
}
void move_bias(Editing& e, const BugCase& c, ProjectionName) {
  const auto [which, row] = moved_of(c);
  change_bias(e, which,
              [moved = row->moved, x = c.number()](const OperationInputs& in) { return moved(in, x); });
}
void try_moved(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  const double n_heads = static_cast<double>(m.n_heads);
  for (const std::string which : biases_of(c.now)) {
    const auto add = [&](const char* form, Numbers x = {}) { to.add(std::move(x), which + ":" + form); };
    if (m.n_tokens() == m.n_keys()) add("transposed");
    for (double by = 1; by < n_heads; ++by) add("next_heads", {by});
    if (n_heads > 1) {
      add("heads_reversed"), add("averaged");
      for (double h = 0; h < std::min(n_heads, 8.0); ++h) add("one_head", {h});
    }
    for (const double by : {1, -1, 2, -2}) add("rolled_queries", {by}), add("rolled_keys", {by});
    for (const char* form : {"last_query", "first_query", "exponential", "keys_reversed"}) add(form);
  }
}

void add_after_softmax(Editing& e, const BugCase&, ProjectionName) {
  const auto* own = e.get<AddBiases>(Stage::biased_scores);
  if (!own) return;
  std::vector<graph::Input> biases(own->inputs.begin() + 1, own->inputs.end());
  e.leave_out(Stage::biased_scores);
  const auto sum = [n = biases.size()](const OperationInputs& in) {
    arma::mat w = in[0];
    for (std::size_t k = 1; k <= n; ++k) w += in[k];
    return w;
  };
  e.wrap(Stage::weights, sum, std::move(biases));
}

/// Adds a function of head and positions to the scores, behind all that is added to them.
void add_bias(Editing& e, std::function<double(const OperationInputs&, double query, double key)> bias) {
  const auto sum = [bias = std::move(bias)](const OperationInputs& in) {
    const double first = static_cast<double>(in.model.n_keys()) - static_cast<double>(in.model.n_tokens());
    arma::mat y = in[0];
    for (std::size_t j = 0; j < y.n_cols; ++j)
      for (std::size_t a = 0; a < y.n_rows; ++a)
        y(a, j) += bias(in, static_cast<double>(in.row(a)) + first, static_cast<double>(j));
    return y;
  };
  if (e.find(Stage::biased_scores)) return e.wrap(Stage::biased_scores, sum);
  const Stage before = e.find(Stage::capped_scores) ? Stage::capped_scores : Stage::scaled_scores;
  e.insert_after(before, StageFunction({{before}}, sum));
}

/// Reads a bias by distance of query and key alone off the scores of a model without one: [head][distance].
void read_off_distances(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  const auto* given = c.observed(c.target);
  const bool is_score_step =
      std::ranges::find(graph::score_step_stages, c.target) != graph::score_step_stages.end();
  if (!is_score_step || m.additions.has_bias() || c.is_large || !given ||
      given->size() != m.sequences.size() * m.n_heads)
    return;
  const std::size_t n_tokens = m.n_tokens(), n_keys = m.n_keys();
  arma::mat sums(m.n_heads, n_tokens + n_keys - 1, arma::fill::zeros), counts = sums;
  bool fits = true;
  const auto visit = [&](auto f) {
    for (std::size_t k = 0; k < given->size() && fits; ++k) {
      const arma::mat &ours = c.stages.matrix(c.target, k / m.n_heads, k % m.n_heads), &theirs = (*given)[k];
      fits = arma::size(ours) == arma::size(theirs);
      for (std::size_t i = 0; fits && i < ours.n_rows; ++i)
        for (std::size_t j = 0; j < ours.n_cols; ++j)
          if (const double by = theirs(i, j) - ours(i, j); std::isfinite(by))
            f(by, k % m.n_heads, j + n_tokens - 1 - i);
    }
  };
  visit([&](double by, std::size_t h, std::size_t at) { sums(h, at) += by, ++counts(h, at); });
  arma::mat means = sums;
  for (std::size_t k = 0; k < means.n_elem; ++k) means[k] = counts[k] > 0 ? sums[k] / counts[k] : 0;
  bool is_by_distance = fits;
  visit([&](double by, std::size_t h, std::size_t at) {
    is_by_distance = is_by_distance && std::abs(by - means(h, at)) <= 3 * c.tolerance;
  });
  const std::size_t n_means = arma::accu(counts > 0);
  if (!is_by_distance || arma::accu(counts) < 2 * static_cast<double>(n_means)) return;
  Numbers first;  // of head 0, by distance from 0
  for (std::size_t k = 0; k <= std::min<std::size_t>(n_keys - 1, 11); ++k)
    first.push_back(means(0, n_keys - 1 - k));
  to.add(first);
  to.all.back().observed = std::make_shared<const std::vector<SharedMatrix>>(1, std::move(means));
}

// ALiBi.

const graph::AlibiBias* alibi_of(const Editing& e) {
  return e.get<graph::AlibiBias>(Stage::position_bias);
}

/// Slopes in place of the right ones: of a head, from those.
struct SlopeRule {
  const char* form;
  Words<const Model&, double> words;
  double (*slope)(std::size_t head, const Numbers& own, double x);
};
/// Returns the largest power of two that is not above the number of heads, and the next one if it is less.
std::size_t power_below(std::size_t n_heads) {
  std::size_t power = 1;
  while (2 * power <= n_heads) power *= 2;
  return power;
}
std::size_t power_above(std::size_t n_heads) {
  const std::size_t power = power_below(n_heads);
  return power < n_heads ? 2 * power : n_heads;
}
double series(double head, double n) {
  return std::pow(2.0, -8.0 * head / n);
}
double size_of(const Numbers& own) {
  return static_cast<double>(own.size());
}
Numbers sorted(Numbers own) {
  std::ranges::sort(own);
  return own;
}

constexpr std::array slope_rules{
    SlopeRule{"uniform",
              [](const Model& m, double) {
                return std::string(
                    power_below(m.n_heads) != m.n_heads
                        ? "form a uniform geometric series 2^(−8(h+1)/n) for a number of heads "
                          "that is no power of two"
                        : "form the series 2^(−8(h+1)/n)");
              },
              [](std::size_t h, const Numbers& own, double) {
                return series(static_cast<double>(h) + 1, size_of(own));
              }},
    SlopeRule{
        "bloom", "are Bloom's for this number of heads",
        [](std::size_t h, const Numbers& own, double) { return positions::default_slopes(own.size())[h]; }},
    SlopeRule{"of_more_heads",
              [](const Model& m, double) {
                return "are the first " + to_string(m.n_heads) + " of those for " +
                       to_string(power_above(m.n_heads)) + " heads";
              },
              [](std::size_t h, const Numbers& own, double) {
                return series(static_cast<double>(h) + 1, static_cast<double>(power_above(own.size())));
              }},
    SlopeRule{"carried_on",
              [](const Model& m, double) {
                return "are those for " + to_string(power_below(m.n_heads)) + " heads carried on";
              },
              [](std::size_t h, const Numbers& own, double) {
                return series(static_cast<double>(h) + 1, static_cast<double>(power_below(own.size())));
              }},
    SlopeRule{"from_1", "begin with 1: 2^(−8h/n)",
              [](std::size_t h, const Numbers& own, double) {
                return series(static_cast<double>(h), size_of(own));
              }},
    SlopeRule{
        "halves", "are 2^(−(h+1))",
        [](std::size_t h, const Numbers&, double) { return std::pow(2.0, -(static_cast<double>(h) + 1)); }},
    SlopeRule{"first_for_all", "are 2^(−8/n) for all heads",
              [](std::size_t, const Numbers& own, double) { return series(1, size_of(own)); }},
    SlopeRule{"inverse_heads", "are 1/(h+1)",
              [](std::size_t h, const Numbers&, double) { return 1 / (static_cast<double>(h) + 1); }},
    SlopeRule{"all_1", "are all 1", [](std::size_t, const Numbers&, double) { return 1.0; }},
    SlopeRule{"of_4", "are 2^(−4(h+1)/n)",
              [](std::size_t h, const Numbers& own, double) {
                return series(static_cast<double>(h) + 1, 2 * size_of(own));
              }},
    SlopeRule{"mpt", "are those of MPT, reordered for this number of heads",
              [](std::size_t h, const Numbers& own, double) {
                const std::size_t above = power_above(own.size());
                return series(static_cast<double>(h < above / 2 ? 2 * h + 2 : 2 * (h - above / 2) + 1),
                              static_cast<double>(above));
              }},
    SlopeRule{"reversed", "are reversed",
              [](std::size_t h, const Numbers& own, double) { return own[own.size() - 1 - h]; }},
    SlopeRule{"next_heads", "are those of the head {0} further (cyclic)",
              [](std::size_t h, const Numbers& own, double by) {
                return own[(h + static_cast<std::size_t>(by)) % own.size()];
              }},
    SlopeRule{"of_head_0", "are all those of head 0",
              [](std::size_t, const Numbers& own, double) { return own[0]; }},
    SlopeRule{"mean", "are all their mean",
              [](std::size_t, const Numbers& own, double) {
                double mean = 0;
                for (const double slope : own) mean += slope / size_of(own);
                return mean;
              }},
    SlopeRule{"inverse", "are 1/slope",
              [](std::size_t h, const Numbers& own, double) { return own[h] == 0 ? 1 : 1 / own[h]; }},
    SlopeRule{"roots", "are their roots",
              [](std::size_t h, const Numbers& own, double) { return std::sqrt(std::abs(own[h])); }},
    SlopeRule{"squares", "are their squares",
              [](std::size_t h, const Numbers& own, double) { return own[h] * own[h]; }},
    SlopeRule{"descending", "are in the order of their size",
              [](std::size_t h, const Numbers& own, double) { return sorted(own)[own.size() - 1 - h]; }},
    SlopeRule{"ascending", "are in the reverse order of their size",
              [](std::size_t h, const Numbers& own, double) { return sorted(own)[h]; }},
};

/// Form of a rule, and as numbers the slopes and the rule's own number.
std::string slope_words(const Editing& before, const BugCase& c) {
  const SlopeRule& rule = of_form(slope_rules, c.form);
  const Numbers slopes(c.numbers.begin(), c.numbers.end() - 1);
  return "the ALiBi slopes " + rule.words(before.model(), c.numbers.back()) + ": " +
         before.words.list(slopes);
}
void set_slopes(Editing& e, const BugCase& c, ProjectionName) {
  e.change<graph::AlibiBias>(Stage::position_bias, [&](graph::AlibiBias& alibi) {
    alibi.slopes.assign(c.numbers.begin(),
                        c.numbers.begin() + static_cast<std::ptrdiff_t>(alibi.slopes.size()));
  });
}
void try_slopes(const BugContext& c, BugCases& to) {
  const graph::AlibiBias* alibi = alibi_of(c.now);
  if (!alibi) return;
  std::set<Numbers> seen{alibi->slopes};
  const auto add = [&](const SlopeRule& rule, double x) {
    Numbers slopes;
    for (std::size_t h = 0; h < alibi->slopes.size(); ++h) slopes.push_back(rule.slope(h, alibi->slopes, x));
    if (!seen.insert(slopes).second) return;
    slopes.push_back(x);
    to.add(std::move(slopes), rule.form);
  };
  for (const SlopeRule& rule : slope_rules)
    if (rule.form == std::string_view("next_heads"))
      for (std::size_t by = 1; by < alibi->slopes.size(); ++by) add(rule, static_cast<double>(by));
    else
      add(rule, 0);
}

/// Distance of ALiBi between a query and a key, negated, as slopes multiply it.
struct AlibiDistance {
  const char* form;
  const char* words;  ///< "" for shifts, whose number they tell
  double (*distance)(const Model&, double query, double key, double x);
};
constexpr std::array alibi_distances{
    AlibiDistance{"signed", "key − query, without the absolute value",
                  [](const Model&, double i, double j, double) { return j - i; }},
    AlibiDistance{"key", "the key's position alone",
                  [](const Model&, double, double j, double) { return j; }},
    AlibiDistance{"first", "counted as if the queries began at the first key",
                  [](const Model& m, double i, double j, double) {
                    const double first = static_cast<double>(m.n_keys()) - static_cast<double>(m.n_tokens());
                    return -std::abs(i - first - j);
                  }},
    AlibiDistance{"sum", "query + key", [](const Model&, double i, double j, double) { return -(i + j); }},
    AlibiDistance{"clipped", "only of earlier keys (later ones get none)",
                  [](const Model&, double i, double j, double) { return std::min(j - i, 0.0); }},
    AlibiDistance{"square", "squared",
                  [](const Model&, double i, double j, double) { return -(i - j) * (i - j); }},
    AlibiDistance{"log", "log(1 + distance)",
                  [](const Model&, double i, double j, double) { return -std::log1p(std::abs(i - j)); }},
    AlibiDistance{
        "reversed", "the key's position from the end",
        [](const Model& m, double, double j, double) { return j - static_cast<double>(m.n_keys() - 1); }},
    AlibiDistance{"shift", "",
                  [](const Model&, double i, double j, double by) { return -std::abs(i + by - j); }},
};
void change_distance(Editing& e, const BugCase& c, ProjectionName) {
  const graph::AlibiBias* alibi = alibi_of(e);
  if (!alibi) return;
  const auto distance = of_form(alibi_distances, c.form).distance;
  e.compute(Stage::position_bias, {},
            [distance, slopes = alibi->slopes, by = c.numbers[0]](const OperationInputs& in) {
              const Model& m = in.model;
              const double first = static_cast<double>(m.n_keys()) - static_cast<double>(m.n_tokens());
              arma::mat y(in.n_rows(), m.n_keys());
              for (std::size_t j = 0; j < y.n_cols; ++j)
                for (std::size_t a = 0; a < y.n_rows; ++a)
                  y(a, j) = slopes[in.head] *
                            distance(m, static_cast<double>(in.row(a)) + first, static_cast<double>(j), by);
              return y;
            });
}
std::string distance_words(const Editing&, const BugCase& c) {
  return c.form == "shift"
             ? "the positions of the queries in ALiBi are " + shift_words(c.numbers[0])
             : std::string("the distance of ALiBi is ") + of_form(alibi_distances, c.form).words;
}
void try_distances(const BugContext& c, BugCases& to) {
  if (!alibi_of(c.now)) return;
  for (const AlibiDistance& distance : alibi_distances)
    if (*distance.words) to.add({0}, distance.form);
  const double later = static_cast<double>(c.model().n_keys()) - static_cast<double>(c.model().n_tokens());
  std::set<double> shifts{1, -1, 2, -2, 3, -3, 4, -4};
  if (later != 0) shifts.insert({later, -later, -5, -6, -7, -8});
  for (const double by : shifts) to.add({by}, "shift");
}

Numbers usual_slopes(const Editing& e) {
  return positions::default_slopes(e.model().n_heads);
}

// Relative position bias.

/// Buckets of distances, as changed.
struct Buckets {
  positions::Relative relative;
  double sign = 1, shift = 0;
  std::size_t n = 0;           ///< how many; 0: as many as the table has
  bool is_transposed = false;  ///< the table
  double at(std::size_t head, double query, double key) const {
    positions::Relative counted = relative;
    if (n > 0) counted.table = arma::mat(1, n);
    const auto distance = static_cast<std::int64_t>(sign * (key - query) + shift);
    const std::size_t bucket = std::min(positions::relative_position_bucket(distance, counted),
                                        static_cast<std::size_t>(relative.table.n_cols() - 1));
    return is_transposed ? (*relative.table)(bucket, head) : (*relative.table)(head, bucket);
  }
};

/// Change of the buckets, with its number.
struct BucketChange {
  const char* form;
  Words<const Buckets&, double> words;
  void (*apply)(Buckets&, double x);
};
std::string other_direction(const Buckets& own) {
  return own.relative.bidirectional ? "one-sided" : "two-sided (bidirectional)";
}
constexpr std::array bucket_changes{
    BucketChange{"direction",
                 [](const Buckets& own, double) { return "buckets are taken as " + other_direction(own); },
                 [](Buckets& b, double) { b.relative.bidirectional = !b.relative.bidirectional; }},
    BucketChange{"sign", "buckets count query − key instead of key − query",
                 [](Buckets& b, double) { b.sign = -1; }},
    BucketChange{
        "sign_and_direction",
        [](const Buckets& own, double) {
          return "buckets count query − key and are taken as " + other_direction(own);
        },
        [](Buckets& b, double) { b.sign = -1, b.relative.bidirectional = !b.relative.bidirectional; }},
    BucketChange{"max_distance",
                 [](const Buckets& own, double x) {
                   return "the largest distance of the buckets is " + digits(x) + " instead of " +
                          to_string(own.relative.max_distance);
                 },
                 [](Buckets& b, double x) { b.relative.max_distance = static_cast<std::size_t>(x); }},
    BucketChange{"count",
                 [](const Buckets& own, double x) {
                   return "distances are put into " + digits(x) + " buckets instead of " +
                          to_string(own.relative.table.n_cols());
                 },
                 [](Buckets& b, double x) { b.n = static_cast<std::size_t>(x); }},
    BucketChange{"shift", [](const Buckets&, double x) { return "relative positions are " + shift_words(x); },
                 [](Buckets& b, double x) { b.shift = x; }},
    BucketChange{"transposed", "the table of buckets is transposed",
                 [](Buckets& b, double) { b.is_transposed = true; }},
};
Buckets own_buckets(const Model& m) {
  return {*m.additions.positions.relative};
}
void change_buckets(Editing& e, const BugCase& c, ProjectionName) {
  if (!e.get<graph::RelativeBias>(Stage::position_bias)) return;
  Buckets buckets = own_buckets(e.model());
  of_form(bucket_changes, c.form).apply(buckets, c.numbers[0]);
  e.compute(Stage::position_bias, {}, [buckets](const OperationInputs& in) {
    const double first = static_cast<double>(in.model.n_keys()) - static_cast<double>(in.model.n_tokens());
    arma::mat y(in.n_rows(), in.model.n_keys());
    for (std::size_t j = 0; j < y.n_cols; ++j)
      for (std::size_t a = 0; a < y.n_rows; ++a)
        y(a, j) = buckets.at(in.head, static_cast<double>(in.row(a)) + first, static_cast<double>(j));
    return y;
  });
}
/// Other largest distances that come to the same here are numbers 1 and 2, the least and the greatest.
std::string bucket_words(const Editing& before, const BugCase& c) {
  const std::string words = "of the relative bias: " +
                            of_form(bucket_changes, c.form).words(own_buckets(before.model()), c.numbers[0]);
  return c.numbers.size() < 3 ? words
                              : words + " (or any other of " + digits(c.numbers[1]) + "–" +
                                    digits(c.numbers[2]) + ", which come to the same here)";
}

/// Tries largest distances, once each group with the same buckets here.
void try_max_distances(const Model& m, BugCases& to) {
  const Buckets own = own_buckets(m);
  const double was = static_cast<double>(own.relative.max_distance),
               n = static_cast<double>(own.relative.table.n_cols());
  std::set<double> distances{128, 256, 512, 1024, 2 * n, was * 2, was * 4};
  for (int k = 2; k < 97; ++k) distances.insert(k);
  std::map<Numbers, Numbers> same;
  for (const double k : distances) {
    if (k == was || k <= std::floor(n / 4)) continue;
    Buckets other = own;
    other.relative.max_distance = static_cast<std::size_t>(k);
    Numbers bias;  // by distance; the same for all heads
    for (std::size_t h = 0; h < m.n_heads; ++h)
      for (double key = 0; key < static_cast<double>(m.n_keys()); ++key) {
        bias.push_back(other.at(h, static_cast<double>(m.n_keys()) - 1, key));
        bias.push_back(other.at(h, 0, key));
      }
    same[bias].push_back(k);
  }
  for (const auto& [bias, group] : same) {
    double likeliest = group[0];
    for (const double k : {8.0, 16.0, 32.0, 64.0, 128.0, was * 2, std::floor(was / 2)})
      if (std::ranges::find(group, k) != group.end()) likeliest = k;
    Numbers numbers{likeliest};
    if (group.size() > 1) numbers.insert(numbers.end(), {group.front(), group.back()});
    to.add(std::move(numbers), "max_distance");
  }
}
void try_buckets(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  if (!c.now.get<graph::RelativeBias>(Stage::position_bias)) return;
  for (const char* form : {"direction", "sign", "sign_and_direction"}) to.add({0}, form);
  try_max_distances(m, to);
  const std::size_t n = own_buckets(m).relative.table.n_cols();
  for (const std::size_t k : {n / 2, 2 * n, std::size_t{32}, std::size_t{16}})
    if (k != n && k > 1) to.add({static_cast<double>(k)}, "count");
  const double later = static_cast<double>(m.n_keys()) - static_cast<double>(m.n_tokens());
  std::set<double> shifts{1, -1, 2, -2};
  if (later != 0) shifts.insert({later, 3, 4, 5, 6, 7, 8});
  for (const double by : shifts) to.add({by}, "shift");
  if (m.n_heads == n) to.add({0}, "transposed");
}

const std::array bias_rows{
    Bug{.name = "distance_bias",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              add_bias(e, [observed = c.observed](const OperationInputs& in, double i, double j) {
                const double first = static_cast<double>(in.model.n_keys()) - 1;
                return (*(*observed)[0])(in.head, static_cast<std::size_t>(j - i + first));
              });
            },
        .words =
            [](const Editing& before, const BugCase& c) {
              return "a bias that depends on the distance alone is added, which the model does not have "
                     "(relative positions; head 0, from distance 0: " +
                     before.words.list(c.numbers) + ")";
            },
        .cases = read_off_distances,
        .rank = 2},
    Bug{.name = "bias_count",
        .edit = scale_score_bias,
        .words = count_words,
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const char* which : biases_of(c.now))
                for (const double f : {0.0, 2.0, -1.0, 3.0}) to.add({f}, which);
            }},
    Bug{.name = "bias_factor",
        .edit = scale_score_bias,
        .words = factor_words,
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const char* which : biases_of(c.now)) to.fit({1.2}, which);
            },
        .rank = 2},
    Bug{.name = "bias_moved",
        .edit = move_bias,
        .words =
            [](const Editing& before, const BugCase& c) {
              const auto [which, row] = moved_of(c);
              return bias_named(before, which) + row->words(c.number());
            },
        .cases = try_moved,
        .is_last = true},
    Bug{.name = "bias_after_softmax",
        .edit = add_after_softmax,
        .words = "the bias is added after the softmax",
        .fits = [](const Editing& e) { return e.get<AddBiases>(Stage::biased_scores) != nullptr; }},
    Bug{.name = "alibi_added",
        .edit =
            [](Editing& e, const BugCase&, ProjectionName) {
              add_bias(e, [slopes = usual_slopes(e)](const OperationInputs& in, double i, double j) {
                return -slopes[in.head] * std::abs(i - j);
              });
            },
        .words =
            [](const Editing& before, const BugCase&) {
              return "an ALiBi bias is added, which the model does not have (slopes " +
                     before.words.list(usual_slopes(before)) + ")";
            },
        .fits = [](const Editing& e) { return !e.model().additions.positions.alibi; },
        .rank = 1},
    Bug{.name = "alibi", .edit = set_slopes, .words = slope_words, .cases = try_slopes},
    Bug{.name = "alibi:distance", .edit = change_distance, .words = distance_words, .cases = try_distances},
    Bug{.name = "alibi_slopes",
        .edit = set_slopes,
        .words = "the ALiBi slopes are {list}",
        .cases =
            [](const BugContext& c, BugCases& to) {
              const graph::AlibiBias* alibi = alibi_of(c.now);
              if (!alibi) return;
              Numbers start = alibi->slopes;
              for (double& slope : start) slope *= 1.1;
              to.fit(std::move(start));
            },
        .rank = 3},
    Bug{.name = "relative", .edit = change_buckets, .words = bucket_words, .cases = try_buckets},
};

}  // namespace

std::span<const Bug> bias_bugs() {
  return bias_rows;
}

}  // namespace core::bugs
