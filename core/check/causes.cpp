#include "core/check/causes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/model_changes.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::check {
namespace {

using attention::Precision;
using bugs::Bug;
using bugs::find_offered_bug;
using std::to_string;

using BugRows = std::vector<const Bug*>;

BugRows rows(std::initializer_list<const char*> names) {
  BugRows found;
  for (const char* name : names) found.push_back(find_offered_bug(name));
  return found;
}

/// Combines table rows; without an effect if one of them has none.
Hypothesis combine_rows(const BugRows& rows) {
  Stage first = std::ranges::min(rows, {}, [](const Bug* bug) { return bug->texts.first; })->texts.first;
  // Swapping queries and keys reverses the order of their projections.
  if (first == Stage::keys || first == Stage::values) first = Stage::queries;
  const auto injected = [rows](const Model& model) {
    Model next = model;
    for (const Bug* row : rows) {
      if (!bugs::has_effect(*row, next)) return model;
      next = bugs::injected(*row, next);
    }
    return next;
  };
  return {rows, injected, first};
}

/// Makes a hypothesis of a table row with a different change than the table's.
template <class Change>
Hypothesis other(std::string_view name, Change change, std::string detail = "") {
  const Bug* row = find_offered_bug(name);
  return {{row}, change, row->texts.first, std::move(detail)};
}

// Alternative ways to make mistakes of the table.

Model scaled_by_width(const Model& model) {
  return attention::with_scale(
      model, {attention::ScaleRule::factor, 1 / std::sqrt(static_cast<double>(model.d_out()))});
}

/// Applies the scale twice to the scores.
Model scaled_again(const Model& model) {
  const double factor = attention::scale_factor(model);
  return attention::with_scale(model, {attention::ScaleRule::factor, factor * factor});
}

/// Applies the scale to the query projection as well.
Model scaled_before(const Model& model) {
  Model next = model;
  attention::Linear* query = find_linear(next, attention::ProjectionName::query);
  if (!query || model.additions.normalize) return next;  // a norm would cancel the scale
  const double factor = attention::scale_factor(model);
  query->weight = arma::mat(*query->weight * factor);
  if (query->bias) *query->bias = arma::mat(**query->bias * factor);
  return next;
}

Model interleaved_throughout(const Model& model) {
  const Model split = injected(*find_offered_bug("heads_interleaved"), model);
  return split == model ? model : injected(*bugs::find_bug("heads_interleaved:combined"), split);
}

Model dropped_after_mask(const Model& model) {
  Model next = model;
  if (model.dropout.active()) next.dropout.place = attention::DropoutPlace::masked_scores;
  return next;
}

Model causal_transposed(const Model& model) {
  Model next = model;
  if (model.mask.causal) next.mask.edge.transposed = !next.mask.edge.transposed;
  return next;
}

Model causal_from_first(const Model& model) {
  Model next = model;
  if (model.mask.causal || model.n_tokens() == model.n_keys()) return next;
  next.mask.causal = true;
  next.mask.align = attention::MaskAlignment::first;
  return next;
}

// Sizes of mistakes, some of them read off the tensors.

/// "−10000", "−3.4e+38".
std::string fill_text(double fill) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), std::abs(fill) < 1e6 ? "%.6g" : "%.2g", std::abs(fill));
  return std::string("−") + text.data();
}

/// Adds the mask's large negative number, if observed masked scores have one at the first masked position.
void add_fill(const Model& model, const std::vector<ObservedTensor>& observed, std::vector<Hypothesis>& all) {
  if (!model.mask.masks_keys()) return;
  for (const ObservedTensor& tensor : observed)
    for (const Reading& reading : tensor.readings) {
      if (reading.stage != Stage::masked_scores) continue;
      const arma::mat visible = attention::visibility_matrix(model, reading.first_sequence);
      const arma::uvec hidden = arma::find(visible == 0);
      if (hidden.is_empty()) continue;
      const std::size_t row = hidden[0] % visible.n_rows, column = hidden[0] / visible.n_rows;
      const double fill = tensor.tensor.numbers[reading.at(0, 0, row, column)];
      if (!std::isfinite(fill) || fill > -100) continue;
      const auto injected = [fill](const Model& m) {
        Model next = bugs::injected(*find_offered_bug("mask_finite"), m);
        if (next.mask.method == attention::MaskMethod::large_negative) next.mask.large_negative = fill;
        return next;
      };
      return all.push_back(other("mask_finite", injected, "they are " + fill_text(fill)));
    }
}

