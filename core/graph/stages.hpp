#pragma once

#include <bitset>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.hpp"
#include "core/graph/stage.hpp"
#include "core/graph/trace.hpp"

namespace core::attention {

/// A set of stages; each stands at its place in the order of the computation.
using StageSet = std::bitset<n_stages>;

inline bool contains(const StageSet& set, Stage stage) {
  return set[static_cast<std::size_t>(stage)];
}

/// Returns the stages that a model has.
///
/// A stage is there when it is given, or when all that it is made of is known and the output is made of it:
/// scores that would be computed but do not lead to weights that are given are not there.
StageSet shown_stages(const Model& model);

/// Whether a stage is computed: it is there and not given as a whole.
bool is_computed(const Model& model, Stage stage);

/// Returns the stage that another one is made of first as the model has them: the scores that are scaled, the
/// queries that are rotated.
Stage stage_before(const Model& model, Stage stage);

/// Those that can be given as a whole, in that order: see can_be_given().
std::vector<const StageInfo*> givable_stages();

/// The stage of that name, or nullptr.
const StageInfo* find_stage(std::string_view name);

/// The number that hides a cell, −inf or large and negative, in words: "−∞", "−10⁹".
std::string fill_words(double fill);

/// The formula of a stage in this model in the field's notation, or that it is given; "_q" stands for a
/// subscript q. The brief one fits a narrow window.
std::string formula_of(const StageInfo& stage, const Model& model, bool brief);

/// The formula by which it is computed; empty when the model has no such step.
std::string computed_formula(const StageInfo& stage, const Model& model, bool brief);

/// The shape of a stage in the traces of a model that has it.
struct StageShape {
  std::size_t n_rows = 0, n_cols = 0;
  friend bool operator==(const StageShape&, const StageShape&) = default;
};
StageShape shape_of(const Model& model, Stage stage);
/// The same as PyTorch prints it, with all sequences of a batch in front: "(8, 4, 256)".
std::string shape_words(const Model& model, Stage stage);

/// The names of the tokens that a stage's rows stand for.
const std::vector<std::string>& row_tokens(const StageInfo& stage, const Sequence& sequence);

/// The upper end of the range of a stage that is colored from 0: 1, or 1/(1 − rate) after dropout.
double top_of_range(const Model& model, Stage stage);

}  // namespace core::attention
