#pragma once

#include <optional>
#include <string>

#include "app/ui/frame.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "core/model/whole_model.hpp"

namespace app::panels {

/// What the role of a head was measured on.
enum class RoleSource {
  model,         ///< random tokens that repeat
  before_edits,  ///< the same, before the head was edited
  prompt         ///< this prompt alone
};

/// What a head does above all.
struct HeadRole {
  std::string name;                  ///< "induction", "diffuse" where it does none of it, "ablated"
  std::optional<double> share = {};  ///< of the weights
  RoleSource source = RoleSource::prompt;

  std::string words() const;  ///< "induction 0.91"
  std::string brief() const;  ///< "ind .91"
};

/// Returns the role with the largest share of a head's weights.
HeadRole role_among(const core::transformer::HeadRoles& roles);

/// Returns the role that was measured on random tokens where there is one, else that on the prompt.
HeadRole role_of(const Frame& frame, std::size_t layer, std::size_t head);

/// Draws a role from a left end, or up to a right end: measured ones on a badge, those measured before an
/// edit in an outline. Shortens it to the room; returns its width.
float draw_role(const Frame& frame, const HeadRole& role, ImFont* font, float end, bool from_left,
                float middle, float room);

/// Draws one head at the top left corner of its map: map, name, role, entropy and bar.
void draw_head_map(const Frame& frame, const LayersTiling& tiling, std::size_t layer, std::size_t head,
                   ImVec2 corner);

/// Draws the cells of one head alone, with the tooltip of the one that is pointed at.
void draw_head_alone(const Frame& frame, const LayersTiling& tiling, std::size_t layer, std::size_t head,
                     ImVec2 corner);

/// Draws the dots of a bar that is not computed, up to right.
void draw_dots(const Frame& frame, ImVec2 left_top, float right);

}  // namespace app::panels
