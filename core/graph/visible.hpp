#pragma once

#include <optional>
#include <vector>

#include "core/graph/model.hpp"

/// Which keys are masked for a query, and why.
namespace core::attention {

/// Reason why a query attends to a key or does not: the last that applies, but by_future before by_window.
enum class VisibilityReason {
  by_nothing,   ///< unmasked
  by_future,    ///< masked: the key comes after the query
  by_window,    ///< masked: the key is outside the sliding window
  by_prefix,    ///< unmasked, although causal rule or window would mask it
  by_document,  ///< masked: the key belongs to another document
  by_padding,   ///< masked for every query
  by_hand       ///< as set by the user
};

struct CellVisibility {
  bool visible = true;
  VisibilityReason reason = VisibilityReason::by_nothing;
};

/// Mask of a sequence, prepared once for all of its cells; model and mask must outlive it.
class SequenceMask {
 public:
  SequenceMask(const Model& model, std::size_t sequence);
  /// Of another mask than the model's.
  SequenceMask(const Model& model, const Mask& mask, std::size_t sequence);

  /// Applies causal rule, window, prefix, documents and padding, ignoring cells set by hand.
  CellVisibility by_rules(std::size_t query, std::size_t key) const;
  /// Does the same with cells set by hand.
  CellVisibility at(std::size_t query, std::size_t key) const;

 private:
  void prepare(const Model& model, std::size_t sequence);
  const Mask& mask() const { return changed_mask_ ? *changed_mask_ : mask_; }

  const Mask& mask_;
  std::optional<Mask> changed_mask_;  // if bugs change the model's
  std::int64_t first_ = 0;            // position of the first query among the keys
  std::vector<bool> padding_;         // [key], or empty
};

/// Returns the position of a query among the keys.
std::int64_t aligned_query_position(const Model& model, std::size_t query);
std::int64_t aligned_query_position(const Model& model, MaskAlignment align, std::size_t query);

/// Returns one cell of a SequenceMask; keep that object for many cells.
CellVisibility visibility_by_rules(const Model& model, std::size_t sequence, std::size_t query,
                                   std::size_t key);

/// Does the same with cells set by hand.
CellVisibility visibility(const Model& model, std::size_t sequence, std::size_t query, std::size_t key);

/// Returns whether a cell of the mask agrees with the rules in every sequence.
bool follows_rules(const Model& model, const MaskCell& cell);

/// Returns which keys each query of a sequence attends to: n_tokens × n_keys of 0 (masked) and 1 (unmasked).
arma::mat visibility_matrix(const Model& model, std::size_t sequence);

}  // namespace core::attention
