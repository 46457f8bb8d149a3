#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/graph/bugs.hpp"
#include "core/graph/rounding.hpp"

/// Bugs of the softmax, and of its sinks.
namespace core::bugs {
namespace {

using attention::MatrixName;
using graph::digits;
using graph::infinity;
using graph::Input;
using graph::OperationInputs;
using graph::SoftmaxVariant;

double finite_or_zero(double x) {
  return std::isfinite(x) ? x : 0;
}

/// Computes the weights from the scores that the softmax receives, input 0.
void compute_weights(Editing& e, graph::StageFunction::Function function, const char* cells = "i:") {
  const graph::Softmax* softmax = e.softmax();
  if (softmax) e.compute(Stage::weights, {{softmax->inputs[0].source, cells}}, std::move(function));
}

// Sinks.

/// Returns the sink of each head, none if the softmax has none.
Numbers sinks_of(const Editing& e) {
  const graph::Softmax* softmax = e.softmax();
  if (!softmax || softmax->inputs.size() < 2) return {};
  const Input& sink = softmax->inputs[1];
  const arma::mat& sinks = sink.numbers ? *sink.numbers : *find_matrix(e.model(), {MatrixName::sink});
  return {sinks.begin(), sinks.end()};
}
void set_sinks(Editing& e, const Numbers& sinks) {
  e.change_softmax([&](SoftmaxVariant& softmax) {
    softmax.inputs.resize(1);
    if (sinks.empty()) return;
    softmax.inputs.push_back({MatrixName::sink, "0h"});
    softmax.inputs.back().numbers = arma::mat(arma::rowvec(sinks));
  });
}
/// Adds a term to the sum of each row: of a head, from the row's largest score.
void add_to_sums(Editing& e, const std::function<double(std::size_t head, double largest)>& term) {
  e.change_softmax([&](SoftmaxVariant& softmax) {
    softmax.extra = [term, before = softmax.extra](std::size_t head, double largest) {
      return term(head, largest) + (before ? before(head, largest) : 0);
    };
  });
}
template <class Change>
void change_sinks(Editing& e, Change change) {
  Numbers sinks = sinks_of(e);
  for (double& sink : sinks) sink = change(sink);
  if (!sinks.empty()) set_sinks(e, sinks);
}

void fit_sinks(const BugContext& c, BugCases& to) {
  Numbers start = sinks_of(c.now);
  for (double& sink : start) sink += 0.1;
  to.fit(start.empty() ? Numbers(c.model().n_heads, 0) : start);
}

/// Term of the sum in place of exp(sink − largest).
struct SinkTerm {
  const char* form;
  const char* words;
  double (*term)(double sink, double largest, double factor);
};
constexpr std::array sink_terms{
    SinkTerm{"missing", "the sinks are missing (or their mass is renormalized away)",
             [](double, double, double) { return 0.0; }},
    SinkTerm{"base_2", "the sinks join the sum as 2^sink (a sink in base 2)",
             [](double sink, double largest, double) { return std::exp2(sink - largest); }},
    SinkTerm{"not_rescaled", "the sinks are not rescaled by the row's maximum",
             [](double sink, double, double) { return std::exp(sink); }},
    SinkTerm{"linear", "the sinks are added to the sum as they are, without exp",
             [](double sink, double, double) { return sink; }},
    SinkTerm{"linear_rescaled", "the sinks are added as sink · exp(−maximum), without exp",
             [](double sink, double largest, double) { return sink * std::exp(-largest); }},
    SinkTerm{"scaled", "the sinks are multiplied by the scale",
             [](double sink, double largest, double factor) { return std::exp(sink * factor - largest); }},
    SinkTerm{"negated", "the sinks have the other sign",
             [](double sink, double largest, double) { return std::exp(-sink - largest); }},
    SinkTerm{"base_2_not_rescaled", "the sinks join as 2^sink and are not rescaled by the maximum",
             [](double sink, double, double) { return std::exp2(sink); }},
};
constexpr std::string_view unpaired_sink_term = "base_2_not_rescaled";

void compute_sinks_otherwise(Editing& e, const BugCase& c, ProjectionName) {
  const Numbers sinks = sinks_of(e);
  if (sinks.empty()) return;
  const auto* own = e.get<graph::ScaleScores>(Stage::scaled_scores);
  set_sinks(e, {});
  add_to_sums(e, [sinks, term = of_form(sink_terms, c.form).term, factor = own ? own->factor : 1](
                     std::size_t head, double largest) { return term(sinks[head], largest, factor); });
}

/// Sinks in place of the right ones: of a head, from those.
struct SinkRule {
  const char* form;
  Words<const Model&, double> words;
  double (*sink)(const Model&, const Numbers& own, std::size_t head, double x);
};
std::size_t heads_per_group(const Model& m) {
  return m.n_heads / m.kv_heads();
}
constexpr std::array sink_rules{
    SinkRule{"times_ln_2", "the sinks join the sum as 2^sink (a sink in base 2: sink × ln 2)",
             [](const Model&, const Numbers& own, std::size_t h, double) { return own[h] * std::log(2.0); }},
    SinkRule{"over_ln_2", "the sinks are multiplied by log₂ e (and taken in base e)",
             [](const Model&, const Numbers& own, std::size_t h, double) { return own[h] / std::log(2.0); }},
    SinkRule{
        "counted",
        [](const Model&, double n) {
          return "the sinks are counted " + (n == 2 ? "twice" : n == 0.5 ? "half" : digits(n) + " times");
        },
        [](const Model&, const Numbers& own, std::size_t h, double n) { return own[h] + std::log(n); }},
    SinkRule{"next_heads",
             [](const Model& m, double by) {
               const double n = static_cast<double>(m.n_heads);
               return "every head uses the sink of the head " +
                      (by <= std::trunc(n / 2) ? digits(by) + " further" : digits(n - by) + " before") +
                      " (cyclic)";
             },
             [](const Model&, const Numbers& own, std::size_t h, double by) {
               return own[(h + static_cast<std::size_t>(by)) % own.size()];
             }},
    SinkRule{"reversed", "the sinks are in reverse order of heads",
             [](const Model&, const Numbers& own, std::size_t h, double) { return own[own.size() - 1 - h]; }},
    SinkRule{"by_kv_head",
             [](const Model& m, double) {
               std::vector<std::size_t> kv_heads;
               for (std::size_t h = 0; h < m.n_heads; ++h) kv_heads.push_back(m.kv_head_of(h));
               return "the sinks are indexed by KV head: heads use the sinks " + graph::list_of(kv_heads) +
                      " (a neighbor's)";
             },
             [](const Model& m, const Numbers& own, std::size_t h, double) { return own[m.kv_head_of(h)]; }},
    SinkRule{"modulo_kv_heads", "head h uses sink h mod KV heads",
             [](const Model& m, const Numbers& own, std::size_t h, double) { return own[h % m.kv_heads()]; }},
    SinkRule{"first_of_group", "all heads of a group use the sink of its first head",
             [](const Model& m, const Numbers& own, std::size_t h, double) {
               return own[m.kv_head_of(h) * heads_per_group(m)];
             }},
    SinkRule{"interleaved", "the sinks are interleaved between groups",
             [](const Model& m, const Numbers& own, std::size_t h, double) {
               return own[h % m.kv_heads() * heads_per_group(m) + h / m.kv_heads()];
             }},
    SinkRule{"interleaved_inversely", "the sinks are interleaved between groups (the other way)",
             [](const Model& m, const Numbers& own, std::size_t h, double) {
               return own[h % heads_per_group(m) * m.kv_heads() + h / heads_per_group(m)];
             }},
    SinkRule{"reversed_in_groups",
             "every head uses the sink of its neighbor in the group (reversed within groups)",
             [](const Model& m, const Numbers& own, std::size_t h, double) {
               const std::size_t n = heads_per_group(m);
               return own[h / n * n + n - 1 - h % n];
             }},
    SinkRule{"next_in_group", "every head uses the sink of the next head of its group (cyclic)",
             [](const Model& m, const Numbers& own, std::size_t h, double) {
               const std::size_t n = heads_per_group(m);
               return own[h / n * n + (h + 1) % n];
             }},
    SinkRule{"neighbors_exchanged", "neighboring heads use each other's sink",
             [](const Model&, const Numbers& own, std::size_t h, double) { return own[h ^ 1]; }},
    SinkRule{"one_head", "all heads use the sink of head {0}",
             [](const Model&, const Numbers& own, std::size_t, double h) {
               return own[static_cast<std::size_t>(h)];
             }},
    SinkRule{"mean", "all heads use the mean sink",
             [](const Model&, const Numbers& own, std::size_t, double) {
               double mean = 0;
               for (const double sink : own) mean += sink / static_cast<double>(own.size());
               return mean;
             }},
    SinkRule{"zero", "all sinks are 0",
             [](const Model&, const Numbers&, std::size_t, double) { return 0.0; }},
    SinkRule{"added", "{0} is added to the sinks",
             [](const Model&, const Numbers& own, std::size_t h, double by) { return own[h] + by; }},
};

void use_other_sinks(Editing& e, const BugCase& c, ProjectionName) {
  const Numbers own = sinks_of(e);
  if (own.empty()) return;
  Numbers sinks;
  for (std::size_t h = 0; h < own.size(); ++h)
    sinks.push_back(of_form(sink_rules, c.form).sink(e.model(), own, h, c.numbers[0]));
  set_sinks(e, sinks);
}
void try_other_sinks(const BugContext& c, BugCases& to) {
  if (sinks_of(c.now).empty()) return;
  const Model& m = c.model();
  const double n_heads = static_cast<double>(m.n_heads);
  const auto add = [&](const char* form, double x = 0) { to.add({x}, form); };
  add("times_ln_2"), add("over_ln_2");
  for (const double n : std::set<double>{0.5, 2, 3, 4, n_heads}) add("counted", n);
  for (double by = 1; by < n_heads; ++by) add("next_heads", by);
  add("reversed");
  if (m.kv_heads() < m.n_heads)
    for (const char* form : {"by_kv_head", "modulo_kv_heads", "first_of_group", "interleaved",
                             "interleaved_inversely", "reversed_in_groups", "next_in_group"})
      add(form);
  if (m.n_heads % 2 == 0) add("neighbors_exchanged");
  for (double h = 0; h < std::min(n_heads, 8.0); ++h) add("one_head", h);
  add("mean"), add("zero"), add("added", 1), add("added", -1);
}

// Terms of the sum without sinks. Form "scaled": it is divided by the exponential of the largest score.

void add_mass(Editing& e, const BugCase& c, ProjectionName) {
  const bool is_scaled = c.form == "scaled";
  add_to_sums(e, [n = c.numbers[0], is_scaled](std::size_t, double largest) {
    return is_scaled ? n * std::exp(-largest) : n;
  });
}
/// Says how many keys of zeros, whose scores are 0, add as much to the sum.
std::string zero_keys_words(double n) {
  return ", as " + digits(n) + " unmasked keys of zeros do (padding, or a cache not written)";
}
std::string mass_words(const Editing&, const BugCase& c) {
  const double n = c.numbers[0];
  const bool is_scaled = c.form == "scaled";
  std::string words = "the softmax adds " + digits(n) + " to its sum" +
                      (is_scaled ? "" : ", not rescaled by the row's maximum");
  if (n == 1)
    words += is_scaled ? " (softmax off by one, softmax1: exp(x) / (1 + Σ exp(x)))"
                       : " (softmax off by one, softmax1: exp(x − max) / (1 + Σ exp(x − max)))";
  else if (is_scaled)
    words += zero_keys_words(n);
  return words;
}

// Weights of two heads.

/// Head whose weights are subtracted.
struct OtherHead {
  const char* form;
  const char* words;
  std::size_t (*head)(std::size_t head, std::size_t n_heads);
};
constexpr std::array other_heads{
    OtherHead{"neighbor", "its neighbor in pairs", [](std::size_t h, std::size_t) { return h ^ 1; }},
    OtherHead{"half", "the head half of the heads further",
              [](std::size_t h, std::size_t n) { return (h + n / 2) % n; }},
    OtherHead{"next", "the next head (cyclic)", [](std::size_t h, std::size_t n) { return (h + 1) % n; }},
    OtherHead{"before", "the head before (cyclic)",
              [](std::size_t h, std::size_t n) { return (h + n - 1) % n; }},
};
void fit_differential(const BugContext& c, BugCases& to) {
  const std::size_t n = c.model().n_heads;
  if (n % 2 != 0) return;
  for (const OtherHead& other : other_heads)
    for (const double start : {0.5, 1.0})
      if (n > 2 || other.form == std::string_view("neighbor")) to.fit({start}, other.form);
}

// Forms of the softmax.

void compute_from_finite(Editing& e, double (*function)(double score), bool normalizes) {
  compute_weights(e, [=](const OperationInputs& in) {
    arma::mat w = in[0];
    w.transform([&](double s) { return std::isfinite(s) ? function(s) : 0; });
    return normalizes ? normalized(std::move(w)) : w;
  });
}
/// Gives every unmasked key the weight 1, as a softmax over it alone does, and masked ones another.
void weigh_each_alone(Editing& e, double masked_weight) {
  compute_weights(e, [masked_weight](const OperationInputs& in) {
    arma::mat w = in[0];
    return w.transform([&](double s) { return std::isfinite(s) ? 1 : masked_weight; }), w;
  });
}
/// Gives rows without an unmasked key another weight.
void fill_empty_rows(Editing& e, double weight) {
  const graph::Softmax* softmax = e.softmax();
  if (!softmax) return;
  e.wrap(
      Stage::weights,
      [weight](const OperationInputs& in) {
        arma::mat w = in[0];
        for (std::size_t a = 0; a < w.n_rows; ++a)
          if ((std::isnan(w(a, 0)) || arma::all(w.row(a) == 0)) && !in[1].row(a).has_nan())
            w.row(a).fill(weight);
        return w;
      },
      {{softmax->inputs[0].source, "i:"}}, "i:");
}
/// Gives rows without an unmasked key uniform weights over the keys up to the query.
void fill_empty_rows_causally(Editing& e) {
  e.wrap(
      Stage::weights,
      [](const OperationInputs& in) {
        arma::mat w = in[0];
        for (std::size_t a = 0; a < w.n_rows; ++a) {
          if (!arma::all(in[1].row(a) == 0)) continue;
          w.row(a).zeros();
          w.row(a).head(in.row(a) + 1).fill(1 / static_cast<double>(in.row(a) + 1));
        }
        return w;
      },
      {{Stage::mask, "i:"}}, "i:");
}
arma::mat largest_alone(const OperationInputs& in) {
  arma::mat w = in[0];
  w.each_row([](arma::rowvec& row) { row.transform([top = row.max()](double s) { return s == top; }); });
  return w;
}
arma::mat softmax_of_all(const OperationInputs& in) {
  arma::mat w = in[0];
  w.each_col() -= arma::vec(arma::max(in[0], 1));
  w = arma::exp(w);
  return in.selected(w / arma::accu(w));
}
arma::mat softmax_of_all_heads(const OperationInputs& in) {
  const std::size_t n_heads = in.model.n_heads;
  arma::vec largest(in[0].n_rows), sums(in[0].n_rows, arma::fill::zeros);
  largest.fill(-infinity);
  for (std::size_t h = 0; h < n_heads; ++h)
    largest = arma::max(largest, arma::vec(arma::max(in.of_head(0, h), 1)));
  const auto exponentials = [&](std::size_t head) {
    arma::mat x = in.of_head(0, head);
    x.each_col() -= largest;
    return arma::mat(arma::exp(x));
  };
  for (std::size_t h = 0; h < n_heads; ++h) sums += arma::sum(exponentials(h), 1);
  arma::mat w = exponentials(in.head);
  w.each_col() /= sums;
  return w;
}
/// Applies the softmax to weights, input 0, of unmasked keys.
arma::mat softmax_again(const OperationInputs& in) {
  arma::mat w = arma::exp(in[0]);
  w.elem(arma::find(in[1] == 0)).zeros();
  w = normalized(std::move(w));
  for (std::size_t a = 0; a < w.n_rows; ++a)
    if (arma::all(in[1].row(a) == 0)) w.row(a) = in[0].row(a);
  return w;
}

struct SoftmaxForm {
  const char* form;
  const char* words;
  void (*edit)(Editing&);
  bool (*fits)(const Editing&) = nullptr;  ///< if not set, all models can have it
};
bool has_zero_rows(const Editing& e) {
  return e.get<graph::ZeroEmptyRows>(Stage::weights);
}

constexpr std::array softmax_forms{
    SoftmaxForm{"over_queries", "the softmax runs over the queries instead of the keys (axis)",
                [](Editing& e) {
                  e.change_softmax(
                      [](SoftmaxVariant& softmax) { softmax.run_over(SoftmaxVariant::Axis::queries); });
                }},
    SoftmaxForm{"over_one", "the softmax runs over an axis of length 1: every weight is 1",
                [](Editing& e) { weigh_each_alone(e, 1); }},
    SoftmaxForm{"over_one_nan",
                "the softmax runs over an axis of length 1: every weight is 1, and NaN where masked",
                [](Editing& e) { weigh_each_alone(e, arma::datum::nan); }},
    SoftmaxForm{"over_one_zero",
                "the softmax runs over an axis of length 1: every weight is 1, and 0 where masked",
                [](Editing& e) { weigh_each_alone(e, 0); }},
    SoftmaxForm{"over_heads", "the softmax runs over the heads",
                [](Editing& e) {
                  e.change_softmax(
                      [](SoftmaxVariant& softmax) { softmax.run_over(SoftmaxVariant::Axis::heads); });
                },
                has_several_heads},
    SoftmaxForm{"twice", "the softmax is applied twice",
                [](Editing& e) {
                  e.wrap(Stage::weights, softmax_again, {{Stage::mask, "i:"}}, "i:");
                }},
    SoftmaxForm{"empty_uniform", "rows without an unmasked key have uniform weights",
                [](Editing& e) { fill_empty_rows(e, 1 / static_cast<double>(e.model().n_keys())); }},
    SoftmaxForm{"empty_uniform_causal",
                "rows without an unmasked key have uniform weights over the keys up to the query",
                fill_empty_rows_causally, are_scores_square},
    SoftmaxForm{"empty_zero", "rows without an unmasked key have zeros instead of NaN",
                [](Editing& e) { fill_empty_rows(e, 0); },
                [](const Editing& e) { return !has_zero_rows(e); }},
    SoftmaxForm{"empty_nan", "rows without an unmasked key are NaN instead of zeros",
                [](Editing& e) { fill_empty_rows(e, arma::datum::nan); }, has_zero_rows},
    SoftmaxForm{"not_normalized", "the softmax is not normalized",
                [](Editing& e) {
                  compute_from_finite(
                      e, [](double s) { return std::exp(s); }, false);
                }},
    SoftmaxForm{"sigmoid", "weights are sigmoids of the scores",
                [](Editing& e) {
                  compute_from_finite(
                      e, [](double s) { return 1 / (1 + std::exp(-s)); }, false);
                }},
    SoftmaxForm{"log", "weights are logarithms (log_softmax)",
                [](Editing& e) { e.map(Stage::weights, [](double w) { return std::log(w); }); }},
    SoftmaxForm{"relu", "weights are ReLUs of the scores, normalized",
                [](Editing& e) {
                  compute_from_finite(
                      e, [](double s) { return std::max(s, 0.0); }, true);
                }},
    SoftmaxForm{"linear", "weights are the scores, normalized without exp",
                [](Editing& e) {
                  compute_from_finite(
                      e, [](double s) { return s; }, true);
                }},
    SoftmaxForm{"missing", "there is no softmax",
                [](Editing& e) {
                  compute_from_finite(
                      e, [](double s) { return s; }, false);
                }},
    SoftmaxForm{"equal", "weights are equal for all unmasked keys (the scores are lost)",
                [](Editing& e) {
                  compute_from_finite(
                      e, [](double) { return 1.0; }, true);
                }},
    SoftmaxForm{"largest", "all weight goes to the largest score",
                [](Editing& e) { compute_weights(e, largest_alone); }},
    SoftmaxForm{"over_length", "scores are divided by the number of keys instead of a softmax",
                [](Editing& e) {
                  compute_weights(e, [](const OperationInputs& in) {
                    arma::mat w = in[0] / static_cast<double>(in.model.n_keys());
                    return w.transform(finite_or_zero), w;
                  });
                }},
    SoftmaxForm{"over_all", "the softmax runs over queries and keys together",
                [](Editing& e) { compute_weights(e, softmax_of_all, "::"); }},
    SoftmaxForm{"over_all_heads", "the softmax runs over the keys of all heads together",
                [](Editing& e) { compute_weights(e, softmax_of_all_heads); }, has_several_heads},
    SoftmaxForm{"transposed", "the weights are transposed",
                [](Editing& e) {
                  e.wrap(
                      Stage::weights, [](const OperationInputs& in) { return in.selected(in[0].t()); }, {},
                      "::");
                },
                are_scores_square},
};
void try_softmax_forms(const BugContext& c, BugCases& to) {
  for (const SoftmaxForm& form : softmax_forms)
    if (!form.fits || form.fits(c.now)) to.add({}, form.form);
}

// Rounding of one stage alone. Form "weights:bfloat16".

constexpr std::array rounded_stages{Stage::weights,         Stage::scores,       Stage::scaled_scores,
                                    Stage::queries,         Stage::keys,         Stage::values,
                                    Stage::rotated_queries, Stage::rotated_keys, Stage::contexts};
constexpr std::array coarser{Precision::bfloat16, Precision::float16, Precision::float32};

std::pair<Stage, Precision> rounding_of(const BugCase& c) {
  for (const Stage stage : rounded_stages)
    for (const Precision precision : coarser)
      if (c.form == std::string(attention::info(stage).name) + ":" + attention::name_of(precision))
        return {stage, precision};
  return {Stage::weights, Precision::float64};
}
void try_rounding(const BugContext& c, BugCases& to) {
  if (c.precision != Precision::float64) return;
  for (const Stage stage : rounded_stages)
    for (const Precision precision : coarser)
      if (c.now.find(stage))
        to.add({}, std::string(attention::info(stage).name) + ":" + attention::name_of(precision));
}

// Softmaxes over blocks of keys. Number: the size of a block.

/// Factor of a block whose own softmax has this logarithm of a sum, before they are normalized.
struct BlockForm {
  const char* form;
  const char* words;
  double (*share)(double log_sum, double largest) = nullptr;
};
constexpr std::array block_forms{
    BlockForm{"own", "each block of keys has a softmax of its own"},
    BlockForm{"mean", "blocks of keys are put together by equal parts, not by their sums",
              [](double log_sum, double) { return std::isfinite(log_sum) ? 1.0 : 0.0; }},
    BlockForm{"base_2", "blocks of keys are put together by 2^(log-sum-exp) instead of e^",
              [](double log_sum, double largest) { return std::exp2(log_sum - largest); }},
    BlockForm{"base_e", "blocks of keys are put together by e^ of a log-sum-exp to the base 2, instead of 2^",
              [](double log_sum, double largest) { return std::exp((log_sum - largest) / std::log(2.0)); }},
};
arma::span key_block(const arma::rowvec& s, std::size_t size, std::size_t k) {
  return arma::span(k * size, std::min<std::size_t>((k + 1) * size, s.n_elem) - 1);
}
arma::rowvec by_block(const arma::rowvec& s, std::size_t size, double (*share)(double, double)) {
  arma::rowvec w(s.n_elem), log_sums((s.n_elem + size - 1) / size);
  for (std::size_t k = 0; k < log_sums.n_elem; ++k) {
    const arma::span block = key_block(s, size, k);
    const double largest = s(block).max();
    w(block) = arma::exp(s(block) - finite_or_zero(largest));
    const double sum = arma::accu(w(block));
    log_sums[k] = sum > 0 ? largest + std::log(sum) : -infinity;
    if (sum > 0) w(block) /= sum;
  }
  if (!share) return w;
  arma::rowvec shares = log_sums;
  shares.transform([share, largest = log_sums.max()](double sum) { return share(sum, largest); });
  for (std::size_t k = 0; k < shares.n_elem; ++k) w(key_block(s, size, k)) *= shares[k] / arma::accu(shares);
  return w;
}
void compute_in_blocks(Editing& e, const BugCase& c, ProjectionName) {
  compute_weights(e, [row = &of_form(block_forms, c.form),
                      size = static_cast<std::size_t>(c.numbers[0])](const OperationInputs& in) {
    arma::mat w(arma::size(in[0]));
    for (std::size_t a = 0; a < w.n_rows; ++a) w.row(a) = by_block(in[0].row(a), size, row->share);
    return w;
  });
}
void try_blocks(const BugContext& c, BugCases& to) {
  if (!sinks_of(c.now).empty()) return;
  const std::size_t n_keys = c.model().n_keys();
  std::set<std::size_t> sizes{32, 64, 128, 256};
  for (std::size_t size = 2; size <= 16; ++size) sizes.insert(size);
  for (const BlockForm& row : block_forms)
    for (const std::size_t size : sizes)
      if (size < n_keys) to.add({static_cast<double>(size)}, row.form);
}

const std::array softmax_rows{
    Bug{.name = "sink_values",
        .edit = [](Editing& e, const BugCase& c, ProjectionName) { set_sinks(e, c.numbers); },
        .words =
            [](const Editing& before, const BugCase& c) {
              return "the sinks are " + before.words.list(c.numbers) +
                     (sinks_of(before).empty() ? ", where the model has none" : "");
            },
        .cases = fit_sinks,
        .rank = 3},
    Bug{.name = "sinks:term",
        .edit = compute_sinks_otherwise,
        .words = form_words<sink_terms>,
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const SinkTerm& term : sink_terms)
                if (!sinks_of(c.now).empty() && term.form != unpaired_sink_term) to.add({}, term.form);
            }},
    Bug{.name = "sinks:unpaired_term",
        .edit = compute_sinks_otherwise,
        .words = form_words<sink_terms>,
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (!sinks_of(c.now).empty()) to.add({}, std::string(unpaired_sink_term));
            },
        .in_pairs = false},
    Bug{.name = "sinks",
        .edit = use_other_sinks,
        .words =
            [](const Editing& before, const BugCase& c) {
              return of_form(sink_rules, c.form).words(before.model(), c.numbers[0]);
            },
        .cases = try_other_sinks},
    Bug{.name = "sink_count",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { change_sinks(e, [&](double sink) { return sink + c.numbers[0]; }); },
        .words =
            [](const Editing& before, const BugCase& c) {
              return "exp(sink) is multiplied by " + before.words.number(std::exp(c.numbers[0]));
            },
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (!sinks_of(c.now).empty()) to.fit({0.3});
            },
        .rank = 2},
    Bug{.name = "sink_factor",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { change_sinks(e, [&](double sink) { return sink * c.numbers[0]; }); },
        .words = "the sinks are multiplied by {number}",
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const double start : {0.8, 1.3})
                if (!sinks_of(c.now).empty()) to.fit({start});
            },
        .rank = 2},
    Bug{.name = "softmax_mass",
        .edit = add_mass,
        .words = mass_words,
        .cases =
            [](const BugContext&, BugCases& to) {
              to.add({1}, "scaled"), to.add({1}, "unscaled"), to.add({2}, "scaled");
              for (const double n : {1e-3, 1e-6, 1e-2}) to.add({n}, "unscaled");
            }},
    Bug{.name = "softmax_mass_fitted",
        .edit = add_mass,
        .words =
            [](const Editing& before, const BugCase& c) {
              const double n = std::round(c.numbers[0]);
              const bool are_keys =
                  c.form == "scaled" && n > 1 && std::abs(c.numbers[0] - n) <= before.words.tolerance() * n;
              return "the softmax adds " + before.words.number(c.numbers[0]) + " to its sum" +
                     (c.form == "scaled" ? "" : ", not rescaled by the maximum") +
                     (are_keys ? zero_keys_words(n) : "");
            },
        .cases =
            [](const BugContext&, BugCases& to) {
              for (const char* form : {"scaled", "unscaled"}) to.fit({0.5}, form);
            },
        .rank = 2},
    Bug{.name = "differential",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              e.wrap(Stage::weights, [other = of_form(other_heads, c.form).head,
                                      f = c.numbers[0]](const OperationInputs& in) {
                return arma::mat(in[0] - f * in.of_head(0, other(in.head, in.model.n_heads)));
              });
            },
        .words =
            [](const Editing& before, const BugCase& c) {
              return "weights of every head are less " + before.words.number(c.numbers[0]) + " × those of " +
                     of_form(other_heads, c.form).words +
                     " (as differential attention with λ = " + digits(c.numbers[0], before.words.n_digits()) +
                     ")";
            },
        .cases = fit_differential,
        .rank_of = [](const BugContext&,
                      const BugCase& c) { return c.numbers[0] > 0 && c.numbers[0] < 2 ? 2 : 4; }},
    Bug{.name = "softmax_form",
        .edit = [](Editing& e, const BugCase& c, ProjectionName) { of_form(softmax_forms, c.form).edit(e); },
        .words = form_words<softmax_forms>,
        .cases = try_softmax_forms},
    Bug{.name = "stage_rounded",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              const auto [stage, precision] = rounding_of(c);
              if (graph::Node* node = e.graph.find(stage)) node->precision = precision;
            },
        .words =
            [](const Editing&, const BugCase& c) {
              const auto [stage, precision] = rounding_of(c);
              return "the " + graph::words_of(stage) + " are rounded to " + attention::name_of(precision);
            },
        .cases = try_rounding,
        .rank = 1,
        .in_pairs = false},
    Bug{.name = "softmax_blocks",
        .edit = compute_in_blocks,
        .words =
            [](const Editing&, const BugCase& c) {
              return std::string(of_form(block_forms, c.form).words) + " (blocks of " + digits(c.numbers[0]) +
                     ")";
            },
        .cases = try_blocks},
};

}  // namespace

std::span<const Bug> softmax_bugs() {
  return softmax_rows;
}

}  // namespace core::bugs
