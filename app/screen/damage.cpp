#include "app/screen/damage.hpp"

#include <backends/imgui_impl_opengl3.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "app/screen/gl.hpp"
#include "app/theme/imgui_compat.hpp"

namespace app::render {

struct Canvas::Surface {
  Framebuffer framebuffer;
  Texture texture;
};

Canvas::Canvas() = default;
Canvas::~Canvas() = default;

bool Canvas::resize(int width, int height) {
  if (surface_ && width == width_ && height == height_) return true;
  if (!surface_) surface_ = std::make_unique<Surface>();
  width_ = width, height_ = height;
  surface_->texture.fill(GL_RGBA8, window_format, window_type, width, height, nullptr);
  glBindFramebuffer(GL_FRAMEBUFFER, surface_->framebuffer.id());
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, surface_->texture.id(), 0);
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  return false;
}

void Canvas::begin(std::span<const ScreenRect> areas, float scale, Rgb color) {
  glBindFramebuffer(GL_FRAMEBUFFER, surface_->framebuffer.id());
  glViewport(0, 0, width_, height_);
  const ImVec4 c = vec(color);
  glClearColor(c.x, c.y, c.z, 1);
  glEnable(GL_SCISSOR_TEST);
  const auto pixels = [scale](int length) { return static_cast<GLint>(static_cast<float>(length) * scale); };
  for (const ScreenRect& a : areas) {
    glScissor(pixels(a.left), pixels(a.top), pixels(a.right) - pixels(a.left),
              pixels(a.bottom) - pixels(a.top));
    glClear(GL_COLOR_BUFFER_BIT);
  }
  glDisable(GL_SCISSOR_TEST);
}

void Canvas::copy_to_window() {
  glBindFramebuffer(GL_READ_FRAMEBUFFER, surface_->framebuffer.id());
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
  glBlitFramebuffer(0, 0, width_, height_, 0, height_, width_, 0, GL_COLOR_BUFFER_BIT, GL_NEAREST);
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
}

void Canvas::draw(ImDrawData& data, const std::vector<ScreenRect>& areas, Rgb background) {
  if (!areas.empty()) {
    begin(areas, data.FramebufferScale.x, background);
    clip_to_areas(data, areas);
    flip_vertically(data);
    ImGui_ImplOpenGL3_RenderDrawData(&data);
  }
  copy_to_window();
}

std::vector<std::uint8_t> Canvas::pixels() const {
  std::vector<std::uint8_t> rgba(4 * static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_));
  glBindFramebuffer(GL_READ_FRAMEBUFFER, surface_->framebuffer.id());
  glPixelStorei(GL_PACK_ALIGNMENT, 4);
  glReadPixels(0, 0, width_, height_, GL_RGBA, GL_UNSIGNED_BYTE, rgba.data());
  glBindFramebuffer(GL_READ_FRAMEBUFFER, 0);
  for (std::size_t alpha = 3; alpha < rgba.size(); alpha += 4) rgba[alpha] = 255;
  return rgba;
}

void flip_vertically(ImDrawData& data) {
  // Edges through pixel centers must be rounded to the same side as without the flip.
  constexpr float nudge = 1.0f / 256;
  for (int l = 0; l < data.CmdListsCount; ++l)
    for (ImDrawCmd& command : data.CmdLists[l]->CmdBuffer) std::swap(command.ClipRect.y, command.ClipRect.w);
  // Measured upwards from the lower edge: lengths are negative, and the backend multiplies them by the scale.
  data.DisplayPos.y += data.DisplaySize.y - nudge;
  data.DisplaySize.y = -data.DisplaySize.y;
  data.FramebufferScale.y = -data.FramebufferScale.y;
}