/// Adds positions that are off by one, and rotations with another base.
void add_rotations(const Model& model, std::vector<Hypothesis>& all) {
  const auto& rotary = model.additions.positions.rotary;
  if (!rotary) return;
  const auto counted_from = [&](int queries, int keys, const std::string& detail) {
    const auto injected = [=](const Model& m) {
      Model next = m;
      if (!next.additions.positions.rotary) return next;
      next.additions.positions.rotary->first += keys;
      return bugs::with_query_offset(next, bugs::query_offset(next) + queries - keys);
    };
    all.push_back(
        other(queries < keys ? "rotary_off_by_one:earlier" : "rotary_off_by_one", injected, detail));
    all.back().first = Stage::rotated_queries;
  };
  for (const auto& [by, words] : {std::pair{1, "late"}, std::pair{-1, "early"}}) {
    const std::string end = std::string(" one position ") + words;
    counted_from(by, 0, "queries" + end);
    counted_from(0, by, "keys" + end);
    counted_from(by, by, "queries and keys" + end);
  }
  const auto words = [](double base) {  // "500000"; number_text() would use an exponent
    const bool is_whole = base == std::floor(base) && base < 1e15;
    return is_whole ? to_string(static_cast<std::int64_t>(base)) : text::number_text(base);
  };
  // Bases of most models, Llama 3, Qwen and Mixtral, and gpt-oss.
  for (const double base : {10000.0, 500000.0, 1000000.0, 150000.0}) {
    const auto injected = [base](const Model& m) {
      Model next = m;
      auto& r = next.additions.positions.rotary;
      if (r && !r->inverse_frequencies && positions::rotated_columns(*r, m.d_head()) > 2) r->base = base;
      return next;
    };
    all.push_back(
        other("rotary_base", injected, "base " + words(base) + " in place of " + words(rotary->base)));
    all.back().first = Stage::rotated_queries;
  }
}

void add_blocks(const Model& model, std::vector<Hypothesis>& all) {
  constexpr std::size_t every_size = 16;  // above it, only common sizes
  std::vector<std::size_t> sizes;
  for (std::size_t size = 1; size < model.n_keys(); ++size)
    if (size <= every_size || size % (size > 128 ? 64 : 16) == 0) sizes.push_back(size);
  const auto add = [&](const char* name, std::size_t size, std::string detail) {
    const Bug* form = bugs::find_bug(name);
    const auto injected = [=](const Model& m) {
      return bugs::injected({.bug = form, .numbers = {static_cast<double>(size)}}, m);
    };
    all.push_back(other(cause_of(*form), injected, std::move(detail)));
    all.back().skips_pairs = true;
  };
  for (const auto& [form, words] :
       {std::pair{"blocks_not_rescaled", ""},
        std::pair{"blocks_not_rescaled:sum", ", of which the sum alone is not rescaled"},
        std::pair{"blocks_not_rescaled:contexts", ", of which the contexts alone are not rescaled"}})
    for (const std::size_t size : sizes)
      add(form, size, "blocks of " + to_string(size) + (size > 1 ? " keys" : " key") + words);
  // Sizes that drop the same keys cannot be told apart; powers of two are likelier.
  std::map<std::size_t, std::vector<std::size_t>> by_first_dropped;
  for (const std::size_t size : sizes) by_first_dropped[(model.n_keys() - 1) / size * size].push_back(size);
  for (auto& [first, sizes_of_it] : by_first_dropped) {
    if (first == 0) continue;
    std::vector<std::size_t> likely = sizes_of_it;
    std::erase_if(likely, [](std::size_t size) { return !std::has_single_bit(size); });
    if (likely.empty()) likely = sizes_of_it;
    const auto number = [](std::size_t size) { return to_string(size); };
    add("last_block_dropped", likely.front(),
        "keys from " + to_string(first) + " on are ignored, as with blocks of " +
            text::joined(likely, ", ", number, " or "));
  }
}

