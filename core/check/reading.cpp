#include "core/check/reading.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"

namespace core::check {
namespace {

using attention::Columns;
using attention::StageInfo;

bool has_features_of_heads(const StageInfo& stage) {
  return stage.per_head && stage.columns == Columns::features;
}

/// How the heads of a tensor are to be understood.
struct HeadsOf {
  std::size_t group = 1;      ///< heads of the model that each stands for
  bool of_groups = false;     ///< they are the model's own groups
  bool are_repeated = false;  ///< heads that share a matrix have a copy each
};

/// "[T, H·d]"; "[H/2, T, d], groups of 2 heads".
std::string words_of(const StageInfo& stage, std::string_view letters, std::size_t group, bool are_repeated) {
  const std::string heads = group > 1 ? "H/" + std::to_string(group) : "H";
  const auto axis = [&](char letter) -> std::string {
    switch (letter) {
      case 's':
        return "B";
      case 'h':
        return heads;
      case 'r':
        return "T";
      case 'c':
        return stage.columns == Columns::tokens ? "T" : stage.per_head ? "d" : "D";
      case 'j':
        return heads + "·d";
      case 'q':
        return "B·" + heads;
      default:
        return "1";
    }
  };
  return "[" + text::joined(letters, ", ", axis) + "]" +
         (group > 1      ? ", groups of " + std::to_string(group) + " heads"
          : are_repeated ? ", repeated for each head"
                         : "");
}

std::optional<Reading> fitted(const StageInfo& stage, const Lengths& l, std::string_view letters,
                              const formats::Shape& shape, const HeadsOf& of) {
  const std::size_t group = of.group;
  if (letters.size() != shape.size()) return std::nullopt;
  Reading r;
  r.stage = stage.stage;
  r.n_rows = l.rows, r.n_columns = l.columns;
  r.group = group;
  r.of_groups = of.of_groups;
  if (group > 1) r.n_heads = l.heads;
  const std::size_t n_heads = l.heads / group;  // of the tensor
  std::size_t stride = 1;
  for (std::size_t k = letters.size(); k-- > 0;) {
    const auto expected = [&]() -> std::size_t {
      switch (letters[k]) {
        case 's':
          return r.per_sequence = stride, r.n_sequences = l.sequences;
        case 'h':
          return r.per_head = stride, r.n_heads = l.heads, n_heads;
        case 'r':
          return r.per_row = stride, l.rows;
        case 'c':
          return r.per_column = stride, l.columns;
        case 'j':
          r.per_column = stride;
          if (group > 1 || of.are_repeated) {
            r.n_heads = l.heads;
            return r.per_head = stride * l.columns, n_heads * l.columns;
          }
          return r.joined = true, r.n_columns = l.columns * l.heads;
        case 'q':
          r.per_head = stride, r.n_heads = l.heads;
          return r.per_sequence = stride * n_heads, r.n_sequences = l.sequences, l.sequences * n_heads;
        default:
          return 1;
      }
    }();
    if (shape[k] != expected) return std::nullopt;
    stride *= expected;
  }
  return r;
}

/// The sizes of the groups in which the model's heads repeat, 1 before all.
std::vector<std::size_t> groups_of(const Model& model, Stage stage, bool one_head) {
  std::vector<std::size_t> groups{1};
  if (!one_head)
    for (std::size_t group = 2; group <= model.n_heads; ++group)
      if (heads_repeat(model, stage, group)) groups.push_back(group);
  return groups;
}

/// As nn.MultiheadAttention gives weights unless average_attn_weights=False.
std::optional<Reading> mean_reading(const StageInfo& stage, const Lengths& l, const formats::Shape& shape,
                                    std::size_t sequence) {
  if ((stage.stage != Stage::weights && stage.stage != Stage::dropped_weights) || l.heads < 2)
    return std::nullopt;
  for (const std::string_view letters : {"src", "rc"}) {
    auto reading = fitted(stage, {l.sequences, 1, l.rows, l.columns}, letters, shape, {});
    if (!reading) continue;
    if (reading->n_sequences == 1) reading->first_sequence = sequence;
    reading->layout = {"the mean of " + std::to_string(l.heads) + " heads", false, true};
    return reading;
  }
  return std::nullopt;
}

}  // namespace

bool same_numbers(const Reading& a, const Reading& b) {
  const auto lengths = [](const Reading& r) {
    return std::array{r.first_sequence, r.n_sequences, r.first_head, r.n_heads, r.n_rows, r.n_columns};
  };
  const auto same = [](std::size_t count, std::size_t one, std::size_t other) {
    return count == 1 || one == other;
  };
  return a.stage == b.stage && lengths(a) == lengths(b) && a.joined == b.joined && a.group == b.group &&
         a.layout.is_mean == b.layout.is_mean && a.of_groups == b.of_groups &&
         same(a.n_sequences, a.per_sequence, b.per_sequence) && same(a.n_heads, a.per_head, b.per_head) &&
         same(a.n_rows, a.per_row, b.per_row) && same(a.n_columns, a.per_column, b.per_column);
}

void mark_masked(Theirs& theirs) {
  const std::vector<double>& numbers = theirs.tensor.numbers;
  const bool is_masked = std::ranges::find(numbers, -arma::datum::inf) != numbers.end();
  for (Reading& reading : theirs.readings) {
    if (!is_masked || reading.stage != Stage::scores || reading.layout.is_masked) continue;
    reading.layout.words = reading.layout.is_plain ? "masked before the scale"
                                                   : reading.layout.words + ", masked before the scale";
    reading.layout.is_plain = false, reading.layout.is_masked = true;
  }
}

Lengths lengths_of(const Model& model, Stage stage) {
  const attention::StageShape shape = attention::shape_of(model, stage);
  return {model.sequences.size(), n_matrices(model, stage), shape.n_rows, shape.n_cols};
}

bool is_of_groups(const Model& model, Stage stage) {
  return attention::info(stage).per_head && n_matrices(model, stage) < model.n_heads;
}

std::vector<std::string_view> letters_of(const Model& model, Stage stage, std::size_t n_heads,
                                         bool one_head) {
  const StageInfo& row = attention::info(stage);
  const bool is_batch = model.sequences.size() > 1, has_heads = n_heads > 1;
  using Letters = std::vector<std::string_view>;
  Letters all;
  const auto add = [&](const Letters& more) { all.insert(all.end(), more.begin(), more.end()); };
  if (one_head) {
    add({"rc", "src"});
  } else if (row.per_head) {
    add({"shrc", "hrc"});
    if (!has_heads) add({"src", "rc"});
    if (has_features_of_heads(row)) add({"srhc", "rhc", "rshc"});
    if (has_features_of_heads(row)) add(has_heads ? Letters{"srj", "rj", "rsj"} : Letters{"rsc"});
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

bool heads_repeat(const Model& model, Stage stage, std::size_t group) {
  if (group < 2 || model.n_heads % group != 0 || is_of_groups(model, stage)) return false;
  if (stage == Stage::normed_keys || stage == Stage::rotated_keys)
    return !model.given.find(stage) && heads_repeat(model, Stage::keys, group);
  if (stage != Stage::keys && stage != Stage::values) return false;
  const auto first_of = [&](std::size_t head) { return head - head % group; };
  if (const attention::GivenStage* given = model.given.find(stage)) {
    const auto& all = given->matrices;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (!(all[k] == all[first_of(k)])) return false;  // sequences have whole groups
    return true;
  }
  const auto repeats = [&](const arma::mat& columns) {
    if (columns.n_cols != model.n_heads * model.d_head()) return false;
    for (std::size_t h = 0; h < model.n_heads; ++h)
      for (std::size_t k = 0; k < model.d_head(); ++k)
        for (std::size_t i = 0; i < columns.n_rows; ++i)
          if (columns(i, attention::column_of_head(model, stage, h, k)) !=
              columns(i, attention::column_of_head(model, stage, first_of(h), k)))
            return false;
    return true;
  };
  if (!model.projections)
    return std::ranges::all_of(model.sequences,
                               [&](const attention::Sequence& s) { return repeats(s.embeddings); });
  const attention::Linear& linear = stage == Stage::keys ? model.projections->key : model.projections->value;
  return repeats(linear.weight) && (!linear.bias || repeats(*linear.bias));
}

std::vector<Reading> readings_of(const Model& model, Stage stage, const formats::Shape& shape,
                                 std::size_t sequence, std::optional<std::size_t> head,
                                 const Layout* layout) {
  const StageInfo& row = attention::info(stage);
  Lengths l = lengths_of(model, stage);
  const bool one_head = head.has_value();
  if (stage == Stage::mask && !one_head) l.heads = model.n_heads;  // which may each have a copy of it
  const bool has_groups = is_of_groups(model, stage);
  if (one_head && has_groups) l.heads = model.n_heads;  // of which each can be given
  if (sequence >= l.sequences || (one_head && *head >= l.heads)) return {};
  const bool is_asked_for = layout && has_features_of_heads(row) && !one_head;
  std::vector<Reading> readings;
  formats::Shape rest = shape;
  const auto add = [&](std::string_view letters, const HeadsOf& of) {
    auto reading = fitted(row, l, letters, rest, of);
    if (!reading) return;
    if (reading->n_sequences == 1) reading->first_sequence = sequence;
    if (head) reading->first_head = *head;
    const std::size_t group = of.of_groups ? model.n_heads / model.n_groups() : of.group;
    reading->layout.words = words_of(row, letters, group, of.are_repeated);
    reading->layout.is_plain =
        of.group == 1 && !of.are_repeated &&
        (letters == "shrc" || letters == "hrc" || letters == "src" || letters == "rc" || letters == "s1rc");
    const bool known =
        std::ranges::any_of(readings, [&](const Reading& other) { return same_numbers(other, *reading); });
    if (!known) readings.push_back(*reading);
  };
  const auto add_all = [&](const HeadsOf& of) {
    if (is_asked_for) {
      const std::string_view letters = layout->letters;
      add(letters, of);
      if (rest.size() < shape.size() && letters.front() == 's') add(letters.substr(1), of);
      return;
    }
    for (const std::string_view letters : letters_of(model, stage, l.heads, one_head)) add(letters, of);
    if (of.group > 1 && of.group == l.heads)  // one head, which needs no axis of its own
      for (const std::string_view letters : {"src", "rc"}) add(letters, of);
  };
  while (true) {
    for (const std::size_t group : groups_of(model, stage, one_head))
      add_all({group, has_groups && !one_head, false});
    if (has_groups && !one_head) {
      const std::size_t n_groups = std::exchange(l.heads, model.n_heads);
      add_all({1, false, true});
      l.heads = n_groups;
    }
    if (!readings.empty() || rest.empty() || rest.front() != 1) break;
    rest.erase(rest.begin());
  }
  if (readings.empty() && !one_head)
    if (auto mean = mean_reading(row, l, shape, sequence)) readings.push_back(*std::move(mean));
  return readings;
}

}  // namespace core::check
