#include "core/files/session_parts.hpp"

#include <fmt/core.h>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/stages.hpp"
#include "core/system/file.hpp"

namespace core::formats {
namespace {

using attention::Additions;
using attention::GivenCell;
using attention::Mask;
using attention::MaskCell;
using attention::Model;
using attention::QueryKeyNorm;
using attention::SharedMatrix;
using attention::Stage;
using text::number_text;

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
  return lines_text(indices(m.n_rows), indent,
                    [&](std::size_t i, const std::string&) { return row_text(m, i); });
}

std::string heads_text(const std::vector<SharedMatrix>& matrices, std::size_t n_heads,
                       std::size_t n_sequences) {
  const auto heads_of = [&](std::size_t sequence, const std::string& indent) {
    return lines_text(indices(n_heads), indent, [&](std::size_t head, const std::string& inner) {
      return matrix_text(matrices[sequence * n_heads + head], inner);
    });
  };
  return n_sequences == 1 ? heads_of(0, "  ") : lines_text(indices(n_sequences), "  ", heads_of);
}

void require_count(const Json& place, std::size_t count, std::size_t limit, const char* item_names) {
  if (count > limit) place.fail(fmt::format("at most {} {}", limit, item_names), std::to_string(count));
}

void require_bytes(const Json& place, std::uint64_t bytes, const char* item_names, std::uint64_t limit) {
  if (bytes > limit)
    place.fail(std::string(item_names) + " of at most " + text::gibibytes(limit), text::gibibytes(bytes));
}

void require_version(const Json& top) {
  const Json version = top.required("attnscope");
  if (version.whole(0) != 1) version.fail("version 1 of the session file");
}

std::string read_view(const Json& top) {
  const auto view = top.member("view");
  if (view && !view->is_object()) view->fail("an object");
  return view ? json_text(*view) : "";
}

void write_session(const std::filesystem::path& path, const std::function<std::string()>& text) {
  std::string all;
  try {
    all = text();
  } catch (const Error& error) {
    throw Error(path.string() + ": cannot be written: " + error.what());
  }
  system::write_atomically(path, all);
}

std::uint64_t name_bytes(const std::vector<std::string>& names) {
  std::uint64_t bytes = sizeof(names);
  for (const std::string& name : names) bytes += sizeof(name) + name.size();
  return bytes;
}

namespace {

template <class T>
const T& unwrap(const T& value) {
  return value;
}
template <class T>
const T& unwrap(const std::optional<T>& value) {
  return *value;
}

/// Fields of an object in a session, each described once for both directions: read from JSON, or written as
/// {"key": value, …} if set.
class Fields {
 public:
  Fields() = default;
  explicit Fields(const Json& place) : place_(&place) {}
  bool is_reading() const { return place_; }
  /// Returns the keys and JSON of the written fields.
  const std::vector<std::pair<const char*, std::string>>& written() const { return written_; }
  std::string text() const {
    const auto words = [](const auto& each) { return "\"" + std::string(each.first) + "\": " + each.second; };
    return "{" + text::joined(written_, ", ", words) + "}";
  }

  enum class NullPolicy { refused, as_missing, as_none };
  NullPolicy nulls = NullPolicy::as_missing;  ///< meaning of null

  /// Throws core::Error for any other key.
  void keys(std::initializer_list<std::string_view> all) const {
    if (place_) place_->expect_keys(all);
  }
  void require(std::initializer_list<std::string_view> keys) {
    required_.insert(required_.end(), keys);
    if (!place_) return;
    for (const std::string_view key : keys) place_->required(key);
  }

