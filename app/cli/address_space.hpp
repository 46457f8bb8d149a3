#pragma once

#include <optional>
#include <string>

namespace app {

/// Why the address space that is allowed (ulimit -v) is too small for OpenBLAS, which waits without end for
/// room for its threads; nothing when it is not.
///
/// To be asked before OpenBLAS is set to fewer threads. Whoever gets an answer leaves by std::_Exit, as the
/// library's threads would be waited for.
std::optional<std::string> missing_address_space();

}  // namespace app
