#include "core/model/contributions.hpp"

#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "core/model/blocks.hpp"

namespace core::transformer {
namespace {

using arma::fmat;

/// A logit as a row of what leaves the last layer times a direction, plus a constant.
struct Direction {
  arma::vec of_residual;
  double constant = 0;
  double operator()(const arma::frowvec& part) const {
    return arma::dot(arma::conv_to<arma::rowvec>::from(part), of_residual);
  }
};

arma::vec prediction_column(const Transformer& model, std::size_t token, const Means& means) {
  arma::vec column;
  model.weights->for_each_prediction_part(
      [&](std::size_t first, const fmat& part) {
        if (token >= first && token < first + part.n_cols)
          column = arma::conv_to<arma::vec>::from(part.col(token - first));
      },
      means.progress);
  return column;
}

Direction direction_of(const Transformer& model, const arma::frowvec& last, std::size_t token,
                       const Means& means) {
  const auto head = model.weights->head(means.progress);
  const arma::vec column = prediction_column(model, token, means);
  Direction direction{column, token < head->bias.n_elem ? head->bias[token] : 0.0};
  if (head->final_norm.is_empty()) return direction;
  const Norm& norm = model.architecture.norm;
  const arma::vec x = arma::conv_to<arma::vec>::from(last.t());
  const arma::vec weighed = arma::conv_to<arma::vec>::from(arma::vectorise(head->final_norm.weight)) % column;
  const auto n = static_cast<double>(x.n_elem);
  const bool is_centred = norm.kind == NormKind::layer;
  const double mean = is_centred ? arma::mean(x) : 0;
  const double size = std::sqrt(arma::accu(arma::square(x - mean)) / n + norm.epsilon);
  direction.of_residual = (is_centred ? arma::vec(weighed - arma::mean(weighed)) : weighed) / size;
  if (!head->final_norm.bias.empty())
    direction.constant += arma::dot(arma::conv_to<arma::vec>::from(head->final_norm.bias.t()), column);
  return direction;
}

}  // namespace

double Contributions::sum() const {
  double all = embedding + constant;
  for (const auto& layer : heads) all = std::accumulate(layer.begin(), layer.end(), all);
  all = std::accumulate(besides.begin(), besides.end(), all);
  return std::accumulate(mlps.begin(), mlps.end(), all);
}

fmat added_by_heads(const Transformer& model, const Pass& pass, std::size_t layer, std::size_t row,
                    const Interventions& interventions, const Means& means) {
  const Sizes& sizes = model.architecture.sizes;
  const LayerRun& of = *pass.layers[layer];
  Sight sight = sight_of(model.architecture, layer);
  KeysAndValues seen = of.keys;  // the row as the last query of the keys that it may see
  if (sight.causal) seen.n = row + 1;
  const auto weights = model.weights->layer(layer, means.progress);
  const arma::frowvec contexts = attended(of.queries.row(row), seen, sizes, sight, means.pool).as_row();
  fmat added(sizes.n_heads, sizes.d_model, arma::fill::zeros);
  const std::size_t d = sizes.d_head;
  for (std::size_t h = 0; h < sizes.n_heads; ++h)
    if (!interventions.heads_off.contains({layer, h}))
      added.row(h) = contexts.cols(h * d, h * d + d - 1) * weights->output.weight.rows(h * d, h * d + d - 1);
  return added;
}

bool has_contributions(const Transformer& model) {
  const Token progress;
  return model.weights->predicts() && model.architecture.norm.place == NormPlace::before &&
         model.weights->head(progress)->dense.is_empty();
}

Contributions contributions_to(const Transformer& model, const Pass& pass, std::size_t row, std::size_t token,
                               const std::vector<fmat>& added, const Means& means) {
  if (!has_contributions(model))
    throw Error(model.path.string() +
                ": its logits are no sums of what heads add, as norms stand behind them");
  const Direction direction = direction_of(model, pass.last.row(row), token, means);
  Contributions result;
  result.constant = direction.constant;
  result.embedding = direction(pass.layers.front()->residual.row(row));
  for (std::size_t l = 0; l < pass.layers.size(); ++l) {
    const LayerRun& layer = *pass.layers[l];
    std::vector<double> heads;
    for (std::size_t h = 0; h < added[l].n_rows; ++h) heads.push_back(direction(added[l].row(h)));
    const arma::frowvec output = layer.output.row(row);
    const double all = direction(output);
    const arma::frowvec next =
        l + 1 < pass.layers.size() ? pass.layers[l + 1]->residual.row(row) : pass.last.row(row);
    result.mlps.push_back(direction(next - layer.residual.row(row) - output));
    result.besides.push_back(all - std::accumulate(heads.begin(), heads.end(), 0.0));
    result.heads.push_back(std::move(heads));
  }
  return result;
}

}  // namespace core::transformer
