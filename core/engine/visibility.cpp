#include "core/engine/visibility.hpp"

#include <algorithm>
#include <optional>

#include "core/graph/visible.hpp"

namespace core::attention::fast {

Visibility::Visibility(const Model& model, std::size_t sequence) {
  const std::size_t n = model.n_tokens(), n_keys = model.n_keys();
  const Mask& mask = model.mask;
  firsts_.assign(n, 0);
  ends_.assign(n, n_keys);
  const bool is_plain = !mask.says_more() && n == n_keys;
  std::optional<Sights> sights;    // for rows that must be looked at key by key
  auto cell = mask.cells.begin();  // sorted by row
  for (std::size_t row = 0; row < n; ++row) {
    const auto first_cell = cell;
    while (cell != mask.cells.end() && cell->row == row) ++cell;
    const bool by_hand = cell != first_cell;
    if (is_plain && !by_hand) {
      if (mask.causal) ends_[row] = row + 1;
    } else if (!by_hand && mask.documents.empty()) {
      put_range(model, sequence, row);
    } else {
      if (!sights) sights.emplace(model, sequence);
      std::vector<char> visible(n_keys);
      for (std::size_t j = 0; j < n_keys; ++j) visible[j] = sights->by_rules(row, j).visible;
      for (auto each = first_cell; each != cell; ++each) visible[each->column] = each->visible;
      put_keys(row, visible);
    }
  }
}

/// A row whose keys are those of the rule and the window, those of the prefix, and none of the padding.
void Visibility::put_range(const Model& model, std::size_t sequence, std::size_t row) {
  const Mask& mask = model.mask;
  const auto n_keys = static_cast<std::int64_t>(model.n_keys());
  const std::int64_t place = place_of_query(model, row);
  std::int64_t first = 0, end = n_keys;
  if (mask.causal) end = std::min(end, place + 1);
  const auto& [left, right] = mask.window;
  if (left) first = std::max(first, place - static_cast<std::int64_t>(*left));
  if (right) end = std::min(end, place + static_cast<std::int64_t>(*right) + 1);
  const auto prefix = static_cast<std::int64_t>(mask.prefix);
  if (end <= first) first = end = prefix;  // the prefix alone
  std::vector<std::uint32_t> hidden;
  const auto hide = [&](std::int64_t key) { hidden.push_back(static_cast<std::uint32_t>(key)); };
  if (prefix > 0) {
    for (std::int64_t key = prefix; key < first; ++key) hide(key);
    first = 0, end = std::max(end, prefix);
  }
  if (sequence < mask.hidden_keys.size()) {
    for (const std::size_t key : mask.hidden_keys[sequence])
      if (const auto k = static_cast<std::int64_t>(key); k >= first && k < end) hide(k);
    std::sort(hidden.begin(), hidden.end());
    hidden.erase(std::unique(hidden.begin(), hidden.end()), hidden.end());
    while (!hidden.empty() && hidden.back() + 1 == end) --end, hidden.pop_back();
    std::size_t before = 0;  // of those at the beginning of what is left
    while (before < hidden.size() && hidden[before] == first) ++first, ++before;
    hidden.erase(hidden.begin(), hidden.begin() + static_cast<std::ptrdiff_t>(before));
  }
  if (first >= end) first = end = 0;
  firsts_[row] = static_cast<std::size_t>(first), ends_[row] = static_cast<std::size_t>(end);
  if (!hidden.empty()) hidden_.emplace_back(row, std::move(hidden));
}

/// A row of which each key is known.
void Visibility::put_keys(std::size_t row, const std::vector<char>& visible) {
  std::size_t &first = firsts_[row], &end = ends_[row];
  for (end = visible.size(); end > 0 && !visible[end - 1];) --end;
  while (first < end && !visible[first]) ++first;
  std::vector<std::uint32_t> hidden;
  for (std::size_t j = first; j < end; ++j)
    if (!visible[j]) hidden.push_back(static_cast<std::uint32_t>(j));
  if (!hidden.empty()) hidden_.emplace_back(row, std::move(hidden));
}

std::size_t Visibility::mean_width() const {
  std::size_t sum = 0;
  for (std::size_t row = 0; row < ends_.size(); ++row) sum += ends_[row] - firsts_[row];
  return sum / ends_.size();
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
