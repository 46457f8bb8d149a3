#pragma once

#include <armadillo>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/training/network.hpp"

namespace core::training {

/// Adam (Kingma and Ba 2015) with betas 0.9 and 0.99, or SGD with momentum 0.9, both as in torch.optim.
/// Gradients are clipped to a norm of 1, and the learning rate rises linearly over the first 20 steps.
class Optimizer {
 public:
  /// Changes the parameters of a network by one step, with the kind and the rate of its setup.
  ///
  /// gradients: as NetworkPass::gradients() returns them; zeros where they are empty. Returns their norm
  /// before clipping; if it is not finite, the network stays as it is.
  double step(Network& network, std::vector<arma::mat> gradients);

  std::size_t n_steps() const { return n_steps_; }

 private:
  struct Moments {
    arma::mat first, second;  ///< of SGD, the first is its momentum
  };
  std::map<std::string, Moments> moments_;  ///< by parameter
  std::size_t n_steps_ = 0;
};

}  // namespace core::training
