#pragma once

#include <string>
#include <vector>

#include "core/graph/model.hpp"

namespace core::formats {

/// What a page shows beside the numbers of its layers.
struct PageOptions {
  std::string title;
  std::string note = {};     ///< behind the number of tokens
  std::size_t sequence = 0;  ///< of a batch
};

/// Returns one self-contained HTML file with every head of every layer: weights, and the other stages where
/// they are few. It is made from the template in assets/page, which Python's html() has too.
///
/// Layers have the same tokens and numbers of heads. Throws core::Error when they have not, when there is no
/// layer or no such sequence, and when a layer cannot be computed.
std::string page_text(const std::vector<attention::Model>& layers, const PageOptions& options);

}  // namespace core::formats
