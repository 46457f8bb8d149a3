#pragma once

#include <string>

#include "app/ui/frame.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "core/model/whole_model.hpp"

namespace app::panels {

/// What a head does above all: "induction 0.91", or "diffuse" where it does none of it.
std::string role_words(const core::transformer::HeadRoles& roles);

/// What is said of a head in one or two words.
struct HeadRole {
  std::string words;
  bool is_measured = false;  ///< on random tokens that come again, and not only on this text
};

/// The role that was measured where there is one, else what the head does here, or "ablated". A head of an
/// edited layer is another one than was measured.
HeadRole role_of(const Frame& frame, std::size_t layer, std::size_t head);

/// The words as far as they have room, from a left end or up to a right end; measured ones on a badge.
/// Returns the width.
float draw_role(const Frame& frame, const HeadRole& role, ImFont* font, float end, bool from_left,
                float middle, float room);

/// One head of one layer at the top left corner of its map: map, name, role and bar, as far as there is room.
void draw_head_map(const Frame& frame, const LayersTiling& tiling, std::size_t layer, std::size_t head,
                   ImVec2 corner);

}  // namespace app::panels
