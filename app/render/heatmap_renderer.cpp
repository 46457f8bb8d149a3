#include "app/render/heatmap_renderer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
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
constexpr double cells_a_frame = 7e6;
constexpr std::size_t band = 16;  // rows of pixels that have one version

/// What the texels are made from. Pointers count: other matrices of one version are other numbers.
auto texel_key(const Picture& p) {
  return std::tie(p.numbers, p.rows.numbers, p.rows.sums, p.visible, p.kept, p.version, p.flags_version,
                  p.map, p.dark, p.low, p.high, p.least, p.dots, p.width, p.height, p.left, p.top, p.right,
                  p.bottom);
}

/// What else the pixels are made from.
auto look_key(const Picture& p) {
  return std::tie(p.gaps, p.cross, p.phase, p.width, p.height);
}

/// Texels that take several frames.
struct Making {
  Picture picture;
  MatrixTexels texels;
};

/// One picture that is kept.
struct Kept {
  Picture picture;
  Texels texels;      ///< without their data, which is in the texture
  RowTexels by_rows;  ///< where the picture's rows are known
  std::optional<Making> making;
  float scale = 0;
  std::uint64_t last_frame = 0;
  std::vector<std::uint64_t> painted;  ///< of each band of rows of pixels, when it was drawn last
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
  const double across = p.width / t.across,
               down = p.height / t.down;  // pixels a texel
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

/// How many numbers must be looked at; where few or none of the rows changed, none to speak of.
double cells_to_read(const Picture& before, const Picture& now) {
  const bool same_blocks =
      has_rows(now) && has_rows(before) && before.width == now.width && before.height == now.height;
  if (same_blocks && !change_since(&before, now).all) return 0;
  return std::max(0.0, (now.right - now.left) * (now.bottom - now.top));
}

/// All pixels of a picture.
Part whole(const Picture& p) {
  const auto size = [](int pixels) { return static_cast<std::size_t>(std::max(1, pixels)); };
  return {0, 0, size(p.width), size(p.height)};
}

/// Where these texels are in the picture, with a pixel around them.
Part pixels_of(const Part& part, const Picture& p, const Texels& t) {
  const double across = p.width / t.across,
               down = p.height / t.down;  // pixels a texel
  const auto before = [](std::size_t texel, double first, double pitch) {
    return static_cast<std::size_t>(
        std::max(0.0, std::floor((static_cast<double>(texel) - first) * pitch) - 1));
  };
  const auto after = [](std::size_t texel, double first, double pitch, std::size_t most) {
    const double place = std::ceil((static_cast<double>(texel) - first) * pitch) + 1;
    return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(most)));
  };
  const Part all = whole(p);
  return {before(part.left, t.left, across), before(part.top, t.top, down),
          after(part.right, t.left, across, all.right), after(part.bottom, t.top, down, all.bottom)};
}

}  // namespace

struct HeatmapRenderer::State {
  ShaderProgram program{shaders::heatmap_vert, shaders::heatmap_frag};
  Framebuffer framebuffer;
  VertexArray no_vertices;  // the vertex shader makes its own, but a core
                            // context wants one bound
  std::map<std::string, Kept> pictures;
  std::unordered_map<std::uint64_t, const Kept*> by_texture;
  std::deque<std::string>
      waiting;            // places of pictures that one of the next frames renews, the first ones first
  double cells_read = 0;  // in this frame
  std::uint64_t frame = 0;
  float scale = 1;
  Work work;

  /// Whether a picture that is shown already can be renewed in this frame; else it waits for its turn, or it
  /// is so large that it takes several.
  bool has_turn(Kept& kept, const Picture& picture) {
    const double cells = cells_to_read(kept.picture, picture);
    const auto in_line = std::find(waiting.begin(), waiting.end(), picture.place);
    const bool is_next = waiting.empty() || in_line == waiting.begin();
    const bool goes_on = cells == 0 || (is_next && (cells_read == 0 || cells_read + cells <= cells_a_frame));
    if (goes_on) cells_read += std::min(cells, cells_a_frame);
    if (goes_on && (cells <= cells_a_frame || prepare(kept, picture))) {
      if (in_line != waiting.end()) waiting.erase(in_line);
      return true;
    }
    if (in_line == waiting.end()) waiting.push_back(picture.place);
    return false;
  }

  /// Goes on with a large picture as far as a frame has time; whether little is left to do.
  static bool prepare(Kept& kept, const Picture& picture) {
    if (has_rows(picture))
      return kept.by_rows.prepare(picture, has_rows(kept.picture) ? &kept.picture : nullptr, cells_a_frame);
    if (!kept.making || texel_key(kept.making->picture) != texel_key(picture))
      kept.making = Making{picture, MatrixTexels(picture)};
    return kept.making->texels.advance(picture, cells_a_frame);
  }

  /// Gives the pixels that are others than before, if all else stays.
  Part upload(Kept& kept, const Picture& picture, const Picture* before) {
    if (has_rows(picture)) return upload_rows(kept, picture, before && has_rows(*before) ? before : nullptr);
    const bool is_made = kept.making && texel_key(kept.making->picture) == texel_key(picture);
    kept.texels = is_made ? std::move(kept.making->texels).texels() : texels(picture);
    kept.making.reset();
    fill(kept, std::exchange(kept.texels.data, {}));
    return whole(picture);
  }