  /// Adds a value: read(json) returns it, write(value) returns its JSON; `should_write` is whether to write
  /// it.
  template <class T, class Read, class Write>
  void add(const char* key, T& value, bool should_write, Read read, Write write) {
    if (!place_) {
      if (should_write) written_.emplace_back(key, std::invoke(write, value));
    } else if (const auto json = place_->member(key)) {
      const bool is_required = std::ranges::find(required_, key) != required_.end();
      if (!json->is_null() || is_required || nulls == NullPolicy::refused)
        value = std::invoke(read, *json);
      else if (nulls == NullPolicy::as_none)
        value = T();
    }
  }
  void flag(const char* key, bool& value, bool should_write = true) {
    add(key, value, should_write, &Json::boolean, [](bool is_so) { return is_so ? "true" : "false"; });
  }
  template <class Number>
  void number(const char* key, Number& value, bool should_write = true) {
    add(
        key, value, should_write, [](const Json& json) { return json.number(); },
        [](const Number& n) { return number_text(unwrap(n)); });
  }
  template <class Whole>
  void whole(const char* key, Whole& value, std::uint64_t min_value, bool should_write = true) {
    constexpr auto max_value = std::numeric_limits<std::decay_t<decltype(unwrap(value))>>::max();
    add(
        key, value, should_write, [=](const Json& json) { return json.whole(min_value, max_value); },
        [](const Whole& n) { return std::to_string(unwrap(n)); });
  }
  template <class Meaning, std::size_t n>
  void word(const char* key, Meaning& value, const std::array<Word<Meaning>, n>& words,
            bool should_write = true) {
    add(
        key, value, should_write, [&](const Json& json) { return json.word(words); },
        [&](Meaning meaning) { return quoted_word(words, meaning); });
  }
  template <class Row>
  void row(const char* key, Row& value, bool should_write = true) {
    add(key, value, should_write, &Json::row,
        [](const Row& numbers) { return row_text(unwrap(numbers), 0); });
  }
  /// Adds an object of fields; see describe().
  template <class Object>
  void object(const char* key, Object& value, bool should_write) {
    using Described = std::remove_cvref_t<decltype(unwrap(value))>;
    add(key, value, should_write, &read_object<Described>,
        [](const Object& specified) { return object_text(unwrap(specified)); });
  }

  template <class Described, class... Context>
  static Described read_object(const Json& place, const Context&... context) {
    Described value{};
    Fields fields(place);
    describe(fields, value, context...);
    return value;
  }
  template <class Described, class... Context>
  static std::string object_text(Described value, const Context&... context) {
    Fields fields;
    describe(fields, value, context...);
    return fields.text();
  }

