#pragma once

#include <string>

#include "core/files/json.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// Reads the "departures" of a session: options that no implementation is meant to have, and the mistakes of
/// files from before these had a list. Throws core::Error as Json does.
void read_departures(const Json& place, attention::Model& model);

/// Returns these options as JSON on a line, only those that are set; empty when none is.
std::string departures_text(const attention::Model& model);

/// Reads the "mistakes" of a session: names, or {"name": …, "size": …}.
void read_mistakes(const Json& place, attention::Model& model);

/// Returns them as JSON on a line.
std::string mistakes_text(const attention::Model& model);

}  // namespace core::formats
