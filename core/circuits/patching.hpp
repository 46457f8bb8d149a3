#pragma once

#include "core/circuits/float64_model.hpp"

namespace core::circuits {

/// Two prompts of the same number of tokens, and two tokens whose logit difference is watched.
struct PromptPair {
  std::vector<std::size_t> clean, corrupt;
  std::size_t answer = 0, against = 0;
};

/// What each patch recovers: (patched − corrupt) / (clean − corrupt), where these are logit differences, 1
/// for all of it. Source: Meng et al. 2022; Wang et al. 2022.
struct PatchMap {
  double clean = 0, corrupt = 0;  ///< logit of the answer minus that of the other token
  arma::mat recovered;            ///< [layer][head], [KV head], [position] or [0], by the part
};

/// Runs the corrupt prompt once for each part of each layer, with that part of the clean prompt.
///
/// A head's output, pattern or queries are of that head; keys and values of a KV head; attention's and the
/// MLP's output of the layer; the residual stream before a layer at a position. Throws core::Error,
/// "corrupt prompt: …", when the prompts are equal, have different lengths or the same logit difference, and
/// "MODEL: …" when nothing is predicted or numbers are not finite. Progress counts layers of patched passes.
PatchMap patch(const Float64Model& model, const PromptPair& prompts, PatchedPart part,
               const CallContext& context);

/// A part by its name in the command line: "head", "mlp".
struct NamedPart {
  const char* name;
  PatchedPart part;
};
std::span<const NamedPart> parts();
/// Returns the part of this name, or nullptr.
const NamedPart* find_part(std::string_view name);

/// Returns the number of patches of a layer.
std::size_t patches_in_layer(const Float64Model& model, PatchedPart part, std::size_t n_tokens);

/// Returns the token whose text is that of an answer.
///
/// Throws core::Error, "OPTION: expected one token, got 2: 'M', 'ary'", when there is none.
std::size_t answer_token(const Transformer& model, const std::string& text, const std::string& option);

}  // namespace core::circuits
