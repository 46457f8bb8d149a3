#include "core/mistakes/changes.hpp"

#include <algorithm>
#include <utility>

#include "core/attention/rounding.hpp"

namespace core::mistakes {
namespace {

using attention::MaskCell;

void round(attention::SharedMatrix& numbers, attention::Precision precision) {
  numbers = attention::rounded(precision, *numbers);
}

}  // namespace

Model with_scale(const Model& model, attention::Scale scale) {
  Model next = model;
  next.scale = scale;
  return attention::scale_factor(next) == attention::scale_factor(model) ? model : next;
}

Model with_mask_transposed(const Model& model) {
  Model next = model;
  if (next.mask.causal) next.departures.mask_transposed = !next.departures.mask_transposed;
  for (MaskCell& cell : next.mask.cells) std::swap(cell.row, cell.column);
  std::ranges::sort(next.mask.cells);
  return next;
}

Model without_mask(const Model& model) {
  Model next = model;
  next.mask = model.mask.hiding_nothing();
  return next;
}

Model with_weight_transposed(const Model& model, Part part) {
  Model next = model;
  Linear* linear = find_linear(next, part);
  if (linear && linear->weight->is_square()) linear->weight = arma::mat(linear->weight->t());
  return next;
}

Model without_bias(const Model& model, Part part) {
  Model next = model;
  if (Linear* linear = find_linear(next, part)) linear->bias.reset();
  return next;
}

Model with_projections_swapped(const Model& model) {
  Model next = model;
  if (!next.projections) return next;
  next.projections->query = model.projections->key;
  next.projections->key = model.projections->query;
  return next;
}

Model without_output_projection(const Model& model) {
  Model next = model;
  if (next.projections) next.projections->output.reset();
  return next;
}

Model with_rounded_inputs(const Model& model, attention::Precision precision) {
  Model next = model;
  for (attention::Sequence& sequence : next.sequences) round(sequence.embeddings, precision);
  for (const Part part : attention::all_parts)
    if (Linear* linear = find_linear(next, part)) {
      round(linear->weight, precision);
      if (linear->bias) round(*linear->bias, precision);
    }
  return next;
}

}  // namespace core::mistakes