 private:
  const Json* place_ = nullptr;
  std::vector<std::string_view> required_;
  std::vector<std::pair<const char*, std::string>> written_;
};

using Indices = std::vector<std::size_t>;

std::string numbers_text(const Indices& numbers) {
  return json_list(numbers, [](std::size_t number) { return std::to_string(number); });
}

Indices read_numbers(const Json& place, const char* expected) {
  const auto numbers = place.whole_numbers(expected);
  return {numbers.begin(), numbers.end()};
}

std::vector<MaskCell> read_mask_cells(const Json& place) {
  constexpr const char* expected = "[row, column, visible]";
  std::vector<MaskCell> cells;
  for (const Json& cell : place.items_or_empty("a list of cells [row, column, visible]")) {
    const auto parts = cell.items(expected, 3);
    const std::size_t row = parts[0].whole(0), column = parts[1].whole(0);
    cells.push_back({row, column, parts[2].boolean()});
  }
  std::ranges::sort(cells, {}, &MaskCell::place);
  const auto duplicate = std::ranges::adjacent_find(cells, {}, &MaskCell::place);
  if (duplicate != cells.end())
    place.fail("each cell once", fmt::format("[{}, {}] twice", duplicate->row, duplicate->column));
  return cells;
}

std::string mask_cells_text(const std::vector<MaskCell>& cells) {
  return json_list(cells, [](const MaskCell& cell) {
    return fmt::format("[{}, {}, {}]", cell.row, cell.column, cell.visible ? "true" : "false");
  });
}

/// Reads one side of the window: −1 means no limit.
std::optional<std::size_t> read_side(const Json& place) {
  if (place.is_number() && place.number() == -1) return std::nullopt;
  return place.whole(0);
}

attention::MaskWindow read_window(const Json& place) {
  const auto sides = place.items("[keys to the left, keys to the right], -1 for no limit", 2);
  return {read_side(sides[0]), read_side(sides[1])};
}

std::string window_text(const attention::MaskWindow& window) {
  const auto side = [](const std::optional<std::size_t>& n) { return n ? std::to_string(*n) : "-1"; };
  return "[" + side(window.left) + ", " + side(window.right) + "]";
}

/// Reads the padding mask: one list for all sequences, or a list for each.
std::vector<Indices> read_padding_mask(const Json& place, std::size_t n_sequences, std::size_t n_keys) {
  const char* expected = "a list of keys, or a list of such for each sequence";
  const auto items = place.items_or_empty(expected);
  if (items.empty()) return {};
  std::vector<Indices> all;
  if (items.front().is_list())
    for (const Json& item : items) all.push_back(read_numbers(item, expected));
  else {
    require_count(place, items.size(), n_keys, "keys, as many as there are");
    require_bytes(place, n_sequences * items.size() * sizeof(std::size_t), "lists", max_copied_bytes);
    all.assign(n_sequences, read_numbers(place, expected));
  }
  for (Indices& keys : all) {
    std::ranges::sort(keys);
    const auto duplicate = std::ranges::adjacent_find(keys);
    if (duplicate != keys.end()) place.fail("each key once", std::to_string(*duplicate) + " twice");
  }
  if (std::ranges::all_of(all, &Indices::empty) && all.size() == n_sequences) return {};
  return all;
}

std::string padding_mask_text(const std::vector<Indices>& all) {
  return all.size() == 1 ? numbers_text(all.front()) : json_list(all, numbers_text);
}

void describe(Fields& f, Mask& mask, std::size_t n_sequences, std::size_t n_keys) {
  f.keys(
      {"causal", "method", "empty_rows", "cells", "align", "window", "prefix", "documents", "hidden_keys"});
  f.nulls = Fields::NullPolicy::refused;
  f.flag("causal", mask.causal);
  f.word("method", mask.method, method_words);
  f.word("empty_rows", mask.empty_rows, empty_row_words);
  f.add("cells", mask.cells, !mask.cells.empty(), read_mask_cells, mask_cells_text);
  f.nulls = Fields::NullPolicy::as_missing;
  f.word("align", mask.align, alignment_words, mask.align != attention::MaskAlignment::last);
  f.add("window", mask.window, mask.window != attention::MaskWindow(), read_window, window_text);
  f.whole("prefix", mask.prefix, 0, mask.prefix > 0);
  f.add(
      "documents", mask.documents, !mask.documents.empty(),
      [](const Json& json) { return read_numbers(json, "a list of whole numbers, one for each token"); },
      numbers_text);
  f.add(
      "hidden_keys", mask.hidden_keys, !mask.hidden_keys.empty(),
      [&](const Json& json) { return read_padding_mask(json, n_sequences, n_keys); }, padding_mask_text);
}

void describe(Fields& f, QueryKeyNorm& norm) {
  f.keys({"rule", "query", "key", "epsilon", "over"});
  f.require({"rule", "query", "key"});
  f.word("rule", norm.rule, norm_words);
  f.row("query", norm.query);
  f.row("key", norm.key);
  f.number("epsilon", norm.epsilon);
  f.word("over", norm.over, norm_over_words, norm.over != attention::NormScope::head);
}

/// Describes LongRoPE's factors for short and for long texts.
void describe_factors(Fields& f, std::optional<SharedMatrix>& factors) {
  arma::mat of_short, of_long;
  if (!f.is_reading()) of_short = factors->row(0), of_long = factors->row(1);
  f.row("short_factor", of_short);
  f.add(
      "long_factor", of_long, true,
      [&](const Json& json) {
        const arma::mat row = json.row();
        if (row.n_cols != of_short.n_cols) json.fail("as many factors as short_factor has");
        return row;
      },
      [](const arma::mat& row) { return row_text(row, 0); });
  if (f.is_reading()) factors = arma::mat(arma::join_cols(of_short, of_long));
}

void describe(Fields& f, positions::Scaling& scaling) {
  using enum positions::ScalingRule;
  f.require({"rule"});
  f.word("rule", scaling.rule, scaling_words);
  const bool is_yarn = scaling.rule == yarn, is_longrope = scaling.rule == longrope;
  if (scaling.rule == linear) f.keys({"rule", "factor"});
  if (scaling.rule == dynamic) f.keys({"rule", "factor", "original"});
  if (scaling.rule == llama3) f.keys({"rule", "factor", "low", "high", "original"});
  if (is_yarn)
    f.keys({"rule", "factor", "beta_slow", "beta_fast", "original", "attention_factor", "truncate"});
  if (is_longrope) f.keys({"rule", "short_factor", "long_factor", "original", "attention_factor"});
  if (!is_longrope) f.require({"factor"});
  f.number("factor", scaling.factor, !is_longrope);
  if (scaling.rule == llama3) f.require({"low", "high"});
  if (f.is_reading() && is_yarn)
    scaling.high = positions::yarn_beta_fast,
    scaling.attention = positions::yarn_attention_factor(scaling.factor);
  f.number(is_yarn ? "beta_slow" : "low", scaling.low, is_yarn || scaling.rule == llama3);
  f.number(is_yarn ? "beta_fast" : "high", scaling.high, is_yarn || scaling.rule == llama3);
  if (is_longrope) describe_factors(f, scaling.factors);
  if (scaling.rule != linear) f.require({"original"});
  f.number("original", scaling.original, scaling.rule != linear);
  if (is_longrope) f.require({"attention_factor"});
  f.number("attention_factor", scaling.attention, is_yarn || is_longrope);
  f.flag("truncate", scaling.truncate, is_yarn && !scaling.truncate);
}

std::int64_t read_position(const Json& place) {
  constexpr double max_position = 0x1p40;
  const double number = place.number();
  if (std::trunc(number) != number || std::abs(number) > max_position)
    place.fail("a whole number between -2^40 and 2^40");
  return static_cast<std::int64_t>(number);
}

void describe(Fields& f, positions::Rotary& rotary) {
  f.keys({"base", "pairs", "dimensions", "first", "scaling", "inverse_frequencies"});
  f.number("base", rotary.base);
  f.word("pairs", rotary.pairs, pair_words);
  f.whole("dimensions", rotary.dimensions, 2, rotary.dimensions.has_value());
  f.add("first", rotary.first, rotary.first != 0, read_position,
        [](auto first) { return std::to_string(first); });
  f.object("scaling", rotary.scaling, rotary.scaling.rule != positions::ScalingRule::none);
  f.row("inverse_frequencies", rotary.inverse_frequencies, rotary.inverse_frequencies.has_value());
}

void describe(Fields& f, positions::Alibi& alibi) {
  f.keys({"slopes"});
  f.row("slopes", alibi.slopes, alibi.slopes.has_value());
}

void describe(Fields& f, positions::Relative& relative) {
  f.keys({"table", "max_distance", "bidirectional"});
  f.require({"table"});
  f.add(
      "table", relative.table, true, [](const Json& json) { return json.matrix(); },
      [](const SharedMatrix& table) { return matrix_text(table, "  "); });
  f.whole("max_distance", relative.max_distance, 1);
  f.flag("bidirectional", relative.bidirectional);
}

void describe(Fields& f, attention::Positions& positions) {
  f.keys({"rotary", "alibi", "relative"});
  f.object("rotary", positions.rotary, positions.rotary.has_value());
  f.object("alibi", positions.alibi, positions.alibi.has_value());
  f.object("relative", positions.relative, positions.relative.has_value());
}

/// Reads one matrix for all heads, or a list of them.
std::vector<SharedMatrix> read_bias(const Json& place) {
  const auto row = place.first();
  const auto cell = row ? row->first() : std::nullopt;
  if (!cell || !cell->is_list()) return {place.matrix(AllowedNumbers::any)};
  std::vector<SharedMatrix> all;
  for (const Json& head : place.items("a list of matrices, one for each head"))
    all.emplace_back(head.matrix(AllowedNumbers::any));
  return all;
}

std::string bias_text(const std::vector<SharedMatrix>& bias) {
  return bias.size() == 1 ? matrix_text(bias.front(), "  ") : heads_text(bias, bias.size(), 1);
}

void describe(Fields& f, Additions& a) {
  f.nulls = Fields::NullPolicy::as_none;
  f.object("normalise", a.normalize, a.normalize.has_value());
  f.object("positions", a.positions, !(a.positions == attention::Positions()));
  f.number("score_cap", a.softcap, a.softcap.has_value());
  f.add("score_bias", a.score_bias, !a.score_bias.empty(), read_bias, bias_text);
  f.row("sink", a.sink, a.sink.has_value());
}

double read_rate(const Json& place) {
  const double rate = place.number();
  if (!(rate >= 0 && rate <= 1)) place.fail("a number from 0 to 1");
  return rate;
}

void read_dropout_heads(const Json& place, std::size_t n_heads, std::vector<SharedMatrix>& kept) {
  const auto heads = place.items("a list of matrices of 0 and 1, one for each head");
  if (heads.size() != n_heads)
    place.fail(std::to_string(n_heads) + " matrices, one for each head", std::to_string(heads.size()));
  for (const Json& head : heads) kept.emplace_back(head.matrix());
}

std::vector<SharedMatrix> read_dropout_mask(const Json& place, std::size_t n_heads, std::size_t n_sequences,
                                            bool is_batch) {
  std::vector<SharedMatrix> kept;
  if (!is_batch) {
    read_dropout_heads(place, n_heads, kept);
    return kept;
  }
  const auto sequences = place.items("a list of masks, one for each sequence");
  if (sequences.size() != n_sequences)
    place.fail(std::to_string(n_sequences) + " lists of matrices, one for each sequence",
               std::to_string(sequences.size()));
  require_bytes(place, n_sequences * std::uint64_t{n_heads} * bytes_of_a_matrix, "masks");
  for (const Json& sequence : sequences) read_dropout_heads(sequence, n_heads, kept);
  return kept;
}

void describe(Fields& f, attention::Dropout& dropout, std::size_t n_heads, std::size_t n_sequences,
              bool is_batch) {
  f.keys({"rate", "training", "seed", "stream", "rescale", "mask"});
  f.nulls = Fields::NullPolicy::refused;
  f.add("rate", dropout.rate, true, read_rate, number_text);
  f.flag("training", dropout.training);
  f.whole("seed", dropout.seed, 0);
  f.word("stream", dropout.stream, stream_words);
  f.flag("rescale", dropout.rescale, !dropout.rescale);
  f.add(
      "mask", dropout.given, !dropout.given.empty(),
      [&](const Json& json) { return read_dropout_mask(json, n_heads, n_sequences, is_batch); },
      [&](const std::vector<SharedMatrix>& kept) { return heads_text(kept, n_heads, n_sequences); });
}

Stage read_stage_name(const Json& name) {
  const attention::StageInfo* stage = attention::find_stage(name.text());
  if (!stage) name.fail("the name of a stage");
  return stage->stage;
}

std::string stage_text(Stage stage) {
  return "\"" + std::string(attention::info(stage).name) + "\"";
}

void describe(Fields& f, GivenCell& cell, std::size_t n_sequences) {
  auto& [stage, sequence, head, row, column] = cell.place;
  f.keys({"stage", "sequence", "head", "row", "column", "value"});
  f.require({"stage", "row", "column", "value"});
  f.nulls = Fields::NullPolicy::refused;
  f.add("stage", stage, true, read_stage_name, stage_text);
  f.whole("sequence", sequence, 0, n_sequences > 1);
  f.whole("head", head, 0, attention::info(stage).per_head);
  f.whole("row", row, 0);
  f.whole("column", column, 0);
  f.add(
      "value", cell.value, true, [](const Json& json) { return json.number(AllowedNumbers::any); },
      json_number);
}

int read_offset(const Json& place) {
  const double number = place.number();
  if (std::trunc(number) != number || std::abs(number) > 1e6)
    place.fail("a whole number from -1000000 to 1000000");
  return static_cast<int>(number);
}

/// Describes deviations that no correct implementation has.
void describe_deviations(Fields& f, Model& m) {
  const attention::Arithmetic exact;
  attention::Arithmetic& a = m.arithmetic;
  f.nulls = Fields::NullPolicy::refused;
  f.add("mask_diagonal", m.mask.edge.diagonal, m.mask.edge.diagonal != 0, read_offset,
        [](int offset) { return std::to_string(offset); });
  f.flag("mask_transposed", m.mask.edge.transposed, m.mask.edge.transposed);
  f.number("large_negative", m.mask.large_negative, m.mask.large_negative != Mask().large_negative);
  f.word("dropout_place", m.dropout.place, dropout_place_words,
         m.dropout.place != attention::DropoutPlace::weights);
  f.word("precision", a.precision, precision_words, a.precision != exact.precision);
  f.word("product_inputs", a.product_inputs, precision_words, a.product_inputs != exact.product_inputs);
  f.flag("sums_rounded", a.sums_rounded, a.sums_rounded);
  f.word("softmax_precision", a.softmax_precision, precision_words,
         a.softmax_precision != exact.softmax_precision);
}

/// A mistake that older files stored under its own key, as true or false.
struct LegacyKey {
  const char *key, *mistake;
};
constexpr std::array legacy_keys{
    LegacyKey{"scores_swapped", "query_key_swapped"},
    LegacyKey{"queries_viewed", "view_without_transpose:query"},
    LegacyKey{"keys_viewed", "view_without_transpose:key"},
    LegacyKey{"values_viewed", "view_without_transpose:value"},
    LegacyKey{"scores_prescaled", "scale_twice"},
    LegacyKey{"groups_tiled", "groups_tiled"},
    LegacyKey{"norm_after_rotation", "norm_after_rotation"},
    LegacyKey{"cap_before_scale", "cap_before_scale"},
    LegacyKey{"bias_before_scale", "bias_before_scale"},
    LegacyKey{"queries_turned_alone", "rotary_queries_only"},
    LegacyKey{"values_turned", "rotary_on_values"},
    LegacyKey{"turned_backwards", "rotary_backwards"},
};
/// Words of the old keys that name one of several mistakes, or none.
constexpr std::array softmax_words{Word{"keys", ""}, Word{"queries", "softmax_over_queries"}};
constexpr std::array split_words{Word{"bands", ""}, Word{"interleaved", "heads_interleaved"}};
constexpr std::array combined_words{Word{"bands", ""}, Word{"interleaved", "heads_interleaved:combined"}};
constexpr std::array block_words{Word{"whole", ""}, Word{"not_rescaled", "blocks_not_rescaled"},
                                 Word{"sum_not_rescaled", "blocks_not_rescaled:sum"},
                                 Word{"contexts_not_rescaled", "blocks_not_rescaled:contexts"},
                                 Word{"last_dropped", "last_block_dropped"}};

void add_bug(Model& m, std::string_view name, bugs::Numbers numbers = {}) {
  if (!name.empty())
    m = bugs::with_bug(std::move(m), {.bug = bugs::find_bug(name), .numbers = std::move(numbers)});
}

void read_legacy_mistakes(const Json& place, Model& m) {
  for (const LegacyKey& old : legacy_keys)
    if (const auto is_made = place.member(old.key); is_made && is_made->boolean()) add_bug(m, old.mistake);
  if (const auto over = place.member("softmax_over")) add_bug(m, over->word(softmax_words));
  if (const auto split = place.member("split_heads")) add_bug(m, split->word(split_words));
  if (const auto merge = place.member("merge_heads")) add_bug(m, merge->word(combined_words));
  if (const auto blocks = place.member("blocks")) {
    blocks->expect_keys({"rule", "size"});
    const auto size = static_cast<double>(blocks->required("size").whole(1));
    add_bug(m, blocks->required("rule").word(block_words), {size});
  }
  if (const auto offset = place.member("query_offset"))
    m = bugs::with_query_offset(std::move(m), read_offset(*offset));
}

bugs::BugCase read_bug(const Json& place) {
  const bool is_name = !place.is_object();
  if (!is_name) place.expect_keys({"name", "size", "sides", "form", "numbers"});
  const Json name = is_name ? place : place.required("name");
  bugs::BugCase made{.bug = bugs::find_bug(name.text())};
  if (!made.bug || !made.bug->texts.title || made.bug->is_option())
    name.fail("a mistake of those in the code, as \"scale_twice\"");
  if (is_name) return made;
  if (const auto size = place.member("size")) {
    const int n = read_offset(*size);
    if (n < 0 && cause_of(*made.bug) != "rotary_off_by_one") size->fail("a whole number from 1 to 1000000");
    if (n != 0 && made.bug->has_size) made.numbers = {static_cast<double>(n)};
  }
  if (const auto sides = place.member("sides")) {
    made.sides = sides->text();
    if (made.sides.find_first_not_of("qkvo") != made.sides.npos) sides->fail("letters of \"qkvo\"");
  }
  if (const auto form = place.member("form")) made.form = form->text();
  if (const auto numbers = place.member("numbers"))
    for (const Json& item : numbers->items_or_empty("a list of numbers")) {
      made.numbers.push_back(item.number());
      if (std::abs(made.numbers.back()) > 1e9) item.fail("a number from -1e9 to 1e9");
    }
  return made;
}

}  // namespace

Mask read_mask(const Json& place, std::size_t n_sequences, std::size_t n_keys) {
  return Fields::read_object<Mask>(place, n_sequences, n_keys);
}

std::string mask_text(const Mask& mask) {
  return Fields::object_text(mask, std::size_t{0}, std::size_t{0});
}

attention::Dropout read_dropout(const Json& place, const Model& model, bool is_batch) {
  return Fields::read_object<attention::Dropout>(place, model.n_heads, model.sequences.size(), is_batch);
}

std::string dropout_text(const Model& model) {
  return Fields::object_text(model.dropout, model.n_heads, model.sequences.size(), false);
}

GivenCell read_cell(const Json& place) {
  return Fields::read_object<GivenCell>(place, std::size_t{1});
}

std::string cell_text(const GivenCell& cell, std::size_t n_sequences) {
  return Fields::object_text(cell, n_sequences);
}

Additions read_additions(const Json& top, Additions defaults) {
  Fields fields(top);
  describe(fields, defaults);
  return defaults;
}

std::vector<std::pair<const char*, std::string>> additions_text(Additions additions) {
  Fields fields;
  describe(fields, additions);
  return fields.written();
}

void read_deviations(const Json& place, Model& m) {
  place.expect_keys({"softmax_over",      "scores_swapped",       "mask_diagonal",       "mask_transposed",
                     "large_negative",    "dropout_place",        "split_heads",         "merge_heads",
                     "precision",         "product_inputs",       "sums_rounded",        "softmax_precision",
                     "queries_viewed",    "keys_viewed",          "values_viewed",       "blocks",
                     "scores_prescaled",  "groups_tiled",         "norm_after_rotation", "cap_before_scale",
                     "bias_before_scale", "queries_turned_alone", "values_turned",       "turned_backwards",
                     "query_offset"});
  Fields fields(place);
  describe_deviations(fields, m);
  read_legacy_mistakes(place, m);
}

std::string deviations_text(Model m) {
  Fields fields;
  describe_deviations(fields, m);
  return fields.written().empty() ? "" : fields.text();
}

void read_bugs(const Json& place, Model& m) {
  for (const Json& item : place.items_or_empty("a list of mistakes"))
    m = bugs::with_bug(std::move(m), read_bug(item));
}

std::string bugs_text(const Model& m) {
  return json_list(m.bugs, [](const bugs::BugCase& made) {
    const std::string name = json_quoted(made.bug->name);
    std::string more;
    if (!made.sides.empty()) more += ", \"sides\": " + json_quoted(made.sides);
    if (!made.form.empty()) more += ", \"form\": " + json_quoted(made.form);
    if (made.bug->has_size && made.numbers.size() == 1)
      more += ", \"size\": " + json_number(made.numbers[0]);
    else if (!made.numbers.empty())
      more += ", \"numbers\": " + json_list(made.numbers, json_number);
    return more.empty() ? name : fmt::format("{{\"name\": {}{}}}", name, more);
  });
}

}  // namespace core::formats
