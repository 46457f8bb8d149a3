#pragma once

#include "core/circuits/float64_model.hpp"
#include "core/model/text_reading.hpp"

namespace core::circuits {

/// Two prompts and two tokens whose logit difference is watched.
struct PromptPair {
  std::vector<std::size_t> clean, corrupt;
  std::size_t answer = 0, against = 0;
  /// How the corrupt prompt is aligned with the clean one; empty for one by one, of as many tokens.
  transformer::TokenAlignment rows = {};
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
  /// [layer · n_heads + head][position]; layers before the receiver alone. NaN where it is not yet computed,
  /// or a position is not aligned.
  arma::mat recovered;
  std::size_t n_parts = 1;  ///< rows of a layer
  std::size_t n_known = 0;  ///< cells that are computed or not aligned

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
/// "corrupt prompt: …", when the prompts are equal, not aligned or have the same logit difference,
/// "through: …" when there is no such head behind a layer, and "MODEL: …" when nothing is predicted or
/// numbers are not finite. Progress counts layers of patched passes.
PatchMap patch(const Float64Model& model, const PromptPair& prompts, const PatchPlan& plan,
               const CallContext& context, const std::function<void(const PatchMap&)>& on_more = {});

/// Returns the same map of any model: of an attached one, which does not give its numbers, by passes of its
/// own in float32, a cell at a time. both: the texts of the prompts; its edits do not count. Throws
/// core::Error as above, "through: …" for path patching of an attached model, and "PATCH: …" for a part of it
/// that cannot be set.
PatchMap patch(const transformer::FullModel& model, const experiment::Experiment& both,
               const PromptPair& prompts, const PatchPlan& plan, const CallContext& context,
               const std::function<void(const PatchMap&)>& on_more = {});

}  // namespace core::circuits
