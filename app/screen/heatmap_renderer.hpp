#pragma once

#include <memory>

#include "app/screen/painter.hpp"

namespace app::render {

/// Painter of heatmaps with OpenGL 3.3: each has its own texture, kept while the picture stays the same.
///
/// It needs a current context from construction to destruction. Each place has one picture per frame.
class HeatmapRenderer : public Painter {
 public:
  /// Throws core::Error when the driver rejects the shaders.
  HeatmapRenderer();
  ~HeatmapRenderer() override;

  ImTextureID paint(const HeatmapPicture& picture) override;
  void set_scale(float scale) override;
  /// Frees pictures that were not painted in the last 120 frames.
  void end_frame() override;
  bool is_behind() const override;
  std::uint64_t painted(std::uint64_t texture, const UvRect& part) const override;
  std::size_t n_cached_pictures() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace app::render