/// Whether observed numbers show that no query attends to a key: weights of 0, scores of −∞.
bool is_key_masked(const ObservedTensor& observed, const Reading& r, std::size_t key) {
  const double hidden = r.stage == Stage::masked_scores ? -arma::datum::inf : 0;
  for (std::size_t s = 0; s < r.n_sequences; ++s)
    for (std::size_t h = 0; h < r.n_heads; ++h)
      for (std::size_t i = 0; i < r.n_rows; ++i) {
        const double number = observed.tensor.numbers[r.at(s, h, i, key)];
        if (number != hidden && !std::isnan(number)) return false;
      }
  return true;
}

/// Adds missing keys: those that the tensors show or, if they show nothing, all of at most max_keys keys. The
/// last key only if masked scores show it, as else a dropped last block explains it.
void add_missing_keys(const Model& model, const std::vector<ObservedTensor>& observed,
                      std::vector<Hypothesis>& all) {
  constexpr std::size_t max_keys = 64;
  const std::size_t n = model.n_keys();
  std::vector<bool> may(n, n <= max_keys);
  bool may_last = false;
  for (const ObservedTensor& tensor : observed)
    for (const Reading& r : tensor.readings) {
      if (r.stage != Stage::masked_scores && r.stage != Stage::unmasked_weights && r.stage != Stage::weights)
        continue;
      for (std::size_t key = 0; key < n; ++key) may[key] = is_key_masked(tensor, r, key);
      if (r.stage == Stage::masked_scores) may_last = may[n - 1];
    }
  may[n - 1] = may_last;
  for (std::size_t key = 0; key < n; ++key) {
    if (!may[key]) continue;
    const auto injected = [key](const Model& m) { return attention::with_key_masked(m, key); };
    all.push_back(other("key_missing", injected, "key " + to_string(key)));
    all.back().skips_pairs = true;
  }
}

/// Describes which column pairs are rotated instead of the model's.
std::string pairs_words(const Model& model) {
  const auto& rotary = model.additions.positions.rotary;
  if (!rotary) return "";
  const bool are_halves = rotary->pairs == positions::Pairs::halves;
  return are_halves ? "yours rotate adjacent columns, the model halves"
                    : "yours rotate halves, the model adjacent columns";
}

/// Mistakes of coarse arithmetic, the finest first, and the type of inputs in libraries that also round
/// these.
struct Coarse {
  const char* name;
  Precision inputs = Precision::float64;
};
constexpr std::array coarse_types{Coarse{"float32_precision"},
                                  Coarse{"tf32_precision"},
                                  Coarse{"softmax_half_precision"},
                                  Coarse{"softmax_bfloat16_precision"},
                                  Coarse{"half_precision", Precision::float16},
                                  Coarse{"half_precision_sums", Precision::float16},
                                  Coarse{"bfloat16_precision", Precision::bfloat16}};

/// Whether a mistake is tried in several sizes instead of the table's, or only rounds.
bool has_other_hypotheses(const Bug& mistake) {
  constexpr std::array<std::string_view, 7> sized{
      "n_heads_other", "blocks_not_rescaled",       "last_block_dropped", "key_missing",
      "rotary_base",   "rotary_off_by_one:earlier", "rotary_off_by_one"};
  const std::string_view name = mistake.name;
  return std::ranges::any_of(coarse_types, [&](const Coarse& c) { return name == c.name; }) ||
         std::ranges::find(sized, name) != sized.end();
}

}  // namespace

