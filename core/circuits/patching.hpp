#pragma once

#include "core/circuits/float64_model.hpp"

namespace core::circuits {

/// Two prompts of the same number of tokens, and two tokens whose logit difference is watched.
struct PromptPair {
  std::vector<std::size_t> clean, corrupt;
  std::size_t answer = 0, against = 0;
  friend bool operator==(const PromptPair&, const PromptPair&) = default;
};

/// Which patches are computed.
struct PatchPlan {
  PatchedPart part = PatchedPart::head;
  bool by_position = false;  ///< one row at a time; so is the residual stream always
  /// Path patching: queries, keys or values of a head that alone are recomputed from the patched part.
  std::optional<Patch> receiver = {};
  friend bool operator==(const PatchPlan&, const PatchPlan&) = default;
};

/// What each patch recovers: (patched − corrupt) / (clean − corrupt), where these are logit differences, 1
/// for all of it. Source: Meng et al. 2022; Wang et al. 2022.
struct PatchMap {
  PatchPlan plan;
  double clean = 0, corrupt = 0;  ///< logit of the answer minus that of the other token
  /// By layer and part, or by layer, part and position: [layer][head], [KV head] or [0]; [layer][position];
  /// [layer · n_heads + head][position]; layers before the receiver alone. NaN where it is not yet computed.
  arma::mat recovered;
  std::size_t n_parts = 1;  ///< rows of a layer
  std::size_t n_known = 0;  ///< cells that are computed

  /// Returns the patch of a cell.
  Patch patch_at(std::size_t row, std::size_t column) const;
  /// Returns the name of a row: "layer 2", or "2.0".
  std::string row_name(std::size_t row) const;
};

/// Runs the corrupt prompt once for each part of each layer, with that part of the clean prompt, the last
/// layers first; on_more is called with the map whenever more of it is known.
///
/// A head's output, pattern or queries are of that head; keys and values of a KV head; attention's and the
/// MLP's output of the layer; the residual stream before a layer at a position. Throws core::Error,
/// "corrupt prompt: …", when the prompts are equal, have different lengths or the same logit difference,
/// "receiver: …" when there is no such head behind a layer, and "MODEL: …" when nothing is predicted or
/// numbers are not finite. Progress counts layers of patched passes.
PatchMap patch(const Float64Model& model, const PromptPair& prompts, const PatchPlan& plan,
               const CallContext& context, const std::function<void(const PatchMap&)>& on_more = {});

}  // namespace core::circuits
