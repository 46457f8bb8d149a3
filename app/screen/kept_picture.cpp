#include "app/screen/kept_picture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace app::render {
namespace {

constexpr std::size_t tile = 16;  // pixels across and down that have one version

/// What the colors of texels are made from. Pointers count: other matrices of one version are other numbers.
auto numbers_key(const Picture& p) {
  return std::tie(p.cells.numbers, p.cells.rows.numbers, p.cells.rows.sums, p.cells.visible, p.cells.kept,
                  p.cells.version, p.cells.flags_version, p.map, p.dark, p.low, p.high, p.least, p.dots);
}

/// Which part of the matrix is shown, and how large.
auto part_key(const Picture& p) {
  return std::tie(p.width, p.height, p.part.left, p.part.top, p.part.right, p.part.bottom);
}

/// What else the pixels are made from.
auto look_key(const Picture& p) {
  return std::tie(p.gaps, p.cross, p.phase);
}

bool same_texels(const Picture& a, const Picture& b) {
  return numbers_key(a) == numbers_key(b) && part_key(a) == part_key(b);
}

/// Where these texels are in the picture, with a pixel around them.
Part pixels_of(const Part& part, const Picture& p, const Texels& t) {
  const Placing place = placing(p, t);
  const double across = p.width / place.across, down = p.height / place.down;  // pixels a texel
  const auto before = [](std::size_t texel, double first, double pitch) {
    return static_cast<std::size_t>(
        std::max(0.0, std::floor((static_cast<double>(texel) - first) * pitch) - 1));
  };
  const auto after = [](std::size_t texel, double first, double pitch, std::size_t most) {
    const double edge = std::ceil((static_cast<double>(texel) - first) * pitch) + 1;
    return static_cast<std::size_t>(std::clamp(edge, 0.0, static_cast<double>(most)));
  };
  const Part all = whole(p);
  return {before(part.left, place.left, across), before(part.top, place.top, down),
          after(part.right, place.left, across, all.right), after(part.bottom, place.top, down, all.bottom)};
}

}  // namespace

bool KeptPicture::has_texels_of(const Picture& p) const {
  return picture_ && same_texels(*picture_, p);
}

double KeptPicture::cells_to_read(const Picture& p) const {
  const bool same_blocks = picture_ && has_rows(p) && has_rows(*picture_) && picture_->width == p.width &&
                           picture_->height == p.height;
  if (same_blocks && !change_since(&*picture_, p).all) return 0;
  const double cells = std::max(0.0, (p.part.right - p.part.left) * (p.part.bottom - p.part.top));
  return has_rows(p) ? cells : 2 * cells;  // numbers by columns, and their marks, take about twice as long
}

bool KeptPicture::prepare(const Picture& p, double cells) {
  if (has_rows(p)) return by_rows_.prepare(p, picture_ && has_rows(*picture_) ? &*picture_ : nullptr, cells);
  if (!making_ || !same_texels(making_->picture, p)) making_ = Making{p, MatrixTexels(p)};
  return making_->texels.advance(p, cells / 2, threads_);
}

void KeptPicture::renew(const Picture& p, Work& work) {
  std::vector<Part> changed;
  if (has_rows(p)) {
    changed = renew_rows(p, work);
  } else {
    prepare(p, std::numeric_limits<double>::infinity());
    texels_ = std::move(making_->texels).texels();
    making_.reset();
    fill(std::exchange(texels_.data, {}), work);
    changed = {{0, 0, texels_.columns, texels_.rows}};
    drawn_.reset();
  }
  changed_.insert(changed_.end(), changed.begin(), changed.end());
  if (changed_.size() > most_parts) changed_ = {{0, 0, texels_.columns, texels_.rows}};
  picture_ = p;
}

std::vector<Part> KeptPicture::renew_rows(const Picture& p, Work& work) {
  const Picture* before = picture_ && has_rows(*picture_) ? &*picture_ : nullptr;
  const std::vector<Part> parts = by_rows_.renew(p, before);
  const Texels& now = by_rows_.texels();
  const bool same_size = before && texels_.rows == now.rows && texels_.columns == now.columns;
  texels_ = {now.rows, now.columns, 0, 0, now.pooling, {}};
  if (!same_size) {
    fill(now.data, work);
    drawn_.reset();
    return parts;
  }
  for (const Part& part : parts)
    cells_.replace(GL_RGBA, GL_UNSIGNED_BYTE, static_cast<GLint>(part.left), static_cast<GLint>(part.top),
                   static_cast<GLsizei>(part.right - part.left), static_cast<GLsizei>(part.bottom - part.top),
                   static_cast<GLint>(now.columns), now.data.data() + part.top * now.columns + part.left);
  if (!parts.empty()) ++work.uploads;
  return parts;
}

void KeptPicture::fill(const std::vector<Texel>& data, Work& work) {
  if (data.empty()) return;
  cells_.fill(GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, static_cast<GLsizei>(texels_.columns),
              static_cast<GLsizei>(texels_.rows), data.data());
  ++work.uploads;
}

std::vector<Part> KeptPicture::outdated(const Picture& p, float scale) const {
  const bool same_look = drawn_ && scale == scale_ && part_key(*drawn_) == part_key(p) &&
                         look_key(*drawn_) == look_key(p) && drawn_->dark == p.dark;
  if (!same_look) return {whole(p)};
  std::vector<Part> parts;
  for (const Part& part : changed_) parts.push_back(pixels_of(part, p, texels_));
  return parts;
}

bool KeptPicture::wants_drawing(const Picture& p, float scale) const {
  if (!drawn_) return true;
  const bool is_of_its_numbers = picture_ && numbers_key(*picture_) == numbers_key(p);
  return is_of_its_numbers && !outdated(p, scale).empty();
}

void KeptPicture::draw(const Picture& p, float scale, Brush& brush, Work& work) {
  const std::vector<Part> parts = outdated(p, scale);
  const Part all = whole(p);
  if (painted_.empty() || !drawn_ || drawn_->width != p.width || drawn_->height != p.height) {
    pixels_.fill(GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, static_cast<GLsizei>(all.right),
                 static_cast<GLsizei>(all.bottom), nullptr);
    tile_columns_ = (all.right + tile - 1) / tile;
    painted_.assign(tile_columns_ * ((all.bottom + tile - 1) / tile), 0);
  }
  if (texels_.rows == 0)
    brush.clear(p, pixels_);
  else
    brush.draw(p, texels_, cells_, scale, parts, pixels_);
  ++work.draws;
  for (const Part& part : parts)
    for (std::size_t r = part.top / tile; r * tile < part.bottom; ++r)
      for (std::size_t c = part.left / tile; c * tile < part.right; ++c)
        painted_[r * tile_columns_ + c] = work.draws;
  changed_.clear();
  drawn_ = p;
  scale_ = scale;
}

std::uint64_t KeptPicture::painted(const Share& part) const {
  const Part all = drawn_ ? whole(*drawn_) : Part{0, 0, 1, 1};
  const auto at = [](float share, std::size_t length) {
    const auto place = std::clamp(share, 0.0f, 1.0f) * static_cast<float>(length);
    return std::min(static_cast<std::size_t>(place), length - 1) / tile;
  };
  std::uint64_t last = 0;
  for (std::size_t r = at(part.top, all.bottom); r <= at(part.bottom, all.bottom); ++r)
    for (std::size_t c = at(part.left, all.right); c <= at(part.right, all.right); ++c)
      last = std::max(last, painted_[r * tile_columns_ + c]);
  return last;
}

}  // namespace app::render
