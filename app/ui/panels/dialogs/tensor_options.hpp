#pragma once

#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/buttons.hpp"

namespace app::panels {

/// The tensors of so many dimensions, after "none", to choose one of.
struct TensorOptions {
  std::vector<std::string> names{""};
  std::vector<widgets::Option> options{{"none", "", false}};

  TensorOptions(const OpenedTensors& tensors, std::size_t least, std::size_t most);
  /// Of the first of those that are chosen; 0 when there is none, or it is none of these.
  std::size_t index_of(const std::vector<std::string>& chosen) const;
};

}  // namespace app::panels
