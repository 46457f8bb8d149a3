#pragma once

#include <optional>
#include <vector>

#include "core/graph/model.hpp"

/// Which keys a query sees, and by what.
namespace core::attention {

/// What decides whether a query sees a key: the last of these that applies.
enum class Decided {
  by_nothing,   ///< visible
  by_future,    ///< hidden: the key comes after the query
  by_window,    ///< hidden: the key is too far away
  by_prefix,    ///< visible, though rule or window would hide it
  by_document,  ///< hidden: it is of another document
  by_padding,   ///< hidden: no query sees it
  by_hand       ///< as a person switched it
};

struct CellVisibility {
  bool visible = true;
  Decided decided = Decided::by_nothing;
};

/// What the queries of a sequence see, looked up once for all of its cells; the model must outlive it.
class MaskOfSequence {
 public:
  MaskOfSequence(const Model& model, std::size_t sequence);

  /// By rule, window, prefix, documents and padding, whatever was switched by hand.
  CellVisibility by_rules(std::size_t query, std::size_t key) const;
  /// The same with cells that were switched by hand.
  CellVisibility at(std::size_t query, std::size_t key) const;

 private:
  const Mask& mask() const { return mistaken_ ? *mistaken_ : model_.mask; }

  const Model& model_;
  std::optional<Mask> mistaken_;  // where mistakes change the model's
  std::int64_t first_;            // where the first query stands
  std::vector<bool> padding_;     // [key], or empty
};

/// Where a query stands among the keys.
std::int64_t place_of_query(const Model& model, std::size_t query);

/// One cell of them; who asks for many keeps the MaskOfSequence.
CellVisibility visibility_by_rules(const Model& model, std::size_t sequence, std::size_t query,
                                   std::size_t key);

/// The same with cells that were switched by hand.
CellVisibility visibility(const Model& model, std::size_t sequence, std::size_t query, std::size_t key);

/// Whether a cell of the mask is as the rules have it in every sequence.
bool follows_rules(const Model& model, const MaskCell& cell);

/// Which keys each query of a sequence sees: n_tokens × n_keys of 0 (hidden) and 1 (visible).
arma::mat visible_cells(const Model& model, std::size_t sequence);

}  // namespace core::attention