namespace {

constexpr std::size_t max_areas = 40;      // each costs a pass over all draw data
constexpr double full_redraw_share = 0.6;  // above this share everything is drawn

std::uint64_t combined_hash(std::uint64_t a, std::uint64_t b) {
  a = (a ^ b) * 0x9e3779b97f4a7c15ull;
  return a ^ (a >> 29);
}

std::uint64_t bits(float x, float y) {
  std::uint32_t low = 0, high = 0;
  std::memcpy(&low, &x, sizeof x);
  std::memcpy(&high, &y, sizeof y);
  return low | static_cast<std::uint64_t>(high) << 32;
}

/// A range of cells; last is exclusive.
struct TileRange {
  int first = 0, last = 0;
};

/// Returns the tiles between two coordinates.
TileRange tiles(float from, float to, int count) {
  const float size = Damage::tile;
  return {static_cast<int>(std::clamp(std::floor(from / size), 0.0f, static_cast<float>(count))),
          static_cast<int>(std::clamp(std::ceil(to / size), 0.0f, static_cast<float>(count)))};
}

/// Returns the bounding box of three vertices.
ImVec4 bounds(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c) {
  return {std::min({a.pos.x, b.pos.x, c.pos.x}), std::min({a.pos.y, b.pos.y, c.pos.y}),
          std::max({a.pos.x, b.pos.x, c.pos.x}), std::max({a.pos.y, b.pos.y, c.pos.y})};
}

ImVec4 intersection(const ImVec4& a, const ImVec4& b) {
  return {std::max(a.x, b.x), std::max(a.y, b.y), std::min(a.z, b.z), std::min(a.w, b.w)};
}
bool is_empty(const ImVec4& r) {
  return !(r.x < r.z && r.y < r.w);
}

/// Part of a texture that a triangle shows in each tile, if the texture is upright; else all of it.
class VisiblePart {
 public:
  VisiblePart(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c) {
    const UvRect all;
    for (const ImDrawVert* v : {&a, &b, &c}) {
      if (v->uv.x == all.left) left_ = v->pos.x;
      if (v->uv.x == all.right) right_ = v->pos.x;
      if (v->uv.y == all.top) top_ = v->pos.y;
      if (v->uv.y == all.bottom) bottom_ = v->pos.y;
    }
    const ImVec4 around = bounds(a, b, c);
    is_upright_ = left_ == around.x && right_ == around.z && top_ == around.y && bottom_ == around.w &&
                  left_ < right_ && top_ < bottom_;
  }
  UvRect in_tile(int row, int column) const {
    if (!is_upright_) return {};
    const auto tile = static_cast<float>(Damage::tile);
    const auto x = [&](int c) { return (static_cast<float>(c) * tile - left_) / (right_ - left_); };
    const auto y = [&](int r) { return (static_cast<float>(r) * tile - top_) / (bottom_ - top_); };
    return {x(column), y(row), x(column + 1), y(row + 1)};
  }

 private:
  static constexpr float nowhere = -1e9f;
  float left_ = nowhere, top_ = nowhere, right_ = nowhere, bottom_ = nowhere;
  bool is_upright_ = false;
};

/// Adds the triangles of one command to the checksums of the tiles that they touch.
void add_command(const ImDrawList& list, const ImDrawCmd& command, const std::vector<std::uint64_t>& vertices,
                 const Damage::TextureVersion& version, int columns, int rows,
                 std::vector<std::uint64_t>& sums) {
  const std::uint64_t texture = platform::command_texture(command);
  const ImVec4& clip = command.ClipRect;
  const std::uint64_t look =
      combined_hash(combined_hash(texture, bits(clip.x, clip.y)), bits(clip.z, clip.w));
  const bool may_change = version && version(texture, {}) != 0;
  for (unsigned e = 0; e + 2 < command.ElemCount; e += 3) {
    const auto at = [&](unsigned k) {
      return static_cast<int>(command.VtxOffset) +
             list.IdxBuffer[static_cast<int>(command.IdxOffset + e + k)];
    };
    const int i = at(0), j = at(1), k = at(2);
    const ImVec4 visible_box =
        intersection(bounds(list.VtxBuffer[i], list.VtxBuffer[j], list.VtxBuffer[k]), command.ClipRect);
    if (is_empty(visible_box)) continue;
    const auto of = [&](int v) { return vertices[static_cast<std::size_t>(v)]; };
    const std::uint64_t sum = combined_hash(combined_hash(combined_hash(look, of(i)), of(j)), of(k));
    const TileRange across = tiles(visible_box.x, visible_box.z, columns),
                    down = tiles(visible_box.y, visible_box.w, rows);
    const auto add = [&](const auto& sum_in) {
      for (int row = down.first; row < down.last; ++row)
        for (int column = across.first; column < across.last; ++column) {
          std::uint64_t& tile = sums[static_cast<std::size_t>(row * columns + column)];
          tile = combined_hash(tile, sum_in(row, column));
        }
    };
    if (!may_change) {
      add([sum](int, int) { return sum; });
      continue;
    }
    const VisiblePart shown(list.VtxBuffer[i], list.VtxBuffer[j], list.VtxBuffer[k]);
    add([&](int row, int column) {
      return combined_hash(sum, version(texture, shown.in_tile(row, column)));
    });
  }
}

/// Returns a checksum per tile: equal if the same is drawn in the same order.
std::vector<std::uint64_t> tile_checksums(const ImDrawData& data, const Damage::TextureVersion& version,
                                          int columns, int rows) {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(columns * rows), 1);
  std::vector<std::uint64_t> vertices;
  for (int l = 0; l < data.CmdListsCount; ++l) {
    const ImDrawList& list = *data.CmdLists[l];
    vertices.clear();
    for (const ImDrawVert& v : list.VtxBuffer)
      vertices.push_back(combined_hash(combined_hash(v.col, bits(v.pos.x, v.pos.y)), bits(v.uv.x, v.uv.y)));
    for (const ImDrawCmd& command : list.CmdBuffer)
      add_command(list, command, vertices, version, columns, rows, sums);
  }
  return sums;
}

