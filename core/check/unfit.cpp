#include "core/check/unfit.hpp"

#include <algorithm>
#include <set>

#include "core/base/text.hpp"

namespace core::check {
namespace {

using attention::StageInfo;
using formats::Shape;

Shape own_shape(const Model& model, Stage stage, bool one_head) {
  const Lengths l = lengths_of(model, stage);
  Shape shape;
  if (l.sequences > 1) shape.push_back(l.sequences);
  if (attention::info(stage).per_head && !one_head) shape.push_back(l.heads);
  shape.insert(shape.end(), {l.rows, l.columns});
  return shape;
}

Shape without_ones(const Shape& shape) {
  return {std::ranges::find_if(shape, [](std::size_t n) { return n != 1; }), shape.end()};
}

/// Another layout than the one that was asked for.
std::string other_layout(const Model& model, Stage stage, const Shape& shape) {
  for (const Layout& layout : layouts())
    if (!readings_of(model, stage, shape, 0, {}, &layout).empty())
      return std::string(layout.about) + "? transpose, or say --layout " + layout.name;
  return readings_of(model, stage, shape, 0, {}).empty() ? "" : "it fits without --layout";
}

/// The same axes in another order: heads of scores after the queries, or rows and columns.
std::string other_order(const Shape& expected, const Shape& shape) {
  const Shape got = without_ones(shape), wanted = without_ones(expected);
  if (got == wanted || !std::ranges::is_permutation(got, wanted) || got.size() < 2) return "";
  Shape turned = wanted;
  std::swap(turned.end()[-1], turned.end()[-2]);
  if (got == turned) return "rows and columns swapped? transpose the last two axes";
  if (got.size() > 2) {
    turned = wanted;
    std::swap(turned.end()[-2], turned.end()[-3]);
    if (got == turned) return "heads after tokens? transpose to " + formats::shape_text(wanted);
  }
  return "axes in another order? transpose to " + formats::shape_text(wanted);
}

/// Stages of the model that have this shape.
std::string other_stages(const Model& model, const Shape& shape, bool one_head) {
  constexpr std::size_t most = 6;
  std::vector<const char*> names;
  for (const StageInfo& stage : attention::stages())
    if (stage.present(model) && stage.stage != Stage::mask &&  // of which heads have copies at most
        !readings_of(model, stage.stage, shape, 0, one_head ? std::optional<std::size_t>(0) : std::nullopt)
             .empty())
      names.push_back(stage.name);
  if (names.empty() || names.size() > most) return "";
  return "the shape of " + text::joined(names, ", ", {}, " or ") + "; --map says which stage it is";
}

/// The one length of a layout that is another than the model's: of tokens, heads, columns or sequences.
std::string other_length(const Model& model, Stage stage, const Shape& shape, bool one_head) {
  const StageInfo& row = attention::info(stage);
  const Lengths l = lengths_of(model, stage);
  const std::size_t n_heads = is_of_groups(model, stage) ? l.heads : model.n_heads;
  for (const std::string_view letters : letters_of(model, stage, n_heads, one_head)) {
    if (letters.size() != shape.size()) continue;
    std::set<std::pair<char, std::size_t>> wrong;
    for (std::size_t k = 0; k < letters.size(); ++k) {
      char letter = letters[k];
      if (letter == 'c' && row.columns == attention::Columns::tokens && l.rows == l.columns) letter = 'r';
      const std::size_t expected = letter == 's'   ? l.sequences
                                   : letter == 'h' ? l.heads
                                   : letter == 'r' ? l.rows
                                   : letter == 'c' ? l.columns
                                   : letter == 'j' ? l.heads * l.columns
                                   : letter == 'q' ? l.sequences * l.heads
                                                   : 1;
      if (shape[k] != expected) wrong.emplace(letter, shape[k]);
    }
    if (wrong.size() != 1) continue;
    const auto [letter, got] = *wrong.begin();
    if (letter == 'h')
      return text::counted(got, "head") + " instead of " + std::to_string(l.heads) +
             (is_of_groups(model, stage) ? ", one for each group, or " + std::to_string(model.n_heads) : "");
    if (letter == 'r') return text::counted(got, "token") + " instead of " + std::to_string(l.rows);
    if (letter == 's') return text::counted(got, "sequence") + " instead of " + std::to_string(l.sequences);
    if (letter == 'c') return text::counted(got, "column") + " instead of " + std::to_string(l.columns);
    if (letter == 'j')
      return text::counted(got, "column") + " instead of " + std::to_string(l.heads * l.columns);
  }
  return "";
}

/// Keys or values of fewer heads, where those of the model are not as many that repeat.
std::string other_groups(const Model& model, Stage stage, const Shape& shape) {
  if (stage != Stage::keys && stage != Stage::values) return "";
  if (is_of_groups(model, stage)) return "";
  const Lengths l = lengths_of(model, stage);
  const Shape got = without_ones(shape);
  const std::size_t n = got.size() < 3 ? 1 : got[got.size() - 3] == l.rows ? got.end()[-2] : got.end()[-3];
  Shape heads{n, l.rows, l.columns};
  if (n == 0 || n >= l.heads || l.heads % n != 0 || !std::ranges::is_permutation(got, without_ones(heads)))
    return "";
  return text::counted(n, "head") + " instead of " + std::to_string(l.heads) +
         ": grouped? the model's heads do not repeat in groups of " + std::to_string(l.heads / n);
}

std::string guess(const Model& model, const std::vector<Stage>& stages, const Shape& shape, bool one_head,
                  const Layout* layout) {
  const Stage stage = stages.front();
  const Shape expected = own_shape(model, stage, one_head);
  std::string words;
  if (layout && !one_head)
    for (const Stage one : stages)
      if (words = other_layout(model, one, shape); !words.empty()) return words;
  if (words = other_order(expected, shape); !words.empty()) return words;
  if (words = other_groups(model, stage, shape); !one_head && !words.empty()) return words;
  if (words = other_stages(model, shape, one_head); !words.empty()) return words;
  for (const Stage one : stages)
    if (words = other_length(model, one, shape, one_head); !words.empty()) return words;
  const auto count = formats::count_of(shape);
  if (count == std::uint64_t{0}) return "it holds no numbers";
  return count == formats::count_of(expected) ? "as many numbers: reshape it" : "";
}

}  // namespace

std::string expected_shape(const Model& model, Stage stage, bool one_head) {
  return formats::shape_text(own_shape(model, stage, one_head));
}

std::string unfit_words(const Model& model, const std::vector<Stage>& stages, const Shape& shape,
                        const Name& name, const Layout* layout) {
  const Stage stage = stages.front();
  const bool one_head = name.head.has_value();
  if (name.sequence.value_or(0) >= model.sequences.size())
    return "there is no sequence " + std::to_string(*name.sequence) + ": the model has " +
           std::to_string(model.sequences.size());
  const std::size_t n_heads = attention::info(stage).per_head ? model.n_heads : 1;
  if (name.head.value_or(0) >= n_heads)
    return "there is no head " + std::to_string(*name.head) + ": the model has " + std::to_string(n_heads) +
           " of this stage";
  const std::string words = guess(model, stages, shape, one_head, layout);
  return "expected " + expected_shape(model, stage, one_head) + ", got " + formats::shape_text(shape) +
         (words.empty() ? "" : ": " + words);
}

}  // namespace core::check