std::vector<Hypothesis> hypotheses_for(const Model& model, const std::vector<ObservedTensor>& observed) {
  std::vector<Hypothesis> all;
  for (const auto& [name, type] : {coarse_types[4], coarse_types[6]}) {  // rounded inputs, exact arithmetic
    const auto injected = [type = type](const Model& m) { return attention::with_rounded_inputs(m, type); };
    all.push_back({rows({name}), injected, Stage::embeddings});
  }
  all.push_back(combine_rows(
      rows({"weight_untransposed:query", "weight_untransposed:key", "weight_untransposed:value"})));
  all.push_back(combine_rows(rows({"weight_untransposed:query", "weight_untransposed:key",
                                   "weight_untransposed:value", "weight_untransposed:output"})));
  for (const Bug* mistake : bugs::offered_bugs())
    if (!has_other_hypotheses(*mistake)) {
      all.push_back(combine_rows({mistake}));
      if (mistake->name == std::string_view("rotary_other_pairs")) all.back().detail = pairs_words(model);
    }
  all.push_back(combine_rows(rows({"bias_missing:query", "bias_missing:key", "bias_missing:value"})));
  all.push_back(other("query_key_swapped", attention::with_projections_swapped));
  all.push_back(other("heads_interleaved", interleaved_throughout));
  all.push_back(other("scale_sqrt_d_model", scaled_by_width));
  all.push_back({rows({"scale_twice"}), scaled_again, Stage::scaled_scores});
  all.push_back({rows({"scale_twice"}), scaled_before, Stage::queries});
  all.push_back(other("mask_transposed", causal_transposed));
  all.push_back(other("causal_unwanted", causal_from_first));
  all.push_back(other("dropout_before_softmax", dropped_after_mask));
  add_fill(model, observed, all);
  add_rotations(model, all);
  add_blocks(model, all);
  add_missing_keys(model, observed, all);
  const Model unpadded = attention::with_padding_unmasked(model);
  const bool has_other_width = model.d_output() != model.d_out();
  std::erase_if(all, [&](const Hypothesis& hypothesis) {
    const Model injected = hypothesis.injected(model);
    if (has_other_width && hypothesis.mistakes.front() == find_offered_bug("output_projection_missing"))
      return true;  // this changes the shape of the output
    const bool is_padding =
        hypothesis.mistakes.front() == find_offered_bug("no_mask") && injected == unpadded;
    return injected == model || is_padding || attention::check(injected);
  });
  std::ranges::stable_sort(all, {}, &Hypothesis::first);
  return all;
}

std::vector<Hypothesis> shape_hypotheses(const Model& model) {
  std::vector<Hypothesis> all;
  for (std::size_t n = 1; n <= model.d_out(); ++n) {
    if (n == model.n_heads || attention::with_heads(model, n).n_heads != n) continue;
    const auto injected = [n](const Model& m) { return attention::with_heads(m, n); };
    all.push_back(other("n_heads_other", injected,
                        text::counted(n, "head") + " in place of " + to_string(model.n_heads)));
    all.back().skips_pairs = true;
  }
  if (!model.projections || !model.projections->output) return all;
  const arma::mat& weight = model.projections->output->weight;
  if (weight.n_rows != weight.n_cols) all.push_back(combine_rows(rows({"output_projection_missing"})));
  return all;
}

std::vector<Hypothesis> rounding_hypotheses(const Model& model) {
  std::vector<Hypothesis> all;
  for (const auto& [name, inputs] : coarse_types) {
    const Bug* row = find_offered_bug(name);
    if (inputs != Precision::float64)
      all.push_back(other(name, [row, inputs = inputs](const Model& m) {
        return bugs::injected(*row, attention::with_rounded_inputs(m, inputs));
      }));
    const auto injected = [row](const Model& m) { return bugs::injected(*row, m); };
    all.push_back(other(name, injected));
    if (name == std::string_view("tf32_precision") && model.given.cells.empty())
      all.push_back({{row},
                     injected,
                     row->texts.first,
                     "their last digits are cut off and not rounded, so that products come out too small",
                     false,
                     Arithmetic::truncate_to_tf32});
  }
  std::erase_if(all, [&](const Hypothesis& hypothesis) { return hypothesis.injected(model) == model; });
  return all;
}

