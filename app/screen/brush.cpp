#include "app/screen/brush.hpp"

#include <algorithm>
#include <array>

#include "shaders.hpp"

namespace app::render {
namespace {

constexpr double smallest_cell_with_gap = 8;

void set_color(const ShaderProgram& program, const char* name, Rgb c) {
  glUniform3f(program.uniform(name), c.r / 255.0f, c.g / 255.0f, c.b / 255.0f);
}

void set_look(const ShaderProgram& program, const Picture& p, float scale) {
  const Palette& colors = palette(p.dark);
  set_color(program, "ground", colors.ground.back);
  set_color(program, "hatch", colors.hatch.lines);
  set_color(program, "hatch_ground", colors.hatch.ground);
  set_color(program, "bad", colors.status.bad);
  set_color(program, "light_ink", readable_on(rgb(0x000000)));
  set_color(program, "dark_ink", readable_on(rgb(0xffffff)));
  glUniform1f(program.uniform("ground_share"), p.dark ? 0.46f : 0.55f);
  glUniform1i(program.uniform("phase"), p.phase);
  glUniform1f(program.uniform("scale"), scale);
}

void set_place(const ShaderProgram& program, const Picture& p, const Texels& t) {
  const Placing place = placing(p, t);
  const double across = p.width / place.across, down = p.height / place.down;  // pixels a texel
  glUniform2f(program.uniform("corner"), static_cast<float>(place.left), static_cast<float>(place.top));
  glUniform2f(program.uniform("pitch"), static_cast<float>(across), static_cast<float>(down));
  glUniform1i(program.uniform("gaps"), p.gaps && std::min(across, down) >= smallest_cell_with_gap);
  glUniform1i(program.uniform("has_cross"), p.cross.has_value());
  const Cross cross = p.cross.value_or(Cross{});
  // In texels of the visible part; a cross outside it dims everything but its own row or column.
  const auto at = [](std::size_t cell, std::size_t block, std::size_t first) {
    return static_cast<GLint>(cell / block) - static_cast<GLint>(first);
  };
  glUniform2i(program.uniform("cross_at"), at(cross.column, t.pooling.columns, t.first_column),
              at(cross.row, t.pooling.rows, t.first_row));
}

void set_parts(const ShaderProgram& program, std::span<const Part> parts, const Part& all) {
  const auto place = [](std::size_t edge, std::size_t length) {
    return 2 * static_cast<float>(edge) / static_cast<float>(length) - 1;
  };
  std::array<float, 4 * most_parts> corners{};
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const Part& p = parts[k];
    const std::array edges{place(p.left, all.right), place(p.top, all.bottom), place(p.right, all.right),
                           place(p.bottom, all.bottom)};
    std::copy(edges.begin(), edges.end(), corners.begin() + static_cast<std::ptrdiff_t>(4 * k));
  }
  glUniform4fv(program.uniform("parts"), static_cast<GLsizei>(parts.size()), corners.data());
}

}  // namespace

Part whole(const Picture& p) {
  const auto size = [](int pixels) { return static_cast<std::size_t>(std::max(1, pixels)); };
  return {0, 0, size(p.width), size(p.height)};
}

Brush::Brush() : program_(shaders::heatmap_vert, shaders::heatmap_frag) {}

void Brush::begin(const Picture& p, const Texture& pixels) {
  const Part all = whole(p);
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffer_.id());
  glFramebufferTexture2D(GL_DRAW_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, pixels.id(), 0);
  glViewport(0, 0, static_cast<GLsizei>(all.right), static_cast<GLsizei>(all.bottom));
  for (const GLenum off : {GL_BLEND, GL_SCISSOR_TEST, GL_DEPTH_TEST, GL_CULL_FACE}) glDisable(off);
}

void Brush::clear(const Picture& p, const Texture& pixels) {
  begin(p, pixels);
  const ImVec4 ground = vec(palette(p.dark).ground.back);
  const std::array<float, 4> color{ground.x, ground.y, ground.z, 1};
  glClearBufferfv(GL_COLOR, 0, color.data());
}

void Brush::draw(const Picture& p, const Texels& texels, const Texture& cells, float scale,
                 std::span<const Part> parts, const Texture& pixels) {
  begin(p, pixels);
  glBindTexture(GL_TEXTURE_2D, cells.id());
  glUseProgram(program_.id());
  glUniform1i(program_.uniform("texels"), 0);
  set_look(program_, p, scale);
  set_place(program_, p, texels);
  set_parts(program_, parts, whole(p));
  glBindVertexArray(no_vertices_.id());
  glDrawArraysInstanced(GL_TRIANGLE_STRIP, 0, 4, static_cast<GLsizei>(parts.size()));
}

}  // namespace app::render
