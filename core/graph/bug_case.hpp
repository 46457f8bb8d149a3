#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/shared_matrix.hpp"

namespace core::graph {
class Editing;
}

namespace core::bugs {

struct Bug;
using Numbers = std::vector<double>;

/// A bug with everything that an edit needs. A model lists such cases, and a session stores all of it but
/// what was observed.
struct BugCase {
  const Bug* bug = nullptr;
  std::string sides = {};  ///< "qk": projections, or queries and keys, that are edited one after the other
  std::string form = {};
  Numbers numbers = {};
  /// Observed numbers that the edit writes, [sequence · n + k]; such a case is found but cannot be stored.
  std::shared_ptr<const std::vector<attention::SharedMatrix>> observed = {};
  bool is_fitted = false;  ///< its numbers are where a fit begins

  /// Returns the first number, 0 if there is none.
  double number() const { return numbers.empty() ? 0 : numbers[0]; }
  void edit(graph::Editing& editing) const;
  std::string words(const graph::Editing& before) const;
  friend bool operator==(const BugCase&, const BugCase&) = default;
};

}  // namespace core::bugs
