#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/model.hpp"
#include "core/model/reading.hpp"

namespace app {

/// An open whole model, its edits, and the layer that is the document's model.
struct WholeModel {
  core::transformer::ModelRef model;
  core::experiment::Experiment experiment;
  std::size_t layer = 0;           ///< of the document's model; experiment.layer is the requested one
  core::attention::Model of_pass;  ///< that layer as the pass gives it, with ablated heads
  /// The computation of the pass that of_pass was made of; another one may have the same numbers.
  std::shared_ptr<const void> computed = nullptr;
};

/// What undo brings back: a model, and the whole model that it is a layer of, or nullptr.
struct Undoable {
  core::attention::Model model;
  std::shared_ptr<const WholeModel> whole = nullptr;
};

/// For the bytes that undo may take.
inline std::vector<const core::attention::Model*> models_in(const Undoable& work) {
  std::vector<const core::attention::Model*> models{&work.model};
  if (!work.whole) return models;
  models.push_back(&work.whole->of_pass);
  for (const auto& [layer, edit] : work.whole->experiment.layers) models.push_back(&edit.model);
  return models;
}

/// A text that was typed and cannot be read, and why.
struct RefusedText {
  std::string text, why;
};

/// What the maps of the heads show: their weights, those before the edits, or what the edits changed.
enum class LayerMaps { weights, before, change };

/// How a whole model is looked at; nothing of it changes a number.
struct LayersLook {
  std::optional<std::size_t> token;  ///< whose logit is displayed; nothing: the most probable one
  double temperature = 1;            ///< that logits are divided by; above 0
  bool samples = false;              ///< generated tokens are sampled, else the most probable ones
  std::size_t top = 40;              ///< among so many, 0 for all
  std::uint64_t seed = 123;
  std::optional<RefusedText> refused;
  bool shows_effects = false;  ///< bars show ablation effects, else direct logit attribution
  LayerMaps maps = LayerMaps::weights;
};

}  // namespace app
