#include "core/check/ways.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>

#include "core/base/text.hpp"
#include "core/check/other_heads.hpp"
#include "core/check/ways_of_additions.hpp"
#include "core/graph/changes.hpp"
#include "core/graph/visible.hpp"

namespace core::check {
namespace {

using attention::DropoutPlace;
using attention::HeadColumns;
using attention::MaskMethod;
using attention::Precision;
using mistakes::find_mistake;
using mistakes::Mistake;

using MistakeRows = std::vector<const Mistake*>;

MistakeRows rows(std::initializer_list<const char*> names) {
  MistakeRows found;
  for (const char* name : names) found.push_back(find_mistake(name));
  return found;
}

/// Rows made together; where one of them changes nothing, so do all.
Way of_rows(const MistakeRows& rows) {
  Stage first = rows.front()->first;
  for (const Mistake* row : rows) first = std::min(first, row->first);
  // Which of the projections comes first is turned round where queries and keys are swapped.
  if (first == Stage::keys || first == Stage::values) first = Stage::queries;
  const auto made = [rows](const Model& model) {
    Model next = model;
    for (const Mistake* row : rows) {
      if (!mistakes::applies(*row, next)) return model;
      next = row->made(next);
    }
    return next;
  };
  return {rows, made, first};
}

template <class Change>
Way other(const char* name, Change change) {
  const MistakeRows row = rows({name});
  return {row, change, row.front()->first};
}

Model scaled_by_width(const Model& model) {
  return mistakes::with_scale(
      model, {attention::ScaleRule::factor, 1 / std::sqrt(static_cast<double>(model.d_out()))});
}

Model interleaved_throughout(const Model& model) {
  Model next = find_mistake("heads_interleaved")->made(model);
  if (next.departures.split == HeadColumns::interleaved) next.departures.merge = HeadColumns::interleaved;
  return next;
}

Model dropped_after_mask(const Model& model) {
  Model next = model;
  if (model.dropout.active()) next.departures.dropout_place = DropoutPlace::masked_scores;
  return next;
}

/// "−10000", "−3.4e+38".
std::string fill_words(double fill) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), std::abs(fill) < 1e6 ? "%.6g" : "%.2g", std::abs(fill));
  return std::string("−") + text.data();
}

Way filled_with(double fill) {
  Way way = other("mask_finite", [fill](const Model& model) {
    Model next = find_mistake("mask_finite")->made(model);
    if (next.mask.method == MaskMethod::large_negative) next.departures.large_negative = fill;
    return next;
  });
  way.detail = "they are " + fill_words(fill);
  return way;
}

/// What their masked scores hold at the first cell that the model hides, when that is a large negative
/// number.
std::optional<double> fill_in(const Model& model, const std::vector<Theirs>& theirs) {
  if (!model.mask.hides()) return std::nullopt;
  for (const Theirs& tensor : theirs)
    for (const Reading& reading : tensor.readings) {
      if (reading.stage != Stage::masked_scores) continue;
      const arma::mat visible = attention::visible_cells(model, reading.first_sequence);
      const arma::uvec hidden = arma::find(visible == 0);
      if (hidden.is_empty()) continue;
      const std::size_t row = hidden[0] % visible.n_rows, column = hidden[0] / visible.n_rows;
      const double fill = tensor.tensor.numbers[reading.at(0, 0, row, column)];
      if (std::isfinite(fill) && fill <= -100) return fill;
    }
  return std::nullopt;
}

/// Mistakes that only round, the finest first, and what their inputs are rounded to in libraries that round
/// these as well.
struct Coarse {
  const char* name;
  Precision inputs = Precision::float64;
};
constexpr std::array coarse{Coarse{"float32_precision"},
                            Coarse{"tf32_precision"},
                            Coarse{"softmax_half_precision"},
                            Coarse{"softmax_bfloat16_precision"},
                            Coarse{"half_precision", Precision::float16},
                            Coarse{"half_precision_sums", Precision::float16},
                            Coarse{"bfloat16_precision", Precision::bfloat16}};

/// Mistakes of which several sizes are tried instead of the one in the table.
constexpr std::array sized{"n_heads_other", "blocks_not_rescaled",       "last_block_dropped", "key_missing",
                           "rotary_base",   "rotary_off_by_one:earlier", "rotary_off_by_one"};

bool is_tried_otherwise(const Mistake& mistake) {
  const std::string_view name = mistake.name;
  return std::ranges::any_of(coarse, [&](const Coarse& c) { return name == c.name; }) ||
         std::ranges::find(sized, name) != sized.end();
}

/// Inputs that are rounded before exact arithmetic.
void add_rounded_inputs(std::vector<Way>& ways) {
  for (const auto& [name, precision] : {coarse[4], coarse[6]})
    ways.push_back(
        {rows({name}),
         [precision = precision](const Model& m) { return mistakes::with_rounded_inputs(m, precision); },
         Stage::embeddings});
}

