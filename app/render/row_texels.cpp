#include "app/render/row_texels.hpp"

#include <algorithm>
#include <tuple>

namespace app::render {
namespace {

auto flags_key(const Picture& p) {
  return std::tie(p.visible, p.kept, p.flags_version, p.width, p.height);
}

auto range_key(const Picture& p) {
  return std::tie(p.map, p.dark, p.low, p.high, p.least, p.dots, p.width, p.height);
}

/// Whether both are pooled alike, so that what is in the pool of one is of use for the other.
bool same_blocks(const Picture& a, const Picture& b) {
  const auto key = [](const Picture& p) {
    const Pooling block = pooling(p);
    return std::tuple(p.rows.n_rows, p.rows.n_columns, block.rows, block.columns, is_diverging(p.map));
  };
  return key(a) == key(b);
}

}  // namespace

CellChange change_since(const Picture* before, const Picture& now) {
  if (!before || !before->rows.same_source(now.rows)) return {};
  if (before->version == now.version) return {false, {}, {}, now.rows.n_rows};
  return now.change && before->version + 1 == now.version ? *now.change : CellChange{};
}

Pool::Written RowTexels::pool(const Picture& p, const CellChange& change) {
  const Pooling block = pooling(p);
  pooled_ = p;
  return pool_.renew(p.rows, is_diverging(p.map), block.rows, block.columns, change);
}

bool RowTexels::holds(const Picture& p) const {
  return pooled_ && same_blocks(*pooled_, p) && pooled_->rows.same_source(p.rows) &&
         pooled_->version == p.version && pooled_rows_ == p.rows.n_rows;
}

CellChange RowTexels::change_for(const Picture& p, const Picture* before) const {
  return before && holds(*before) ? change_since(before, p) : CellChange{};
}

bool RowTexels::prepare(const Picture& p, const Picture* before, double cells) {
  if (!change_for(p, before).all || !pooled_ || !same_blocks(*pooled_, p)) return true;
  const CellChange change = change_since(&*pooled_, p);
  if (change.all)
    pooled_rows_ = 0;
  else if (pooled_->version != p.version)
    pool(p, change);
  const std::size_t block = pooling(p).rows, n_rows = p.rows.n_rows;
  const auto rows_in_time = static_cast<std::size_t>(cells / static_cast<double>(p.rows.n_columns));
  const std::size_t end =
      std::min(n_rows, pooled_rows_ + std::max<std::size_t>(1, rows_in_time / block) * block);
  CellChange rows;
  rows.all = false;
  for (std::size_t i = pooled_rows_; i < end; ++i) rows.rows.push_back(i);
  pool(p, rows);
  pooled_rows_ = end;
  return end == n_rows;
}

Part RowTexels::renew(const Picture& p, const Picture* before) {
  const Pooling block = pooling(p);
  const CellChange change = change_for(p, before);
  Pool::Written written{{{0, pool_.n_rows()}}, std::nullopt};
  if (!change.all || !holds(p)) written = pool(p, change);
  pooled_rows_ = p.rows.n_rows;
  const bool same_flags = before && flags_key(*before) == flags_key(p);
  const bool same_range = before && range_key(*before) == range_key(p);
  const bool same_size = before && texels_.rows == pool_.n_rows() && texels_.columns == pool_.n_columns();
  if (!same_flags) {
    visible_ = p.visible ? block_flags(*p.visible, block) : std::vector<double>();
    kept_ = p.kept ? block_flags(*p.kept, block) : std::vector<double>();
  }
  texels_.rows = pool_.n_rows(), texels_.columns = pool_.n_columns();
  texels_.across = p.right / static_cast<double>(block.columns),
  texels_.down = p.bottom / static_cast<double>(block.rows);
  texels_.pooling = block;
  texels_.data.resize(texels_.rows * texels_.columns);
  if (!same_flags || !same_range || !same_size) written = {{{0, texels_.rows}}, std::nullopt};

  const Shades shades(p);
  Part changed{texels_.columns, texels_.rows, 0, 0};
  for (const auto& [first, last] : written.rows)
    for (std::size_t r = first; r < last; ++r) write(shades, r, 0, texels_.columns, changed);
  if (const auto column = written.column)
    for (std::size_t r = 0; r < texels_.rows; ++r) write(shades, r, *column, *column + 1, changed);
  return same_size ? changed : Part{0, 0, texels_.columns, texels_.rows};
}

void RowTexels::write(const Shades& shades, std::size_t row, std::size_t first, std::size_t last,
                      Part& changed) {
  const std::size_t start = row * texels_.columns;
  for (std::size_t column = first; column < last; ++column) {
    const std::size_t at = start + column;
    const bool hidden = !visible_.empty() && visible_[at] == 0, dropped = !kept_.empty() && kept_[at] == 0;
    const Texel now = shades(pool_(row, column), hidden, dropped);
    if (now == texels_.data[at]) continue;
    texels_.data[at] = now;
    changed = {std::min(changed.left, column), std::min(changed.top, row),
               std::max(changed.right, column + 1), std::max(changed.bottom, row + 1)};
  }
}

}  // namespace app::render
