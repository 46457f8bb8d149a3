#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/graph/matrices.hpp"
#include "core/graph/stages.hpp"

namespace core::graph {
struct Graph;
}

/// What goes wrong when people write attention themselves, a row each.
///
/// A mistake in the code is one in the graph, or in its mask: the model stays what is intended and lists it,
/// attention() builds the graph of what is intended, and each mistake of the list then changes that graph.
/// Taking it from the list undoes it. A mistake in an option (a scale, a mask, a precision) sets this option
/// of the model.
///
/// Two mistakes of the list in one place: they are injected in the order of the table, each into what the
/// ones before it left. So a view without the transpose wins over interleaved columns, the last block dropped
/// over blocks that are not rescaled, the softmax over queries over one in blocks, and offsets of positions
/// add up. Where nothing is left to go wrong, a mistake does nothing.
namespace core::mistakes {

using attention::Model;
using attention::Stage;

/// A graph that a mistake is injected into, and the model that it is of.
struct Injection {
  graph::Graph& g;
  const Model& m;
  std::int64_t size;  ///< see attention::MadeMistake
};

struct Mistake {
  const char* name;   ///< as on the command line: "no_scale"; no other has it
  const char* cause;  ///< as the check names it; several rows may share one
  const char* title;  ///< in a menu: "no scale"
  const char* about;  ///< one sentence: what is done
  const char* fix;    ///< one sentence: what to do instead; see fix_in()
  Stage first;        ///< no earlier stage can change
  /// Whether a model has what this is a mistake in; without it every model has.
  bool (*needs)(const Model&) = nullptr;
  /// Changes the graph of a model; false where nothing can go wrong. A mistake has one of these three.
  bool (*in_graph)(const Injection&) = nullptr;
  /// Changes the mask that the graph is built with.
  void (*in_mask)(attention::Mask&, const Model&) = nullptr;
  /// Changes options of the model; does nothing where nothing can go wrong.
  void (*in_model)(Model&) = nullptr;
  /// Whether the options say that it is made; without it they never do.
  bool (*is_in_model)(const Model&) = nullptr;
  /// Sets the options right; without it the numbers that would be needed are gone.
  void (*mend_model)(Model&) = nullptr;
};

/// All that menus and the command line offer, in the order of the stages that they change.
std::span<const Mistake> mistakes();

/// The mistake of that name, or nullptr.
const Mistake* find_mistake(std::string_view name);
/// The same with forms that are not offered: "blocks_not_rescaled:sum".
const Mistake* find_any_mistake(std::string_view name);

bool is_made(const Mistake& mistake, const Model& model);
bool can_be_mended(const Mistake& mistake);

/// Returns the model with the mistake, and without those of its list that no longer do anything then; where
/// there is nothing to go wrong, the model as it is.
Model made(const Mistake& mistake, const Model& model, std::int64_t size = 0);
/// Returns the model without it.
Model mended(const Mistake& mistake, const Model& model);
/// Returns the model with one more mistake in its list, whether it does anything or not.
Model with_mistake(Model model, const Mistake& mistake, std::int64_t size = 0);

/// What to do instead in a model: its diagonals, where queries are not as many as keys.
std::string fix_in(const Mistake& mistake, const Model& model);

/// Whether a model has what it is a mistake in, or makes it.
bool concerns(const Mistake& mistake, const Model& model);

/// Whether making it would change the model.
bool applies(const Mistake& mistake, const Model& model);

/// Whether a model makes a mistake of the list, or has an option that no implementation is meant to have.
bool deviates(const Model& model);

/// Returns the mask that a model is computed with: its own, and what mistakes make of it.
attention::Mask mask_of(const Model& model);

/// Returns the model with what its code uses: without matrices and a cap that mistakes leave out, and with
/// weights that they transpose.
Model as_used(Model model);

/// How far the positions of queries are off from those of keys when they are rotated.
int offset_of_queries(const Model& model);
Model with_offset_of_queries(Model model, int offset);

// Models with one thing changed; where there is nothing to change, the model as it is.

Model with_scale(const Model& model, attention::Scale scale);
/// The query projection in the place of the key projection and the other way round.
Model with_projections_swapped(const Model& model);
/// Another number of heads, which divides d_out, and of KV heads with it; not where something is given for
/// each head.
Model with_heads(const Model& model, std::size_t n_heads);
/// Queries see the keys of padding, and those that are hidden by hand from each of them.
Model with_padding_seen(const Model& model);
/// One key more that no query of any sequence sees.
Model with_key_hidden(const Model& model, std::size_t key);
/// The largest power of two that is at most half of the keys.
std::size_t likely_block_size(const Model& model);
/// Embeddings, projections, biases, what is added and given stages rounded to a precision.
Model with_rounded_inputs(const Model& model, attention::Precision precision);

}  // namespace core::mistakes