/// The queries are scaled before they are kept.
Model scaled_before(const Model& model) {
  Model next = model;
  attention::Linear* query = find_linear(next, attention::Part::query);
  if (!query || model.additions.normalise) return next;  // a norm takes the scale away
  const double factor = attention::scale_factor(model);
  query->weight = arma::mat(*query->weight * factor);
  if (query->bias) *query->bias = arma::mat(**query->bias * factor);
  return next;
}

/// The scale itself is taken twice.
Model scaled_again(const Model& model) {
  const double factor = attention::scale_factor(model);
  return mistakes::with_scale(model, {attention::ScaleRule::factor, factor * factor});
}

Model causal_transposed(const Model& model) {
  Model next = model;
  if (model.mask.causal) next.departures.mask_edge.transposed = !next.departures.mask_edge.transposed;
  return next;
}

Model causal_from_first(const Model& model) {
  Model next = model;
  if (model.mask.causal || model.n_tokens() == model.n_keys()) return next;
  next.mask.causal = true;
  next.mask.align = attention::MaskAlignment::first;
  return next;
}

/// Sizes of blocks that are tried: all that are few, then those that people take.
std::vector<std::size_t> block_sizes(std::size_t n_keys) {
  constexpr std::size_t every_size = 16;
  std::vector<std::size_t> sizes;
  for (std::size_t size = 1; size < n_keys; ++size)
    if (size <= every_size || size % 16 == 0) sizes.push_back(size);
  std::erase_if(sizes, [](std::size_t size) { return size > 128 && size % 64 != 0; });
  return sizes;
}

Way of_blocks(const char* name, attention::BlockRule rule, std::size_t size, std::string detail) {
  Way way = other(name, [rule, size](const Model& model) {
    return mistakes::with_blocks(model, {rule, size});
  });
  way.detail = std::move(detail);
  way.alone = true;
  return way;
}

void add_blocks(const Model& model, std::vector<Way>& ways) {
  using attention::BlockRule;
  struct Kind {
    BlockRule rule;
    const char* words;
  };
  constexpr std::array kinds{
      Kind{BlockRule::not_rescaled, ""},
      Kind{BlockRule::sum_not_rescaled, ", of which the sum alone is not rescaled"},
      Kind{BlockRule::contexts_not_rescaled, ", of which the contexts alone are not rescaled"}};
  const std::vector<std::size_t> sizes = block_sizes(model.n_keys());
  for (const auto& [rule, words] : kinds)
    for (const std::size_t size : sizes)
      ways.push_back(of_blocks("blocks_not_rescaled", rule, size,
                               "blocks of " + std::to_string(size) + (size > 1 ? " keys" : " key") + words));
  // Sizes that leave the same keys out cannot be told apart; powers of two are likelier.
  std::map<std::size_t, std::vector<std::size_t>> by_first_left_out;
  for (const std::size_t size : sizes) by_first_left_out[(model.n_keys() - 1) / size * size].push_back(size);
  for (auto& [first, sizes_of_it] : by_first_left_out) {
    if (first == 0) continue;
    std::vector<std::size_t> likely = sizes_of_it;
    std::erase_if(likely, [](std::size_t size) { return !std::has_single_bit(size); });
    if (likely.empty()) likely = sizes_of_it;
    ways.push_back(
        of_blocks("last_block_dropped", BlockRule::last_dropped, likely.front(),
                  "keys from " + std::to_string(first) + " on are left out, as with blocks of " +
                      text::joined(
                          likely, ", ", [](std::size_t size) { return std::to_string(size); }, " or ")));
  }
}

/// Whether their numbers of a stage say that no query sees a key: weights of 0, scores of −∞.
bool is_unseen(const Theirs& theirs, const Reading& r, std::size_t key) {
  const double hidden = r.stage == Stage::masked_scores ? -arma::datum::inf : 0;
  for (std::size_t s = 0; s < r.n_sequences; ++s)
    for (std::size_t h = 0; h < r.n_heads; ++h)
      for (std::size_t i = 0; i < r.n_rows; ++i) {
        const double number = theirs.tensor.numbers[r.at(s, h, i, key)];
        if (number != hidden && !std::isnan(number)) return false;
      }
  return true;
}

/// Which pairs turn where the model's do not.
std::string pairs_words(const Model& model) {
  const auto& rotary = model.additions.positions.rotary;
  if (!rotary) return "";
  const bool are_halves = rotary->pairs == positions::Pairs::halves;
  return are_halves ? "yours turn neighbours, the model's are halves"
                    : "yours turn halves, the model's are neighbours";
}

