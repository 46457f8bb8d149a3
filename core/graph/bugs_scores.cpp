#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/base/text.hpp"
#include "core/graph/bugs.hpp"

/// Bugs of the scores: their products, the heads of keys and values, scale, softcap, and their order.
namespace core::bugs {
namespace {

using graph::digits;
using graph::DotProducts;
using graph::Input;
using graph::OperationInputs;
using graph::stages_of_sides;
using std::to_string;
using HeadOrder = std::vector<std::size_t>;

arma::mat unit_rows(arma::mat x) {
  x.each_col() /= arma::vec(arma::sqrt(arma::sum(arma::square(x), 1)));
  return x;
}

// What the scores are products of.

/// Returns the inputs of the scores, nothing where they are no dot products.
std::optional<std::array<Input, 2>> score_inputs(const Editing& e) {
  const auto* products = e.get<DotProducts>(Stage::scores);
  return products ? std::optional(std::array{products->inputs[0], products->inputs[1]}) : std::nullopt;
}
Input from_stage(Input input, Stage stage) {
  input.source = stage;
  return input;
}
Input all_rows(Input input) {
  input.cells = "::";
  return input;
}

/// Other products: whether a graph can have them, their inputs in place of queries and keys, and what is
/// computed from these.
struct OtherProducts {
  const char* form;
  const char* words;
  bool (*fits)(const Editing&);
  std::vector<Input> (*from)(const Input& q, const Input& k);
  arma::mat (*product)(const OperationInputs&);
  int rank = 0;
};

arma::mat dot_products(const OperationInputs& in) {
  return in[0] * in[1].t();
}
bool always(const Editing&) {
  return true;
}
/// Whether queries and keys are normalized and rotated.
bool prepares_twice(const Editing& e) {
  return e.find(Stage::normed_queries) && e.find(Stage::rotated_queries);
}
std::size_t n_rotated_columns(const Editing& e) {
  const auto* rotation = e.get<graph::Rotate>(Stage::rotated_queries);
  if (!rotation) return 0;
  const auto* variant = dynamic_cast<const graph::RotationVariant*>(rotation);
  return variant ? variant->n_columns : positions::rotated_columns(rotation->rotary, e.model().d_head());
}
template <Stage of_queries, Stage of_keys>
std::vector<Input> from_stages(const Input& q, const Input& k) {
  return {of_queries == Stage::scores ? q : from_stage(q, of_queries),
          of_keys == Stage::scores ? k : from_stage(k, of_keys)};
}
constexpr Stage as_is = Stage::scores;  ///< of from_stages(): the right input
std::vector<Input> right_inputs(const Input& q, const Input& k) {
  return {q, k};
}

constexpr std::array other_products{
    OtherProducts{"raw_queries", "the scores use the queries before norm and rotation", prepares_twice,
                  from_stages<Stage::queries, as_is>, dot_products, 1},
    OtherProducts{"raw_keys", "the scores use the keys before norm and rotation", prepares_twice,
                  from_stages<as_is, Stage::keys>, dot_products, 1},
    OtherProducts{"raw_both", "the scores use queries and keys before norm and rotation", prepares_twice,
                  from_stages<Stage::queries, Stage::keys>, dot_products, 1},
    OtherProducts{"queries_alone", "the scores are queries · queries", are_scores_square,
                  [](const Input& q, const Input&) { return std::vector{all_rows(q)}; },
                  [](const OperationInputs& in) { return in.selected(in[0] * in[0].t()); }},
    OtherProducts{"keys_alone", "the scores are keys · keys", are_scores_square,
                  [](const Input&, const Input& k) { return std::vector{all_rows(k)}; },
                  [](const OperationInputs& in) { return in.selected(in[0] * in[0].t()); }},
    OtherProducts{"values", "the scores are queries · values", have_one_width,
                  from_stages<as_is, Stage::values>, dot_products},
    OtherProducts{
        "cosine", "queries and keys are divided by their lengths (cosine similarity)", always, right_inputs,
        [](const OperationInputs& in) { return arma::mat(unit_rows(in[0]) * unit_rows(in[1]).t()); }},
    OtherProducts{"unrotated_queries", "the scores use normalized queries that are not rotated",
                  prepares_twice, from_stages<Stage::normed_queries, as_is>, dot_products},
    OtherProducts{"unrotated_keys", "the scores use normalized keys that are not rotated", prepares_twice,
                  from_stages<as_is, Stage::normed_keys>, dot_products},
    OtherProducts{"unrotated_both", "the scores use normalized queries and keys that are not rotated",
                  prepares_twice, from_stages<Stage::normed_queries, Stage::normed_keys>, dot_products},
    OtherProducts{"distances", "the scores are minus squared distances", always, right_inputs,
                  [](const OperationInputs& in) {
                    arma::mat s = 2 * in[0] * in[1].t();
                    s.each_col() -= arma::vec(arma::sum(arma::square(in[0]), 1));
                    s.each_row() -= arma::rowvec(arma::sum(arma::square(in[1]), 1).t());
                    return s;
                  }},
};

void compute_scores_from(Editing& e, const BugCase& c, ProjectionName) {
  const OtherProducts& other = of_form(other_products, c.form);
  if (const auto own = score_inputs(e))
    e.compute(Stage::scores, other.from((*own)[0], (*own)[1]), other.product);
}
void try_products(const BugContext& c, BugCases& to) {
  if (!score_inputs(c.now)) return;
  for (const OtherProducts& other : other_products)
    if (other.fits(c.now)) to.add({}, other.form);
}

/// Numbers: the first column, and the end of those that enter the scores.
void leave_columns_out(Editing& e, const BugCase& c, ProjectionName) {
  const auto own = score_inputs(e);
  if (!own) return;
  const auto first = static_cast<std::size_t>(c.numbers[0]),
             last = static_cast<std::size_t>(c.numbers[1]) - 1;
  e.compute(Stage::scores, {(*own)[0], (*own)[1]}, [first, last](const OperationInputs& in) {
    return arma::mat(in[0].cols(first, last) * in[1].cols(first, last).t());
  });
}
void try_columns(const BugContext& c, BugCases& to) {
  const double n = static_cast<double>(n_rotated_columns(c.now)), d = static_cast<double>(c.model().d_head());
  if (n == 0 || n >= d) return;
  to.add({0, n});
  to.add({n, d});
}

// KV heads of the heads.

/// Rule for the KV head of a head, with its numbers; words that begin with "are" go on from "keys and
/// values".
struct KvMapping {
  const char* form;
  Words<const Model&, const Numbers&> words;
  std::size_t (*kv_head)(const Model&, std::size_t head, const Numbers&);
};
std::size_t group_size(const Model& m) {
  return m.n_heads / m.kv_heads();
}
std::size_t whole(double x) {
  return static_cast<std::size_t>(x);
}

constexpr std::array head_mappings{
    KvMapping{"tiled", "are tiled over the heads (h mod KV heads) instead of repeated",
              [](const Model& m, std::size_t h, const Numbers&) { return h % m.kv_heads(); }},
    KvMapping{"one", "all heads use KV head {0}",
              [](const Model&, std::size_t, const Numbers& x) { return whole(x[0]); }},
    KvMapping{"next_groups", "every group uses the KV head {0} further (cyclic)",
              [](const Model& m, std::size_t h, const Numbers& x) {
                return (h / group_size(m) + whole(x[0])) % m.kv_heads();
              }},
    KvMapping{
        "reversed", "heads use the KV heads in reverse order",
        [](const Model& m, std::size_t h, const Numbers&) { return m.kv_heads() - 1 - h / group_size(m); }},
    KvMapping{"clamped", "head h uses KV head min(h, last)",
              [](const Model& m, std::size_t h, const Numbers&) { return std::min(h, m.kv_heads() - 1); }},
    KvMapping{"other_groups",
              [](const Model& m, const Numbers& x) {
                return "groups have " + digits(x[0]) + " heads instead of " + to_string(group_size(m)) +
                       " (head h uses KV head h // " + digits(x[0]) + ")";
              },
              [](const Model& m, std::size_t h, const Numbers& x) {
                return std::min(h / whole(x[0]), m.kv_heads() - 1);
              }},
    KvMapping{"by_kv_heads", "head h uses KV head h // KV heads",
              [](const Model& m, std::size_t h, const Numbers&) {
                return std::min(h / m.kv_heads(), m.kv_heads() - 1);
              }},
    KvMapping{"next_heads", "heads use the KV heads of {0} heads further",
              [](const Model& m, std::size_t h, const Numbers& x) {
                return (h + whole(x[0])) % m.n_heads / group_size(m);
              }},
    KvMapping{"listed",
              [](const Model&, const Numbers& x) {
                return "heads use the KV heads [" + graph::list_of(HeadOrder(x.begin(), x.end())) + "]";
              },
              [](const Model&, std::size_t h, const Numbers& x) { return whole(x[h]); }},
};

HeadOrder mapped_heads(const Model& m, const KvMapping& mapping, const Numbers& x) {
  HeadOrder heads(m.n_heads);
  for (std::size_t h = 0; h < heads.size(); ++h) heads[h] = mapping.kv_head(m, h, x);
  return heads;
}

/// Calls add(form, numbers) for every rule that this model can have, but for lists.
template <class Add>
void each_mapping(const Model& m, Add add) {
  const std::size_t n_heads = m.n_heads, n_kv_heads = m.kv_heads();
  add("tiled", Numbers());
  for (std::size_t g = 0; g < n_kv_heads; ++g) add("one", Numbers{static_cast<double>(g)});
  for (std::size_t n = 1; n < n_kv_heads; ++n) add("next_groups", Numbers{static_cast<double>(n)});
  add("reversed", Numbers());
  add("clamped", Numbers());
  if (n_kv_heads < 2) return;
  for (std::size_t n = 2; n < n_heads; ++n)
    if (n != group_size(m) && n != n_kv_heads) add("other_groups", Numbers{static_cast<double>(n)});
  add("by_kv_heads", Numbers());
  for (std::size_t n = 1; n < n_heads; ++n) add("next_heads", Numbers{static_cast<double>(n)});
}

void set_kv_heads(Editing& e, ProjectionName part, HeadOrder heads) {
  const auto shared = std::make_shared<const HeadOrder>(std::move(heads));
  if (part == ProjectionName::key)
    e.change<DotProducts>(Stage::scores, [&](DotProducts& products) { products.inputs[1].heads = shared; });
  else
    e.change<graph::WeightedSum>(Stage::contexts,
                                 [&](graph::WeightedSum& sum) { sum.inputs[1].heads = shared; });
}
void map_kv_heads(Editing& e, const BugCase& c, ProjectionName part) {
  set_kv_heads(e, part, mapped_heads(e.model(), of_form(head_mappings, c.form), c.numbers));
}
std::string mapping_words(const Editing& before, const BugCase& c) {
  const std::string words = of_form(head_mappings, c.form).words(before.model(), c.numbers);
  if (words.starts_with("are ")) return stages_of_sides(c.sides) + " " + words;
  return words + (c.sides == "k" ? " (keys only)" : c.sides == "v" ? " (values only)" : "");
}

/// Returns the KV head that fits each head best where scores or context vectors are given, or nothing.
HeadOrder closest_kv_heads(const BugContext& c, ProjectionName part) {
  const Model& m = c.model();
  const Stage stage = part == ProjectionName::key ? Stage::scores : Stage::contexts;
  const auto* given = c.observed(stage);
  if (stage != c.target || !given || m.kv_heads() < 2 || given->size() != m.sequences.size() * m.n_heads)
    return {};
  HeadOrder best(m.n_heads);
  Numbers least(m.n_heads, graph::infinity);
  for (std::size_t g = 0; g < m.kv_heads(); ++g) {
    Editing other = c.now;
    set_kv_heads(other, part, HeadOrder(m.n_heads, g));
    graph::LazyStages stages(other.graph, m, c.stages);
    for (std::size_t h = 0; h < m.n_heads; ++h) {
      double greatest = 0;
      for (std::size_t s = 0; s < m.sequences.size(); ++s) {
        const arma::mat &ours = stages.matrix(stage, s, h), &theirs = (*given)[s * m.n_heads + h];
        if (arma::size(ours) != arma::size(theirs)) return {};
        greatest = std::max(greatest, arma::abs(ours - theirs).max());
      }
      if (greatest < least[h]) least[h] = greatest, best[h] = g;
    }
  }
  return best;
}

void try_mappings(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  if (m.n_heads == 1) return;
  std::set<HeadOrder> seen{c.now.graph.kv_head};
  each_mapping(m, [&](const char* form, const Numbers& x) {
    const KvMapping& mapping = of_form(head_mappings, form);
    if (seen.insert(mapped_heads(m, mapping, x)).second)
      for (const char* sides : {"kv", "k", "v"}) to.add(x, form, sides);
  });
  for (const ProjectionName part : {ProjectionName::key, ProjectionName::value}) {
    const HeadOrder heads = closest_kv_heads(c, part);
    if (!heads.empty() && !seen.contains(heads))
      for (const char* sides : {"kv", part == ProjectionName::key ? "k" : "v"})
        to.add(Numbers(heads.begin(), heads.end()), "listed", sides);
  }
}

constexpr std::array key_stages{Stage::keys, Stage::normed_keys, Stage::rotated_keys};
constexpr std::array value_stages{Stage::values};
std::span<const Stage> stages_with_kv_heads(ProjectionName part) {
  if (part == ProjectionName::key) return key_stages;
  return value_stages;
}
/// Reports keys or values for every head, not for every KV head.
void report_for_every_head(Editing& e, ProjectionName part, HeadOrder heads) {
  const auto shared = std::make_shared<const HeadOrder>(std::move(heads));
  for (const Stage stage : stages_with_kv_heads(part)) {
    Input input{stage};
    input.heads = shared;
    if (e.find(stage))
      e.report(stage, graph::NodeHeads::per_head, {input}, [](const OperationInputs& in) { return in[0]; });
  }
}
void repeat_kv_heads(Editing& e, const BugCase& c, ProjectionName part) {
  const HeadOrder heads = mapped_heads(e.model(), of_form(head_mappings, c.form), c.numbers);
  set_kv_heads(e, part, heads);
  report_for_every_head(e, part, heads);
  const ProjectionName other = part == ProjectionName::key ? ProjectionName::value : ProjectionName::key;
  if (c.sides.size() == 1) report_for_every_head(e, other, e.graph.kv_head);
}
void try_repeated(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  const auto is_wide = [&](Stage stage) {
    const auto* given = c.observed(stage);
    return given && given->size() == m.sequences.size() * m.n_heads;
  };
  if (m.kv_heads() == m.n_heads ||
      (std::ranges::none_of(key_stages, is_wide) && std::ranges::none_of(value_stages, is_wide)))
    return;
  each_mapping(m, [&](const char* form, const Numbers& x) {
    for (const char* sides : {"kv", "k", "v"}) to.add(x, form, sides);
  });
}

void average_kv_heads(Editing& e, const BugCase&, ProjectionName part) {
  e.wrap(graph::projected_stages[static_cast<std::size_t>(part)], [](const OperationInputs& in) {
    const std::size_t n = in.model.kv_heads();
    arma::mat sum = in.of_head(0, 0);
    for (std::size_t g = 1; g < n; ++g) sum += in.of_head(0, g);
    return arma::mat(sum / static_cast<double>(n));
  });
}

// The scale.

double scale_of(const Editing& e) {
  const auto* scale = e.get<graph::ScaleScores>(Stage::scaled_scores);
  return scale ? scale->factor : 0;
}

std::string scale_words(const Editing& e, const BugCase& c) {
  const double s = c.numbers[0], own = scale_of(e);
  const std::string ours = e.words.number(own, false), of = e.words.number(s, false),
                    ratio = e.words.number(s / own, false);
  if (std::abs(s - 1) < 1e-9) return "the scale is missing (the model has " + ours + ")";
  if (std::abs(s / own - own) < 1e-9 * own)
    return "the scale is applied twice: " + of + " instead of " + ours;
  if (std::abs(s * own - 1) < 1e-9) return "scores are divided by the scale: × " + of + " instead of " + ours;
  if (ratio.find("ln 2") != ratio.npos)
    return "the softmax counts to the base 2 (2^x without log₂ e): scores × ln 2";
  return "the scale is " + of + " instead of " + ours + ": × " + ratio;
}

int rank_of_scale(const BugContext& context, const BugCase& c) {
  const double s = c.numbers[0], own = scale_of(context.now);
  const auto& words = context.now.words;
  if (std::abs(s - 1) < 1e-9 || std::abs(s / own - own) < 1e-9 ||
      std::abs(s / own - std::log(2.0)) < words.tolerance())
    return 0;
  return std::min(words.rank_of_factor(s), words.rank_of_factor(s / own));
}

void set_scale(Editing& e, const BugCase& c, ProjectionName) {
  e.change<graph::ScaleScores>(Stage::scaled_scores,
                               [&](graph::ScaleScores& scale) { scale.factor = c.numbers[0]; });
}

void try_scales(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  const double own = scale_of(c.now), d = static_cast<double>(m.d_head()),
               D = static_cast<double>(m.d_model()), H = static_cast<double>(m.n_heads),
               G = static_cast<double>(m.kv_heads()), S = static_cast<double>(m.n_keys());
  if (own == 0) return;
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
    if (std::isfinite(s) && std::abs(s - own) > 1e-12 && seen.insert(s).second) to.add({s});
}
void fit_scale(const BugContext& c, BugCases& to) {
  const double own = scale_of(c.now);
  for (const double f : {1.1, 0.6, 0.3, 0.1, 0.03, 2.0, 4.0, 10.0, -1.0})
    if (own != 0) to.fit({own * f});
}

void fit_scale_by_head(const BugContext& c, BugCases& to) {
  if (scale_of(c.now) != 0 && c.model().n_heads > 1)
    to.fit(Numbers(c.model().n_heads, scale_of(c.now) * 1.05));
}
/// Scales by the logarithm of the position + 1 or + 2 (the form), over the fitted logarithm of a length.
void scale_by_log(Editing& e, const BugCase& c, ProjectionName) {
  const double from = std::stod(c.form);
  e.wrap(Stage::scaled_scores, [from, over = c.numbers[0]](const OperationInputs& in) {
    const double first = static_cast<double>(in.model.n_keys()) - static_cast<double>(in.model.n_tokens());
    arma::mat y = in[0];
    for (std::size_t a = 0; a < y.n_rows; ++a)
      y.row(a) *= std::log(static_cast<double>(in.row(a)) + first + from) / over;
    return y;
  });
}
void scale_each(Editing& e, std::initializer_list<Stage> stages, double factor) {
  for (const Stage stage : stages) e.scale(stage, factor);
}
template <bool scales_again>
void scale_queries(Editing& e, const BugCase& c, ProjectionName part) {
  e.scale(Stage::queries, scale_of(e));
  if (!scales_again) set_scale(e, {.bug = c.bug, .numbers = {1}}, part);
}
void try_if_scaled(const BugContext& c, BugCases& to) {
  if (scale_of(c.now) != 0) to.add();
}

// The softcap.

double cap_of(const Editing& e) {
  const auto* cap = e.get<graph::Softcap>(Stage::capped_scores);
  return cap ? cap->cap : 0;
}
void set_cap(Editing& e, const BugCase& c, ProjectionName) {
  const double cap = c.numbers[0];
  if (e.change<graph::Softcap>(Stage::capped_scores, [&](graph::Softcap& own) { own.cap = cap; })) return;
  if (!e.find(Stage::capped_scores))
    e.insert_after(Stage::scaled_scores,
                   graph::StageFunction({{Stage::scaled_scores}}, [cap](const OperationInputs& in) {
                     return arma::mat(cap * arma::tanh(in[0] / cap));
                   }));
}
std::string cap_words(const Editing& before, const BugCase& c) {
  const double own = cap_of(before);
  const std::string number = before.words.number(c.numbers[0]);
  return own != 0 ? "the softcap is " + number + " instead of " + digits(own)
                  : "scores are soft-capped (softcap is " + number + "), which the model does not do";
}

/// Formula of a score s and the cap c.
struct CapForm {
  const char* form;
  const char* words;
  double (*capped)(double s, double c);
};
constexpr std::array cap_forms{
    CapForm{"not_multiplied", "the softcap is tanh(s/c) without the factor c",
            [](double s, double c) { return std::tanh(s / c); }},
    CapForm{"not_divided", "the softcap is c·tanh(s), without dividing by c",
            [](double s, double c) { return c * std::tanh(s); }},
    CapForm{"clipped", "scores are clipped at ±c instead of c·tanh(s/c)",
            [](double s, double c) { return std::clamp(s, -std::abs(c), std::abs(c)); }},
    CapForm{"twice", "the softcap is applied twice",
            [](double s, double c) { return c * std::tanh(std::tanh(s / c)); }},
    CapForm{"inverse", "the softcap is tanh(s·c)/c: with multiplication and division exchanged",
            [](double s, double c) { return std::tanh(s * c) / c; }},
};
void cap_otherwise(Editing& e, const BugCase& c, ProjectionName) {
  const auto* own = e.get<graph::Softcap>(Stage::capped_scores);
  if (!own) return;
  e.compute(Stage::capped_scores, {own->inputs[0]},
            [capped = of_form(cap_forms, c.form).capped, cap = own->cap](const OperationInputs& in) {
              arma::mat y = in[0];
              y.transform([&](double s) { return capped(s, cap); });
              return y;
            });
}

// The order of the steps.

/// Order of all steps, those that a model lacks included.
struct StepOrder {
  const char* form;
  std::array<Stage, 4> steps;
  const char* words;
};
constexpr Stage scale = Stage::scaled_scores, cap = Stage::capped_scores, bias = Stage::biased_scores,
                mask = Stage::masked_scores;
constexpr std::array step_orders{
    StepOrder{"cap first", {cap, scale, bias, mask}, "the softcap comes before the scale"},
    StepOrder{"bias first", {bias, scale, cap, mask}, "the bias is added before scale and softcap"},
    StepOrder{"bias before cap", {scale, bias, cap, mask}, "the bias is added before the softcap"},
    StepOrder{"cap last", {scale, bias, mask, cap}, "the softcap comes after bias and mask"},
    StepOrder{"bias last", {scale, cap, mask, bias}, "the bias is added after the mask"},
    StepOrder{"bias first, cap last", {bias, scale, mask, cap}, "the softcap comes last and the bias first"},
    StepOrder{"scale before mask", {cap, bias, scale, mask}, "the scale comes after softcap and bias"},
    StepOrder{"mask before cap", {scale, mask, cap, bias}, "the mask comes before the softcap"},
    StepOrder{"scale last", {cap, bias, mask, scale}, "the scale comes last"},
    StepOrder{"bias, cap, scale",
              {bias, cap, scale, mask},
              "the bias is added first, then the softcap, then the scale"},
};
/// Returns the steps of an order that a graph has. A mask of −∞ before the scale is the same as after it.
std::vector<Stage> used_steps(const Editing& e, std::span<const Stage> steps) {
  std::vector<Stage> used;
  std::ranges::copy_if(steps, std::back_inserter(used), [&](Stage step) { return e.find(step); });
  const std::size_t n = used.size();
  if (n > 1 && used[n - 1] == scale && used[n - 2] == mask) std::swap(used[n - 1], used[n - 2]);
  return used;
}
std::string order_words(const Editing& before, const BugCase& c) {
  const StepOrder& order = of_form(step_orders, c.form);
  const std::vector<Stage> used = used_steps(before, order.steps);
  const auto word_of = [](Stage step) {
    return std::string(step == scale ? "scale" : step == cap ? "softcap" : step == bias ? "bias" : "mask");
  };
  if (used.size() > 3) return "the order is " + text::joined(used, ", ", word_of) + ": " + order.words;
  if (used == std::vector{bias, scale, mask}) return "the bias is added before the scale";
  if (used == std::vector{cap, scale, mask})
    return "the softcap comes before the scale (the cap comes before)";
  return order.words;
}
void try_orders(const BugContext& c, BugCases& to) {
  std::set<std::vector<Stage>> seen{used_steps(c.now, c.now.score_steps())};
  for (const StepOrder& order : step_orders)
    if (seen.insert(used_steps(c.now, order.steps)).second) to.add({}, order.form);
}

const std::array score_rows{
    Bug{.name = "scores_from:transposed",
        .edit =
            [](Editing& e, const BugCase&, ProjectionName) {
              e.wrap(
                  Stage::scores, [](const OperationInputs& in) { return in.selected(in[0].t()); }, {}, "::");
            },
        .words = "the scores are transposed (keys · queries)",
        .fits = are_scores_square},
    Bug{.name = "scores_from",
        .edit = compute_scores_from,
        .words = form_words<other_products>,
        .cases = try_products,
        .rank_of = [](const BugContext&,
                      const BugCase& of) { return of_form(other_products, of.form).rank; }},
    Bug{.name = "scores_from:columns",
        .edit = leave_columns_out,
        .words =
            [](const Editing&, const BugCase& c) {
              return std::string(c.numbers[0] == 0
                                     ? "only the rotated columns enter the scores"
                                     : "only the columns that are not rotated enter the scores");
            },
        .cases = try_columns},
    Bug{.name = "kv_heads",
        .edit = map_kv_heads,
        .words = mapping_words,
        .cases = try_mappings,
        .rank_of = [](const BugContext&, const BugCase& of) { return of.form == "listed" ? 2 : 0; }},
    Bug{.name = "kv_heads_repeated",
        .edit = repeat_kv_heads,
        .words = mapping_words,
        .cases = try_repeated,
        .in_pairs = false},
    Bug{.name = "kv_heads_averaged",
        .edit = average_kv_heads,
        .words = "{stages} are averaged over the KV heads",
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const char* sides : {"kv", "k", "v"})
                if (c.model().kv_heads() > 1) to.add({}, "", sides);
            }},
    Bug{.name = "scale",
        .edit = set_scale,
        .words = scale_words,
        .cases = try_scales,
        .rank_of = rank_of_scale},
    Bug{.name = "scale_value",
        .edit = set_scale,
        .words = scale_words,
        .cases = fit_scale,
        .rank_of = rank_of_scale},
    Bug{.name = "scale_by_head",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              e.wrap(Stage::scaled_scores, [x = c.numbers, own = scale_of(e)](const OperationInputs& in) {
                return arma::mat(in[0] * (x[in.head] / own));
              });
            },
        .words = "the scale differs from head to head: {list}",
        .cases = fit_scale_by_head,
        .rank = 3,
        .is_plausible = [](const BugContext&, const BugCase& of) { return !are_all_equal(of.numbers); }},
    Bug{.name = "scale_of_log",
        .edit = scale_by_log,
        .words =
            [](const Editing&, const BugCase& c) {
              return "scores are multiplied by log(position + " + c.form + ")/log(" +
                     digits(std::exp(c.numbers[0])) + "): a scale that grows with the length";
            },
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const char* from : {"1", "2"})
                for (const double start : {1.0, 2.0, 4.0, 8.0})
                  if (scale_of(c.now) != 0) to.fit({start}, from);
            },
        .rank = 2},
    Bug{.name = "scale_early",
        .edit = scale_queries<false>,
        .words = "the scale is applied to the queries instead of the scores",
        .cases = try_if_scaled,
        .rank = 1},
    Bug{.name = "scale_early:again",
        .edit = scale_queries<true>,
        .words = "queries are multiplied by the scale and the scores again (before the scores)",
        .cases = try_if_scaled,
        .rank = 1},
    Bug{.name = "scale_on_keys",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName part) {
              e.scale(Stage::keys, scale_of(e));
              set_scale(e, {.bug = c.bug, .numbers = {1}}, part);
            },
        .words = "the scale is applied to the keys instead of the scores",
        .cases = try_if_scaled,
        .rank = 1},
    Bug{.name = "scale_halved",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName part) {
              scale_each(e, {Stage::queries, Stage::keys}, std::sqrt(scale_of(e)));
              set_scale(e, {.bug = c.bug, .numbers = {1}}, part);
            },
        .words =
            "the root of the scale is applied to queries and to keys, instead of the scale to the scores",
        .cases = try_if_scaled,
        .rank = 1},
    Bug{.name = "cap_form",
        .edit = cap_otherwise,
        .words = form_words<cap_forms>,
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const CapForm& form : cap_forms)
                if (cap_of(c.now) != 0) to.add({}, form.form);
            },
        .rank_of = [](const BugContext&, const BugCase& of) { return of.form == "inverse" ? 1 : 0; }},
    Bug{.name = "cap_value",
        .edit = set_cap,
        .words = cap_words,
        .cases =
            [](const BugContext& c, BugCases& to) {
              const double own = cap_of(c.now);
              for (const double start : own != 0 ? Numbers{own * 0.9, own * 1.2, own * 0.4, own * 3, own * 10}
                                                 : Numbers{1, 5, 20, 50})
                to.fit({start});
            },
        .rank = 2},
    Bug{.name = "cap_other",
        .edit = set_cap,
        .words = cap_words,
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const double x : {50.0, 30.0, 20.0, 15.0, 10.0, 5.0})
                if (x != cap_of(c.now)) to.add({x});
            },
        .rank_of = [](const BugContext& c, const BugCase&) { return cap_of(c.now) != 0 ? 1 : 2; }},
    Bug{.name = "order",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { e.order_scores(used_steps(e, of_form(step_orders, c.form).steps)); },
        .words = order_words,
        .cases = try_orders},
};

}  // namespace

std::span<const Bug> score_bugs() {
  return score_rows;
}

}  // namespace core::bugs