  /// Of a picture whose rows are known, only what changed.
  Part upload_rows(Kept& kept, const Picture& picture, const Picture* before) {
    const Part part = kept.by_rows.renew(picture, before);
    const Texels& now = kept.by_rows.texels();
    const bool same_size = before && kept.texels.rows == now.rows && kept.texels.columns == now.columns;
    kept.texels = {now.rows, now.columns, now.left, now.top, now.across, now.down, 0, 0, now.pooling, {}};
    if (!same_size) {
      fill(kept, now.data);
      return whole(picture);
    }
    if (part.is_empty()) return {};
    kept.cells.replace(GL_RGBA, GL_UNSIGNED_BYTE, static_cast<GLint>(part.left), static_cast<GLint>(part.top),
                       static_cast<GLsizei>(part.right - part.left),
                       static_cast<GLsizei>(part.bottom - part.top), static_cast<GLint>(now.columns),
                       now.data.data() + part.top * now.columns + part.left);
    ++work.uploads;
    return pixels_of(part, picture, now);
  }

  void fill(Kept& kept, const std::vector<Texel>& data) {
    if (data.empty()) return;
    kept.cells.fill(GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, static_cast<GLsizei>(kept.texels.columns),
                    static_cast<GLsizei>(kept.texels.rows), data.data());
    ++work.uploads;
  }

  /// Draws these pixels anew; of a picture without texels, its ground.
  void draw(Kept& kept, const Picture& p, const Part& pixels) {
    const Part all = whole(p);
    const auto width = static_cast<GLsizei>(all.right), height = static_cast<GLsizei>(all.bottom);
    if (kept.painted.empty() || kept.picture.width != p.width || kept.picture.height != p.height) {
      kept.pixels.fill(GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, width, height, nullptr);
      kept.painted.assign((all.bottom + band - 1) / band, 0);
    }
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
      glScissor(static_cast<GLint>(pixels.left), static_cast<GLint>(pixels.top),
                static_cast<GLsizei>(pixels.right - pixels.left),
                static_cast<GLsizei>(pixels.bottom - pixels.top));
      glDrawArrays(GL_TRIANGLES, 0, 3);
    }
    ++work.draws;
    for (std::size_t b = pixels.top / band; b * band < pixels.bottom; ++b) kept.painted[b] = work.draws;
    by_texture[kept.pixels.id()] = &kept;
  }
};

HeatmapRenderer::HeatmapRenderer() : state_(std::make_unique<State>()) {}
HeatmapRenderer::~HeatmapRenderer() = default;

ImTextureID HeatmapRenderer::paint(const Picture& picture) {
  State& s = *state_;
  auto found = s.pictures.find(picture.place);
  const bool known = found != s.pictures.end();
  const bool same_texels = known && texel_key(found->second.picture) == texel_key(picture);
  if (known && (picture.pending || (!same_texels && !s.has_turn(found->second, picture)))) {
    found->second.last_frame = s.frame;
    return platform::texture_id(found->second.pixels.id());
  }
  const bool same_look =
      known && look_key(found->second.picture) == look_key(picture) && found->second.scale == s.scale;
  if (!same_texels || !same_look) {
    const KeptState as_it_was;
    if (!known) found = s.pictures.try_emplace(picture.place).first;
    Kept& kept = found->second;
    Part pixels = whole(picture);
    if (!same_texels) {
      const Part others = s.upload(kept, picture, known ? &kept.picture : nullptr);
      if (same_look) pixels = others;
    }
    if (!pixels.is_empty()) s.draw(kept, picture, pixels);
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
  std::erase_if(s.waiting,
                [&](const std::string& place) { return s.pictures.at(place).last_frame != s.frame; });
  s.cells_read = 0;
  ++s.frame;
  std::erase_if(s.pictures, [&](const auto& entry) {
    const bool outdated = s.frame - entry.second.last_frame > frames_kept;
    if (outdated) s.by_texture.erase(entry.second.pixels.id());
    return outdated;
  });
}

bool HeatmapRenderer::is_behind() const {
  return !state_->waiting.empty();
}

std::uint64_t HeatmapRenderer::painted(std::uint64_t texture, float top, float bottom) const {
  const auto found = state_->by_texture.find(texture);
  if (found == state_->by_texture.end()) return 0;
  const std::vector<std::uint64_t>& bands = found->second->painted;
  const auto height = static_cast<float>(std::max(1, found->second->picture.height));
  const auto at = [&](float share) {
    return std::min(static_cast<std::size_t>(std::clamp(share, 0.0f, 1.0f) * height) / band,
                    bands.size() - 1);
  };
  return *std::max_element(bands.begin() + static_cast<std::ptrdiff_t>(at(top)),
                           bands.begin() + static_cast<std::ptrdiff_t>(at(bottom)) + 1);
}

HeatmapRenderer::Work HeatmapRenderer::work() const {
  return state_->work;
}
std::size_t HeatmapRenderer::pictures_kept() const {
  return state_->pictures.size();
}

}  // namespace app::render