/// Merges four cells of a grid into one, which is set if any of them is.
std::vector<bool> halved(const std::vector<bool>& grid, std::size_t columns) {
  const std::size_t rows = grid.size() / columns, half_columns = (columns + 1) / 2;
  std::vector<bool> half((rows + 1) / 2 * half_columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      if (grid[r * columns + c]) half[r / 2 * half_columns + c / 2] = true;
  return half;
}

std::vector<ScreenRect> runs(const std::vector<bool>& grid, int columns) {
  std::vector<ScreenRect> areas;
  const auto is_set = [&](int row, int column) {
    return grid[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                static_cast<std::size_t>(column)];
  };
  const int rows = static_cast<int>(grid.size()) / std::max(1, columns);
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      if (!is_set(row, column)) continue;
      ScreenRect run{column, row, column, row + 1};
      while (run.right < columns && is_set(row, run.right)) ++run.right;
      column = run.right;
      const auto above = std::find_if(areas.begin(), areas.end(), [&](const ScreenRect& a) {
        return a.left == run.left && a.right == run.right && a.bottom == row;
      });
      if (above != areas.end())
        ++above->bottom;
      else
        areas.push_back(run);
    }
  return areas;
}

}  // namespace

std::vector<ScreenRect> covering_areas(const std::vector<bool>& grid, int columns, std::size_t max_count) {
  std::vector<ScreenRect> areas = runs(grid, columns);
  const int rows = static_cast<int>(grid.size()) / std::max(1, columns);
  std::vector<bool> coarse = grid;
  int coarse_columns = columns;
  for (int size = 2; areas.size() > max_count; size *= 2) {
    coarse = halved(coarse, static_cast<std::size_t>(coarse_columns));
    coarse_columns = (coarse_columns + 1) / 2;
    areas = runs(coarse, coarse_columns);
    for (ScreenRect& a : areas)
      a = {a.left * size, a.top * size, std::min(a.right * size, columns), std::min(a.bottom * size, rows)};
  }
  return areas;
}

std::vector<ScreenRect> Damage::update(const ImDrawData& data, const TextureVersion& version) {
  const auto count = [](float length) { return (static_cast<int>(length) + tile - 1) / tile; };
  const int columns = count(data.DisplaySize.x), rows = count(data.DisplaySize.y);
  std::vector<std::uint64_t> now = tile_checksums(data, version, columns, rows);
  const bool same_size = columns == columns_ && rows == rows_ && previous_.size() == now.size();
  columns_ = columns, rows_ = rows;
  std::vector<bool> differs(now.size(), true);
  if (same_size)
    for (std::size_t i = 0; i < now.size(); ++i) differs[i] = now[i] != previous_[i];
  previous_ = std::move(now);
  std::vector<ScreenRect> areas = covering_areas(differs, columns, max_areas);
  const auto n_differ = static_cast<double>(std::count(differs.begin(), differs.end(), true));
  if (n_differ > full_redraw_share * static_cast<double>(differs.size())) areas = {{0, 0, columns, rows}};
  for (ScreenRect& a : areas) {
    const auto place = [](int tiles, float length) {
      return std::min(tiles * tile, static_cast<int>(length));
    };
    a = {a.left * tile, a.top * tile, place(a.right, data.DisplaySize.x),
         place(a.bottom, data.DisplaySize.y)};
  }
  return areas;
}

void clip_to_areas(ImDrawData& data, const std::vector<ScreenRect>& areas) {
  data.TotalIdxCount = 0;
  std::vector<ImVec4> around;  // each triangle's bounding box
  for (int l = 0; l < data.CmdListsCount; ++l) {
    ImDrawList& list = *data.CmdLists[l];
    around.clear();
    for (const ImDrawCmd& command : list.CmdBuffer) {
      const ImDrawVert* v = list.VtxBuffer.Data + command.VtxOffset;
      const ImDrawIdx* index = list.IdxBuffer.Data + command.IdxOffset;
      for (const ImDrawIdx* end = index + command.ElemCount; index < end; index += 3)
        around.push_back(bounds(v[index[0]], v[index[1]], v[index[2]]));
    }
    ImVector<ImDrawCmd> commands;
    ImVector<ImDrawIdx> indices;
    for (const ScreenRect& area : areas) {
      const ImVec4* triangle = around.data();
      for (const ImDrawCmd& command : list.CmdBuffer) {
        const ImVec4* const first = triangle;
        triangle += command.ElemCount / 3;
        ImDrawCmd clipped = command;
        clipped.ClipRect =
            intersection(command.ClipRect, {static_cast<float>(area.left), static_cast<float>(area.top),
                                            static_cast<float>(area.right), static_cast<float>(area.bottom)});
        if (is_empty(clipped.ClipRect)) continue;
        clipped.IdxOffset = static_cast<unsigned>(indices.Size);
        for (const ImVec4* t = first; t < triangle; ++t) {
          if (is_empty(intersection(*t, clipped.ClipRect))) continue;
          const ImDrawIdx* index = list.IdxBuffer.Data + command.IdxOffset + 3 * (t - first);
          for (int k = 0; k < 3; ++k) indices.push_back(index[k]);
        }
        clipped.ElemCount = static_cast<unsigned>(indices.Size) - clipped.IdxOffset;
        if (clipped.ElemCount > 0) commands.push_back(clipped);
      }
    }
    list.CmdBuffer.swap(commands);
    list.IdxBuffer.swap(indices);
    data.TotalIdxCount += list.IdxBuffer.Size;
  }
}

}  // namespace app::render
