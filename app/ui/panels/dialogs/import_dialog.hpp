#pragma once

#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/fields.hpp"

namespace app::panels {

/// The tensors of so many dimensions, after "none", to choose one of.
struct TensorOptions {
  std::vector<std::string> names{""};
  std::vector<widgets::Option> options{{"none", "", false}};

  TensorOptions(const OpenedTensors& tensors, std::size_t least, std::size_t most);
  /// Of the first of those that are chosen; 0 when there is none, or it is none of these.
  std::size_t index_of(const std::vector<std::string>& chosen) const;
};

/// Rows in which each projection is named by hand: its tensor, which way it is kept, which part of it is
/// meant, its bias.
///
/// Landmarks "import/query/weight", "import/query/turned", "import/query/part", "import/query/bias" and so
/// on.
void draw_import_mapping(const Frame& frame, const OpenedTensors& tensors, float width);

/// The mapping that the form holds, when all that it needs is named.
std::optional<core::formats::checkpoints::Mapping> mapping_by_hand(const ImportForm& form);

/// The stages that can be given, each with the tensor that holds it, and the layer.
///
/// Landmarks "import/stage/weights" and so on, "import/stage_layer", "import/batch".
void draw_import_stages(const Frame& frame, const OpenedTensors& tensors, float width);

/// What the form asks for, or nothing while no stage is named.
std::optional<core::importing::Choices> stages_by_hand(const ImportForm& form, const OpenedTensors& tensors);

/// The dialog that makes a model of a file of tensors: a layer of a checkpoint, projections named by hand,
/// stages that are given, or embeddings; and the list of all tensors with their shapes, types and, once
/// clicked, ranges.
///
/// Landmarks "import/as", "import/first_line", "import/layer", "import/heads", "import/causal",
/// "import/scale", "import/rope", "import/window", "import/kv_heads", "import/embeddings", "import/file",
/// "import/reservations", "import/tensor/<index>", "dialog/confirm" and "dialog/cancel".
void draw_import_dialog(const Frame& frame);

/// What is being read and how far it is, with a button to stop it; nothing when it takes no time. Landmark
/// "reading/cancel".
void draw_reading(const Frame& frame);
/// The same as a line of a dialog that is open meanwhile.
void draw_reading_line(const Frame& frame);

}  // namespace app::panels