namespace {

constexpr Stage no_stage{attention::n_stages};

/// Largest number of rows in a sample, and the fewest tokens worth sampling.
constexpr std::size_t max_sampled = 5, worth_sampling = 24;
/// Tolerance of pairs under rounding, in roundings of a stage's largest number.
constexpr double loose_roundings = 16;

/// Returns the latest stage that a tensor can be.
Stage latest(const ObservedTensor& tensor) {
  Stage stage = Stage::embeddings;
  for (const Reading& reading : tensor.readings) stage = std::max(stage, reading.stage);
  return stage;
}

/// Whether a hypothesis only rounds the inputs.
bool rounds_inputs(const Hypothesis& hypothesis) {
  return hypothesis.first == Stage::embeddings;
}

/// Whether two hypotheses have the same cause, so that a pair adds nothing; only biases can be missing, and
/// matrices be viewed, in several places.
bool share_a_cause(const Hypothesis& a, const Hypothesis& b) {
  if (rounds_inputs(a) && rounds_inputs(b)) return true;
  for (const Bug* one : a.mistakes)
    for (const Bug* other : b.mistakes) {
      const std::string_view cause = cause_of(*one);
      const bool in_places = cause == "bias_missing" || cause == "view_without_transpose";
      if (cause == cause_of(*other) && (one == other || !in_places)) return true;
    }
  return false;
}

/// Rereads the tensors for a model of other shapes; empty if one of them has no reading or was not loaded.
std::vector<ObservedTensor> reread_tensors(const Model& other, std::vector<ObservedTensor> observed) {
  for (ObservedTensor& tensor : observed) {
    tensor.readings = readings_by_name(other, tensor.name, tensor.stage, tensor.tensor.shape);
    if (tensor.readings.empty() || tensor.tensor.numbers.empty()) return {};
    mark_masked(tensor);
  }
  return observed;
}

class Search {
 public:
  explicit Search(const Comparison& comparison) : c_(comparison) {
    if (auto sample = sample_of(c_)) sampler_.emplace(std::move(*sample), model());
    for (std::size_t k = 0; k < c_.observed.size(); ++k)
      if (!c_.agreeing_reading[k]) first_wrong_ = std::min(first_wrong_, latest(c_.observed[k]));
  }

  std::vector<Explanation> run(bool only_singles) {
    const bool readable = std::ranges::none_of(
        c_.observed, [](const ObservedTensor& tensor) { return tensor.readings.empty(); });
    if (readable && !try_singles()) return found_;
    const std::vector<OtherShapes> shapes = try_shapes();
    if (!found_.empty() || only_singles) return found_;
    const std::vector<Hypothesis> roundings = rounding_hypotheses(model());
    const auto rounded = [&](const std::vector<ExactModel>& exact) {
      return find_roundings(exact, roundings, sampler(), c_.tolerance, c_.token);
    };
    if (readable) {
      auto all = rounded({{nullptr, model(), &c_.observed}});
      if (!all.empty())  // a mistake with smaller errors may be rounded as well
        for (RoundedModel& other : rounded(find_nearer_models())) all.push_back(std::move(other));
      if (add_all(all)) return found_;
    }
    try_pairs();
    if (!found_.empty()) return found_;
    std::vector<ExactModel> exact;
    for (const Single& single : singles_)
      if (!rounds_inputs(*single.hypothesis))
        exact.push_back({single.hypothesis, single.model, &c_.observed});
    for (const OtherShapes& other : shapes)
      exact.push_back({&other.hypothesis, other.model, &other.observed});
    if (add_all(rounded(exact)) || !readable) return found_;
    for (const Explanation& pair : loose_pairs()) {
      const Hypothesis both{pair.mistakes, [&](const Model&) { return pair.model; }, Stage::queries,
                            text::joined(pair.details, "; or ")};
      add_all(rounded({{&both, pair.model, &c_.observed}}));
    }
    return found_;
  }

 private:
  /// A hypothesis tried alone.
  struct Single {
    const Hypothesis* hypothesis;
    Model model;
    Stage first_wrong;  ///< no earlier stage is known to be unexplained
  };
  /// Tensors as read by a model with another number of heads, or another output width.
  struct OtherShapes {
    Hypothesis hypothesis;
    Model model;
    std::vector<ObservedTensor> observed;
  };

  const Model& model() const { return c_.reference.model(); }
  const Sampler* sampler() const { return sampler_ ? &*sampler_ : nullptr; }
  bool counted() const {
    if (!c_.token.should_continue()) return false;
    c_.token.count(1);
    return true;
  }

  /// Tries all hypotheses alone, and discards those that no pair can complete; false if stopped.
  bool try_singles() {
    hypotheses_ = hypotheses_for(model(), c_.observed);
    for (const Hypothesis& hypothesis : hypotheses_) {
      if (!counted()) return false;
      Single single{&hypothesis, hypothesis.injected(model()), first_wrong_};
      if (hypothesis.first <= first_wrong_) {  // else it cannot fix the difference
        const auto wrong = first_wrong_of(single.model, hypothesis.first, true);
        if (!wrong) continue;
        if (*wrong == no_stage) add({&hypothesis}, single.model);
        single.first_wrong = *wrong;
      }
      singles_.push_back(std::move(single));
    }
    return true;
  }

