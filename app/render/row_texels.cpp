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

/// What of the numbers is another than in the picture of the last time.
CellChange change_since(const Picture* before, const Picture& now) {
  if (!before || before->rows.numbers != now.rows.numbers) return {};
  if (before->version == now.version) return {false, {}, {}, now.rows.n_rows};
  return now.change && before->version + 1 == now.version ? *now.change : CellChange{};
}

}  // namespace

Part RowTexels::renew(const Picture& p, const Picture* before) {
  const Pooling block = pooling(p);
  Pool::Written written =
      pool_.renew(p.rows, is_diverging(p.map), block.rows, block.columns, change_since(before, p));
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
