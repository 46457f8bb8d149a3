#include "app/screen/shader_program.hpp"

#include <epoxy/gl.h>

#include <array>

#include "core/base/error.hpp"

namespace app::render {
namespace {

/// One shader, deleted when the program has been linked or has failed.
class Shader {
 public:
  Shader(GLenum kind, std::string_view source) : id_(glCreateShader(kind)) {
    const GLchar* text = source.data();
    const auto length = static_cast<GLint>(source.size());
    glShaderSource(id_, 1, &text, &length);
    glCompileShader(id_);
  }
  ~Shader() { glDeleteShader(id_); }
  Shader(const Shader&) = delete;
  Shader& operator=(const Shader&) = delete;
  GLuint id() const { return id_; }

 private:
  GLuint id_;
};

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

void require_compiled(const Shader& shader, const char* kind) {
  GLint done = GL_FALSE;
  glGetShaderiv(shader.id(), GL_COMPILE_STATUS, &done);
  if (done == GL_TRUE) return;
  std::array<char, 1024> log{};
  glGetShaderInfoLog(shader.id(), static_cast<GLsizei>(log.size()), nullptr, log.data());
  throw core::Error(std::string("the ") + kind +
                    " shader does not compile on this driver: " + first_line(log.data()));
}

}  // namespace

ShaderProgram::ShaderProgram(std::string_view vertex_source, std::string_view fragment_source) {
  const Shader vertex(GL_VERTEX_SHADER, vertex_source), fragment(GL_FRAGMENT_SHADER, fragment_source);
  require_compiled(vertex, "vertex");
  require_compiled(fragment, "fragment");
  id_ = glCreateProgram();
  glAttachShader(id_, vertex.id());
  glAttachShader(id_, fragment.id());
  glLinkProgram(id_);
  GLint done = GL_FALSE;
  glGetProgramiv(id_, GL_LINK_STATUS, &done);
  if (done == GL_TRUE) return;
  std::array<char, 1024> log{};
  glGetProgramInfoLog(id_, static_cast<GLsizei>(log.size()), nullptr, log.data());
  glDeleteProgram(id_);
  throw core::Error("the shaders do not link on this driver: " + first_line(log.data()));
}

ShaderProgram::~ShaderProgram() {
  glDeleteProgram(id_);
}

int ShaderProgram::uniform(const char* name) const {
  return glGetUniformLocation(id_, name);
}

}  // namespace app::render
