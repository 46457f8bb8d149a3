#include "core/check/ways.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/attention/visible.hpp"
#include "core/mistakes/changes.hpp"

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

Way filled_with(double fill) {
  return other("mask_finite", [fill](const Model& model) {
    Model next = find_mistake("mask_finite")->made(model);
    if (next.mask.method == MaskMethod::large_negative) next.departures.large_negative = fill;
    return next;
  });
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

struct Coarse {
  const char* name;
  Precision precision;
};
constexpr std::array coarse{Coarse{"half_precision", Precision::float16},
                            Coarse{"bfloat16_precision", Precision::bfloat16}};

bool is_coarse(const Mistake& mistake) {
  return std::any_of(coarse.begin(), coarse.end(),
                     [&](const Coarse& c) { return mistake.name == std::string_view(c.name); });
}

void add_roundings(std::vector<Way>& ways) {
  for (const auto& [name, precision] : coarse) {
    const MistakeRows row = rows({name});
    const auto inputs = [precision = precision](const Model& m) {
      return mistakes::with_rounded_inputs(m, precision);
    };
    ways.push_back(
        {row, [=](const Model& m) { return row.front()->made(inputs(m)); }, Stage::embeddings, true});
    ways.push_back({row, row.front()->made, Stage::embeddings, true});
    ways.push_back({row, inputs, Stage::embeddings});
  }
}

}  // namespace

std::vector<Way> ways_for(const Model& model, const std::vector<Theirs>& theirs) {
  std::vector<Way> all;
  add_roundings(all);
  all.push_back(
      of_rows(rows({"weight_untransposed:query", "weight_untransposed:key", "weight_untransposed:value"})));
  all.push_back(of_rows(rows({"weight_untransposed:query", "weight_untransposed:key",
                              "weight_untransposed:value", "weight_untransposed:output"})));
  for (const Mistake& mistake : mistakes::mistakes())
    if (!is_coarse(mistake)) all.push_back(of_rows({&mistake}));
  all.push_back(of_rows(rows({"bias_missing:query", "bias_missing:key", "bias_missing:value"})));
  all.push_back(other("query_key_swapped", mistakes::with_projections_swapped));
  all.push_back(other("heads_interleaved", interleaved_throughout));
  all.push_back(other("scale_sqrt_d_model", scaled_by_width));
  all.push_back(other("dropout_before_softmax", dropped_after_mask));
  if (const auto fill = fill_in(model, theirs)) all.push_back(filled_with(*fill));
  std::erase_if(all, [&](const Way& way) {
    const Model made = way.made(model);
    return made == model || attention::check(made);
  });
  std::ranges::stable_sort(all, {}, &Way::first);
  return all;
}

}  // namespace core::check
