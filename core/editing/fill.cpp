#include "core/editing/fill.hpp"

#include "core/editing/drawn.hpp"

namespace core::editing {
namespace {

/// How many numbers go into the layer that a bias belongs to.
std::size_t layer_input(const attention::Model& model, MatrixName bias) {
  if (bias == MatrixName::output_bias) return model.d_out();
  return bias == MatrixName::query_bias ? model.d_model() : model.d_memory();
}

}  // namespace

arma::mat filled(const attention::Model& model, MatrixPlace place, const Fill& fill) {
  const arma::mat& old = **find_matrix(model, place);
  const std::size_t rows = old.n_rows, columns = old.n_cols;
  random::Generator generator(fill.seed);
  if (fill.draws())
    for (const random::DrawOp& op : fill.before) random::run(generator, op);
  switch (fill.rule) {
    case FillRule::zeros:
      break;
    case FillRule::ones:
      return arma::mat(rows, columns, arma::fill::ones);
    case FillRule::identity:
      return arma::mat(rows, columns, arma::fill::eye);
    case FillRule::rand:
      return filled(generator.rand(rows * columns), rows, columns);
    case FillRule::randn:
    case FillRule::embedding:
      return filled(generator.normal(rows * columns), rows, columns);
    case FillRule::linear: {
      if (is_bias(place.name))
        return *drawn_linear(generator, layer_input(model, place.name), columns, true).bias;
      return drawn_linear(generator, rows, columns).weight;
    }
  }
  return arma::mat(rows, columns, arma::fill::zeros);
}

}  // namespace core::editing
