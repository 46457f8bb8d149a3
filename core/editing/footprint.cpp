#include "core/editing/footprint.hpp"

namespace core::editing {
namespace {

using attention::Linear;
using attention::Model;
using attention::SharedMatrix;

template <typename Visitor>
void for_each_matrix(const Model& model, Visitor visit) {
  const auto visit_linear = [&](const Linear& linear) {
    visit(linear.weight);
    if (linear.bias) visit(*linear.bias);
  };
  for (const attention::Sequence& sequence : model.sequences) visit(sequence.embeddings);
  for (const SharedMatrix& mask : model.dropout.given) visit(mask);
  for (const attention::GivenStage& stage : model.given.stages)
    for (const SharedMatrix& numbers : stage.matrices) visit(numbers);
  if (!model.projections) return;
  for (const Linear* linear : {&model.projections->query, &model.projections->key, &model.projections->value})
    visit_linear(*linear);
  if (model.projections->output) visit_linear(*model.projections->output);
}

std::size_t bytes_of(const arma::mat& m) {
  return sizeof m + m.n_elem * sizeof(double);
}

/// What a model takes besides its matrices, nearly.
std::size_t bytes_without_matrices(const Model& model) {
  std::size_t bytes = sizeof model + model.mask.cells.size() * sizeof(attention::MaskCell) +
                      model.dropout.given.size() * sizeof(SharedMatrix) +
                      model.given.cells.size() * sizeof(attention::GivenCell);
  for (const attention::GivenStage& stage : model.given.stages)
    bytes += sizeof stage + stage.matrices.size() * sizeof(SharedMatrix);
  for (const attention::Sequence& sequence : model.sequences) {
    bytes += sizeof sequence;
    for (const auto* names : {&sequence.tokens, &sequence.key_tokens})
      for (const std::string& token : *names) bytes += sizeof token + token.size();
  }
  return bytes;
}

}  // namespace

void Footprint::add(const Model& model) {
  bytes_ += bytes_without_matrices(model);
  for_each_matrix(model, [this](const SharedMatrix& m) {
    if (++holders_[&*m] == 1) bytes_ += bytes_of(m);
  });
}

void Footprint::remove(const Model& model) {
  bytes_ -= bytes_without_matrices(model);
  for_each_matrix(model, [this](const SharedMatrix& m) {
    const auto holder = holders_.find(&*m);
    if (--holder->second > 0) return;
    bytes_ -= bytes_of(m);
    holders_.erase(holder);
  });
}

}  // namespace core::editing
