#include "core/files/session_mask.hpp"

#include <algorithm>

#include "core/files/session_limits.hpp"
#include "core/files/session_lists.hpp"
#include "core/files/session_words.hpp"

namespace core::formats {
namespace {

using attention::Mask;
using attention::MaskCell;
using Counts = std::vector<std::size_t>;

std::vector<MaskCell> read_cells(const Json& place) {
  std::vector<MaskCell> cells;
  for (const Json& cell : place.items_if_any("a list of cells [row, column, visible]")) {
    const JsonItems parts = cell.items("[row, column, visible]");
    if (parts.size() != 3) cell.fail("[row, column, visible]");
    cells.push_back({parts[0].whole(0), parts[1].whole(0), parts[2].boolean()});
  }
  std::ranges::sort(cells, {}, &MaskCell::place);
  const auto twice = std::ranges::adjacent_find(cells, {}, &MaskCell::place);
  if (twice != cells.end())
    place.fail("each cell once",
               "[" + std::to_string(twice->row) + ", " + std::to_string(twice->column) + "] twice");
  return cells;
}

/// A side of the window: −1 stands for no limit.
std::optional<std::size_t> read_side(const Json& place) {
  if (place.is_number() && place.number() == -1) return std::nullopt;
  return place.whole(0);
}

attention::MaskWindow read_window(const Json& place) {
  const char* expected = "[keys to the left, keys to the right], -1 for no limit";
  const JsonItems sides = place.items(expected);
  if (sides.size() != 2) place.fail(expected);
  return {read_side(sides[0]), read_side(sides[1])};
}

Counts read_numbers(const Json& place, const char* expected) {
  Counts numbers;
  for (const Json& item : place.items_if_any(expected)) numbers.push_back(item.whole(0));
  return numbers;
}

/// A list for all sequences, or a list of lists, one for each.
std::vector<Counts> read_hidden_keys(const Json& place, std::size_t n_sequences, std::size_t n_keys) {
  const char* expected = "a list of keys, or a list of such for each sequence";
  const JsonItems items = place.items_if_any(expected);
  if (items.empty()) return {};
  std::vector<Counts> all;
  if (items.front().is_list())
    for (const Json& item : items) all.push_back(read_numbers(item, expected));
  else {
    require_count(place, items.size(), n_keys, "keys, as many as there are");
    require_bytes(place, n_sequences * items.size() * sizeof(std::size_t), "lists", most_copied_bytes);
    all.assign(n_sequences, read_numbers(place, expected));
  }
  for (Counts& keys : all) {
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice != keys.end()) place.fail("each key once", std::to_string(*twice) + " twice");
  }
  if (std::ranges::all_of(all, &Counts::empty) && all.size() == n_sequences) return {};
  return all;
}

std::string numbers_text(const Counts& numbers) {
  return list_text(numbers, "", false,
                   [](std::size_t number, const std::string&) { return std::to_string(number); });
}

std::string mask_cell_text(const MaskCell& cell, const std::string&) {
  return "[" + std::to_string(cell.row) + ", " + std::to_string(cell.column) + ", " +
         (cell.visible ? "true" : "false") + "]";
}

std::string window_text(const attention::MaskWindow& window) {
  const auto side = [](const std::optional<std::size_t>& n) { return n ? std::to_string(*n) : "-1"; };
  return "[" + side(window.left) + ", " + side(window.right) + "]";
}

}  // namespace

Mask read_mask(const Json& place, std::size_t n_sequences, std::size_t n_keys) {
  place.expect_keys(
      {"causal", "method", "empty_rows", "cells", "align", "window", "prefix", "documents", "hidden_keys"});
  Mask mask;
  const auto take = [&](const char* key, auto read) {
    if (const auto member = place.member(key); member && !member->is_null()) read(*member);
  };
  if (const auto causal = place.member("causal")) mask.causal = causal->boolean();
  if (const auto method = place.member("method")) mask.method = method->word(method_words);
  if (const auto rows = place.member("empty_rows")) mask.empty_rows = rows->word(empty_row_words);
  if (const auto cells = place.member("cells")) mask.cells = read_cells(*cells);
  take("align", [&](const Json& json) { mask.align = json.word(alignment_words); });
  take("window", [&](const Json& json) { mask.window = read_window(json); });
  take("prefix", [&](const Json& json) { mask.prefix = json.whole(0); });
  take("documents", [&](const Json& json) {
    mask.documents = read_numbers(json, "a list of whole numbers, one for each token");
  });
  take("hidden_keys",
       [&](const Json& json) { mask.hidden_keys = read_hidden_keys(json, n_sequences, n_keys); });
  return mask;
}

std::string mask_text(const Mask& mask) {
  std::string text = "{\"causal\": " + std::string(mask.causal ? "true" : "false") +
                     ", \"method\": " + quoted_word(method_words, mask.method) +
                     ", \"empty_rows\": " + quoted_word(empty_row_words, mask.empty_rows);
  const auto add = [&](const char* key, const std::string& value) {
    text += ", \"" + std::string(key) + "\": " + value;
  };
  if (!mask.cells.empty()) add("cells", list_text(mask.cells, "", false, mask_cell_text));
  if (mask.align != attention::MaskAlignment::last) add("align", quoted_word(alignment_words, mask.align));
  if (mask.window != attention::MaskWindow()) add("window", window_text(mask.window));
  if (mask.prefix > 0) add("prefix", std::to_string(mask.prefix));
  if (!mask.documents.empty()) add("documents", numbers_text(mask.documents));
  if (mask.hidden_keys.size() == 1) add("hidden_keys", numbers_text(mask.hidden_keys.front()));
  if (mask.hidden_keys.size() > 1)
    add("hidden_keys", list_text(mask.hidden_keys, "", false,
                                 [](const Counts& keys, const std::string&) { return numbers_text(keys); }));
  return text + "}";
}

}  // namespace core::formats
