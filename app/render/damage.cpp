#include "app/render/damage.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "app/platform/imgui_compat.hpp"

namespace app::render {
namespace {

constexpr std::size_t most_areas = 12;      // each of them costs a pass over the lists
constexpr double most_of_the_window = 0.6;  // beyond it everything is drawn

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  a = (a ^ b) * 0x9e3779b97f4a7c15ull;
  return a ^ (a >> 29);
}

std::uint64_t bits(float x, float y) {
  std::uint32_t low = 0, high = 0;
  std::memcpy(&low, &x, sizeof x);
  std::memcpy(&high, &y, sizeof y);
  return low | static_cast<std::uint64_t>(high) << 32;
}

/// A range of cells, from the first to before the last.
struct Span {
  int first = 0, last = 0;
};

/// The tiles that lie between two places.
Span tiles(float from, float to, int count) {
  const float size = Damage::tile;
  return {static_cast<int>(std::clamp(std::floor(from / size), 0.0f, static_cast<float>(count))),
          static_cast<int>(std::clamp(std::ceil(to / size), 0.0f, static_cast<float>(count)))};
}

/// The part of the screen that three vertices may colour.
ImVec4 bounds(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c) {
  return {std::min({a.pos.x, b.pos.x, c.pos.x}), std::min({a.pos.y, b.pos.y, c.pos.y}),
          std::max({a.pos.x, b.pos.x, c.pos.x}), std::max({a.pos.y, b.pos.y, c.pos.y})};
}

ImVec4 common(const ImVec4& a, const ImVec4& b) {
  return {std::max(a.x, b.x), std::max(a.y, b.y), std::min(a.z, b.z), std::min(a.w, b.w)};
}
bool is_empty(const ImVec4& r) {
  return !(r.x < r.z && r.y < r.w);
}

/// The version of what a triangle shows of a texture in one row of tiles, where the texture stands upright;
/// of other triangles that of the whole texture.
std::uint64_t version_in(int row, const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c,
                         std::uint64_t texture, const Damage::TextureVersion& version) {
  const auto [low, high] = std::minmax({a.pos.y, b.pos.y, c.pos.y});
  const auto [top, bottom] = std::minmax({a.uv.y, b.uv.y, c.uv.y});
  const auto height_of = [&](float y) { return top + (y - low) / (high - low) * (bottom - top); };
  const auto is_upright = [&](const ImDrawVert& v) { return std::abs(height_of(v.pos.y) - v.uv.y) < 1e-4f; };
  if (!(high > low) || !is_upright(a) || !is_upright(b) || !is_upright(c)) return version(texture, 0, 1);
  const auto tile = static_cast<float>(Damage::tile);
  return version(texture, height_of(static_cast<float>(row) * tile),
                 height_of(static_cast<float>(row + 1) * tile));
}

/// Adds what one command draws to the sums of the tiles that it touches.
void add_command(const ImDrawList& list, const ImDrawCmd& command, const std::vector<std::uint64_t>& vertices,
                 const Damage::TextureVersion& version, int columns, int rows,
                 std::vector<std::uint64_t>& sums) {
  const std::uint64_t texture = platform::drawn_texture(command);
  const ImVec4& clip = command.ClipRect;
  const std::uint64_t look = mixed(mixed(texture, bits(clip.x, clip.y)), bits(clip.z, clip.w));
  const bool may_change = version && version(texture, 0, 1) != 0;
  for (unsigned e = 0; e + 2 < command.ElemCount; e += 3) {
    const auto at = [&](unsigned k) {
      return static_cast<int>(command.VtxOffset) +
             list.IdxBuffer[static_cast<int>(command.IdxOffset + e + k)];
    };
    const int i = at(0), j = at(1), k = at(2);
    const ImVec4 seen =
        common(bounds(list.VtxBuffer[i], list.VtxBuffer[j], list.VtxBuffer[k]), command.ClipRect);
    if (is_empty(seen)) continue;
    const auto of = [&](int v) { return vertices[static_cast<std::size_t>(v)]; };
    const std::uint64_t sum = mixed(mixed(mixed(look, of(i)), of(j)), of(k));
    const Span across = tiles(seen.x, seen.z, columns), down = tiles(seen.y, seen.w, rows);
    for (int row = down.first; row < down.last; ++row) {
      const std::uint64_t in_row = may_change
                                       ? mixed(sum, version_in(row, list.VtxBuffer[i], list.VtxBuffer[j],
                                                               list.VtxBuffer[k], texture, version))
                                       : sum;
      for (int column = across.first; column < across.last; ++column) {
        std::uint64_t& tile = sums[static_cast<std::size_t>(row * columns + column)];
        tile = mixed(tile, in_row);
      }
    }
  }
}

/// One number for each tile: equal when the same is drawn in the same order.
std::vector<std::uint64_t> sums_of_tiles(const ImDrawData& data, const Damage::TextureVersion& version,
                                         int columns, int rows) {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(columns * rows), 1);
  std::vector<std::uint64_t> vertices;
  for (int l = 0; l < data.CmdListsCount; ++l) {
    const ImDrawList& list = *data.CmdLists[l];
    vertices.clear();
    for (const ImDrawVert& v : list.VtxBuffer)
      vertices.push_back(mixed(mixed(v.col, bits(v.pos.x, v.pos.y)), bits(v.uv.x, v.uv.y)));
    for (const ImDrawCmd& command : list.CmdBuffer)
      add_command(list, command, vertices, version, columns, rows, sums);
  }
  return sums;
}

