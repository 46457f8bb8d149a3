#pragma once

#include <string>

#include "core/files/json.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// The mask of a session of so many sequences and keys. Throws core::Error, one line that says what was
/// expected.
attention::Mask read_mask(const Json& place, std::size_t n_sequences, std::size_t n_keys);

/// The mask as JSON on a line, with only those of its newer keys that say something.
std::string mask_text(const attention::Mask& mask);

}  // namespace core::formats
