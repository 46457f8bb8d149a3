#include "core/graph/changes.hpp"

#include <algorithm>
#include <utility>

#include "core/graph/rounding.hpp"
#include "core/graph/visible.hpp"

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
  if (next.mask.causal) next.departures.mask_edge.transposed = !next.departures.mask_edge.transposed;
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

Model with_heads(const Model& model, std::size_t n_heads) {
  const bool of_heads = !model.given.empty() || !model.heads_off.empty() || !model.dropout.given.empty();
  if (of_heads || n_heads == 0 || model.d_out() % n_heads != 0) return model;
  Model next = model;
  next.n_heads = n_heads;
  if (model.n_kv_heads) {  // as many as their columns make of that width
    const std::size_t columns = *model.n_kv_heads * model.d_head(), d_head = model.d_out() / n_heads;
    if (columns % d_head != 0) return model;
    next.n_kv_heads = columns / d_head;
  }
  return model.additions == attention::Additions() || !attention::check(next) ? next : model;
}

Model split_otherwise(const Model& model) {
  const std::size_t n = model.n_heads;
  if (model.d_out() % (2 * n) == 0) return with_heads(model, 2 * n);
  return with_heads(model, n % 2 == 0 ? n / 2 : 1);
}

Model with_padding_seen(const Model& model) {
  Model next = model;
  next.mask.hidden_keys.clear();
  if (model.mask.cells.empty()) return next;
  const attention::Sights sights(model, 0);
  std::vector<std::size_t> hidden(model.n_keys()), seen(model.n_keys());
  for (std::size_t i = 0; i < model.n_tokens(); ++i)
    for (std::size_t j = 0; j < model.n_keys(); ++j) {
      const MaskCell* cell = model.mask.find(i, j);
      if (!sights.by_rules(i, j).visible) continue;  // hidden anyway
      ++(cell && !cell->visible ? hidden : seen)[j];
    }
  std::erase_if(next.mask.cells, [&](const MaskCell& cell) {
    return !cell.visible && hidden[cell.column] > 0 && seen[cell.column] == 0;
  });
  return next;
}

Model with_key_hidden(const Model& model, std::size_t key) {
  if (key >= model.n_keys() || model.n_keys() == 1) return model;
  Model next = model;
  next.mask.hidden_keys.resize(model.sequences.size());
  for (std::vector<std::size_t>& hidden : next.mask.hidden_keys) {
    const auto place = std::ranges::lower_bound(hidden, key);
    if (place == hidden.end() || *place != key) hidden.insert(place, key);
  }
  return next;
}

Model with_blocks(const Model& model, attention::Blocks blocks) {
  if (blocks.size >= model.n_keys() && blocks.rule != attention::BlockRule::whole) return model;
  Model next = model;
  next.departures.blocks = blocks;
  return next;
}

std::size_t likely_block_size(const Model& model) {
  std::size_t size = 1;
  while (4 * size <= model.n_keys()) size *= 2;
  return size;
}

Model with_rounded_inputs(const Model& model, attention::Precision precision) {
  Model next = model;
  for (attention::Sequence& sequence : next.sequences) {
    round(sequence.embeddings, precision);
    if (next.has_memory()) round(sequence.key_embeddings, precision);
  }
  for (const Part part : attention::all_parts)
    if (Linear* linear = find_linear(next, part)) {
      round(linear->weight, precision);
      if (linear->bias) round(*linear->bias, precision);
    }
  for (attention::GivenStage& given : next.given.stages)
    if (given.stage != attention::Stage::dropout_mask)
      for (attention::SharedMatrix& matrix : given.matrices) round(matrix, precision);
  attention::Additions& added = next.additions;
  if (added.normalise) round(added.normalise->query, precision), round(added.normalise->key, precision);
  if (added.positions.relative) round(added.positions.relative->table, precision);
  for (attention::SharedMatrix& bias : added.score_bias) round(bias, precision);
  if (added.sink) round(*added.sink, precision);
  return next;
}

}  // namespace core::mistakes