/// Tiles side by side become one area, and such areas one above the other.
std::vector<Area> areas_of(const std::vector<bool>& differs, int columns, int rows) {
  std::vector<Area> areas;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      if (!differs[static_cast<std::size_t>(row * columns + column)]) continue;
      Area run{column, row, column, row + 1};
      while (run.right < columns && differs[static_cast<std::size_t>(row * columns + run.right)]) ++run.right;
      column = run.right;
      const auto above = std::find_if(areas.begin(), areas.end(), [&](const Area& a) {
        return a.left == run.left && a.right == run.right && a.bottom == row;
      });
      if (above != areas.end())
        ++above->bottom;
      else
        areas.push_back(run);
    }
  return areas;
}

/// The one area around all.
Area around(const std::vector<Area>& areas) {
  Area all = areas.front();
  for (const Area& a : areas)
    all = {std::min(all.left, a.left), std::min(all.top, a.top), std::max(all.right, a.right),
           std::max(all.bottom, a.bottom)};
  return all;
}

}  // namespace

std::vector<Area> Damage::renew(const ImDrawData& data, const TextureVersion& version) {
  const auto count = [](float length) { return (static_cast<int>(length) + tile - 1) / tile; };
  const int columns = count(data.DisplaySize.x), rows = count(data.DisplaySize.y);
  std::vector<std::uint64_t> now = sums_of_tiles(data, version, columns, rows);
  const bool same_size = columns == columns_ && rows == rows_ && before_.size() == now.size();
  columns_ = columns, rows_ = rows;
  std::vector<bool> differs(now.size(), true);
  if (same_size)
    for (std::size_t i = 0; i < now.size(); ++i) differs[i] = now[i] != before_[i];
  before_ = std::move(now);
  std::vector<Area> areas = areas_of(differs, columns, rows);
  if (areas.size() > most_areas) areas = {around(areas)};
  const auto n_differ = static_cast<double>(std::count(differs.begin(), differs.end(), true));
  if (n_differ > most_of_the_window * static_cast<double>(differs.size())) areas = {{0, 0, columns, rows}};
  for (Area& a : areas) {
    const auto place = [](int tiles, float length) {
      return std::min(tiles * tile, static_cast<int>(length));
    };
    a = {a.left * tile, a.top * tile, place(a.right, data.DisplaySize.x),
         place(a.bottom, data.DisplaySize.y)};
  }
  return areas;
}

void keep_within(ImDrawData& data, const std::vector<Area>& areas) {
  data.TotalIdxCount = 0;
  for (int l = 0; l < data.CmdListsCount; ++l) {
    ImDrawList& list = *data.CmdLists[l];
    ImVector<ImDrawCmd> commands;
    ImVector<ImDrawIdx> indices;
    for (const Area& area : areas)
      for (const ImDrawCmd& command : list.CmdBuffer) {
        ImDrawCmd cut = command;
        cut.ClipRect =
            common(command.ClipRect, {static_cast<float>(area.left), static_cast<float>(area.top),
                                      static_cast<float>(area.right), static_cast<float>(area.bottom)});
        if (is_empty(cut.ClipRect)) continue;
        cut.IdxOffset = static_cast<unsigned>(indices.Size);
        const ImDrawIdx* index = list.IdxBuffer.Data + command.IdxOffset;
        for (const ImDrawIdx* end = index + command.ElemCount; index < end; index += 3) {
          const ImDrawVert* v = list.VtxBuffer.Data + command.VtxOffset;
          if (is_empty(common(bounds(v[index[0]], v[index[1]], v[index[2]]), cut.ClipRect))) continue;
          for (int k = 0; k < 3; ++k) indices.push_back(index[k]);
        }
        cut.ElemCount = static_cast<unsigned>(indices.Size) - cut.IdxOffset;
        if (cut.ElemCount > 0) commands.push_back(cut);
      }
    list.CmdBuffer.swap(commands);
    list.IdxBuffer.swap(indices);
    data.TotalIdxCount += list.IdxBuffer.Size;
  }
}

}  // namespace app::render
