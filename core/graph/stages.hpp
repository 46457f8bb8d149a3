#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.hpp"
#include "core/graph/stage.hpp"
#include "core/graph/trace.hpp"

namespace core::graph {
struct Graph;
}

namespace core::attention {

/// Set of stages; bit k is stage k in the order of the computation.
using StageSet = std::bitset<n_stages>;

inline bool contains(const StageSet& set, Stage stage) {
  return set[static_cast<std::size_t>(stage)];
}

/// Returns the stages that a model has.
///
/// A stage exists if it is given, or if all its inputs are known and the output depends on it: scores that
/// could be computed do not exist if the weights are given.
StageSet existing_stages(const graph::Graph& graph, const Model& model);
StageSet existing_stages(const Model& model);

/// Returns whether a stage is computed: it exists and is not given as a whole.
bool is_computed(const Model& model, Stage stage);

/// Returns the stage that is the first input of another: the scores that are scaled, the queries that are
/// rotated.
Stage input_stage(const graph::Graph& graph, Stage stage);

/// Returns the stages that can be given as a whole, in order: see can_be_given().
std::vector<const StageInfo*> givable_stages();

/// Returns the stage of that name, or nullptr.
const StageInfo* find_stage(std::string_view name);

/// Returns the value of masked scores as text: "−∞", "−10⁹".
std::string fill_text(double fill);

/// Returns the formula of a stage in the field's notation, or "given"; "_q" stands for a subscript q. The
/// brief one fits a narrow window.
std::string formula_of(const graph::Graph& graph, const Model& model, const StageInfo& stage, bool brief);

/// Shape of a stage in the traces of a model that has it.
struct StageShape {
  std::size_t n_rows = 0, n_cols = 0;
  friend bool operator==(const StageShape&, const StageShape&) = default;
};
StageShape shape_of(const Model& model, Stage stage);
/// Returns the shape as PyTorch prints it, with the size of a batch in front: "(8, 4, 256)".
std::string torch_shape(const Model& model, Stage stage);

/// Returns the names of the tokens of a stage's rows.
const std::vector<std::string>& row_tokens(const StageInfo& stage, const Sequence& sequence);

/// Returns the top of the range of a stage that is colored from 0: 1, or 1/(1 − rate) after dropout.
double color_range_max(const Model& model, Stage stage);

}  // namespace core::attention
