#include "core/check/match.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/check/causes.hpp"
#include "core/files/stage_names.hpp"

namespace core::check {
namespace {

using attention::Columns;
using attention::StageInfo;
using formats::ModelTensor;
using formats::NameParts;
using formats::ParsedName;
using formats::TensorFile;
using formats::TensorInfo;
using formats::TensorShape;
using enum Stage;

// Layouts of a stage in a tensor.

constexpr std::array layout_table{
    TensorLayout{"bhtd", "shrc", "heads before tokens"}, TensorLayout{"bthd", "srhc", "heads after tokens"},
    TensorLayout{"btd", "srj", "heads side by side"},    TensorLayout{"htd", "hrc", "heads before tokens"},
    TensorLayout{"thd", "rhc", "heads after tokens"},    TensorLayout{"td", "rj", "heads side by side"},
};

bool has_features_of_heads(const StageInfo& stage) {
  return stage.per_head && stage.columns == Columns::features;
}

/// Lengths of a model's stage; heads counts KV heads if these have one matrix each.
struct Lengths {
  std::size_t sequences, heads, rows, columns;

  /// Returns the length of an axis of a layout, 1 for '1'.
  std::size_t of(char letter) const {
    return letter == 's'   ? sequences
           : letter == 'h' ? heads
           : letter == 'r' ? rows
           : letter == 'c' ? columns
           : letter == 'j' ? heads * columns
           : letter == 'q' ? sequences * heads
                           : 1;
  }
};

Lengths lengths_of(const Model& model, Stage stage) {
  const attention::StageShape shape = attention::shape_of(model, stage);
  return {model.sequences.size(), n_matrices(model, stage), shape.n_rows, shape.n_cols};
}

/// Whether heads share the matrices of a stage, so that a tensor may have one per KV head or per head.
bool shares_kv_heads(const Model& model, Stage stage) {
  return attention::info(stage).per_head && n_matrices(model, stage) < model.n_heads;
}

/// Returns the possible layouts of a stage with n_heads heads, as in Layout::letters; '1' is an axis of
/// length 1, 'q' the heads of all sequences in a row.
std::vector<std::string_view> possible_axes(const Model& model, Stage stage, std::size_t n_heads,
                                            bool one_head) {
  const StageInfo& row = attention::info(stage);
  const bool is_batch = model.sequences.size() > 1, has_heads = n_heads > 1;
  using AxisOrders = std::vector<std::string_view>;
  AxisOrders all;
  const auto add = [&](const AxisOrders& more) { all.insert(all.end(), more.begin(), more.end()); };
  if (one_head) {
    add({"rc", "src"});
  } else if (row.per_head) {
    add({"shrc", "hrc"});
    if (!has_heads) add({"src", "rc"});
    if (has_features_of_heads(row)) add({"srhc", "rhc", "rshc"});
    if (has_features_of_heads(row)) add(has_heads ? AxisOrders{"srj", "rj", "rsj"} : AxisOrders{"rsc"});
    if (is_batch && has_heads) add({"qrc"});
  } else {
    add({"src", "rc", "s1rc"});
    if (stage == Stage::mask && has_heads) add({"shrc", "hrc"});
    if (row.columns == Columns::features) add({"rsc"});
  }
  if (row.columns == Columns::single) {
    if (row.per_head && !one_head) add({"shr", "hr"});
    if (!row.per_head || !has_heads || one_head) add({"sr", "r"});
  }
  return all;
}

/// Whether the heads of a model without KV heads repeat their keys, or values, in groups.
bool heads_repeat(const Model& model, Stage stage, std::size_t group_size) {
  if (group_size < 2 || model.n_heads % group_size != 0 || shares_kv_heads(model, stage)) return false;
  if (stage == Stage::normed_keys || stage == Stage::rotated_keys)
    return !model.given.find(stage) && heads_repeat(model, Stage::keys, group_size);
  if (stage != Stage::keys && stage != Stage::values) return false;
  const auto first_of = [&](std::size_t head) { return head - head % group_size; };
  if (const attention::GivenStage* given = model.given.find(stage)) {
    const auto& all = given->matrices;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (!(all[k] == all[first_of(k)])) return false;  // a sequence has whole groups
    return true;
  }
  const auto repeats = [&](const arma::mat& columns) {
    if (columns.n_cols != model.n_heads * model.d_head()) return false;
    for (std::size_t h = 0; h < model.n_heads; ++h)
      for (std::size_t k = 0; k < model.d_head(); ++k)
        if (arma::any(columns.col(column_of_head(model, stage, h, k)) !=
                      columns.col(column_of_head(model, stage, first_of(h), k))))
          return false;
    return true;
  };
  if (!model.projections)
    return std::ranges::all_of(model.sequences,
                               [&](const attention::Sequence& s) { return repeats(s.embeddings); });
  const attention::Linear& linear = stage == Stage::keys ? model.projections->key : model.projections->value;
  return repeats(linear.weight) && (!linear.bias || repeats(*linear.bias));
}

/// Meaning of the heads of a tensor.
struct HeadMapping {
  std::size_t group_size = 1;  ///< heads of the model per head of the tensor
  bool has_kv_heads = false;   ///< they are the model's KV heads
  bool are_repeated = false;   ///< each head has its own copy of a shared matrix
};

/// Returns "[T, H·d]"; "[H/2, T, d], groups of 2 heads".
std::string words_of(const StageInfo& stage, std::string_view axes, std::size_t group_size,
                     bool are_repeated) {
  const std::string heads = group_size > 1 ? "H/" + std::to_string(group_size) : "H";
  const auto axis = [&](char letter) -> std::string {
    const char* own = stage.columns == Columns::tokens ? "T" : stage.per_head ? "d" : "D";
    return letter == 's'   ? "B"
           : letter == 'h' ? heads
           : letter == 'r' ? "T"
           : letter == 'c' ? own
           : letter == 'j' ? heads + "·d"
           : letter == 'q' ? "B·" + heads
                           : "1";
  };
  return "[" + text::joined(axes, ", ", axis) + "]" +
         (group_size > 1 ? ", groups of " + std::to_string(group_size) + " heads"
          : are_repeated ? ", repeated for each head"
                         : "");
}

std::optional<Reading> match_layout(const StageInfo& stage, const Lengths& l, std::string_view axes,
                                    const TensorShape& shape, const HeadMapping& of) {
  if (axes.size() != shape.size()) return std::nullopt;
  const Lengths own{l.sequences, l.heads / of.group_size, l.rows, l.columns};  // lengths of the tensor
  Reading r;
  r.stage = stage.stage;
  r.n_rows = l.rows, r.n_columns = l.columns;
  r.group_size = of.group_size, r.has_kv_heads = of.has_kv_heads;
  if (of.group_size > 1) r.n_heads = l.heads;
  std::size_t stride = 1;
  for (std::size_t k = axes.size(); k-- > 0; stride *= shape[k]) {
    const char letter = axes[k];
    if (shape[k] != own.of(letter)) return std::nullopt;
    if (letter == 's') r.n_sequences = l.sequences, r.per_sequence = stride;
    if (letter == 'q') r.n_sequences = l.sequences, r.per_sequence = stride * own.heads;
    if (letter == 'h' || letter == 'q') r.n_heads = l.heads, r.per_head = stride;
    if (letter == 'r') r.per_row = stride;
    if (letter == 'c' || letter == 'j') r.per_column = stride;
    if (letter != 'j') continue;
    if (of.group_size > 1 || of.are_repeated)
      r.n_heads = l.heads, r.per_head = stride * l.columns;
    else
      r.joined = true, r.n_columns = l.columns * l.heads;
  }
  return r;
}

bool are_weights(Stage stage) {
  return stage == Stage::weights || stage == Stage::dropped_weights;
}

/// Whether two readings map the same numbers to the same stage.
bool same_numbers(const Reading& a, const Reading& b) {
  const auto lengths = [](const Reading& r) {
    return std::array{r.first_sequence, r.n_sequences, r.first_head, r.n_heads, r.n_rows, r.n_columns};
  };
  const auto same = [](std::size_t count, std::size_t one, std::size_t other) {
    return count == 1 || one == other;
  };
  return a.stage == b.stage && lengths(a) == lengths(b) && a.joined == b.joined &&
         a.group_size == b.group_size && a.layout.is_mean == b.layout.is_mean &&
         a.has_kv_heads == b.has_kv_heads && same(a.n_sequences, a.per_sequence, b.per_sequence) &&
         same(a.n_heads, a.per_head, b.per_head) && same(a.n_rows, a.per_row, b.per_row) &&
         same(a.n_columns, a.per_column, b.per_column);
}

}  // namespace

std::span<const TensorLayout> layouts() {
  return layout_table;
}

const TensorLayout* find_layout(std::string_view name) {
  return find_by(layout_table, name, &TensorLayout::name);
}

void mark_masked(ObservedTensor& observed) {
  const std::vector<double>& numbers = observed.tensor.numbers;
  const bool is_masked = std::ranges::find(numbers, -arma::datum::inf) != numbers.end();
  for (Reading& reading : observed.readings) {
    if (!is_masked || reading.stage != Stage::scores || reading.layout.is_masked) continue;
    reading.layout.words = reading.layout.is_default ? "masked before the scale"
                                                     : reading.layout.words + ", masked before the scale";
    reading.layout.is_default = false, reading.layout.is_masked = true;
  }
}

std::vector<Reading> possible_readings(const Model& model, Stage stage, const formats::TensorShape& shape,
                                       std::size_t sequence, std::optional<std::size_t> head,
                                       const TensorLayout* layout) {
  const StageInfo& row = attention::info(stage);
  Lengths l = lengths_of(model, stage);
  const bool one_head = head.has_value();
  if (stage == Stage::mask && !one_head) l.heads = model.n_heads;  // each may have its own copy
  const bool has_groups = shares_kv_heads(model, stage);
  if (one_head && has_groups) l.heads = model.n_heads;  // any of them can be given
  if (sequence >= l.sequences || (one_head && *head >= l.heads)) return {};
  const bool is_requested = layout && has_features_of_heads(row) && !one_head;
  std::vector<Reading> readings;
  formats::TensorShape rest = shape;
  const auto add = [&](std::string_view axes, const HeadMapping& of) {
    auto reading = match_layout(row, l, axes, rest, of);
    if (!reading) return;
    if (reading->n_sequences == 1) reading->first_sequence = sequence;
    if (head) reading->first_head = *head;
    const std::size_t group_size = of.has_kv_heads ? model.n_heads / model.kv_heads() : of.group_size;
    reading->layout.words = words_of(row, axes, group_size, of.are_repeated);
    reading->layout.is_default =
        of.group_size == 1 && !of.are_repeated &&
        (axes == "shrc" || axes == "hrc" || axes == "src" || axes == "rc" || axes == "s1rc");
    const bool known =
        std::ranges::any_of(readings, [&](const Reading& other) { return same_numbers(other, *reading); });
    if (!known) readings.push_back(*reading);
  };
  const auto add_all = [&](const HeadMapping& of) {
    if (is_requested) {
      const std::string_view axes = layout->axes;
      add(axes, of);
      if (rest.size() < shape.size() && axes.front() == 's') add(axes.substr(1), of);
      return;
    }
    for (const std::string_view axes : possible_axes(model, stage, l.heads, one_head)) add(axes, of);
    if (of.group_size > 1 && of.group_size == l.heads)  // a single head needs no axis of its own
      for (const std::string_view axes : {"src", "rc"}) add(axes, of);
  };
  while (true) {
    for (std::size_t group_size = 1; group_size <= (one_head ? 1 : model.n_heads); ++group_size)
      if (group_size == 1 || heads_repeat(model, stage, group_size))
        add_all({group_size, has_groups && !one_head, false});
    if (has_groups && !one_head) {
      const std::size_t kv_heads = std::exchange(l.heads, model.n_heads);
      add_all({1, false, true});
      l.heads = kv_heads;
    }
    if (!readings.empty() || rest.empty() || rest.front() != 1) break;
    rest.erase(rest.begin());
  }
  if (!readings.empty() || one_head || !are_weights(stage) || l.heads < 2) return readings;
  // nn.MultiheadAttention averages weights unless average_attn_weights=False.
  for (const std::string_view axes : {"src", "rc"})
    if (auto mean = match_layout(row, {l.sequences, 1, l.rows, l.columns}, axes, shape, {})) {
      if (mean->n_sequences == 1) mean->first_sequence = sequence;
      mean->layout = {"the mean of " + std::to_string(l.heads) + " heads", false, true};
      readings.push_back(*std::move(mean));
    }
  return readings;
}

std::vector<Reading> readings_by_name(const Model& other, std::string_view name, Stage stage,
                                      const TensorShape& shape) {
  const NameParts parts = formats::split_name(name);
  std::vector<Stage> stages = formats::meaning_of(parts.base).stages;
  if (std::ranges::find(stages, stage) == stages.end()) stages = {stage};  // set by hand
  std::vector<Reading> all;
  for (const Stage each : stages)
    for (const Reading& reading :
         possible_readings(other, each, shape, parts.sequence.value_or(0), parts.head))
      all.push_back(reading);
  return all;
}

namespace {

// Messages for a shape that fits no possible stage.

TensorShape expected_shape(const Model& model, Stage stage, bool one_head, const TensorLayout* layout) {
  const Lengths l = lengths_of(model, stage);
  TensorShape shape;
  if (layout && !one_head && has_features_of_heads(attention::info(stage))) {
    for (const char letter : std::string_view(layout->axes))
      if (letter != 's' || l.sequences > 1) shape.push_back(l.of(letter));
    return shape;
  }
  if (l.sequences > 1) shape.push_back(l.sequences);
  if (attention::info(stage).per_head && !one_head) shape.push_back(l.heads);
  shape.insert(shape.end(), {l.rows, l.columns});
  return shape;
}

TensorShape squeeze_leading(const TensorShape& shape) {
  return {std::ranges::find_if(shape, [](std::size_t n) { return n != 1; }), shape.end()};
}

/// Suggests another layout than the chosen one.
std::string suggest_layout(const Model& model, Stage stage, const TensorShape& shape) {
  for (const TensorLayout& layout : layouts())
    if (!possible_readings(model, stage, shape, 0, {}, &layout).empty())
      return std::string(layout.about) + "? transpose, or say --layout " + layout.name;
  return possible_readings(model, stage, shape, 0, {}).empty() ? "" : "it fits without --layout";
}

/// Suggests a transpose: heads of scores after the queries, or rows and columns swapped.
std::string suggest_transpose(const TensorShape& expected, const TensorShape& shape) {
  const TensorShape got = squeeze_leading(shape), wanted = squeeze_leading(expected);
  if (got == wanted || !std::ranges::is_permutation(got, wanted) || got.size() < 2) return "";
  TensorShape swapped = wanted;
  std::swap(swapped.end()[-1], swapped.end()[-2]);
  if (got == swapped) return "rows and columns swapped? transpose the last two axes";
  if (got.size() > 2) {
    swapped = wanted;
    std::swap(swapped.end()[-2], swapped.end()[-3]);
    if (got == swapped) return "heads after tokens? transpose to " + formats::shape_text(wanted);
  }
  return "axes in another order? transpose to " + formats::shape_text(wanted);
}

/// Suggests stages of the model with this shape.
std::string suggest_stages(const Model& model, const TensorShape& shape, bool one_head) {
  constexpr std::size_t maximum = 6;
  std::vector<const char*> names;
  for (const StageInfo& stage : attention::stages())
    if (stage.present(model) && stage.stage != Stage::mask &&  // heads can only have copies of it
        !possible_readings(model, stage.stage, shape, 0,
                           one_head ? std::optional<std::size_t>(0) : std::nullopt)
             .empty())
      names.push_back(stage.name);
  if (names.empty() || names.size() > maximum) return "";
  return "the shape of " + text::joined(names, ", ", {}, " or ") + "; --map says which stage it is";
}

/// Names the only length that differs from the model's: tokens, heads, columns or sequences.
std::string explain_length(const Model& model, Stage stage, const TensorShape& shape, bool one_head) {
  const StageInfo& row = attention::info(stage);
  const Lengths l = lengths_of(model, stage);
  const std::size_t n_heads = shares_kv_heads(model, stage) ? l.heads : model.n_heads;
  for (const std::string_view axes : possible_axes(model, stage, n_heads, one_head)) {
    if (axes.size() != shape.size()) continue;
    std::set<std::pair<char, std::size_t>> wrong;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      char letter = axes[k];
      if (letter == 'c' && row.columns == attention::Columns::tokens && l.rows == l.columns) letter = 'r';
      if (shape[k] != l.of(letter)) wrong.emplace(letter, shape[k]);
    }
    if (wrong.size() != 1) continue;
    const auto [letter, got] = *wrong.begin();
    const char* things = letter == 'h'   ? "head"
                         : letter == 'r' ? "token"
                         : letter == 's' ? "sequence"
                                         : "column";
    if (letter == '1' || letter == 'q') continue;
    return text::counted(got, things) + " instead of " + std::to_string(l.of(letter)) +
           (letter == 'h' && shares_kv_heads(model, stage)
                ? ", one for each group, or " + std::to_string(model.n_heads)
                : "");
  }
  return "";
}

/// Explains keys or values of fewer heads than the model's, whose heads do not repeat in such groups.
std::string explain_kv_heads(const Model& model, Stage stage, const TensorShape& shape) {
  if (stage != Stage::keys && stage != Stage::values) return "";
  if (shares_kv_heads(model, stage)) return "";
  const Lengths l = lengths_of(model, stage);
  const TensorShape got = squeeze_leading(shape);
  const std::size_t n = got.size() < 3 ? 1 : got[got.size() - 3] == l.rows ? got.end()[-2] : got.end()[-3];
  TensorShape heads{n, l.rows, l.columns};
  if (n == 0 || n >= l.heads || l.heads % n != 0 || !std::ranges::is_permutation(got, squeeze_leading(heads)))
    return "";
  return text::counted(n, "head") + " instead of " + std::to_string(l.heads) +
         ": grouped? the model's heads do not repeat in groups of " + std::to_string(l.heads / n);
}

std::string suggest_fix(const Model& model, const std::vector<Stage>& stages, const TensorShape& shape,
                        bool one_head, const TensorLayout* layout) {
  const Stage stage = stages.front();
  const TensorShape expected = expected_shape(model, stage, one_head, layout);
  std::string words;
  if (layout && !one_head)
    for (const Stage one : stages)
      if (words = suggest_layout(model, one, shape); !words.empty()) return words;
  if (words = suggest_transpose(expected, shape); !words.empty()) return words;
  if (words = explain_kv_heads(model, stage, shape); !one_head && !words.empty()) return words;
  if (words = suggest_stages(model, shape, one_head); !words.empty()) return words;
  for (const Stage one : stages)
    if (words = explain_length(model, one, shape, one_head); !words.empty()) return words;
  const auto count = formats::count_of(shape);
  if (count == std::uint64_t{0}) return "it holds no numbers";
  return count == formats::count_of(expected) ? "as many numbers: reshape it" : "";
}

std::string shape_mismatch_words(const Model& model, const std::vector<Stage>& stages,
                                 const TensorShape& shape, const NameParts& name,
                                 const TensorLayout* layout) {
  const Stage stage = stages.front();
  const bool one_head = name.head.has_value();
  if (name.sequence.value_or(0) >= model.sequences.size())
    return "there is no sequence " + std::to_string(*name.sequence) + ": the model has " +
           std::to_string(model.sequences.size());
  const std::size_t n_heads = attention::info(stage).count(model.n_heads);
  if (name.head.value_or(0) >= n_heads)
    return "there is no head " + std::to_string(*name.head) + ": the model has " + std::to_string(n_heads) +
           " of this stage";
  const std::string words = suggest_fix(model, stages, shape, one_head, layout);
  return "expected " + formats::shape_text(expected_shape(model, stage, one_head, layout)) + ", got " +
         formats::shape_text(shape) + (words.empty() ? "" : ": " + words);
}

// Tensors of a file.

/// Returns the layers that names distinguish, in numeric order; empty unless some stage occurs in two layers.
std::vector<std::string> layers_of(const std::vector<ParsedName>& names) {
  using Key = std::tuple<std::string, std::optional<std::size_t>, std::optional<std::size_t>>;
  std::vector<std::string> layers;
  std::set<std::string_view> seen;
  std::map<Key, std::string> known;
  bool are_several = false;
  for (const ParsedName& parsed : names) {
    if (parsed.meaning.stages.empty()) continue;
    if (seen.insert(parsed.layer).second) layers.push_back(parsed.layer);
    const auto [first, is_new] =
        known.try_emplace({parsed.own, parsed.parts.sequence, parsed.parts.head}, parsed.layer);
    are_several = are_several || (!is_new && first->second != parsed.layer);
  }
  if (!are_several) return {};
  std::ranges::sort(layers, text::natural_less);
  if (layers.size() > 2) std::erase(layers, "");
  return layers;
}

/// A tensor of a file and its possible stages.
struct Candidate {
  const TensorInfo* info;
  ParsedName parsed;
  std::vector<Stage> stages = {};  ///< only those of the model
  bool by_hand = false;

