#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/draw_op.hpp"
#include "core/graph/model.hpp"

namespace core::editing {

/// What in a model a draw gave; nothing: its numbers are drawn only so that the next ones come out right.
enum class DrawnPart { nothing, embeddings, query, key, value, output };

/// One op of a recipe.
struct RecipeDraw {
  random::DrawOp op;
  DrawnPart part = DrawnPart::nothing;
  std::optional<std::size_t> head = {};  ///< the layer of one head, whose columns are a band of the part
  bool repeated = false;  ///< embeddings of one sequence, which every sequence of the batch has
};

/// Draws in a row after one manual_seed.
struct RecipePassage {
  std::uint64_t seed = 0;
  std::vector<RecipeDraw> draws;
  bool gives(DrawnPart part) const;
};

/// The seeds that are tried before those that the model names: those of notebooks, books and examples.
std::vector<std::uint64_t> usual_seeds();

/// How PyTorch draws the numbers of a model, as far as they come from one of the seeds: embeddings before or
/// after the layers, layers in either order, as nn.Linear or as bare tensors, all heads at once or head by
/// head.
///
/// A part is named only when every number of it equals the drawn one to the last bit; one that was edited is
/// not. The passages are to be drawn in order; none names a part that another names.
std::vector<RecipePassage> find_recipe(const attention::Model& model,
                                       const std::vector<std::uint64_t>& seeds);

}  // namespace core::editing
