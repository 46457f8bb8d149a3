#pragma once

#include <string>

#include "core/graph/bugs.hpp"

/// Models with bugs.
namespace core::bugs {

bool is_injected(const Bug& bug, const Model& model);
bool is_fixable(const Bug& bug);

/// Returns the model with a bug, without listed ones that then have no effect; the model as it is if the bug
/// has none.
Model injected(const BugCase& made, const Model& model);
Model injected(const Bug& bug, const Model& model);
/// Returns the model without the bug.
Model without_bug(const Bug& bug, const Model& model);
/// Returns the model with one more bug in its list, whether it has an effect or not.
Model with_bug(Model model, BugCase made);

/// Returns the title of a bug, or its name if it has none.
const char* title_of(const Bug& bug);
/// Returns the fix for a model: with its diagonals, if the numbers of queries and keys differ.
std::string fix_in(const Bug& bug, const Model& model);

/// Returns whether a model has the feature concerned, or the bug.
bool is_relevant(const Bug& bug, const Model& model);
/// Returns whether the bug would change the model.
bool has_effect(const Bug& bug, const Model& model);
/// Returns whether a model lists a bug, or has an option that no implementation is meant to have.
bool has_bugs(const Model& model);

/// Edits the graph of a model by the bugs that the model lists.
void edit_graph(graph::Graph& graph, const Model& model);
/// Returns the mask that a model is computed with: its own, changed by bugs.
attention::Mask effective_mask(const Model& model);
/// Returns the model as its code uses it: without matrices and a softcap that bugs leave out, and with
/// weights that they transpose.
Model effective_model(Model model);

/// Returns the offset of query positions from key positions in RoPE.
int query_offset(const Model& model);
Model with_query_offset(Model model, int offset);

}  // namespace core::bugs
