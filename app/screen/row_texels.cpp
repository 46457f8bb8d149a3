#include "app/screen/row_texels.hpp"

#include <algorithm>
#include <tuple>

namespace app::render {
namespace {

auto flags_key(const Picture& p) {
  return std::tie(p.cells.visible, p.cells.kept, p.cells.flags_version, p.width, p.height);
}

auto range_key(const Picture& p) {
  return std::tie(p.map, p.dark, p.low, p.high, p.least, p.dots, p.width, p.height);
}

/// Whether both show the same memory in the same way.
bool same_source(const RowView& a, const RowView& b) {
  return a.numbers == b.numbers && a.sums == b.sums;
}

}  // namespace

HeadChange change_since(const Picture* before, const Picture& now) {
  if (!before || !same_source(before->cells.rows, now.cells.rows)) return {};
  if (before->cells.version == now.cells.version) return {false, {}, {}, now.cells.rows.n_rows};
  return now.cells.change && before->cells.version + 1 == now.cells.version ? *now.cells.change
                                                                            : HeadChange{};
}

Pool::Written RowTexels::pool(const Picture& p, const HeadChange& change) {
  const Pooling block = pooling(p);
  pooled_ = p;
  return pool_.renew(p.cells.rows, is_diverging(p.map), block.rows, block.columns, change, threads_);
}

bool RowTexels::fits(const Picture& p) const {
  const Pooling block = pooling(p);
  return pooled_ && pool_.fits(p.cells.rows, is_diverging(p.map), block.rows, block.columns);
}

bool RowTexels::holds(const Picture& p) const {
  return fits(p) && same_source(pooled_->cells.rows, p.cells.rows) &&
         pooled_->cells.version == p.cells.version && pooled_rows_ == p.cells.rows.n_rows;
}

HeadChange RowTexels::change_for(const Picture& p, const Picture* before) const {
  return before && holds(*before) ? change_since(before, p) : HeadChange{};
}

bool RowTexels::prepare(const Picture& p, const Picture* before, double cells) {
  if (!change_for(p, before).all) return true;
  const HeadChange change = pooled_ && fits(p) ? change_since(&*pooled_, p) : HeadChange{};
  if (!fits(p)) pool_.begin(p.cells.rows, is_diverging(p.map), pooling(p).rows, pooling(p).columns);
  if (change.all)
    pooled_rows_ = 0;
  else if (pooled_->cells.version != p.cells.version)
    pool(p, change);
  const std::size_t block = pooling(p).rows, n_rows = p.cells.rows.n_rows;
  const auto rows_in_time = static_cast<std::size_t>(cells / static_cast<double>(p.cells.rows.n_cols));
  const std::size_t end =
      std::min(n_rows, pooled_rows_ + std::max<std::size_t>(1, rows_in_time / block) * block);
  HeadChange rows;
  rows.all = false;
  for (std::size_t i = pooled_rows_; i < end; ++i) rows.rows.push_back(i);
  pool(p, rows);
  pooled_rows_ = end;
  return end == n_rows;
}

std::vector<Part> RowTexels::renew(const Picture& p, const Picture* before) {
  const Pooling block = pooling(p);
  const HeadChange change = change_for(p, before);
  Pool::Written written{std::vector<bool>(pool_.n_rows(), true), std::nullopt};
  if (!change.all || !holds(p)) written = pool(p, change);
  pooled_rows_ = p.cells.rows.n_rows;
  const bool same_flags = before && flags_key(*before) == flags_key(p);
  const bool same_range = before && range_key(*before) == range_key(p);
  const bool same_size = before && texels_.rows == pool_.n_rows() && texels_.columns == pool_.n_columns();
  if (!same_flags) {
    visible_ = p.cells.visible ? block_flags(*p.cells.visible, block) : std::vector<double>();
    kept_ = p.cells.kept ? block_flags(*p.cells.kept, block) : std::vector<double>();
  }
  texels_.rows = pool_.n_rows(), texels_.columns = pool_.n_columns();
  texels_.pooling = block;
  texels_.data.resize(texels_.rows * texels_.columns);
  if (!same_flags || !same_range || !same_size)
    written = {std::vector<bool>(texels_.rows, true), std::nullopt};

  const Shades shades(p);
  ChangedTiles changed(texels_.rows, texels_.columns);
  constexpr std::size_t rows = ChangedTiles::tile;
  threads_.run((texels_.rows + rows - 1) / rows, [&](std::size_t task) {
    for (std::size_t r = task * rows; r < std::min((task + 1) * rows, texels_.rows); ++r) {
      if (written.rows[r])
        write(shades, r, 0, texels_.columns, changed);
      else if (written.column)
        write(shades, r, *written.column, *written.column + 1, changed);
    }
  });
  return same_size ? changed.parts(most_parts) : std::vector{Part{0, 0, texels_.columns, texels_.rows}};
}

void RowTexels::write(const Shades& shades, std::size_t row, std::size_t first, std::size_t last,
                      ChangedTiles& changed) {
  const std::size_t start = row * texels_.columns;
  const double* const numbers = pool_.row(row);
  const double* const visible = visible_.empty() ? nullptr : visible_.data() + start;
  const double* const kept = kept_.empty() ? nullptr : kept_.data() + start;
  Texel* const texels = texels_.data.data() + start;
  for (std::size_t column = first; column < last; ++column) {
    const bool hidden = visible && visible[column] == 0, dropped = kept && kept[column] == 0;
    const Texel now = shades(numbers[column], hidden, dropped);
    if (now == texels[column]) continue;
    texels[column] = now;
    changed.add(row, column);
  }
}

}  // namespace app::render