  std::optional<std::size_t> head() const { return parsed.parts.head; }
};

std::vector<Reading> readings_as(const Model& model, const Candidate& c, const TensorShape& shape,
                                 const MatchOptions& options) {
  std::vector<Reading> all;
  for (const Stage stage : c.stages)
    for (Reading& reading :
         possible_readings(model, stage, shape, c.parsed.parts.sequence.value_or(options.sequence), c.head(),
                           options.layout))
      all.push_back(std::move(reading));
  return all;
}

/// Returns the index of the layer chosen by number from 0 or by a prefix of its name.
std::size_t chosen_layer(const TensorFile& file, const std::string& chosen,
                         const std::vector<std::string>& layers) {
  if (chosen.empty()) return 0;
  const auto number_of = [](const std::string& name) {
    return text::parse_unsigned(std::string_view(name).substr(name.find_last_not_of("0123456789") + 1));
  };
  const bool numbered =
      std::ranges::all_of(layers, [&](const auto& name) { return number_of(name).has_value(); });
  const auto number = text::parse_unsigned(chosen);
  for (std::size_t k = 0; k < layers.size(); ++k)
    if (number ? (numbered ? number_of(layers[k]) == number : k == *number) : layers[k].starts_with(chosen))
      return k;
  throw Error(
      file.place() + "expected a layer of " +
      (layers.front().empty() ? "0 … " + std::to_string(layers.size() - 1) : text::joined(layers, ", ")) +
      ", got \"" + chosen + "\"");
}

/// Returns the length of a first axis of layers, in a tensor whose whole shape fits no stage, or 0.
///
/// Stages with heads need four dimensions, as when such a file is opened, others five; two if is_sure.
std::size_t count_stacked_layers(const Model& model, const Candidate& c, const MatchOptions& options,
                                 bool is_sure) {
  const TensorShape& shape = c.info->shape;
  const bool of_heads =
      std::ranges::any_of(c.stages, [](Stage stage) { return attention::info(stage).per_head; });
  const std::size_t fewest = is_sure ? 2 : of_heads ? 4 : 5;
  if (shape.size() < fewest || shape.front() < 2 || !readings_as(model, c, shape, options).empty()) return 0;
  return readings_as(model, c, TensorShape(shape.begin() + 1, shape.end()), options).empty() ? 0
                                                                                             : shape.front();
}

/// Reads a tensor for the comparison; of a first axis of layers only that layer.
ObservedTensor read_observed(const Model& model, const TensorFile& file, const Candidate& c,
                             const MatchOptions& options, std::size_t n_layers, std::size_t layer,
                             const core::StopToken& progress) {
  progress.add(0);
  const TensorShape& shape = c.info->shape;
  ObservedTensor observed;
  observed.name = c.info->name;
  observed.stage = c.stages.front();
  observed.readings = readings_as(model, c, shape, options);
  std::vector<std::size_t> leading;
  const bool has_end = formats::model_tensor_of(c.parsed.own) == ModelTensor::entering;  // of the last layer
  if (observed.readings.empty() && n_layers > 0 && shape.size() > 1 &&
      (shape.front() == n_layers || (has_end && shape.front() == n_layers + 1))) {
    observed.readings = readings_as(model, c, TensorShape(shape.begin() + 1, shape.end()), options);
    leading = {layer};
  }
  const auto is_read_in = [&](const Explanation& other) {
    return !readings_by_name(other.model, observed.name, observed.stage, shape).empty();
  };
  // Small tensors with only some heads, their sum, or fewer keys are read, as that can be inferred.
  constexpr std::uint64_t max_inferred_numbers = std::uint64_t{1} << 22;
  const auto is_square = [](Stage stage) { return attention::info(stage).columns == Columns::tokens; };
  const bool may_be_inferred = n_layers == 0 && shape.size() > 1 && shape.size() < 5 &&
                               std::ranges::any_of(c.stages, is_square) &&
                               formats::count_of(shape).value_or(max_inferred_numbers) < max_inferred_numbers;
  const bool fits = !observed.readings.empty();
  if (!fits) observed.obstacle = shape_mismatch_words(model, c.stages, shape, c.parsed.parts, options.layout);
  if (fits || may_be_inferred || (n_layers == 0 && std::ranges::any_of(other_shapes(model), is_read_in))) {
    observed.tensor = file.read(observed.name, fits ? leading : TensorShape(), progress);
    observed.rounding = rounding_of(observed.tensor);
  } else {
    observed.tensor.dtype = c.info->dtype, observed.tensor.shape = shape;
  }
  mark_masked(observed);
  return observed;
}

std::vector<Stage> mapped_stages(const std::string& tensor, const std::string& stage) {
  if (stage.empty()) return {};
  const auto* row = attention::find_stage(stage);
  if (!row) throw Error(tensor + ": there is no stage \"" + stage + "\"");
  return {row->stage};
}

/// Returns the tensors that are stages of the model; adds the others, with reasons, to left_out.
std::vector<Candidate> candidates(const Model& model, const TensorFile& file,
                                  const std::map<std::string, std::string>& by_hand,
                                  std::vector<IgnoredTensors>& left_out, const core::StopToken& progress) {
  std::vector<Candidate> all;
  std::vector<std::string> nameless;
  for (const TensorInfo& info : file.tensors()) {
    progress.add(0);
    Candidate c{&info, formats::parse_name(info.name)};
    const auto hand = by_hand.find(info.name);
    if (hand != by_hand.end()) {
      c.by_hand = true;
      c.parsed.meaning = {mapped_stages(info.name, hand->second), true};
      if (hand->second.empty()) {
        left_out.push_back({info.name, "ignored by --map"});
        continue;
      }
    }
    for (const Stage stage : c.parsed.meaning.stages)
      if (c.by_hand || attention::info(stage).present(model)) c.stages.push_back(stage);
    if (info.dtype == formats::Dtype::text)
      left_out.push_back({info.name, "it holds text"});
    else if (c.parsed.meaning.stages.empty())
      nameless.push_back(info.name);
    else if (c.stages.empty())
      left_out.push_back({info.name, "the model does not have this stage"});
    else
      all.push_back(std::move(c));
  }
  if (nameless.size() == 1) left_out.push_back({nameless.front(), "its name says no stage"});
  if (nameless.size() > 1)
    left_out.push_back({text::joined(nameless, ", "), "names not recognized as stages"});
  return all;
}

/// Keeps the tensors of one layer, if names distinguish layers.
void choose_by_name(const TensorFile& file, const MatchOptions& options, std::vector<Candidate>& all,
                    MatchResult& matched) {
  std::vector<ParsedName> names;
  for (const Candidate& c : all) names.push_back(c.parsed);
  matched.layers = layers_of(names);
  if (matched.layers.empty()) return;
  matched.layer = chosen_layer(file, options.layer, matched.layers);
  const std::set<std::string_view> layers(matched.layers.begin(), matched.layers.end());
  std::erase_if(all, [&](const Candidate& c) {
    if (c.by_hand || c.parsed.layer == matched.layers[matched.layer]) return false;
    matched.left_out.push_back(
        {c.info->name, layers.contains(c.parsed.layer) ? "of another layer" : "its name says no layer"});
    return true;
  });
}

/// Also reads masked scores under a common name as unscaled scores, if weights are given that would reveal a
/// missing scale.
void read_masked_before_scale(const std::vector<Candidate>& all, MatchResult& matched) {
  const auto has_weights = [](const ObservedTensor& observed) {
    return std::ranges::any_of(observed.readings, are_weights, &Reading::stage);
  };
  if (std::ranges::none_of(matched.observed, has_weights)) return;
  for (std::size_t k = 0; k < all.size(); ++k) {
    std::vector<Reading>& readings = matched.observed[k].readings;
    if (all[k].parsed.meaning.certain || readings.size() != 1 ||
        readings.front().stage != Stage::masked_scores)
      continue;
    Reading reading = readings.front();
    reading.stage = Stage::scores;
    readings.push_back(std::move(reading));
    mark_masked(matched.observed[k]);
    if (!readings.back().layout.is_masked) readings.pop_back();
  }
}

/// Whether numbers clearly differ from the model's embeddings.
bool is_far_from_embeddings(const Model& model, const ObservedTensor& observed) {
  constexpr double far_off = 1e-2;
  const Reading& r = observed.readings.front();
  for (std::size_t s = 0; s < r.n_sequences; ++s) {
    const arma::mat& ours = model.sequences[r.first_sequence + s].embeddings;
    for (std::size_t i = 0; i < r.n_rows; ++i)
      for (std::size_t j = 0; j < r.n_columns; ++j) {
        const double our = ours.at(i, j);
        if (!(std::abs(observed.tensor.numbers[r.at(s, 0, i, j)] - our) <= far_off * (1 + std::abs(our))))
          return true;
      }
  }
  return false;
}

/// Ignores hidden states of several layers that are not the input of attention: libraries return them before
/// the norm of the layer, which is no stage of attention.
void ignore_residuals(const Model& model, const std::vector<Candidate>& all, MatchResult& matched) {
  const auto is_residual = [&](std::size_t k) {
    const Candidate& c = all[k];
    const ObservedTensor& observed = matched.observed[k];
    if (c.by_hand || formats::model_tensor_of(c.parsed.own) != ModelTensor::entering) return false;
    const formats::TensorShape& shape = observed.tensor.shape;
    // One more than the layers: includes the output of the last one.
    if (observed.readings.empty()) return shape.size() > 2 && shape.front() == matched.layers.size() + 1;
    return is_far_from_embeddings(model, observed);
  };
  std::vector<std::string> names;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (is_residual(k)) names.push_back(all[k].info->name);
  if (names.size() == all.size()) return;  // there are no other tensors
  const std::set<std::string_view> gone(names.begin(), names.end());
  std::erase_if(matched.observed,
                [&](const ObservedTensor& observed) { return gone.contains(observed.name); });
  for (const std::string& name : names)
    matched.left_out.push_back({name, "not what enters attention, as hidden states before a norm; --map \"" +
                                          name + "=embeddings\" compares it"});
}

}  // namespace

