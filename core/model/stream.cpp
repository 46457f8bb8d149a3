#include "core/model/stream.hpp"

#include <cmath>

namespace core::experiment {
namespace {

using transformer::NormKind;
using transformer::NormPlace;

NormOfNumber norm_of(const arma::frowvec& row, const transformer::Affine& numbers, std::size_t column,
                     const transformer::Norm& rule) {
  const arma::rowvec x = arma::conv_to<arma::rowvec>::from(row);
  NormOfNumber norm;
  if (rule.kind == NormKind::layer) norm.mean = arma::mean(x);
  norm.divisor = std::sqrt(arma::mean(arma::square(x - norm.mean)) + rule.epsilon);
  norm.factor = numbers.weight[column];
  if (column < numbers.bias.n_elem) norm.bias = numbers.bias[column];
  return norm;
}

}  // namespace

StreamNumber stream_number(const transformer::Transformer& model, const transformer::Pass& pass,
                           std::size_t layer, std::size_t row, std::size_t column, const Token& progress) {
  const transformer::LayerRun& run = *pass.layers[layer];
  const arma::fmat& next = layer + 1 < pass.layers.size() ? pass.layers[layer + 1]->residual : pass.last;
  const transformer::Norm& rule = model.architecture.norm;
  StreamNumber number;
  number.entering = run.residual(row, column);
  number.input = run.attention_input(row, column);
  number.attention = run.output(row, column);
  number.leaving = next(row, column);
  number.mlp = number.leaving - number.entering - number.attention;
  number.is_sum = rule.place == NormPlace::before;
  if (!number.is_sum) return number;
  const auto weights = model.weights->layer(layer, progress);
  if (!weights->attention_norm.is_empty())
    number.norm = norm_of(run.residual.row(row), weights->attention_norm, column, rule);
  return number;
}

}  // namespace core::experiment
