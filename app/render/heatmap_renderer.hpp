#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "app/render/damage.hpp"
#include "app/render/painter.hpp"
#include "app/render/work.hpp"

namespace app::render {

/// Paints heatmaps with OpenGL 3.3, each into a texture of its own that it keeps while the picture stays the
/// same.
///
/// It needs a current context from its construction to its destruction. One place has one picture in a frame.
class HeatmapRenderer : public Painter {
 public:
  using Work = render::Work;

  /// Throws core::Error when the driver does not take the shaders.
  HeatmapRenderer();
  ~HeatmapRenderer() override;

  ImTextureID paint(const Picture& picture) override;

  /// How large marks are drawn: the display's scale.
  void set_scale(float scale);
  /// Frees the pictures that nobody asked for in the last 120 frames.
  void end_frame();
  /// Whether pictures of large matrices wait for one of the next frames, as one frame looks at a few million
  /// numbers; until then their places show the last pictures, or another part of them, or the ground.
  bool is_behind() const;

  /// When a part of a picture's texture was painted last: another
  /// number, other pixels; 0 for other textures.
  std::uint64_t painted(std::uint64_t texture, const Share& part) const;
  Work work() const;
  std::size_t pictures_kept() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace app::render