  std::vector<OtherShapes> try_shapes() {
    std::vector<OtherShapes> all;
    for (Hypothesis& hypothesis : shape_hypotheses(model())) {
      if (!counted()) return all;
      Model other = hypothesis.injected(model());
      if (attention::check(other)) continue;
      std::vector<ObservedTensor> again = reread_tensors(other, c_.observed);
      if (again.empty()) continue;
      const auto agree_with = [&](const LazyTrace& ours) {
        return std::ranges::all_of(again, [&](const ObservedTensor& tensor) {
          return agreeing_reading(tensor, ours, c_.tolerance);
        });
      };
      if ((!sampler_ || agree_with(LazyTrace(other, sampler()))) && agree_with(LazyTrace(other)))
        add({&hypothesis}, other);
      all.push_back({std::move(hypothesis), std::move(other), std::move(again)});
    }
    return all;
  }

  /// Returns the first stage where a tensor differs from a model, or no_stage; checks a few rows first.
  ///
  /// If keeps_agreement, returns nullopt when a tensor that was right becomes wrong: a second mistake never
  /// undoes the first.
  std::optional<Stage> first_wrong_of(const Model& other, Stage first, bool keeps_agreement) const {
    if (sampler_) {
      const auto wrong = first_wrong_of(LazyTrace(other, sampler(), first), keeps_agreement);
      if (wrong != no_stage) return wrong;
    }
    if (attention::check(other)) return Stage::embeddings;
    return first_wrong_of(LazyTrace(other), keeps_agreement);
  }
  std::optional<Stage> first_wrong_of(const LazyTrace& ours, bool keeps_agreement) const {
    const auto is_wrong = [&](std::size_t k) {
      const Reading* reference =
          c_.agreeing_reading[k];  // a model without the stage may still compute it unused
      return !agreeing_reading(c_.observed[k], ours, c_.tolerance) &&
             !(reference && !attention::info(reference->stage).present(ours.model()));
    };
    for (std::size_t k = 0; keeps_agreement && k < c_.observed.size(); ++k)
      if (c_.agreeing_reading[k] && is_wrong(k)) return std::nullopt;
    Stage first = no_stage;
    for (std::size_t k = 0; k < c_.observed.size(); ++k)
      if (latest(c_.observed[k]) < first && is_wrong(k)) first = latest(c_.observed[k]);
    return first;
  }

  /// Returns mistakes whose exact numbers are clearly closer to the tensors than the right model's.
  std::vector<ExactModel> find_nearer_models() const {
    const auto errors = [&](const Model& exact) {
      return error_sums(c_.observed, LazyTrace(exact, sampler()));
    };
    const std::vector<ErrorSum> reference_errors = errors(model());
    std::vector<ExactModel> exact;
    for (const Single& single : singles_) {
      if (!counted()) break;
      if (rounds_inputs(*single.hypothesis) || attention::check(single.model)) continue;
      if (has_smaller_errors(errors(single.model), reference_errors))
        exact.push_back({single.hypothesis, single.model, &c_.observed});
    }
    return exact;
  }

  /// Finds pairs of mistakes that explain the tensors within the error of a coarse type, to be judged.
  std::vector<Explanation> loose_pairs() const {
    for (const Precision type : {Precision::float16, Precision::bfloat16}) {
      const double unit = attention::rounding_error(type, 1);
      Tolerance loose = c_.tolerance;
      loose.relative_to_max = loose_roundings * unit;
      if (!c_.observed.empty() && round_trip_error(c_.observed.front().rounding, 1) > unit)
        continue;  // their own type is coarser anyway
      Comparison loose_comparison{c_.reference, c_.observed, {}, loose, c_.token};
      for (const ObservedTensor& tensor : c_.observed)
        loose_comparison.agreeing_reading.push_back(agreeing_reading(tensor, c_.reference, loose));
      if (std::ranges::find(loose_comparison.agreeing_reading, nullptr) ==
          loose_comparison.agreeing_reading.end())
        continue;
      Search search(loose_comparison);
      if (!search.try_singles() || !search.found_.empty()) continue;
      search.try_pairs();
      if (!search.found_.empty()) return search.found_;
    }
    return {};
  }

