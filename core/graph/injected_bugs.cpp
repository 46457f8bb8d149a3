#include "core/graph/injected_bugs.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/graph/visible.hpp"

namespace core::bugs {

using namespace attention;

bool is_injected(const Bug& bug, const Model& model) {
  if (!bug.is_option()) return std::ranges::find(model.bugs, &bug, &BugCase::bug) != model.bugs.end();
  return bug.option.is_set && bug.option.is_set(model);
}

bool is_fixable(const Bug& bug) {
  return !bug.is_option() || bug.option.mend;
}

Model with_bug(Model model, BugCase made) {
  std::erase_if(model.bugs, [&](const BugCase& other) { return other.bug == made.bug; });
  const auto next = std::ranges::find_if(
      model.bugs, [&](const BugCase& other) { return order_of(*other.bug) > order_of(*made.bug); });
  model.bugs.insert(next, std::move(made));
  return model;
}

Model injected(const BugCase& made, const Model& model) {
  if (made.bug->is_option()) {
    Model next = model;
    made.bug->option.set(next);
    return next;
  }
  Model next = with_bug(model, made), seen = next;
  seen.bugs.clear();
  Editing now(graph::attention(seen), seen);
  bool does = false;
  std::erase_if(next.bugs, [&](const BugCase& one) {  // those without effect
    const Mask mask = effective_mask(seen);
    const graph::Graph before = now.graph;
    seen.bugs.push_back(one);
    if (!one.bug->change_mask) one.edit(now);
    const bool changes = one.bug->change_mask ? effective_mask(seen) != mask : !now.graph.is_copy_of(before);
    does = does || (changes && one.bug == made.bug);
    return !changes;
  });
  return does ? next : model;
}

Model injected(const Bug& bug, const Model& model) {
  return injected(BugCase{&bug}, model);
}

Model without_bug(const Bug& bug, const Model& model) {
  Model next = model;
  if (bug.option.mend) bug.option.mend(next);
  std::erase_if(next.bugs, [&](const BugCase& made) { return made.bug == &bug; });
  return next;
}

const char* title_of(const Bug& bug) {
  return bug.texts.title ? bug.texts.title : bug.name;
}

std::string fix_in(const Bug& bug, const Model& model) {
  const std::string_view name = bug.name;
  if (name == "groups_tiled")
    return fmt::format(
        "Repeat each head of keys and values in place, repeat_interleave({}, dim=1), not repeat().",
        model.n_heads / model.kv_heads());
  if (model.n_tokens() == model.n_keys()) return bug.texts.fix;
  const std::int64_t diagonal = aligned_query_position(model, 0);
  const auto tril = [](std::int64_t shift) { return fmt::format("tril(diagonal={})", shift); };
  if (name == "mask_transposed") return "Keep " + tril(diagonal) + " of queries × keys.";
  if (name == "mask_hides_diagonal" || name == "mask_shows_next")
    return "Keep " + tril(diagonal) + " of queries × keys, not " +
           tril(diagonal + (name == "mask_shows_next" ? 1 : -1)) + ".";
  const std::int64_t more =
      static_cast<std::int64_t>(model.n_keys()) - static_cast<std::int64_t>(model.n_tokens());
  if (name == "mask_aligned_first")
    return "Shift the diagonal by n_keys − n_queries: keep " + tril(more) + ".";
  if (name.starts_with("rotary_off_by_one"))
    return fmt::format("Where key j is rotated by position j, rotate query i by i {} {}.",
                       more < 0 ? "−" : "+", more < 0 ? -more : more);
  return bug.texts.fix;
}

bool is_relevant(const Bug& bug, const Model& model) {
  return !bug.texts.has_feature || bug.texts.has_feature(model) || is_injected(bug, model);
}

bool has_effect(const Bug& bug, const Model& model) {
  return !(injected(bug, model) == model);
}

bool has_bugs(const Model& model) {
  return !model.bugs.empty() || model.arithmetic != Arithmetic() || model.mask.edge != MaskEdge() ||
         model.mask.large_negative != Mask().large_negative || model.dropout.place != DropoutPlace::weights;
}

void edit_graph(graph::Graph& graph, const Model& model) {
  if (model.bugs.empty()) return;
  Editing editing(std::move(graph), model);
  for (const BugCase& made : model.bugs)
    if (!made.bug->change_mask) made.edit(editing);
  graph = std::move(editing.graph);
}

Mask effective_mask(const Model& model) {
  Mask mask = model.mask;
  for (const BugCase& made : model.bugs)
    if (made.bug->change_mask) made.bug->change_mask(mask, model, made.numbers);
  return mask;
}

Model effective_model(Model m) {
  graph::Graph g = graph::attention(m);
  const auto reads = [&](MatrixName name) {
    return std::ranges::any_of(g.nodes, [&](const graph::Node& node) {
      const auto& inputs = node.operation->inputs;
      return std::ranges::find(inputs, graph::Source(name), &graph::Input::source) != inputs.end();
    });
  };
  for (const auto& [stage, part, bias] :
       {std::tuple{graph::all_queries, ProjectionName::query, MatrixName::query_bias},
        std::tuple{graph::all_keys, ProjectionName::key, MatrixName::key_bias},
        std::tuple{graph::all_values, ProjectionName::value, MatrixName::value_bias},
        std::tuple{Stage::output, ProjectionName::output, MatrixName::output_bias}}) {
    Linear* linear = find_linear(m, part);
    if (!linear) continue;
    if (!reads(bias)) linear->bias.reset();
    if (const auto* used = g.get<graph::Project>(stage); used && used->is_transposed())
      linear->weight = arma::mat(linear->weight->t());
  }
  if (m.projections && !reads(MatrixName::output_weight)) m.projections->output.reset();
  Additions& added = m.additions;
  if (!reads(MatrixName::query_norm)) added.normalize.reset();
  if (!reads(MatrixName::frequencies)) added.positions.rotary.reset();
  if (!g.find(Stage::position_bias)) added.positions.alibi.reset(), added.positions.relative.reset();
  if (m.has_bug("sink_missing")) added.sink.reset();
  if (!reads(MatrixName::score_bias)) added.score_bias.clear();
  if (!g.find(Stage::capped_scores)) added.softcap.reset();
  return m;
}

int query_offset(const Model& model) {
  if (model.bugs.empty()) return 0;
  graph::Graph g = graph::attention(model);
  const auto* rotation = g.get<graph::Rotate>(Stage::rotated_queries);
  return rotation ? rotation->offset : 0;
}

Model with_query_offset(Model model, int offset) {
  std::erase_if(model.bugs, [](const BugCase& made) { return cause_of(*made.bug) == "rotary_off_by_one"; });
  if (offset == 0) return model;
  const Bug* bug = find_bug(offset > 0 ? "rotary_off_by_one" : "rotary_off_by_one:earlier");
  return with_bug(std::move(model), {.bug = bug, .numbers = {static_cast<double>(offset)}});
}

}  // namespace core::bugs