/// Keys that may be missing: those that their numbers say are, or, where these say nothing and the keys are
/// few, all. The last is one that a last block may be, unless scores are without it.
std::vector<std::size_t> keys_that_may_be_missing(const Model& model, const std::vector<Theirs>& theirs) {
  constexpr std::size_t max_keys = 64;
  const std::size_t n = model.n_keys();
  std::vector<bool> may(n, n <= max_keys);
  bool may_last = false;
  for (const Theirs& tensor : theirs)
    for (const Reading& r : tensor.readings) {
      if (r.stage != Stage::masked_scores && r.stage != Stage::unmasked_weights && r.stage != Stage::weights)
        continue;
      for (std::size_t key = 0; key < n; ++key) may[key] = is_unseen(tensor, r, key);
      if (r.stage == Stage::masked_scores) may_last = may[n - 1];
    }
  may[n - 1] = may_last;
  std::vector<std::size_t> keys;
  for (std::size_t key = 0; key < n; ++key)
    if (may[key]) keys.push_back(key);
  return keys;
}

void add_missing_keys(const Model& model, const std::vector<Theirs>& theirs, std::vector<Way>& ways) {
  for (const std::size_t key : keys_that_may_be_missing(model, theirs)) {
    Way way = other("key_missing", [key](const Model& m) { return mistakes::with_key_hidden(m, key); });
    way.detail = "key " + std::to_string(key);
    way.alone = true;
    ways.push_back(std::move(way));
  }
}

}  // namespace

std::vector<Way> ways_for(const Model& model, const std::vector<Theirs>& theirs) {
  std::vector<Way> all;
  add_rounded_inputs(all);
  all.push_back(
      of_rows(rows({"weight_untransposed:query", "weight_untransposed:key", "weight_untransposed:value"})));
  all.push_back(of_rows(rows({"weight_untransposed:query", "weight_untransposed:key",
                              "weight_untransposed:value", "weight_untransposed:output"})));
  for (const Mistake& mistake : mistakes::mistakes())
    if (!is_tried_otherwise(mistake)) {
      all.push_back(of_rows({&mistake}));
      if (mistake.name == std::string_view("rotary_other_pairs")) all.back().detail = pairs_words(model);
    }
  all.push_back(of_rows(rows({"bias_missing:query", "bias_missing:key", "bias_missing:value"})));
  all.push_back(other("query_key_swapped", mistakes::with_projections_swapped));
  all.push_back(other("heads_interleaved", interleaved_throughout));
  all.push_back(other("scale_sqrt_d_model", scaled_by_width));
  all.push_back(other("scale_twice", scaled_again));
  all.back().first = Stage::scaled_scores;
  all.push_back(other("scale_twice", scaled_before));
  all.back().first = Stage::queries;
  all.push_back(other("mask_transposed", causal_transposed));
  all.push_back(other("causal_unwanted", causal_from_first));
  all.push_back(other("dropout_before_softmax", dropped_after_mask));
  if (const auto fill = fill_in(model, theirs)) all.push_back(filled_with(*fill));
  for (Way& way : ways_of_rotations(model)) all.push_back(std::move(way));
  add_blocks(model, all);
  add_missing_keys(model, theirs, all);
  const Model unpadded = mistakes::with_padding_seen(model);
  std::erase_if(all, [&](const Way& way) {
    const Model made = way.made(model);
    const bool is_padding = way.mistakes.front() == find_mistake("no_mask") && made == unpadded;
    return made == model || is_padding || attention::check(made);
  });
  std::ranges::stable_sort(all, {}, &Way::first);
  return all;
}

std::vector<Way> rounding_ways(const Model& model) {
  std::vector<Way> all;
  for (const auto& [name, precision] : coarse) {
    const MistakeRows row = rows({name});
    if (precision != Precision::float64)
      all.push_back({row,
                     [row, precision = precision](const Model& m) {
                       return row.front()->made(mistakes::with_rounded_inputs(m, precision));
                     },
                     row.front()->first});
    all.push_back({row, row.front()->made, row.front()->first});
    if (name == std::string_view("tf32_precision") && model.given.cells.empty())
      all.push_back({row, row.front()->made, row.front()->first,
                     "their last digits are cut off and not rounded, so that products come out too small",
                     false, true});
  }
  std::erase_if(all, [&](const Way& way) { return way.made(model) == model; });
  return all;
}

std::optional<Way> output_left_out(const Model& model) {
  if (!with_wider_output(model)) return std::nullopt;
  return of_rows(rows({"output_projection_missing"}));
}

Way other_heads(const Model& model, std::size_t n_heads) {
  Way way = other("n_heads_other", [n_heads](const Model& m) { return mistakes::with_heads(m, n_heads); });
  way.detail = std::to_string(n_heads) + (n_heads == 1 ? " head" : " heads") + " in place of " +
               std::to_string(model.n_heads);
  way.alone = true;
  return way;
}

}  // namespace core::check
