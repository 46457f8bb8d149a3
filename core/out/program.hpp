#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/editing/draw.hpp"
#include "core/graph/model.hpp"
#include "core/out/gradient_export.hpp"

namespace core::formats {

/// Parts of a program that computes attention of a model from tensors x, W_query, W_key, W_value and
/// out_proj.
struct AttentionSource {
  std::string definitions;  ///< of the names that the class uses, such as rotary frequencies, or ""
  std::string class_name, class_text;
  std::string layers;  ///< names of the layers, as arguments of the class
};
/// forward: the lines of its method forward(x), of which graph::forward_lines() returns the usual ones.
AttentionSource attention_source(const attention::Model& model, const std::vector<std::string>& forward);

/// Defines layer(weight, bias), which returns x @ weight + bias as a layer of PyTorch.
std::string layer_function();

/// Returns `name = layer(torch.tensor(…), bias=…)`, on several lines.
std::string layer_text(const std::string& name, const attention::Linear& linear);

/// Returns a readable Python program for PyTorch that builds a model and prints every stage.
///
/// Numbers that PyTorch samples from one of the seeds, to the last bit, are sampled; all others are literals.
/// The program computes in float64, so its stages equal those of attend() except for the order of sums. title
/// is its docstring. With `gradient` it prints the gradients of that number instead, by autograd. Names
/// chosen by the user are literals of printable ASCII, never in a comment. Throws core::Error when the model
/// cannot be computed, or has injected bugs, given stages, overridden values or ablated heads.
std::string program_text(const attention::Model& model, const std::string& title,
                         const std::vector<std::uint64_t>& seeds = editing::usual_seeds(),
                         const GradientRequest* gradient = nullptr);

}  // namespace core::formats
