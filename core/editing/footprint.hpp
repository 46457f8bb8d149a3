#pragma once

#include <armadillo>
#include <cstddef>
#include <unordered_map>

#include "core/attention/model.hpp"

namespace core::editing {

/// How many bytes a collection of models holds, each shared matrix counted once.
///
/// Adding or removing a model costs time for its number of matrices, not for their size or the models around
/// it.
class Footprint {
 public:
  void add(const attention::Model& model);
  /// The model must have been added, and must still be alive.
  void remove(const attention::Model& model);
  std::size_t bytes() const { return bytes_; }

 private:
  std::unordered_map<const arma::mat*, std::size_t> holders_;  // of each matrix: how often it was added
  std::size_t bytes_ = 0;
};

}  // namespace core::editing
