#pragma once

#include <string>
#include <vector>

#include "core/graph/explain.hpp"

namespace core::explain {

/// "W_q", "b_o"; a stage by its title.
std::string name(Source source);

/// The name of one number in the field's notation: "q_1[0]", "W_q[2][1]", "weights[1][0]".
std::string name(const Place& place);

/// "Your", "head 0", "column 2", or "".
std::string words(const Label& label, const attention::Sequence& sequence);

/// The whole derivation, a line of text for each of its lines and numbers to 12 digits; in ASCII except for
/// tokens.
std::string plain_text(const Explanation& explanation, const attention::Sequence& sequence);

}  // namespace core::explain
