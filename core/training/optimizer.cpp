#include "core/training/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace core::training {
namespace {

constexpr double first_decay = 0.9, second_decay = 0.99, adam_epsilon = 1e-8, momentum = 0.9;
constexpr double max_norm = 1, clip_epsilon = 1e-6;  // as in torch.nn.utils.clip_grad_norm_
constexpr double n_warmup = 20;

}  // namespace

double Optimizer::step(Network& network, std::vector<arma::mat> gradients) {
  double squares = 0;
  for (const arma::mat& gradient : gradients) squares += arma::accu(arma::square(gradient));
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return norm;
  const double scale = std::min(1.0, max_norm / (norm + clip_epsilon)), n = static_cast<double>(++n_steps_),
               rate = network.setup.rate * std::min(1.0, n / n_warmup);
  const auto parameters = network.parameters();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (gradients[k].empty()) continue;
    const arma::mat gradient = gradients[k] * scale;
    auto& [first, second] = moments_[parameters[k].name];
    arma::mat& numbers = parameters[k].numbers->edit();
    if (first.empty()) first.zeros(arma::size(gradient)), second.zeros(arma::size(gradient));
    if (network.setup.optimizer == OptimizerChoice::sgd) {
      first = momentum * first + gradient;
      numbers -= rate * first;
      continue;
    }
    first = first_decay * first + (1 - first_decay) * gradient;
    second = second_decay * second + (1 - second_decay) * arma::square(gradient);
    numbers -= rate / (1 - std::pow(first_decay, n)) * first /
               (arma::sqrt(second) / std::sqrt(1 - std::pow(second_decay, n)) + adam_epsilon);
  }
  return norm;
}

}  // namespace core::training
