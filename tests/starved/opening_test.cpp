// What opening a checkpoint costs, counted in allocations.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/importing/import.hpp"
#include "tests/starved/allocation_failer.hpp"
#include "tests/support/checkpoint_of.hpp"

namespace starved {
namespace {

using core::formats::Dtype;
using core::formats::TensorInfo;

/// Returns the names and shapes of a mixture of experts, as those of Qwen 3.
std::vector<TensorInfo> mixture(std::size_t n_layers, std::size_t n_experts) {
  std::vector<TensorInfo> all;
  for (std::size_t l = 0; l < n_layers; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    const auto add = [&](const std::string& name, core::formats::TensorShape shape) {
      all.push_back({layer + name + ".weight", Dtype::f32, std::move(shape)});
    };
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(std::string("self_attn.") + name, {8, 8});
    for (const char* name : {"q_norm", "k_norm"}) add(std::string("self_attn.") + name, {4});
    for (const char* name : {"input_layernorm", "post_attention_layernorm"}) add(name, {8});
    for (std::size_t e = 0; e < n_experts; ++e)
      for (const char* name : {"gate_proj", "up_proj", "down_proj"})
        add("mlp.experts." + std::to_string(e) + "." + name, {8, 8});
  }
  return all;
}

/// Returns the number of allocations for opening such a file and inferring the rules of each layer.
std::size_t allocations_for_opening(std::size_t n_layers, std::size_t n_experts) {
  const std::vector<TensorInfo> tensors = mixture(n_layers, n_experts);
  const AllocationFailer counter(SIZE_MAX, false);
  const auto checkpoint = support::checkpoint_of(tensors);
  EXPECT_EQ(checkpoint.layers.size(), n_layers);
  for (const auto& layer : checkpoint.layers) core::importing::expected_of_layer(checkpoint, layer);
  return counter.n_allocations();
}

TEST(Opening, IsLinearInTheNumberOfTensors) {
  const std::size_t usual = allocations_for_opening(8, 16);
  EXPECT_LT(allocations_for_opening(16, 16), 2.2 * usual) << "twice the layers";
  EXPECT_LT(allocations_for_opening(8, 32), 2.2 * usual) << "twice the experts";
  EXPECT_LT(usual, 32 * mixture(8, 16).size());
}

}  // namespace
}  // namespace starved
