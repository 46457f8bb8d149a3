#pragma once

#include <iosfwd>

#include "app/cli/arguments.hpp"

namespace app {

/// Scans texts, or merges scans, and prints the measures as CSV or JSON; progress and skipped lines go to
/// err. Ctrl+C ends a scan, and what is there is printed and written. Throws core::Error.
void scan_texts(const ScanTexts& command, std::ostream& out, std::ostream& err);

}  // namespace app
