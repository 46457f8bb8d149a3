#include "core/mistakes/changes.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/attention/rounding.hpp"

namespace core::mistakes {
namespace {

using attention::MaskCell;

void round(attention::SharedMatrix& numbers, attention::Precision precision) {
  numbers = attention::rounded(precision, *numbers);
}

}  // namespace

Linear* find_linear(Model& model, Which which) {
  if (!model.projections) return nullptr;
  attention::Projections& p = *model.projections;
  switch (which) {
    case Which::query:
      return &p.query;
    case Which::key:
      return &p.key;
    case Which::value:
      return &p.value;
    case Which::output:
      break;
  }
  return p.output ? &*p.output : nullptr;
}

Model with_scale(const Model& model, attention::Scale scale) {
  Model next = model;
  next.scale = scale;
  return attention::scale_factor(next) == attention::scale_factor(model) ? model : next;
}

Model with_mask_transposed(const Model& model) {
  Model next = model;
  if (next.mask.causal) next.departures.mask_transposed = !next.departures.mask_transposed;
  for (MaskCell& cell : next.mask.cells) std::swap(cell.row, cell.column);
  std::ranges::sort(next.mask.cells, {}, [](const MaskCell& c) { return std::pair(c.row, c.column); });
  return next;
}

Model without_mask(const Model& model) {
  Model next = model;
  next.mask.causal = false;
  next.mask.cells.clear();
  return next;
}

Model with_weight_transposed(const Model& model, Which which) {
  Model next = model;
  Linear* linear = find_linear(next, which);
  if (linear && linear->weight->is_square()) linear->weight = arma::mat(linear->weight->t());
  return next;
}

Model without_bias(const Model& model, Which which) {
  Model next = model;
  if (Linear* linear = find_linear(next, which)) linear->bias.reset();
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
  for (const Which which : std::array{Which::query, Which::key, Which::value, Which::output})
    if (Linear* linear = find_linear(next, which)) {
      round(linear->weight, precision);
      if (linear->bias) round(*linear->bias, precision);
    }
  return next;
}

}  // namespace core::mistakes
