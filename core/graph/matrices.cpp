#include "core/graph/matrices.hpp"

namespace core::attention {

const char* name_of(ProjectionName part) {
  constexpr std::array names{"query", "key", "value", "output"};
  return names[static_cast<std::size_t>(part)];
}

const Linear* find_linear(const Model& model, ProjectionName part) {
  if (!model.projections) return nullptr;
  const Projections& p = *model.projections;
  switch (part) {
    case ProjectionName::query:
      return &p.query;
    case ProjectionName::key:
      return &p.key;
    case ProjectionName::value:
      return &p.value;
    case ProjectionName::output:
      break;
  }
  return p.output ? &*p.output : nullptr;
}

Linear* find_linear(Model& model, ProjectionName part) {
  return const_cast<Linear*>(find_linear(std::as_const(model), part));  // the model is not const
}

ProjectionName part_of(MatrixName name) {
  const MatrixName first = is_bias(name) ? MatrixName::query_bias : MatrixName::query_weight;
  return static_cast<ProjectionName>(static_cast<std::size_t>(name) - static_cast<std::size_t>(first));
}

std::string path_of(MatrixName name) {
  switch (name) {
    case MatrixName::embeddings:
      return "embeddings";
    case MatrixName::key_embeddings:
      return "key_embeddings";
    case MatrixName::query_norm:
      return "normalise.query";
    case MatrixName::key_norm:
      return "normalise.key";
    case MatrixName::frequencies:
      return "positions.rotary.inverse_frequencies";
    case MatrixName::slopes:
      return "positions.alibi.slopes";
    case MatrixName::relative_bias:
      return "positions.relative.table";
    case MatrixName::score_bias:
      return "score_bias";
    case MatrixName::sink:
      return "sink";
    default:
      return std::string("projections.") + name_of(part_of(name)) + (is_bias(name) ? ".bias" : ".weight");
  }
}

const char* symbol(MatrixName name) {
  constexpr std::array symbols{"X",   "M",   "W_q", "W_k", "W_v", "W_o", "b_q",  "b_k", "b_v",
                               "b_o", "w_q", "w_k", "θ",   "m",   "B",   "bias", "sink"};
  static_assert(symbols.size() == n_matrix_names);
  return symbols[static_cast<std::size_t>(name)];
}

const SharedMatrix* find_matrix(const Model& model, MatrixRef place) {
  const auto held = [](const std::optional<SharedMatrix>& matrix) { return matrix ? &*matrix : nullptr; };
  const Additions& a = model.additions;
  const Positions& p = a.positions;
  switch (place.name) {
    case MatrixName::embeddings:
      return place.nth < model.sequences.size() ? &model.sequences[place.nth].embeddings : nullptr;
    case MatrixName::key_embeddings:
      return place.nth < model.sequences.size() && model.has_key_embeddings()
                 ? &model.sequences[place.nth].key_embeddings
                 : nullptr;
    case MatrixName::query_norm:
      return a.normalize ? &a.normalize->query : nullptr;
    case MatrixName::key_norm:
      return a.normalize ? &a.normalize->key : nullptr;
    case MatrixName::frequencies:
      return p.rotary ? held(p.rotary->inverse_frequencies) : nullptr;
    case MatrixName::slopes:
      return p.alibi ? held(p.alibi->slopes) : nullptr;
    case MatrixName::relative_bias:
      return p.relative ? &p.relative->table : nullptr;
    case MatrixName::score_bias:
      return place.nth < a.score_bias.size() ? &a.score_bias[place.nth] : nullptr;
    case MatrixName::sink:
      return held(a.sink);
    default:
      break;
  }
  const Linear* linear = find_linear(model, part_of(place.name));
  if (!linear) return nullptr;
  if (!is_bias(place.name)) return &linear->weight;
  return held(linear->bias);
}

SharedMatrix* find_matrix(Model& model, MatrixRef place) {
  return const_cast<SharedMatrix*>(find_matrix(std::as_const(model), place));  // the model is not const
}

MatrixRef matrix_ref(const Model& model, MatrixName name, std::size_t sequence, std::size_t head) {
  if (name != MatrixName::score_bias) return {name, sequence};
  return {name, model.additions.score_bias.size() == 1 ? 0 : head};
}

}  // namespace core::attention
