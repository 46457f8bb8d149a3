#include "core/check/reading.hpp"

#include <string_view>
#include <tuple>

namespace core::check {
namespace {

using attention::Columns;
using attention::StageInfo;

/// The lengths that a stage of the model has.
struct Lengths {
  std::size_t sequences, heads, rows, columns;
};

Lengths lengths_of(const Model& model, const StageInfo& stage) {
  const attention::StageShape shape = attention::shape_of(model, stage.stage);
  return {model.sequences.size(), stage.per_head ? model.n_heads : 1, shape.n_rows, shape.n_cols};
}

/// Layouts, a letter for each dimension: s sequence, h head, r row, c column, j columns of all heads, 1 a
/// one.
std::vector<std::string_view> layouts(const StageInfo& stage, const Lengths& l, bool one_head) {
  std::vector<std::string_view> all;
  if (one_head) {
    all = {"rc", "src"};
  } else if (stage.per_head) {
    all = {"shrc", "hrc"};
    if (l.heads == 1) all.insert(all.end(), {"src", "rc"});
    const bool features = stage.columns == Columns::features;
    if (features && l.heads > 1) all.insert(all.end(), {"srhc", "rhc", "srj", "rj"});
  } else {
    all = {"src", "rc", "s1rc"};
  }
  if (stage.columns == Columns::single) {
    if (stage.per_head && !one_head) all.insert(all.end(), {"shr", "hr"});
    if (l.heads == 1 || one_head) all.insert(all.end(), {"sr", "r"});
  }
  return all;
}

std::optional<Reading> fitted(const StageInfo& stage, const Lengths& l, std::string_view layout,
                              const formats::Shape& shape) {
  if (layout.size() != shape.size()) return std::nullopt;
  Reading r;
  r.stage = stage.stage;
  r.n_rows = l.rows, r.n_columns = l.columns;
  std::size_t stride = 1;
  for (std::size_t k = layout.size(); k-- > 0;) {
    const auto [expected, per, count] = [&]() -> std::tuple<std::size_t, std::size_t*, std::size_t*> {
      switch (layout[k]) {
        case 's':
          return {l.sequences, &r.per_sequence, &r.n_sequences};
        case 'h':
          return {l.heads, &r.per_head, &r.n_heads};
        case 'r':
          return {l.rows, &r.per_row, &r.n_rows};
        case 'c':
          return {l.columns, &r.per_column, &r.n_columns};
        case 'j':
          r.joined = true;
          return {l.columns * l.heads, &r.per_column, &r.n_columns};
        default:
          return {1, nullptr, nullptr};
      }
    }();
    if (shape[k] != expected) return std::nullopt;
    if (per) *per = stride, *count = expected;
    stride *= expected;
  }
  return r;
}

}  // namespace

std::vector<Reading> readings_of(const Model& model, Stage stage, const formats::Shape& shape,
                                 std::size_t sequence, std::optional<std::size_t> head) {
  const StageInfo& row = attention::info(stage);
  const Lengths l = lengths_of(model, row);
  if (sequence >= l.sequences || (head && *head >= l.heads)) return {};
  std::vector<Reading> readings;
  formats::Shape rest = shape;
  while (true) {
    for (const std::string_view layout : layouts(row, l, head.has_value())) {
      auto reading = fitted(row, l, layout, rest);
      if (!reading) continue;
      if (reading->n_sequences == 1) reading->first_sequence = sequence;
      if (head) reading->first_head = *head;
      readings.push_back(*reading);
    }
    if (!readings.empty() || rest.empty() || rest.front() != 1) return readings;
    rest.erase(rest.begin());
  }
}

std::string expected_shape(const Model& model, Stage stage, bool one_head) {
  const StageInfo& row = attention::info(stage);
  const Lengths l = lengths_of(model, row);
  formats::Shape shape;
  if (l.sequences > 1) shape.push_back(l.sequences);
  if (row.per_head && !one_head) shape.push_back(l.heads);
  shape.insert(shape.end(), {l.rows, l.columns});
  return formats::shape_text(shape);
}

}  // namespace core::check
