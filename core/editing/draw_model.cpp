#include "core/editing/draw_model.hpp"

#include <array>

#include "core/graph/matrices.hpp"

namespace core::editing {
namespace {

using attention::Model;
using random::DrawKind;
using random::DrawOp;
using random::Generator;

bool uniform(EmbeddingsDraw draw) {
  return draw == EmbeddingsDraw::rand_first || draw == EmbeddingsDraw::rand_last;
}

void draw_embeddings(Generator& generator, EmbeddingsDraw draw, Model& model) {
  const std::size_t n = model.n_tokens(), columns = model.d_model(), rows = model.sequences.size() * n;
  const arma::mat all = filled(
      uniform(draw) ? generator.rand(rows * columns) : generator.normal(rows * columns), rows, columns);
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    model.sequences[s].embeddings = arma::mat(all.rows(s * n, (s + 1) * n - 1));
}

DrawOp layer_op(std::size_t d_in, std::size_t d_out, bool bias) {
  DrawOp op;
  op.kind = DrawKind::linear;
  op.shape = {d_out, d_in};
  op.bias = bias;
  return op;
}

/// Queries, keys and values in the order in which they are drawn, each with the shape of its projection.
struct DrawnLayer {
  attention::Part part;
  std::size_t d_in, columns;
};
std::array<DrawnLayer, 3> layers_of(const Model& model, LayerOrder order) {
  using attention::Part;
  const std::size_t of_groups = model.d_out() / model.n_heads * model.n_groups();
  const DrawnLayer query{Part::query, model.d_model(), model.d_out()},
      key{Part::key, model.d_memory(), of_groups}, value{Part::value, model.d_memory(), of_groups};
  if (order == LayerOrder::query_key_value) return {query, key, value};
  return {key, query, value};
}

/// Columns of the output projection that is drawn: as many as there are, else d_out.
std::size_t output_width(const Model& model) {
  return model.projections && model.projections->output ? model.d_output() : model.d_out();
}

}  // namespace

bool comes_first(EmbeddingsDraw draw) {
  return draw == EmbeddingsDraw::rand_first || draw == EmbeddingsDraw::randn_first;
}

bool comes_last(EmbeddingsDraw draw) {
  return draw == EmbeddingsDraw::rand_last || draw == EmbeddingsDraw::randn_last;
}

DrawOp embeddings_op(const Model& model, EmbeddingsDraw draw, bool repeated) {
  DrawOp op;
  op.kind = uniform(draw) ? DrawKind::rand : DrawKind::randn;
  if (model.sequences.size() > 1 && !repeated) op.shape.push_back(model.sequences.size());
  op.shape.insert(op.shape.end(), {model.n_tokens(), model.d_model()});
  return op;
}

ModelDraw draw_like(const Model& model) {
  ModelDraw draw;
  if (!model.projections) return draw;
  const auto& p = *model.projections;
  draw.bias = p.query.bias || p.key.bias || p.value.bias;
  if (p.output) draw.output = p.output->bias ? OutputLayer::with_bias : OutputLayer::without_bias;
  return draw;
}

Model drawn_model(const Model& model, const ModelDraw& draw) {
  Model drawn = model;
  Generator generator(draw.seed);
  for (const DrawOp& op : draw.before) random::run(generator, op);
  if (comes_first(draw.embeddings)) draw_embeddings(generator, draw.embeddings, drawn);
  const std::size_t d_out = model.d_out(), d_output = output_width(model);
  drawn.projections.emplace();
  for (const auto& [part, d_in, columns] : layers_of(model, draw.order))
    *find_linear(drawn, part) = drawn_linear(generator, d_in, columns, draw.bias);
  if (draw.output != OutputLayer::none)
    drawn.projections->output =
        drawn_linear(generator, d_out, d_output, draw.output == OutputLayer::with_bias);
  if (comes_last(draw.embeddings)) draw_embeddings(generator, draw.embeddings, drawn);
  return drawn;
}

std::string torch_lines(const Model& model, const ModelDraw& draw) {
  std::string lines =
      "import torch\nfrom torch import nn\n\ntorch.manual_seed(" + std::to_string(draw.seed) + ")\n";
  const auto assign = [&](const std::string& name, const DrawOp& op) {
    lines += name + " = " + random::torch_words(op) + "\n";
  };
  for (const DrawOp& op : draw.before) lines += random::torch_words(op) + "\n";
  if (comes_first(draw.embeddings)) assign("x", embeddings_op(model, draw.embeddings));
  for (const auto& [part, d_in, columns] : layers_of(model, draw.order))
    assign(std::string("W_") + name_of(part)[0], layer_op(d_in, columns, draw.bias));
  if (draw.output != OutputLayer::none)
    assign("W_o", layer_op(model.d_out(), output_width(model), draw.output == OutputLayer::with_bias));
  if (comes_last(draw.embeddings)) assign("x", embeddings_op(model, draw.embeddings));
  return lines;
}

}  // namespace core::editing