MatchResult match(const Model& model, const TensorFile& file,
                  const std::map<std::string, std::string>& by_hand, const MatchOptions& options,
                  const core::StopToken& progress) {
  for (const auto& [tensor, stage] : by_hand) file.info(tensor);  // throws if it does not exist
  MatchResult matched;
  for (const std::string& note : file.notes()) matched.notes.emplace_back(text::trimmed(note, "."));
  std::vector<Candidate> all = candidates(model, file, by_hand, matched.left_out, progress);
  choose_by_name(file, options, all, matched);
  std::size_t n_layers = 0;  // as a first axis
  if (matched.layers.empty()) {
    for (const Candidate& c : all)
      if (n_layers == 0) n_layers = count_stacked_layers(model, c, options, !options.layer.empty());
    matched.layers.assign(n_layers, "");
    matched.used_first_by_default = n_layers > 0 && options.layer.empty();
    if (n_layers > 0) matched.layer = chosen_layer(file, options.layer, matched.layers);
  }
  for (const Candidate& c : all)
    matched.observed.push_back(read_observed(model, file, c, options, n_layers, matched.layer, progress));
  read_masked_before_scale(all, matched);
  if (matched.layers.size() > 1) ignore_residuals(model, all, matched);
  if (matched.observed.empty())
    throw Error(
        file.place() +
        "expected tensors named as stages (weights, queries, attn_scores, …), got none; --map NAME=STAGE says which is which" +
        (matched.notes.empty() ? "" : " (" + text::joined(matched.notes, "; ") + ")"));
  return matched;
}

std::string layer_words(const MatchResult& matched) {
  if (matched.layers.size() < 2) return "";
  const std::string& name = matched.layers[matched.layer];
  return "layer " + (name.empty() ? std::to_string(matched.layer) : "\"" + name + "\"") + " of " +
         std::to_string(matched.layers.size());
}

}  // namespace core::check
