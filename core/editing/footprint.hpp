#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "core/graph/model.hpp"

namespace core::editing {

/// How many bytes a collection of models holds, each shared piece of memory counted once.
///
/// Adding or removing a model costs time for its number of matrices, not for their size or the models around
/// it.
class Footprint {
 public:
  /// What a model held when it was added, for remove(); what it works out later is not counted.
  struct Held {
    std::vector<const void*> pieces;
    std::size_t bytes_besides = 0;
  };
  Held add(const attention::Model& model);
  void remove(const Held& held);
  std::size_t bytes() const { return bytes_; }

 private:
  struct Piece {
    std::size_t holders = 0, bytes = 0;
  };
  std::unordered_map<const void*, Piece> pieces_;  // by address
  std::size_t bytes_ = 0;
};

}  // namespace core::editing
