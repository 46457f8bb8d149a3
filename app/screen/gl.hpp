#pragma once

#include <epoxy/gl.h>

namespace app::render {

/// First line of every shader, and the channel order of most windows, for a plain copy: of OpenGL 3.3 or, in
/// a page, of OpenGL ES 3.0.
#ifdef GL_BGRA
inline constexpr const char* glsl_version = "#version 330 core";
inline constexpr GLenum window_format = GL_BGRA, window_type = GL_UNSIGNED_INT_8_8_8_8_REV;
#else
inline constexpr const char* glsl_version = "#version 300 es";
inline constexpr GLenum window_format = GL_RGBA, window_type = GL_UNSIGNED_BYTE;
#endif

/// A texture without filtering, deleted with its owner; only for source files in app/screen.
class Texture {
 public:
  Texture() {
    glGenTextures(1, &id_);
    glBindTexture(GL_TEXTURE_2D, id_);
    for (const GLenum filter : {GL_TEXTURE_MIN_FILTER, GL_TEXTURE_MAG_FILTER})
      glTexParameteri(GL_TEXTURE_2D, filter, GL_NEAREST);
    for (const GLenum wrap : {GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T})
      glTexParameteri(GL_TEXTURE_2D, wrap, GL_CLAMP_TO_EDGE);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
  }
  ~Texture() { glDeleteTextures(1, &id_); }
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;

  GLuint id() const { return id_; }
  /// Allocates the texture with this size and these pixels; pixels may be nullptr.
  void fill(GLint internal_format, GLenum format, GLenum type, int width, int height, const void* pixels) {
    glBindTexture(GL_TEXTURE_2D, id_);
    glTexImage2D(GL_TEXTURE_2D, 0, internal_format, width, height, 0, format, type, pixels);
  }

 private:
  GLuint id_ = 0;
};

class Framebuffer {
 public:
  Framebuffer() { glGenFramebuffers(1, &id_); }
  ~Framebuffer() { glDeleteFramebuffers(1, &id_); }
  Framebuffer(const Framebuffer&) = delete;
  Framebuffer& operator=(const Framebuffer&) = delete;
  GLuint id() const { return id_; }

 private:
  GLuint id_ = 0;
};

}  // namespace app::render
