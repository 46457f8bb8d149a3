#pragma once

#include <string>

namespace core::tokenizers {

/// Whose \w, \s and \b a pattern means: of the engine that reads patterns of files, or of the one that the
/// tokenizers' own steps are written for.
enum class Dialect { oniguruma, rust };

/// The pattern with \w, \s, \b and their opposites spelled out, so that PCRE2 reads them as that engine does,
/// whichever its version.
std::string for_pcre2(const std::string& pattern, Dialect dialect);

}  // namespace core::tokenizers
