#include "core/attention/fast/visibility.hpp"

#include <algorithm>

#include "core/attention/visible.hpp"

namespace core::attention::fast {

Visibility::Visibility(const Model& model, std::size_t sequence) {
  const std::size_t n = model.n_tokens(), n_keys = model.n_keys();
  const Mask& mask = model.mask;
  const bool is_simple = !mask.says_more() && n == n_keys;
  for (std::size_t i = 0; i < n; ++i) ends_.push_back(mask.causal && is_simple ? i + 1 : n_keys);
  firsts_.assign(n, 0);
  const Sights sights(model, sequence);
  const auto& cells = mask.cells;  // sorted by row
  std::vector<char> visible(n_keys);
  auto cell = cells.begin();
  for (std::size_t row = 0; row < n; ++row) {
    if (is_simple && (cell == cells.end() || cell->row != row)) continue;
    for (std::size_t j = 0; j < n_keys; ++j)
      visible[j] = is_simple ? j < ends_[row] : sights.by_rules(row, j).visible;
    for (; cell != cells.end() && cell->row == row; ++cell) visible[cell->column] = cell->visible;
    std::size_t &first = firsts_[row], &end = ends_[row];
    for (end = n_keys; end > 0 && !visible[end - 1];) --end;
    while (first < end && !visible[first]) ++first;
    std::vector<std::uint32_t> hidden;
    for (std::size_t j = first; j < end; ++j)
      if (!visible[j]) hidden.push_back(static_cast<std::uint32_t>(j));
    if (!hidden.empty()) hidden_.emplace_back(row, std::move(hidden));
  }
}

std::size_t Visibility::first_of(std::size_t first, std::size_t end, std::size_t unit) const {
  std::size_t least = SIZE_MAX;
  for (std::size_t row = first; row < end; ++row)
    if (ends_[row] > 0) least = std::min(least, firsts_[row]);
  return least == SIZE_MAX ? 0 : least / unit * unit;
}

const std::vector<std::uint32_t>& Visibility::hidden(std::size_t row) const {
  static const std::vector<std::uint32_t> none;
  const auto at = std::lower_bound(hidden_.begin(), hidden_.end(), row,
                                   [](const auto& h, std::size_t r) { return h.first < r; });
  return at != hidden_.end() && at->first == row ? at->second : none;
}

std::vector<std::size_t> Visibility::rows_that_see(std::size_t key) const {
  std::vector<std::size_t> rows;
  rows.reserve(ends_.size());
  auto next = hidden_.begin();
  for (std::size_t row = 0; row < ends_.size(); ++row) {
    const bool has_hidden = next != hidden_.end() && next->first == row;
    if (key >= firsts_[row] && key < ends_[row] && (!has_hidden || sees(row, key))) rows.push_back(row);
    if (has_hidden) ++next;
  }
  return rows;
}

bool Visibility::sees(std::size_t row, std::size_t key) const {
  const auto& h = hidden(row);
  return key >= firsts_[row] && key < ends_[row] &&
         !std::binary_search(h.begin(), h.end(), static_cast<std::uint32_t>(key));
}

}  // namespace core::attention::fast
