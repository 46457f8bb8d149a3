#pragma once

#include <cstddef>
#include <string>

#include "core/graph/explain.hpp"
#include "core/graph/visible.hpp"

/// Cells, stages and masks of a model in words.
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

/// Returns why a query of a sequence attends to a key or does not, as a formula: "key 5 > query 3", "key 0 is
/// padding".
std::string visibility_formula(const attention::Model& model, std::size_t sequence, std::size_t query,
                               std::size_t key);

/// Returns the same as a sentence for a masked or unmasked cell: "masked: key 5 comes after query 3".
std::string describe_visibility(const attention::Model& model, std::size_t sequence, std::size_t query,
                                std::size_t key);

/// Returns one sentence about a line of stages, 1 … 4, for the numbers of that head: which stages are given,
/// what is masked, whether rows sum to 1, what dropout did.
///
/// For matrices too large to scan quickly it describes only the model's options.
std::string describe_line(const Computation& of, std::size_t head, int line);

/// Returns the sums of a head's weights in words: "a row sums to 1", "a column sums to 1, not a row",
/// "rows do not all sum to 1", "some weights are not numbers"; "" for matrices that are too large.
std::string describe_row_sums(const attention::Trace& trace, std::size_t head);

}  // namespace core::explain
