#include "core/editing/recipe.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/editing/draw_model.hpp"

namespace core::editing {
namespace {

using attention::Linear;
using attention::Model;
using random::Block;
using random::DrawKind;
using random::DrawOp;
using random::Generator;

/// More numbers than this are not drawn on the chance that something after them matches.
constexpr std::size_t many = 1 << 16;

/// How a notebook may have drawn a model.
struct Layout {
  bool starts_before = false;  // six tokens to start from were drawn first, as notebook 002 does
  EmbeddingsDraw embeddings = EmbeddingsDraw::none;
  bool repeated = false;
  LayerOrder order = LayerOrder::query_key_value;
  DrawKind layers = DrawKind::linear;
  bool by_head = false;
};

double number(const Block& block, std::size_t row, std::size_t column) {
  return std::visit([&](const auto& all) { return static_cast<double>(all[row * block.columns + column]); },
                    block.numbers);
}

const Linear& layer_of(const Model& model, DrawnPart part) {
  const attention::Projections& p = *model.projections;
  return part == DrawnPart::query   ? p.query
         : part == DrawnPart::key   ? p.key
         : part == DrawnPart::value ? p.value
                                    : *p.output;
}

DrawOp layer_op(const Linear& layer, DrawKind kind, std::size_t columns) {
  DrawOp op;
  op.kind = kind;
  op.bias = kind == DrawKind::linear && layer.bias;
  op.shape = kind == DrawKind::linear ? std::vector<std::size_t>{columns, layer.weight->n_rows}
                                      : std::vector<std::size_t>{layer.weight->n_rows, columns};
  return op;
}

/// The draws of a layout, in order.
std::vector<RecipeDraw> draws_of(const Model& model, const Layout& layout) {
  std::vector<RecipeDraw> draws;
  if (layout.starts_before) draws.push_back({random::parse_draw_op("randint(0,10,6)")});
  const RecipeDraw embeddings{
      embeddings_op(model, layout.embeddings, layout.repeated), DrawnPart::embeddings, {}, layout.repeated};
  if (comes_first(layout.embeddings)) draws.push_back(embeddings);
  if (model.projections) {
    std::array parts{DrawnPart::query, DrawnPart::key, DrawnPart::value};
    if (layout.order == LayerOrder::key_query_value) std::swap(parts[0], parts[1]);
    const std::size_t groups = layout.by_head ? model.n_heads : 1;
    for (std::size_t h = 0; h < groups; ++h)
      for (const DrawnPart part : parts) {
        const Linear& layer = layer_of(model, part);
        RecipeDraw draw{layer_op(layer, layout.layers, layer.weight.n_cols() / groups), part};
        if (layout.by_head) draw.head = h;
        draws.push_back(draw);
      }
    if (model.projections->output)
      draws.push_back(
          {layer_op(*model.projections->output, layout.layers, model.d_output()), DrawnPart::output});
  }
  if (comes_last(layout.embeddings)) draws.push_back(embeddings);
  return draws;
}

/// How many of a draw's numbers are the model's.
struct Agreement {
  std::size_t equal = 0, all = 0;
  void count(double drawn, double own) { equal += drawn == own, ++all; }
  bool is_whole() const { return equal == all; }
};

/// Of the first rows of a draw that gives a part of the model.
Agreement agreement(const Model& model, const RecipeDraw& draw, const std::vector<Block>& drawn,
                    std::size_t rows) {
  Agreement result;
  const Block& block = drawn.front();
  if (draw.part == DrawnPart::embeddings) {
    const std::size_t n = model.n_tokens();
    for (std::size_t s = 0; s < model.sequences.size(); ++s)
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t row = draw.repeated ? i : s * n + i;
        for (std::size_t j = 0; row < rows && j < block.columns; ++j)
          result.count(number(block, row, j), (*model.sequences[s].embeddings)(i, j));
      }
    return result;
  }
  const Linear& layer = layer_of(model, draw.part);
  const bool transposed = draw.op.kind == DrawKind::linear;
  const std::size_t columns = transposed ? draw.op.shape[0] : draw.op.shape[1],
                    first = draw.head.value_or(0) * columns;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < block.columns; ++column) {
      const std::size_t in = transposed ? column : row, out = transposed ? row : column;
      result.count(number(block, row, column), (*layer.weight)(in, first + out));
    }
  if (drawn.size() > 1)
    for (std::size_t k = 0; k < columns; ++k)
      result.count(number(drawn[1], 0, k), (**layer.bias)(0, first + k));
  return result;
}

/// Whether any number in the first row of a draw is the model's; that row comes out alike however many follow
/// it.
bool begins_alike(const Model& model, RecipeDraw draw, Generator generator) {
  constexpr std::size_t enough = 64;  // numbers for normal ones to come out as in a longer draw
  draw.op.bias = false;
  const std::size_t columns = draw.op.shape.back(), rows = draw.op.size() / columns;
  draw.op.shape = {std::min(rows, enough / columns + 1), columns};
  return agreement(model, draw, run(generator, draw.op), 1).equal > 0;
}

