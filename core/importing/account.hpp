#pragma once

#include <string>
#include <vector>

#include "core/files/given_tensors.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"

namespace core::importing {

/// Something that a model does and this program does not compute.
struct LeftOut {
  std::string name;   ///< as it is asked to be ignored: "rotary"
  std::string words;  ///< "rotary positions"
  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// What became of a file: what of it was used, what was not, what was assumed because nothing tells it, and
/// what the model does that is not computed. A few words each: "attn_mask [6, 6]", "causal".
struct Account {
  std::vector<std::string> used, not_used, assumed;
  std::vector<LeftOut> left_out;
  friend bool operator==(const Account&, const Account&) = default;
};

/// "not computed: rotary positions; assumed: causal; not used: attn_mask [6, 6]", or "" when there is nothing
/// of that.
std::string reservations_text(const Account& account);

/// The same after "used: …": all of it on one line; what nothing is assumed of is said as well.
std::string account_text(const Account& account);

/// "attn_mask [6, 6]".
std::string tensor_words(const formats::TensorInfo& info);

/// The words of what is left out.
std::vector<std::string> left_out_words(const Account& account);

/// Notes which tensors of a file were not used: those whose names begin as said, one by one as far as they
/// are few, the others by their number.
void note_unused(Account& account, const formats::TensorFile& file, const std::vector<std::string>& used,
                 const std::string& prefix);

/// Throws core::Error, "PLACEexpected …", when something is left out that may not be.
void require_ignored(const Account& account, const std::vector<std::string>& ignored,
                     const std::string& place);

/// What may be ignored, by name: "rotary, relative, …"; whether that is one of them, or "all".
std::string names_to_ignore();
bool can_be_ignored(const std::string& name);

/// What is said of a model that knows nothing but what is given by files, as many as said.
Account account_of_given(const attention::Model& model, const std::vector<formats::GivenTensor>& given);

/// "scale 1/√8", "scale 0.125", "no scale".
std::string scale_words(const attention::Model& model);

/// Says of given weights whose rows do not sum to 1 that they do not, or "" when they do.
std::string row_sums_note(const attention::Model& model);

}  // namespace core::importing
