#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/graph/matrices.hpp"
#include "core/graph/stages.hpp"

namespace core::graph {
struct Graph;
}

/// Deviations: common bugs in hand-written attention, one row each.
///
/// A deviation in the code changes the graph, or its mask: the model stays as intended and lists it,
/// attention() builds the intended graph, and each listed deviation then changes that graph. Removing it from
/// the list undoes it. A deviation in an option (a scale, a mask, a precision) sets this option of the model.
///
/// Listed deviations of the same place are injected in the order of the table, each into the result of those
/// before it. So a view without the transpose wins over interleaved columns, the last block dropped over
/// blocks that are not rescaled, the softmax over queries over one in blocks, and offsets of positions add
/// up. If nothing is left to change, a deviation has no effect.
namespace core::mistakes {

using attention::Model;
using attention::Stage;

/// Graph that a deviation is injected into, and its model.
struct Injection {
  graph::Graph& g;
  const Model& m;
  std::int64_t size;  ///< see attention::InjectedMistake
};

struct Mistake {
  const char* name;   ///< unique, as on the command line: "no_scale"
  const char* cause;  ///< as the check names it; several rows may share one
  const char* title;  ///< in a menu: "no scale"
  const char* about;  ///< one sentence: what the code does
  const char* fix;    ///< one sentence: what to do instead; see fix_in()
  Stage first;        ///< no earlier stage can change
  /// Returns whether a model has the feature concerned; if not set, every model has.
  bool (*has_feature)(const Model&) = nullptr;
  /// Changes the graph of a model; false if nothing changes. Each has apply_to_graph, apply_to_mask or
  /// apply_to_model.
  bool (*apply_to_graph)(const Injection&) = nullptr;
  /// Changes the mask that the graph is built with.
  void (*apply_to_mask)(attention::Mask&, const Model&) = nullptr;
  /// Changes options of the model; does nothing if there is nothing to change.
  void (*apply_to_model)(Model&) = nullptr;
  /// Returns whether the options have this deviation; if not set, they never do.
  bool (*is_in_model)(const Model&) = nullptr;
  /// Corrects the options; if not set, the numbers needed for that are lost.
  void (*fix_model)(Model&) = nullptr;
};

/// Returns the rows that menus and the command line offer, in the order of the stages that they change.
std::span<const Mistake> mistakes();

/// Returns the deviation of that name, or nullptr.
const Mistake* find_mistake(std::string_view name);
/// Does the same with forms that are not offered: "blocks_not_rescaled:sum".
const Mistake* find_any_mistake(std::string_view name);

bool is_injected(const Mistake& mistake, const Model& model);
bool is_fixable(const Mistake& mistake);

/// Returns the model with the deviation, without listed ones that then have no effect; the model as it is if
/// the deviation has none.
Model injected(const Mistake& mistake, const Model& model, std::int64_t size = 0);
/// Returns the model without the deviation.
Model without_mistake(const Mistake& mistake, const Model& model);
/// Returns the model with one more deviation in its list, whether it has an effect or not.
Model with_mistake(Model model, const Mistake& mistake, std::int64_t size = 0);

/// Returns the fix for a model: with its diagonals, if the numbers of queries and keys differ.
std::string fix_in(const Mistake& mistake, const Model& model);

/// Returns whether a model has the feature concerned, or the deviation.
bool is_relevant(const Mistake& mistake, const Model& model);

/// Returns whether the deviation would change the model.
bool has_effect(const Mistake& mistake, const Model& model);

/// Returns whether a model has a listed deviation, or an option that no implementation is meant to have.
bool deviates(const Model& model);

/// Returns the mask that a model is computed with: its own, changed by deviations.
attention::Mask effective_mask(const Model& model);

/// Returns the model as its code uses it: without matrices and a softcap that deviations leave out, and with
/// weights that they transpose.
Model effective_model(Model model);

/// Returns the offset of query positions from key positions in RoPE.
int query_offset(const Model& model);
Model with_query_offset(Model model, int offset);

// Models with one change; where there is nothing to change, the model as it is.

Model with_scale(const Model& model, attention::Scale scale);
/// Returns the model with query and key projections swapped.
Model with_projections_swapped(const Model& model);
/// Returns the model with another number of heads, which divides d_out, and of KV heads with it; unchanged if
/// something is given for each head.
Model with_heads(const Model& model, std::size_t n_heads);
/// Returns the model whose queries attend to padding keys and to keys masked by hand for every query.
Model with_padding_unmasked(const Model& model);
/// Returns the model with one more key masked for all queries of all sequences.
Model with_key_masked(const Model& model, std::size_t key);
/// Returns the largest power of two that is at most half the number of keys.
std::size_t default_block_size(const Model& model);
/// Returns the model with embeddings, projections, biases, additions and given stages rounded to a precision.
Model with_rounded_inputs(const Model& model, attention::Precision precision);

}  // namespace core::mistakes