/// The draws of a layout up to the last that gives a part; a layer unlike the model's ends it.
RecipePassage matched(const Model& model, const Layout& layout, std::uint64_t seed,
                      const std::vector<DrawnPart>& wanted) {
  RecipePassage passage{seed, {}};
  Generator generator(seed);
  std::size_t useful = 0;
  for (RecipeDraw draw : draws_of(model, layout)) {
    const bool layer = draw.part > DrawnPart::embeddings;
    const bool alike = draw.part != DrawnPart::nothing && begins_alike(model, draw, generator);
    if (!alike && (layer || draw.op.size() > many)) break;
    const std::vector<Block> drawn = run(generator, draw.op);
    const bool is_wanted = std::ranges::find(wanted, draw.part) != wanted.end();
    const std::size_t rows = draw.op.kind == DrawKind::randint ? 0 : drawn.front().rows;
    if (!is_wanted || !alike || !agreement(model, draw, drawn, rows).is_whole())
      draw.part = DrawnPart::nothing;
    passage.draws.push_back(draw);
    if (draw.part != DrawnPart::nothing) useful = passage.draws.size();
  }
  passage.draws.resize(useful);
  if (!layout.by_head) return passage;
  // A part is there only with all its heads.
  for (const DrawnPart part : {DrawnPart::query, DrawnPart::key, DrawnPart::value}) {
    const auto of_part = [part](const RecipeDraw& d) { return d.part == part; };
    if (std::ranges::count_if(passage.draws, of_part) == static_cast<std::ptrdiff_t>(model.n_heads)) continue;
    for (RecipeDraw& draw : passage.draws)
      if (of_part(draw)) draw.part = DrawnPart::nothing, draw.head.reset();
  }
  while (!passage.draws.empty() && passage.draws.back().part == DrawnPart::nothing) passage.draws.pop_back();
  return passage;
}

std::vector<Layout> layouts(const Model& model) {
  using enum EmbeddingsDraw;
  std::vector<Layout> all;
  for (const bool starts_before : {false, true})
    for (const EmbeddingsDraw e : {none, rand_first, randn_first, rand_last, randn_last})
      for (const bool repeated : {false, true}) {
        if (repeated && (e == none || model.sequences.size() == 1)) continue;
        if (!model.projections) {
          all.push_back({starts_before, e, repeated});
          continue;
        }
        for (const DrawKind kind : {DrawKind::linear, DrawKind::rand, DrawKind::randn})
          for (const LayerOrder order : {LayerOrder::query_key_value, LayerOrder::key_query_value})
            for (const bool by_head : {false, true})
              if (!by_head || (model.n_heads > 1 && !model.n_kv_heads))
                all.push_back({starts_before, e, repeated, order, kind, by_head});
      }
  return all;
}

std::size_t parts_given(const RecipePassage& passage) {
  std::size_t count = 0;
  for (const DrawnPart part :
       {DrawnPart::embeddings, DrawnPart::query, DrawnPart::key, DrawnPart::value, DrawnPart::output})
    count += passage.gives(part);
  return count;
}

/// The passage that gives most of what is wanted, the shorter of two that give as much.
RecipePassage best_passage(const Model& model, const std::vector<std::uint64_t>& seeds,
                           const std::vector<DrawnPart>& wanted) {
  RecipePassage best;
  for (const Layout& layout : layouts(model))
    for (const std::uint64_t seed : seeds) {
      RecipePassage passage = matched(model, layout, seed, wanted);
      const std::size_t more = parts_given(passage), most = parts_given(best);
      if (more > most || (more == most && more > 0 && passage.draws.size() < best.draws.size()))
        best = std::move(passage);
      if (parts_given(best) == wanted.size()) return best;
    }
  return best;
}

}  // namespace

bool RecipePassage::gives(DrawnPart part) const {
  return std::ranges::any_of(draws, [part](const RecipeDraw& draw) { return draw.part == part; });
}

std::vector<std::uint64_t> usual_seeds() {
  return {123, 42, 1337, 789, 0, 1, 2, 3, 7, 2024};
}

std::vector<RecipePassage> find_recipe(const Model& model, const std::vector<std::uint64_t>& seeds) {
  std::vector<DrawnPart> wanted{DrawnPart::embeddings};
  if (model.projections) wanted.insert(wanted.end(), {DrawnPart::query, DrawnPart::key, DrawnPart::value});
  if (model.projections && model.projections->output) wanted.push_back(DrawnPart::output);
  std::vector<RecipePassage> recipe;
  while (!wanted.empty()) {
    RecipePassage passage = best_passage(model, seeds, wanted);
    if (passage.draws.empty()) break;
    std::erase_if(wanted, [&](DrawnPart part) { return passage.gives(part); });
    recipe.push_back(std::move(passage));
  }
  return recipe;
}

}  // namespace core::editing
