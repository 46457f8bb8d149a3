#include "core/graph/model_changes.hpp"

#include <algorithm>

#include "core/graph/bugs.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::attention {
namespace {

void round(SharedMatrix& numbers, Precision precision) {
  numbers = rounded(precision, *numbers);
}

}  // namespace

Model with_scale(const Model& model, Scale scale) {
  Model next = model;
  next.scale = scale;
  return scale_factor(next) == scale_factor(model) ? model : next;
}

Model with_heads(const Model& model, std::size_t n_heads) {
  const bool has_per_head_data =
      !model.given.empty() || !model.heads_off.empty() || !model.dropout.given.empty();
  if (has_per_head_data || n_heads == 0 || model.d_out() % n_heads != 0) return model;
  Model next = model;
  next.n_heads = n_heads;
  if (model.n_kv_heads) {  // as many as their columns can hold
    const std::size_t columns = *model.n_kv_heads * model.d_head(), d_head = model.d_out() / n_heads;
    if (columns % d_head != 0) return model;
    next.n_kv_heads = columns / d_head;
  }
  return model.additions == Additions() || !check(next) ? next : model;
}

Model with_padding_unmasked(const Model& model) {
  Model next = model;
  next.mask.hidden_keys.clear();
  if (model.mask.cells.empty()) return next;
  const SequenceMask sequence_mask(model, 0);
  std::vector<std::size_t> masked_keys(model.n_keys()), seen(model.n_keys());
  for (std::size_t i = 0; i < model.n_tokens(); ++i)
    for (std::size_t j = 0; j < model.n_keys(); ++j) {
      const MaskCell* cell = model.mask.find(i, j);
      if (!sequence_mask.by_rules(i, j).visible) continue;  // masked anyway
      ++(cell && !cell->visible ? masked_keys : seen)[j];
    }
  std::erase_if(next.mask.cells, [&](const MaskCell& cell) {
    return !cell.visible && masked_keys[cell.column] > 0 && seen[cell.column] == 0;
  });
  return next;
}

Model with_key_masked(const Model& model, std::size_t key) {
  if (key >= model.n_keys() || model.n_keys() == 1) return model;
  Model next = model;
  next.mask.hidden_keys.resize(model.sequences.size());
  for (std::vector<std::size_t>& masked_keys : next.mask.hidden_keys) {
    const auto place = std::ranges::lower_bound(masked_keys, key);
    if (place == masked_keys.end() || *place != key) masked_keys.insert(place, key);
  }
  return next;
}

std::size_t default_block_size(const Model& model) {
  std::size_t size = 1;
  while (4 * size <= model.n_keys()) size *= 2;
  return size;
}

Model with_rounded_inputs(const Model& model, Precision precision) {
  Model next = model;
  for (Sequence& sequence : next.sequences) {
    round(sequence.embeddings, precision);
    if (next.has_key_embeddings()) round(sequence.key_embeddings, precision);
  }
  for (const ProjectionName part : all_parts)
    if (Linear* linear = find_linear(next, part)) {
      round(linear->weight, precision);
      if (linear->bias) round(*linear->bias, precision);
    }
  for (GivenStage& given : next.given.stages)
    if (given.stage != Stage::dropout_mask)
      for (SharedMatrix& matrix : given.matrices) round(matrix, precision);
  Additions& added = next.additions;
  if (added.normalize) round(added.normalize->query, precision), round(added.normalize->key, precision);
  if (added.positions.relative) round(added.positions.relative->table, precision);
  for (SharedMatrix& bias : added.score_bias) round(bias, precision);
  if (added.sink) round(*added.sink, precision);
  return next;
}

}  // namespace core::attention
