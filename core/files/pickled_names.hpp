#pragma once

#include <string>
#include <vector>

#include "core/files/pickle.hpp"

namespace core::formats::readers {

/// The tensors of a pickle under their names, and what else is in it.
struct PickledNames {
  struct Named {
    std::string name;
    std::size_t tensor;  ///< which of Pickle::tensors
  };
  std::vector<Named> tensors;
  std::size_t n_others = 0;               ///< values that are no tensors
  std::vector<std::string> first_others;  ///< names of the first few of them
};

/// Names of nested dicts and lists are joined by dots; a tensor alone is called as the file.
///
/// Throws core::Error, "PLACEwhat is wrong", when there is no tensor, two have one name, a key is no name, an
/// object is among them, or they are nested without end.
PickledNames named_tensors(const Pickle& pickle, const std::string& stem, const std::string& place);

/// "Left out as no tensors: epoch, loss, lr and 35 more.", or "".
std::string words_on_others(const PickledNames& names);

}  // namespace core::formats::readers
