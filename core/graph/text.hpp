#pragma once

#include <string>
#include <vector>

#include "core/graph/explain.hpp"

namespace core::explain {

/// Returns the symbol of a matrix, "W_q", "b_o", or the title of a stage.
std::string name(Source source);

/// Returns the name of one number in the field's notation: "q_1[0]", "W_q[2][1]", "Weights[1][0]".
std::string name(const SourceCell& place);

/// Returns the text of a label: "Your", "head 0", "column 2", or "".
std::string words(const Label& label, const attention::Sequence& sequence);

/// Returns the whole derivation as text, one line for each of its lines, with 12 digits; in ASCII except for
/// tokens.
std::string plain_text(const Explanation& explanation, const attention::Sequence& sequence);

}  // namespace core::explain
