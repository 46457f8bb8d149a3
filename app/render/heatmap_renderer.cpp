#include "app/render/heatmap_renderer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "app/platform/imgui_compat.hpp"
#include "app/render/gl_objects.hpp"
#include "app/render/picture.hpp"
#include "app/render/row_texels.hpp"
#include "app/render/shader_program.hpp"
#include "shaders.hpp"

namespace app::render {
namespace {

constexpr std::uint64_t frames_kept = 120;
constexpr double smallest_cell_with_gap = 8;

/// What the texels are made from. Pointers count: other matrices of one version are other numbers.
auto texel_key(const Picture& p) {
  return std::tie(p.numbers, p.rows.numbers, p.visible, p.kept, p.version, p.flags_version, p.map, p.dark,
                  p.low, p.high, p.least, p.dots, p.width, p.height, p.left, p.top, p.right, p.bottom);
}

/// What else the pixels are made from.
auto look_key(const Picture& p) {
  return std::tie(p.gaps, p.cross, p.phase);
}

/// A part of a texture, without its right and lower edge.
struct Part {
  GLint left = 0, top = 0, right = 0, bottom = 0;
};

/// One picture that is kept.
struct Kept {
  Picture picture;
  Texels texels;      ///< without their data, which is in the texture
  RowTexels by_rows;  ///< where the picture's rows are known
  float scale = 0;
  std::uint64_t last_frame = 0;
  Texture cells, pixels;
};

void set_colour(const ShaderProgram& program, const char* name, Rgb c) {
  glUniform3f(program.uniform(name), c.r / 255.0f, c.g / 255.0f, c.b / 255.0f);
}

void set_look(const ShaderProgram& program, const Picture& p, float scale) {
  const Palette& colours = palette(p.dark);
  set_colour(program, "ground", colours.background);
  set_colour(program, "hatch", colours.hatch);
  set_colour(program, "hatch_ground", colours.hatch_ground);
  set_colour(program, "bad", colours.bad);
  set_colour(program, "light_ink", readable_on(rgb(0x000000)));
  set_colour(program, "dark_ink", readable_on(rgb(0xffffff)));
  glUniform1f(program.uniform("ground_share"), p.dark ? 0.46f : 0.55f);
  glUniform1i(program.uniform("phase"), p.phase);
  glUniform1f(program.uniform("scale"), scale);
}

void set_place(const ShaderProgram& program, const Picture& p, const Texels& t) {
  const double across = p.width / t.across, down = p.height / t.down;  // pixels a texel
  glUniform2f(program.uniform("corner"), static_cast<float>(t.left), static_cast<float>(t.top));
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

/// Where these texels are in the picture, with a pixel around them.
Part pixels_of(const Part& part, const Picture& p, const Texels& t) {
  const double across = p.width / t.across, down = p.height / t.down;  // pixels a texel
  const auto before = [](double place) { return static_cast<GLint>(std::floor(place)) - 1; };
  const auto after = [](double place) { return static_cast<GLint>(std::ceil(place)) + 1; };
  return {std::max(0, before((part.left - t.left) * across)), std::max(0, before((part.top - t.top) * down)),
          std::min(p.width, after((part.right - t.left) * across)),
          std::min(p.height, after((part.bottom - t.top) * down))};
}

}  // namespace

struct HeatmapRenderer::State {
  ShaderProgram program{shaders::heatmap_vert, shaders::heatmap_frag};
  Framebuffer framebuffer;
  VertexArray no_vertices;  // the vertex shader makes its own, but a core context wants one bound
  std::map<std::string, Kept> pictures;
  std::unordered_map<std::uint64_t, std::uint64_t> painted;  // by texture
  std::uint64_t frame = 0;
  float scale = 1;
  Work work;

  using Parts = std::vector<Part>;

  /// Gives the texels that are others than before; nothing for all of them.
  std::optional<Parts> upload(Kept& kept, const Picture& picture, const Picture* before) {
    if (has_rows(picture)) return upload_rows(kept, picture, before && has_rows(*before) ? before : nullptr);
    kept.texels = texels(picture);
    fill(kept, std::exchange(kept.texels.data, {}));
    return {};
  }

  /// Of a picture whose rows are known, only what changed.
  std::optional<Parts> upload_rows(Kept& kept, const Picture& picture, const Picture* before) {
    const Pool::Written written = kept.by_rows.renew(picture, before);
    const Texels& now = kept.by_rows.texels();
    const bool other_size = kept.texels.rows != now.rows || kept.texels.columns != now.columns || !before;
    kept.texels = {now.rows, now.columns, now.left, now.top, now.across, now.down, 0, 0, now.pooling, {}};
    if (other_size) {
      fill(kept, now.data);
      return {};
    }
    const auto rows = static_cast<GLint>(now.rows), columns = static_cast<GLint>(now.columns);
    Parts parts;
    for (const auto& [first, last] : written.rows)
      parts.push_back({0, static_cast<GLint>(first), columns, static_cast<GLint>(last)});
    if (const auto column = written.column)
      parts.push_back({static_cast<GLint>(*column), 0, static_cast<GLint>(*column) + 1, rows});
    for (const Part& p : parts) {
      const auto at = static_cast<std::size_t>(p.top) * now.columns + static_cast<std::size_t>(p.left);
      kept.cells.replace(GL_RGBA, GL_UNSIGNED_BYTE, p.left, p.top, p.right - p.left, p.bottom - p.top,
                         columns, now.data.data() + at);
      ++work.uploads;
    }
    return parts;
  }