  /// Whether a pair may explain the tensors: the earlier alone must explain stages before the later.
  bool could_explain(const Single& a, const Single& b) const {
    const bool in_order = a.hypothesis->first <= b.hypothesis->first;
    const Single &early = in_order ? a : b, &late = in_order ? b : a;
    if (early.hypothesis->first > first_wrong_ || late.hypothesis->first > early.first_wrong) return false;
    return !a.hypothesis->skips_pairs && !b.hypothesis->skips_pairs &&
           !share_a_cause(*a.hypothesis, *b.hypothesis);
  }

  void try_pairs() {
    for (auto a = singles_.begin(); a != singles_.end(); ++a)
      for (auto b = a + 1; b != singles_.end(); ++b) {
        if (!counted()) return;
        if (!could_explain(*a, *b)) continue;
        Model both = b->hypothesis->injected(a->model);
        if (both == a->model || both == b->model) continue;
        if (first_wrong_of(both, std::min(a->hypothesis->first, b->hypothesis->first), false) == no_stage)
          add({a->hypothesis, b->hypothesis}, std::move(both));
      }
  }

  bool add_all(const std::vector<RoundedModel>& all) {
    for (const RoundedModel& one : all) {
      std::vector<const Hypothesis*> hypotheses{&one.rounding};
      if (one.exact) hypotheses.insert(hypotheses.begin(), one.exact);
      add(hypotheses, one.model);
    }
    return !found_.empty();
  }

  void add(const std::vector<const Hypothesis*>& hypotheses, Model model) {
    Explanation explanation{{}, {}, std::move(model), {}};
    const auto add_once = [](std::vector<std::string>& all, const std::string& one) {
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    };
    for (const Hypothesis* hypothesis : hypotheses) {
      for (const Bug* mistake : hypothesis->mistakes) {
        explanation.mistakes.push_back(mistake);
        add_once(explanation.causes, std::string(cause_of(*mistake)));
      }
      if (!hypothesis->detail.empty()) explanation.details.push_back(hypothesis->detail);
    }
    const auto known = std::ranges::find(found_, explanation.causes, &Explanation::causes);
    if (known == found_.end()) return found_.push_back(std::move(explanation));
    for (const std::string& detail : explanation.details) add_once(known->details, detail);
  }

  const Comparison& c_;
  std::optional<Sampler> sampler_;
  Stage first_wrong_ = no_stage;  // compared with the right model
  std::vector<Hypothesis> hypotheses_;
  std::vector<Single> singles_;  // point into hypotheses_
  std::vector<Explanation> found_;
};

}  // namespace

std::optional<Sample> sample_of(const Comparison& c) {
  const Model& model = c.reference.model();
  const std::size_t n = model.n_tokens();
  if (n < worth_sampling || !model.given.empty() || model.has_key_embeddings()) return std::nullopt;
  std::optional<Sample> sample;
  const auto add = [&](std::size_t row) {
    auto& rows = sample->rows;
    if (rows.size() < max_sampled && std::ranges::find(rows, row) == rows.end()) rows.push_back(row);
  };
  for (std::size_t k = 0; k < c.observed.size(); ++k) {
    if (c.agreeing_reading[k] || c.observed[k].readings.empty()) continue;
    const Reading& reading = c.observed[k].readings.front();
    if (!attention::info(reading.stage).present(model)) continue;
    const Agreement worst = agreement(c.observed[k], reading, c.reference, c.tolerance);
    if (!sample) sample = Sample{worst.sequence, {}};
    if (worst.sequence == sample->sequence && sample->rows.size() < max_sampled / 2) add(worst.row);
  }
  if (!sample) sample = Sample{};
  for (const std::size_t row : {n - 1, n / 2, std::size_t{1}, n / 4, n - 2, n / 3}) add(row);
  return sample;
}

std::vector<Explanation> find_causes(const Comparison& comparison, bool only_singles) {
  return Search(comparison).run(only_singles);
}

}  // namespace core::check
