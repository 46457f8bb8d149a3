#pragma once

#include <epoxy/gl.h>

#include <array>
#include <utility>

namespace app::render {

/// A texture without filtering, deleted with its owner. Only for the renderer's own source files.
class Texture {
 public:
  Texture();
  ~Texture() { glDeleteTextures(1, &id_); }
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;

  GLuint id() const { return id_; }
  /// Makes it the texture of that size and form; numbers may be nullptr.
  void fill(GLint form, GLenum channels, GLenum type, GLsizei width, GLsizei height, const void* numbers);
  /// Writes over a part of it; a row of the numbers is that many texels long.
  void replace(GLenum channels, GLenum type, GLint x, GLint y, GLsizei width, GLsizei height,
               GLint row_length, const void* numbers);

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

class VertexArray {
 public:
  VertexArray() { glGenVertexArrays(1, &id_); }
  ~VertexArray() { glDeleteVertexArrays(1, &id_); }
  VertexArray(const VertexArray&) = delete;
  VertexArray& operator=(const VertexArray&) = delete;
  GLuint id() const { return id_; }

 private:
  GLuint id_ = 0;
};

/// Puts back on leaving what painting a picture changes: the window's own drawing must not notice.
class KeptState {
 public:
  KeptState();
  ~KeptState();
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;

 private:
  GLint framebuffer_ = 0, program_ = 0, vertex_array_ = 0, active_ = 0, texture_ = 0, unpack_alignment_ = 0;
  std::array<GLint, 4> viewport_{}, scissor_{};
  std::array<std::pair<GLenum, GLboolean>, 4> switches_;
};

}  // namespace app::render
