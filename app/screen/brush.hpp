#pragma once

#include <span>

#include "app/screen/gl_objects.hpp"
#include "app/screen/part.hpp"
#include "app/screen/picture.hpp"
#include "app/screen/shader_program.hpp"

namespace app::render {

/// Draws texels as pixels, with their marks.
class Brush {
 public:
  /// Throws core::Error when the driver does not take the shaders.
  Brush();

  /// Draws these parts of a picture's pixels, at most most_parts, into a texture of its size.
  void draw(const Picture& picture, const Texels& texels, const Texture& cells, float scale,
            std::span<const Part> parts, const Texture& pixels);
  /// Fills all pixels with the ground.
  void clear(const Picture& picture, const Texture& pixels);

 private:
  void begin(const Picture& picture, const Texture& pixels);

  ShaderProgram program_;
  Framebuffer framebuffer_;
  VertexArray no_vertices_;  // the vertex shader makes its own, but a core context wants one bound
};

/// All pixels of a picture.
Part whole(const Picture& picture);

}  // namespace app::render
