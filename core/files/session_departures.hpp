#pragma once

#include <string>

#include "core/files/json.hpp"
#include "core/graph/departures.hpp"

namespace core::formats {

/// The "departures" of a session. Throws core::Error as Json does.
attention::Departures read_departures(const Json& place);

/// The same as JSON on a line, with only what departs: most models depart in nothing.
std::string departures_text(const attention::Departures& departures);

}  // namespace core::formats
