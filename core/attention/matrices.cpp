#include "core/attention/matrices.hpp"

namespace core::attention {

const char* name_of(Part part) {
  constexpr std::array names{"query", "key", "value", "output"};
  return names[static_cast<std::size_t>(part)];
}

const Linear* find_linear(const Model& model, Part part) {
  if (!model.projections) return nullptr;
  const Projections& p = *model.projections;
  switch (part) {
    case Part::query:
      return &p.query;
    case Part::key:
      return &p.key;
    case Part::value:
      return &p.value;
    case Part::output:
      break;
  }
  return p.output ? &*p.output : nullptr;
}

Linear* find_linear(Model& model, Part part) {
  return const_cast<Linear*>(find_linear(std::as_const(model), part));  // the model itself may be written to
}

Part part_of(MatrixName name) {
  return static_cast<Part>((static_cast<std::size_t>(name) - 1) % all_parts.size());
}

const char* symbol(MatrixName name) {
  constexpr std::array symbols{"X", "W_q", "W_k", "W_v", "W_o", "b_q", "b_k", "b_v", "b_o"};
  return symbols[static_cast<std::size_t>(name)];
}

const SharedMatrix* find_matrix(const Model& model, MatrixPlace place) {
  if (place.name == MatrixName::embeddings)
    return place.sequence < model.sequences.size() ? &model.sequences[place.sequence].embeddings : nullptr;
  const Linear* linear = find_linear(model, part_of(place.name));
  if (!linear) return nullptr;
  if (!is_bias(place.name)) return &linear->weight;
  return linear->bias ? &*linear->bias : nullptr;
}

}  // namespace core::attention