  void fill(Kept& kept, const std::vector<Texel>& data) {
    if (data.empty()) return;
    kept.cells.fill(GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, static_cast<GLsizei>(kept.texels.columns),
                    static_cast<GLsizei>(kept.texels.rows), data.data());
    ++work.uploads;
  }

  /// Draws these pixels anew; of a picture without texels, its ground.
  void draw(Kept& kept, const Picture& p, const Parts& pixels) {
    const int width = std::max(1, p.width), height = std::max(1, p.height);
    if (kept.picture.width != p.width || kept.picture.height != p.height)
      kept.pixels.fill(GL_RGBA, GL_BGRA, GL_UNSIGNED_INT_8_8_8_8_REV, width, height, nullptr);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffer.id());
    glFramebufferTexture2D(GL_DRAW_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, kept.pixels.id(), 0);
    glViewport(0, 0, width, height);
    for (const GLenum off : {GL_BLEND, GL_SCISSOR_TEST, GL_DEPTH_TEST, GL_CULL_FACE}) glDisable(off);
    if (kept.texels.rows == 0) {
      const ImVec4 ground = vec(palette(p.dark).background);
      const std::array<float, 4> colour{ground.x, ground.y, ground.z, 1};
      glClearBufferfv(GL_COLOR, 0, colour.data());
    } else {
      glBindTexture(GL_TEXTURE_2D, kept.cells.id());
      glUseProgram(program.id());
      glUniform1i(program.uniform("texels"), 0);
      set_look(program, p, scale);
      set_place(program, p, kept.texels);
      glBindVertexArray(no_vertices.id());
      glEnable(GL_SCISSOR_TEST);
      for (const Part& part : pixels) {
        glScissor(part.left, part.top, part.right - part.left, part.bottom - part.top);
        glDrawArrays(GL_TRIANGLES, 0, 3);
      }
    }
    painted[kept.pixels.id()] = ++work.draws;
  }
};

HeatmapRenderer::HeatmapRenderer() : state_(std::make_unique<State>()) {}
HeatmapRenderer::~HeatmapRenderer() = default;

ImTextureID HeatmapRenderer::paint(const Picture& picture) {
  State& s = *state_;
  auto found = s.pictures.find(picture.place);
  const bool known = found != s.pictures.end();
  if (picture.pending && known) {
    found->second.last_frame = s.frame;
    return platform::texture_id(found->second.pixels.id());
  }
  const bool same_texels = known && texel_key(found->second.picture) == texel_key(picture);
  const bool same_look =
      known && look_key(found->second.picture) == look_key(picture) && found->second.scale == s.scale;
  if (!same_texels || !same_look) {
    const KeptState as_it_was;
    if (!known) found = s.pictures.try_emplace(picture.place).first;
    Kept& kept = found->second;
    std::optional<State::Parts> changed;
    if (!same_texels) changed = s.upload(kept, picture, known ? &kept.picture : nullptr);
    State::Parts pixels{{0, 0, picture.width, picture.height}};
    if (changed && same_look) {
      pixels.clear();
      for (const Part& texels : *changed) pixels.push_back(pixels_of(texels, picture, kept.texels));
    }
    s.draw(kept, picture, pixels);
    kept.picture = picture;
    kept.scale = s.scale;
  }
  found->second.last_frame = s.frame;
  return platform::texture_id(found->second.pixels.id());
}

void HeatmapRenderer::set_scale(float scale) {
  state_->scale = scale;
}

void HeatmapRenderer::end_frame() {
  State& s = *state_;
  ++s.frame;
  std::erase_if(s.pictures, [&](const auto& entry) {
    const bool outdated = s.frame - entry.second.last_frame > frames_kept;
    if (outdated) s.painted.erase(entry.second.pixels.id());
    return outdated;
  });
}

std::uint64_t HeatmapRenderer::painted(std::uint64_t texture) const {
  const auto found = state_->painted.find(texture);
  return found == state_->painted.end() ? 0 : found->second;
}

HeatmapRenderer::Work HeatmapRenderer::work() const {
  return state_->work;
}
std::size_t HeatmapRenderer::pictures_kept() const {
  return state_->pictures.size();
}

}  // namespace app::render
