#pragma once

#include <string>

#include "core/model/full_model.hpp"

namespace core::transformer {

/// Connects to a model that attnscope.attach() serves in Python, at HOST:PORT or a Unix socket. Its passes,
/// maps and logits are PyTorch's own; a layer is displayed with its projections, or, where they do not lead
/// to its queries, keys and values, with these as given stages.
///
/// If the token is "", that of the environment variable ATTNSCOPE_TOKEN is used. Throws core::Error,
/// "ADDRESS: …". Data from the other process is not trusted; after the connection is lost every call throws.
ModelRef attach_model(const std::string& address, const std::string& token);

}  // namespace core::transformer
