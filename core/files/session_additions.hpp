#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/files/json.hpp"
#include "core/graph/model.hpp"

/// What models of today add to the paper, as a session file has it: each under a key of its own at the top.
namespace core::formats {

/// Reads "normalise", "positions", "score_cap", "score_bias" and "sink", all of which may be missing, as they
/// are without them then, or null, which is none.
///
/// Throws core::Error as Json does; whether they fit the model is for attention::check() to say.
attention::Additions read_additions(const Json& top, attention::Additions without = {});

/// The keys that say something, each with its JSON.
std::vector<std::pair<const char*, std::string>> additions_text(const attention::Additions& additions);

}  // namespace core::formats
