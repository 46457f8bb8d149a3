#include "app/screen/canvas.hpp"

#include <cstddef>
#include <utility>

#include "app/screen/gl.hpp"

namespace app::render {

struct Canvas::Surface {
  Framebuffer framebuffer;
  Texture texture;
};

Canvas::Canvas() = default;
Canvas::~Canvas() = default;

bool Canvas::fit(int width, int height) {
  if (surface_ && width == width_ && height == height_) return true;
  if (!surface_) surface_ = std::make_unique<Surface>();
  width_ = width, height_ = height;
  // In the order in which most windows keep their channels, for the same plain copy.
  surface_->texture.fill(GL_RGBA, GL_BGRA, GL_UNSIGNED_INT_8_8_8_8_REV, width, height, nullptr);
  glBindFramebuffer(GL_FRAMEBUFFER, surface_->framebuffer.id());
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, surface_->texture.id(), 0);
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  return false;
}

void Canvas::begin(std::span<const Area> areas, float scale, Rgb color) {
  glBindFramebuffer(GL_FRAMEBUFFER, surface_->framebuffer.id());
  glViewport(0, 0, width_, height_);
  const ImVec4 c = vec(color);
  glClearColor(c.x, c.y, c.z, 1);
  glEnable(GL_SCISSOR_TEST);
  const auto pixels = [scale](int length) { return static_cast<GLint>(static_cast<float>(length) * scale); };
  for (const Area& a : areas) {
    glScissor(pixels(a.left), pixels(a.top), pixels(a.right) - pixels(a.left),
              pixels(a.bottom) - pixels(a.top));
    glClear(GL_COLOR_BUFFER_BIT);
  }
  glDisable(GL_SCISSOR_TEST);
}

void Canvas::put_on_window() {
  glBindFramebuffer(GL_READ_FRAMEBUFFER, surface_->framebuffer.id());
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
  glBlitFramebuffer(0, 0, width_, height_, 0, height_, width_, 0, GL_COLOR_BUFFER_BIT, GL_NEAREST);
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
}

std::vector<std::uint8_t> Canvas::pixels() const {
  std::vector<std::uint8_t> rgba(4 * static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_));
  glBindFramebuffer(GL_READ_FRAMEBUFFER, surface_->framebuffer.id());
  glPixelStorei(GL_PACK_ALIGNMENT, 4);
  glReadPixels(0, 0, width_, height_, GL_RGBA, GL_UNSIGNED_BYTE, rgba.data());
  glBindFramebuffer(GL_READ_FRAMEBUFFER, 0);
  for (std::size_t alpha = 3; alpha < rgba.size(); alpha += 4) rgba[alpha] = 255;
  return rgba;
}

void turn_over(ImDrawData& data) {
  // Edges through the middle of pixels are to fall to the side to which they fall when nothing is turned.
  constexpr float nudge = 1.0f / 256;
  for (int l = 0; l < data.CmdListsCount; ++l)
    for (ImDrawCmd& command : data.CmdLists[l]->CmdBuffer) std::swap(command.ClipRect.y, command.ClipRect.w);
  // Measured from the lower edge upwards: all lengths are negative, and the backend multiplies each by the
  // scale.
  data.DisplayPos.y += data.DisplaySize.y - nudge;
  data.DisplaySize.y = -data.DisplaySize.y;
  data.FramebufferScale.y = -data.FramebufferScale.y;
}

}  // namespace app::render
