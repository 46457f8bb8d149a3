#pragma once

#include <filesystem>

#include "core/files/json.hpp"
#include "core/model/architecture.hpp"

namespace core::transformer {

/// The architecture that a config.json of Hugging Face's describes.
///
/// Throws core::Error, "FILE: PLACE: …", when a size is missing or does not fit the others, the model is of
/// no known family, or it does something that cannot be computed here, which is named.
Architecture architecture_of(const formats::Json& config);

/// Throws core::Error, "PLACEexpected …", when sizes do not fit one another or are beyond reason.
void require_sizes(const Architecture& architecture, const std::string& place);

}  // namespace core::transformer
