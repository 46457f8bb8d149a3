#pragma once

#include <string>
#include <string_view>

namespace app::render {

/// A vertex and a fragment shader, compiled and linked.
class ShaderProgram {
 public:
  /// Needs a current context. Throws core::Error with the first line of the driver's log.
  ShaderProgram(std::string_view vertex, std::string_view fragment);
  ~ShaderProgram();
  ShaderProgram(const ShaderProgram&) = delete;
  ShaderProgram& operator=(const ShaderProgram&) = delete;

  unsigned id() const { return id_; }
  /// Where a uniform is; −1, which is ignored when set, if the program does not use it.
  int uniform(const char* name) const;

 private:
  unsigned id_ = 0;
};

}  // namespace app::render
