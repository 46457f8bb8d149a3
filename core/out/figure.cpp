#include "core/out/figure.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/words.hpp"
#include "core/out/append.hpp"
#include "core/out/export.hpp"
#include "core/out/map_figure.hpp"
#include "core/out/notes.hpp"
#include "core/out/words.hpp"

namespace core::figures {
namespace {

using attention::Colouring;
using attention::Columns;
using attention::Model;
using attention::Stage;
using attention::StageInfo;
using attention::Trace;
using colour::Palette;
using std::to_string;

constexpr double margin = 20, beside = 40, below = 26;
constexpr double named = 26;  // the line above a strip that names its head

struct Source {
  const Model& model;
  const Trace& trace;
  const FigureOptions& options;
  const Palette& palette;
};

colour::ColourMap map_of(const FigureOptions& options, Colouring colouring) {
  switch (colouring) {
    case Colouring::weights:
      return options.sequential;
    case Colouring::mask:
      return colour::ColourMap::mask;
    case Colouring::signed_values:
      break;
  }
  return options.diverging;
}

Range range_of(const Source& s, const StageInfo& stage, std::size_t head) {
  if (s.options.range) return s.options.range(stage.stage, head);
  if (stage.colouring != Colouring::signed_values) return {0, attention::top_of_range(s.model, stage.stage)};
  double largest = 0;
  for (const double v : *stage.matrix(s.trace, head))
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return {-largest, largest};
}

/// One range for all heads.
Range common_range(const Source& s, const StageInfo& stage) {
  Range all = range_of(s, stage, 0);
  for (std::size_t h = 1; h < s.model.n_heads; ++h) {
    const Range one = range_of(s, stage, h);
    all.low = std::min(all.low, one.low), all.high = std::max(all.high, one.high);
    all.least = std::min(all.least, one.least);
  }
  return all;
}

std::vector<Run> title(const Source& s, const StageInfo& stage, const std::string& name,
                       const arma::mat& numbers) {
  std::vector<Run> runs{{name, 17, s.palette.text}};
  const std::vector<Run> formula = formula_runs(formula_of(stage, s.model, false), 14, s.palette.dim);
  runs.insert(runs.end(), formula.begin(), formula.end());
  if (!formula.empty()) runs[1].before = 10;
  runs.push_back({text::shape_text(numbers.n_rows, numbers.n_cols), 13, s.palette.faint, true});
  runs.back().before = 10;
  return runs;
}

Map map_of_stage(const Source& s, const StageInfo& stage, std::size_t head, const Range& range) {
  const bool weights = stage.stage == Stage::weights || stage.stage == Stage::dropped_weights ||
                       stage.stage == Stage::zeroed_weights;
  const bool drops = stage.stage == Stage::dropout_mask || stage.stage == Stage::dropped_weights;
  const bool scores = stage.stage == Stage::scores || stage.stage == Stage::scaled_scores;
  const bool of_tokens = stage.columns == Columns::tokens;
  Map map{.matrix = formats::labelled_stage(s.model, s.trace, stage, head, s.options.sequence), .title = {}};
  map.shading = {map_of(s.options, stage.colouring), range.low, range.high, range.least};
  if (weights) map.visible = &static_cast<const arma::mat&>(s.trace.mask);
  if (drops) map.kept = &static_cast<const arma::mat&>(s.trace.heads[head].dropout_mask);
  if (of_tokens && !scores && info(Stage::mask).present(s.model)) map.by_hand = s.model.mask.cells;
  map.tokens_above = of_tokens;
  map.plain_one = stage.colouring != Colouring::signed_values;
  map.numbers = s.options.numbers;
  map.bar = stage.columns != Columns::single;
  return map;
}

DisplayList one_map(const Source& s, const StageInfo& stage, std::size_t head, Notes& notes) {
  Map map = map_of_stage(s, stage, head, range_of(s, stage, head));
  const bool many = stage.per_head && s.model.n_heads > 1;
  map.title =
      title(s, stage, stage.title + (many ? ", head " + to_string(head) : std::string()), map.matrix.numbers);
  const MapFigure figure = map_figure(map, s.palette);
  notes.add(figure, map);
  return figure.list;
}

/// All heads of a stage, in colours of one range, with one bar for all.
DisplayList all_heads(const Source& s, const StageInfo& stage, Notes& notes) {
  const std::size_t n = s.model.n_heads, columns = n <= 3 ? n : n <= 8 ? (n + 1) / 2 : 4;
  const Range range = common_range(s, stage);
  DisplayList list;
  double y = 34, row_height = 0, smallest = range.high, largest = range.low, x = 0;
  for (std::size_t h = 0; h < n; ++h) {
    Map map = map_of_stage(s, stage, h, range);
    if (h == 0)
      list.items.emplace_back(Text{{0, 16}, Anchor::start, title(s, stage, stage.title, map.matrix.numbers)});
    map.title = {{"head " + to_string(h), 14, s.palette.dim}};
    map.room = Room::several_maps, map.bar = false;
    for (const double v : map.matrix.numbers)
      if (std::isfinite(v)) smallest = std::min(smallest, v), largest = std::max(largest, v);
    const MapFigure part = map_figure(map, s.palette);
    notes.add(part, map);
    if (h > 0 && h % columns == 0) x = 0, y += row_height + below, row_height = 0;
    append(list, part.list, {x, y});
    x += part.list.width + beside;
    row_height = std::max(row_height, part.list.height);
    list.width = std::max(list.width, x - beside);
  }
  const DisplayList bar = bar_figure({map_of(s.options, stage.colouring), range.low, range.high, range.least},
                                     smallest, largest, std::min(list.width, 420.0), s.palette);
  append(list, bar, {0, y + row_height + 18});
  list.height = y + row_height + 18 + bar.height;
  return list;
}

void draw_arrow(DisplayList& list, Point from, double length, Rgb colour) {
  const Point tip{from.x + length, from.y};
  list.items.emplace_back(Lines{{{from, Point{tip.x - 5, tip.y}}}, 1, colour});
  list.items.emplace_back(
      Triangles{{{tip, Point{tip.x - 6, tip.y - 3}, Point{tip.x - 6, tip.y + 3}}}, colour});
}

/// The stages of one head in four lines that read as text.
DisplayList strip(const Source& s, std::size_t head, Notes& notes) {
  DisplayList list;
  const bool many = s.model.n_heads > 1;
  double x = 0, y = many ? named : 0, row_height = 0;
  if (many)
    list.items.emplace_back(Text{{0, 14}, Anchor::start, {{"head " + to_string(head), 14, s.palette.dim}}});
  int line = 0;
  std::optional<Area> before;  // the cells of the map before, in the same line
  for (const StageInfo& stage : attention::stages()) {
    if (!stage.present(s.model)) continue;
    const std::size_t h = stage.per_head ? head : 0;
    Map map = map_of_stage(s, stage, h, range_of(s, stage, h));
    map.title = title(s, stage, stage.title, map.matrix.numbers);
    map.room = Room::several_maps;
    const MapFigure part = map_figure(map, s.palette);
    notes.add(part, map);
    if (stage.line != line) {
      if (line > 0) y += row_height + below;
      x = 0, row_height = 0, line = stage.line, before.reset();
    }
    append(list, part.list, {x, y});
    const bool siblings = stage.stage == Stage::keys || stage.stage == Stage::values;
    const double middle = y + part.picture.y + part.picture.height / 2;
    if (before && !siblings) draw_arrow(list, {x - beside + 8, middle}, beside - 16, s.palette.faint);
    before = part.picture;
    x += part.list.width + beside;
    row_height = std::max(row_height, part.list.height);
    list.width = std::max(list.width, x - beside);
  }
  list.height = y + row_height;
  return list;
}

DisplayList content(const Source& s, Notes& notes) {
  const FigureOptions& o = s.options;
  if (o.head && *o.head >= s.model.n_heads)
    throw Error("head " + to_string(*o.head) + ": the model has " + to_string(s.model.n_heads) +
                " (0 is the first)");
  if (!o.stage) return strip(s, o.head.value_or(0), notes);
  const StageInfo& stage = attention::info(*o.stage);
  if (!stage.present(s.model))
    throw Error(std::string("stage \"") + stage.name + "\": this model does not have it");
  if (!stage.per_head) return one_map(s, stage, 0, notes);
  if (o.head) return one_map(s, stage, *o.head, notes);
  return s.model.n_heads == 1 ? one_map(s, stage, 0, notes) : all_heads(s, stage, notes);
}

std::string words_of(const Model& model, const FigureOptions& o) {
  if (!o.stage) return "Attention, stage by stage, head " + to_string(o.head.value_or(0));
  const StageInfo& stage = attention::info(*o.stage);
  const bool of_head = stage.per_head && model.n_heads > 1;
  return std::string(stage.title) + (!of_head ? "" : o.head ? ", head " + to_string(*o.head) : ", all heads");
}

}  // namespace

DisplayList figure(const Model& model, const Trace& trace, const FigureOptions& options) {
  const Source source{model, trace, options, colour::palette(options.dark)};
  Notes notes;
  const DisplayList inner = content(source, notes);
  const DisplayList words = notes_figure(notes, source.palette, std::max(inner.width, 320.0));
  DisplayList whole;
  whole.ground = source.palette.ground.back;
  whole.title = words_of(model, options);
  append(whole, inner, {margin, margin});
  whole.height = margin + inner.height;
  if (words.height > 0) {
    append(whole, words, {margin, whole.height + 16});
    whole.height += 16 + words.height;
  }
  whole.width = std::ceil(2 * margin + std::max(inner.width, words.width));
  whole.height = std::ceil(whole.height + margin);
  return whole;
}

}  // namespace core::figures
