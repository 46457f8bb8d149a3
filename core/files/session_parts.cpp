#include "core/files/session_parts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace core::formats {

namespace {

std::vector<std::size_t> indices(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

std::string json_number(double value) {
  return std::isfinite(value) ? text::number_text(value) : "\"" + text::number_text(value) + "\"";
}

std::string row_text(const arma::mat& m, std::size_t i) {
  std::string text = "[";
  for (std::size_t j = 0; j < m.n_cols; ++j) {
    if (j > 0) text += ", ";
    if (std::isfinite(m(i, j)))
      text::append_number(text, m(i, j));
    else
      text += json_number(m(i, j));
  }
  return text + "]";
}

std::string matrix_text(const arma::mat& m, const std::string& indent) {
  return list_text(indices(m.n_rows), indent, true,
                   [&](std::size_t i, const std::string&) { return row_text(m, i); });
}

std::string heads_text(const std::vector<attention::SharedMatrix>& matrices, std::size_t n_heads,
                       std::size_t n_sequences) {
  const auto heads_of = [&](std::size_t sequence, const std::string& indent) {
    return list_text(indices(n_heads), indent, true, [&](std::size_t head, const std::string& inner) {
      return matrix_text(matrices[sequence * n_heads + head], inner);
    });
  };
  return n_sequences == 1 ? heads_of(0, "  ") : list_text(indices(n_sequences), "  ", true, heads_of);
}

void require_count(const Json& place, std::size_t count, std::size_t limit, const char* things) {
  if (count > limit) place.fail("at most " + std::to_string(limit) + " " + things, std::to_string(count));
}

void require_bytes(const Json& place, std::uint64_t bytes, const char* things, std::uint64_t limit) {
  if (bytes > limit)
    place.fail(std::string(things) + " of at most " + text::gibibytes(limit), text::gibibytes(bytes));
}

std::uint64_t name_bytes(const std::vector<std::string>& names) {
  std::uint64_t bytes = sizeof(names);
  for (const std::string& name : names) bytes += sizeof(name) + name.size();
  return bytes;
}

namespace {

using attention::Mask;
using attention::MaskCell;
using Counts = std::vector<std::size_t>;

std::vector<MaskCell> read_cells(const Json& place) {
  std::vector<MaskCell> cells;
  for (const Json& cell : place.items_if_any("a list of cells [row, column, visible]")) {
    const auto parts = cell.items("[row, column, visible]");
    if (parts.size() != 3) cell.fail("[row, column, visible]");
    const std::size_t row = parts[0].whole(0), column = parts[1].whole(0);
    cells.push_back({row, column, parts[2].boolean()});
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
  const auto sides = place.items(expected);
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
  const auto items = place.items_if_any(expected);
  if (items.empty()) return {};
  std::vector<Counts> all;
  if (items.front().is_list())
    for (const Json& item : items) all.push_back(read_numbers(item, expected));
  else {
    require_count(place, items.size(), n_keys, "keys, as many as there are");
    require_bytes(place, n_sequences * items.size() * sizeof(std::size_t), "lists", max_copied_bytes);
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
    if (const auto member = place.given(key)) read(*member);
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

namespace {

using attention::Additions;
using attention::HeadNorm;
using positions::Rotary;
using text::number_text;

HeadNorm read_norm(const Json& place) {
  place.expect_keys({"rule", "query", "key", "epsilon", "over"});
  HeadNorm norm{place.required("rule").word(norm_words), place.required("query").row(),
                place.required("key").row()};
  if (const auto epsilon = place.given("epsilon")) norm.epsilon = epsilon->number();
  if (const auto over = place.given("over")) norm.over = over->word(norm_over_words);
  return norm;
}

positions::Scaling read_scaling(const Json& place) {
  using enum positions::ScalingRule;
  positions::Scaling scaling{place.required("rule").word(scaling_words)};
  if (scaling.rule != longrope) scaling.factor = place.required("factor").number();
  if (scaling.rule == linear) {
    place.expect_keys({"rule", "factor"});
    return scaling;
  }
  if (scaling.rule == llama3) {
    place.expect_keys({"rule", "factor", "low", "high", "original"});
    scaling.low = place.required("low").number();
    scaling.high = place.required("high").number();
  }
  scaling.original = place.required("original").number();
  if (scaling.rule == dynamic) place.expect_keys({"rule", "factor", "original"});
  if (scaling.rule == yarn) {
    place.expect_keys(
        {"rule", "factor", "beta_slow", "beta_fast", "original", "attention_factor", "truncate"});
    const auto number_or = [&](const char* key, double otherwise) {
      const auto given = place.given(key);
      return given ? given->number() : otherwise;
    };
    scaling.low = number_or("beta_slow", scaling.low);
    scaling.high = number_or("beta_fast", positions::yarn_fast);
    scaling.attention = number_or("attention_factor", positions::yarn_attention(scaling.factor));
    if (const auto truncate = place.given("truncate")) scaling.truncate = truncate->boolean();
  }
  if (scaling.rule == longrope) {
    place.expect_keys({"rule", "short_factor", "long_factor", "original", "attention_factor"});
    const arma::mat short_factors = place.required("short_factor").row(),
                    long_factors = place.required("long_factor").row();
    if (short_factors.n_cols != long_factors.n_cols)
      place.required("long_factor").fail("as many factors as short_factor has");
    scaling.factors = arma::mat(arma::join_cols(short_factors, long_factors));
    scaling.attention = place.required("attention_factor").number();
  }
  return scaling;
}

std::int64_t read_position(const Json& place) {
  constexpr double furthest = 0x1p40;
  const double number = place.number();
  if (std::trunc(number) != number || std::abs(number) > furthest)
    place.fail("a whole number between -2^40 and 2^40");
  return static_cast<std::int64_t>(number);
}

Rotary read_rotary(const Json& place) {
  place.expect_keys({"base", "pairs", "dimensions", "first", "scaling", "inverse_frequencies"});
  Rotary rotary;
  if (const auto base = place.given("base")) rotary.base = base->number();
  if (const auto pairs = place.given("pairs")) rotary.pairs = pairs->word(pair_words);
  if (const auto dimensions = place.given("dimensions")) rotary.dimensions = dimensions->whole(2);
  if (const auto first = place.given("first")) rotary.first = read_position(*first);
  if (const auto scaling = place.given("scaling")) rotary.scaling = read_scaling(*scaling);
  if (const auto all = place.given("inverse_frequencies")) rotary.inverse_frequencies = all->row();
  return rotary;
}

positions::Alibi read_alibi(const Json& place) {
  place.expect_keys({"slopes"});
  positions::Alibi alibi;
  if (const auto slopes = place.given("slopes")) alibi.slopes = slopes->row();
  return alibi;
}

positions::Relative read_relative(const Json& place) {
  place.expect_keys({"table", "max_distance", "bidirectional"});
  positions::Relative relative{place.required("table").matrix()};
  if (const auto far = place.given("max_distance")) relative.max_distance = far->whole(1);
  if (const auto both = place.given("bidirectional")) relative.bidirectional = both->boolean();
  return relative;
}

attention::Positions read_positions(const Json& place) {
  place.expect_keys({"rotary", "alibi", "relative"});
  attention::Positions positions;
  if (const auto rotary = place.given("rotary")) positions.rotary = read_rotary(*rotary);
  if (const auto alibi = place.given("alibi")) positions.alibi = read_alibi(*alibi);
  if (const auto relative = place.given("relative")) positions.relative = read_relative(*relative);
  return positions;
}

/// One matrix for all heads, or a list of them.
std::vector<attention::SharedMatrix> read_bias(const Json& place) {
  const auto row = place.first();
  const auto cell = row ? row->first() : std::nullopt;
  if (!cell || !cell->is_list()) return {place.matrix(Numbers::any)};
  std::vector<attention::SharedMatrix> all;
  for (const Json& head : place.items("a list of matrices, one for each head"))
    all.emplace_back(head.matrix(Numbers::any));
  return all;
}

/// {"key": value, …} of those that are added.
class Object {
 public:
  void add(const char* key, const std::string& value) {
    text_ += (text_.empty() ? "{\"" : ", \"") + std::string(key) + "\": " + value;
  }
  std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

std::string norm_text(const HeadNorm& norm) {
  Object object;
  object.add("rule", quoted_word(norm_words, norm.rule));
  object.add("query", row_text(norm.query, 0));
  object.add("key", row_text(norm.key, 0));
  object.add("epsilon", number_text(norm.epsilon));
  if (norm.over != attention::NormOver::head) object.add("over", quoted_word(norm_over_words, norm.over));
  return object.text();
}

std::string scaling_text(const positions::Scaling& scaling) {
  Object object;
  object.add("rule", quoted_word(scaling_words, scaling.rule));
  using enum positions::ScalingRule;
  if (scaling.rule != longrope) object.add("factor", number_text(scaling.factor));
  if (scaling.rule == llama3) {
    object.add("low", number_text(scaling.low));
    object.add("high", number_text(scaling.high));
  }
  if (scaling.rule == yarn) {
    object.add("beta_slow", number_text(scaling.low));
    object.add("beta_fast", number_text(scaling.high));
  }
  if (scaling.rule == longrope) {
    object.add("short_factor", row_text(*scaling.factors, 0));
    object.add("long_factor", row_text(*scaling.factors, 1));
  }
  if (scaling.rule != linear) object.add("original", number_text(scaling.original));
  if (scaling.rule == yarn || scaling.rule == longrope)
    object.add("attention_factor", number_text(scaling.attention));
  if (scaling.rule == yarn && !scaling.truncate) object.add("truncate", "false");
  return object.text();
}

std::string rotary_text(const Rotary& rotary) {
  Object object;
  object.add("base", number_text(rotary.base));
  object.add("pairs", quoted_word(pair_words, rotary.pairs));
  if (rotary.dimensions) object.add("dimensions", std::to_string(*rotary.dimensions));
  if (rotary.first != 0) object.add("first", std::to_string(rotary.first));
  if (rotary.scaling.rule != positions::ScalingRule::none)
    object.add("scaling", scaling_text(rotary.scaling));
  if (rotary.inverse_frequencies) object.add("inverse_frequencies", row_text(*rotary.inverse_frequencies, 0));
  return object.text();
}

std::string positions_text(const attention::Positions& positions) {
  Object object;
  if (positions.rotary) object.add("rotary", rotary_text(*positions.rotary));
  if (const auto& alibi = positions.alibi)
    object.add("alibi", alibi->slopes ? "{\"slopes\": " + row_text(*alibi->slopes, 0) + "}" : "{}");
  if (const auto& relative = positions.relative) {
    Object inner;
    inner.add("table", matrix_text(relative->table, "  "));
    inner.add("max_distance", std::to_string(relative->max_distance));
    inner.add("bidirectional", relative->bidirectional ? "true" : "false");
    object.add("relative", inner.text());
  }
  return object.text();
}

std::string bias_text(const std::vector<attention::SharedMatrix>& bias) {
  return bias.size() == 1 ? matrix_text(bias.front(), "  ") : heads_text(bias, bias.size(), 1);
}

}  // namespace

Additions read_additions(const Json& top, Additions without) {
  Additions a = std::move(without);
  if (const auto norm = top.member("normalise"))
    a.normalise = norm->is_null() ? std::nullopt : std::optional(read_norm(*norm));
  if (const auto where = top.member("positions"))
    a.positions = where->is_null() ? attention::Positions() : read_positions(*where);
  if (const auto cap = top.member("score_cap"))
    a.score_cap = cap->is_null() ? std::nullopt : std::optional(cap->number());
  if (const auto bias = top.member("score_bias"))
    a.score_bias = bias->is_null() ? std::vector<attention::SharedMatrix>() : read_bias(*bias);
  if (const auto sink = top.member("sink"))
    a.sink = sink->is_null() ? std::nullopt : std::optional(attention::SharedMatrix(sink->row()));
  return a;
}

std::vector<std::pair<const char*, std::string>> additions_text(const Additions& a) {
  std::vector<std::pair<const char*, std::string>> keys;
  if (a.normalise) keys.emplace_back("normalise", norm_text(*a.normalise));
  if (!(a.positions == attention::Positions())) keys.emplace_back("positions", positions_text(a.positions));
  if (a.score_cap) keys.emplace_back("score_cap", number_text(*a.score_cap));
  if (!a.score_bias.empty()) keys.emplace_back("score_bias", bias_text(a.score_bias));
  if (a.sink) keys.emplace_back("sink", row_text(*a.sink, 0));
  return keys;
}

}  // namespace core::formats
