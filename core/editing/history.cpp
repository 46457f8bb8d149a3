#include "core/editing/history.hpp"

#include "core/graph/matrices.hpp"

namespace core::editing {

namespace {

using attention::Linear;
using attention::Model;
using attention::SharedMatrix;

template <typename Visitor>
void for_each_matrix(const Model& model, Visitor visit) {
  for (const attention::Sequence& sequence : model.sequences)
    visit(sequence.embeddings), visit(sequence.key_embeddings);
  for (const SharedMatrix& bias : model.additions.score_bias) visit(bias);
  for (auto name = attention::MatrixName::query_norm; name != attention::MatrixName::score_bias;
       name = static_cast<attention::MatrixName>(static_cast<int>(name) + 1))
    if (const SharedMatrix* numbers = find_matrix(model, {name, 0})) visit(*numbers);
  if (model.additions.sink) visit(*model.additions.sink);
  for (const SharedMatrix& mask : model.dropout.given) visit(mask);
  for (const attention::GivenStage& stage : model.given.stages)
    for (const SharedMatrix& numbers : stage.matrices) visit(numbers);
  for (const attention::ProjectionName part : attention::all_parts)
    if (const Linear* linear = find_linear(model, part)) {
      visit(linear->weight);
      if (linear->bias) visit(*linear->bias);
    }
}

/// Estimates the bytes of a model without its matrices.
std::size_t bytes_without_matrices(const Model& model) {
  std::size_t bytes = sizeof model + model.mask.cells.size() * sizeof(attention::MaskCell) +
                      model.mask.documents.size() * sizeof(std::size_t) +
                      model.dropout.given.size() * sizeof(SharedMatrix) +
                      model.given.cells.size() * sizeof(attention::GivenCell);
  for (const auto& keys : model.mask.hidden_keys) bytes += sizeof keys + keys.size() * sizeof keys.front();
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

Footprint::ModelMemory Footprint::add(const Model& model) {
  ModelMemory memory;
  memory.other_bytes = bytes_without_matrices(model);
  bytes_ += memory.other_bytes;
  for_each_matrix(model, [&](const SharedMatrix& m) {
    m.visit_memory([&](const void* address, std::size_t bytes) {
      memory.blocks.push_back(address);
      MemoryBlock& block = blocks_[address];
      if (block.n_references++ > 0) return;
      block.bytes = bytes;
      bytes_ += bytes;
    });
  });
  return memory;
}

void Footprint::remove(const ModelMemory& memory) {
  bytes_ -= memory.other_bytes;
  for (const void* address : memory.blocks) {
    const auto block = blocks_.find(address);
    if (--block->second.n_references > 0) continue;
    bytes_ -= block->second.bytes;
    blocks_.erase(block);
  }
}

}  // namespace core::editing
