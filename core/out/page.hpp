#pragma once

#include <string>
#include <vector>

#include "core/graph/model.hpp"

namespace core::formats {

/// Texts of a page, and the sequence that it shows.
struct PageOptions {
  std::string title;
  std::string note = {};     ///< after the number of tokens
  std::size_t sequence = 0;  ///< index in the batch
};

/// Returns one self-contained HTML file with every head of every layer: weights, and the other stages if they
/// are small. It is made from the template in assets/page, which Python's html() uses too.
///
/// Layers must have the same tokens and number of heads. Throws core::Error if they do not, if there is no
/// layer or no such sequence, or if a layer cannot be computed.
std::string page_text(const std::vector<attention::Model>& layers, const PageOptions& options);

}  // namespace core::formats
