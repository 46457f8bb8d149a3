#include "app/screen/gl_objects.hpp"

namespace app::render {

Texture::Texture() {
  glGenTextures(1, &id_);
  glBindTexture(GL_TEXTURE_2D, id_);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
}

void Texture::fill(GLint form, GLenum channels, GLenum type, GLsizei width, GLsizei height,
                   const void* numbers) {
  glBindTexture(GL_TEXTURE_2D, id_);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  glTexImage2D(GL_TEXTURE_2D, 0, form, width, height, 0, channels, type, numbers);
}

void Texture::replace(GLenum channels, GLenum type, GLint x, GLint y, GLsizei width, GLsizei height,
                      GLint row_length, const void* numbers) {
  glBindTexture(GL_TEXTURE_2D, id_);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  glPixelStorei(GL_UNPACK_ROW_LENGTH, row_length);
  glTexSubImage2D(GL_TEXTURE_2D, 0, x, y, width, height, channels, type, numbers);
  glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
}

KeptState::KeptState()
    : switches_{{{GL_BLEND, GL_FALSE},
                 {GL_SCISSOR_TEST, GL_FALSE},
                 {GL_DEPTH_TEST, GL_FALSE},
                 {GL_CULL_FACE, GL_FALSE}}} {
  glGetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &framebuffer_);
  glGetIntegerv(GL_CURRENT_PROGRAM, &program_);
  glGetIntegerv(GL_VERTEX_ARRAY_BINDING, &vertex_array_);
  glGetIntegerv(GL_ACTIVE_TEXTURE, &active_);
  glActiveTexture(GL_TEXTURE0);
  glGetIntegerv(GL_TEXTURE_BINDING_2D, &texture_);
  glGetIntegerv(GL_UNPACK_ALIGNMENT, &unpack_alignment_);
  glGetIntegerv(GL_VIEWPORT, viewport_.data());
  glGetIntegerv(GL_SCISSOR_BOX, scissor_.data());
  for (auto& [name, on] : switches_) on = glIsEnabled(name);
}

KeptState::~KeptState() {
  for (const auto& [name, on] : switches_) on ? glEnable(name) : glDisable(name);
  glViewport(viewport_[0], viewport_[1], viewport_[2], viewport_[3]);
  glScissor(scissor_[0], scissor_[1], scissor_[2], scissor_[3]);
  glPixelStorei(GL_UNPACK_ALIGNMENT, unpack_alignment_);
  glBindTexture(GL_TEXTURE_2D, static_cast<GLuint>(texture_));
  glActiveTexture(static_cast<GLenum>(active_));
  glBindVertexArray(static_cast<GLuint>(vertex_array_));
  glUseProgram(static_cast<GLuint>(program_));
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, static_cast<GLuint>(framebuffer_));
}

}  // namespace app::render
