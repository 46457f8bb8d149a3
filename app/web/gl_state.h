// Included first by Dear ImGui's OpenGL backend, which reads the state of OpenGL in each frame in order to restore it: in a
// browser each such question waits for the process that draws. Nothing else of the page relies on that state.
#pragma once

#include <GLES3/gl3.h>

static inline void attnscope_get_integer(GLenum name, GLint* value) {
  switch (name) {
    case GL_MAJOR_VERSION:
    case GL_MINOR_VERSION:
    case GL_MAX_TEXTURE_SIZE:
      glGetIntegerv(name, value);  // asked once
      break;
    case GL_VIEWPORT:
    case GL_SCISSOR_BOX:
      value[0] = value[1] = value[2] = value[3] = 0;
      break;
    case GL_ACTIVE_TEXTURE:
      *value = GL_TEXTURE0;
      break;
    case GL_BLEND_EQUATION_RGB:
    case GL_BLEND_EQUATION_ALPHA:
      *value = GL_FUNC_ADD;
      break;
    case GL_BLEND_SRC_RGB:
    case GL_BLEND_SRC_ALPHA:
      *value = GL_ONE;
      break;
    case GL_UNPACK_ALIGNMENT:
      *value = 4;
      break;
    default:
      *value = 0;  // nothing is bound between frames
  }
}

static inline GLboolean attnscope_is_enabled(GLenum capability) {
  (void)capability;
  return GL_FALSE;
}

#define glGetIntegerv attnscope_get_integer
#define glIsEnabled attnscope_is_enabled
