#include "core/graph/graph.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <functional>

#include "core/graph/operations.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/stages.hpp"

namespace core::graph {
namespace {

NodeHeads heads_of(Stage stage) {
  if (is_internal(stage) || !attention::info(stage).per_head) return NodeHeads::shared;
  return attention::info(stage).rows == attention::RowTokens::keys ? NodeHeads::per_kv_head
                                                                   : NodeHeads::per_head;
}

bool has_key_rows(Stage stage) {
  if (is_internal(stage)) return stage == all_keys || stage == all_values;
  return attention::info(stage).rows == attention::RowTokens::keys;
}

/// Makes a node read `to` instead of `from`.
void redirect(Node& node, const Source& from, const Source& to) {
  const auto& inputs = node.operation->inputs;
  if (std::ranges::find(inputs, from, &Input::source) == inputs.end()) return;
  for (Input& input : node.operation.edit().inputs)
    if (input.source == from) input.source = to;
}

}  // namespace

const Node* Graph::find(Stage stage) const {
  const auto found = std::ranges::find(nodes, stage, &Node::stage);
  return found == nodes.end() ? nullptr : &*found;
}

Node* Graph::find(Stage stage) {
  return const_cast<Node*>(std::as_const(*this).find(stage));
}

Stage Graph::add_node(Stage stage, SharedOperation operation) {
  nodes.push_back({stage, heads_of(stage), has_key_rows(stage), std::move(operation)});
  return stage;
}

Stage Graph::next_internal() const {
  std::size_t next = index(kept_weights) + 1;
  while (find(Stage(next))) ++next;
  return Stage(next);
}

bool Graph::is_copy_of(const Graph& other) const {
  return kv_head == other.kv_head && std::ranges::equal(nodes, other.nodes, [](const Node& a, const Node& b) {
           return a.stage == b.stage && a.operation.get() == b.operation.get() && a.heads == b.heads &&
                  a.precision == b.precision;
         });
}

void Graph::make_internal(Stage stage, SharedOperation wrapper) {
  Node& node = *find(stage);
  Node inner{next_internal(), node.heads, node.has_key_rows, std::move(node.operation)};
  node.operation = std::move(wrapper);
  redirect(node, stage, inner.stage);
  nodes.push_back(std::move(inner));
  sort();
}

void Graph::insert(Node& reader, SharedOperation operation) {
  Node inserted{next_internal(), reader.heads, reader.has_key_rows, std::move(operation)};
  inserted.operation.edit().rounded = false;
  inserted.operation.edit().inputs[0].source = reader.operation->inputs[0].source;
  reader.operation.edit().inputs[0].source = inserted.stage;
  nodes.push_back(std::move(inserted));
  sort();
}

void Graph::bypass(Stage stage) {
  const Node* left_out = find(stage);
  if (!left_out) return;
  const Source before = left_out->operation->inputs[0].source;
  std::erase_if(nodes, [&](const Node& node) { return node.stage == stage; });
  redirect_readers(stage, before);
}

void Graph::move_before(Stage stage, Stage next) {
  if (!find(stage) || !find(next)) return;
  Node moved = std::move(*find(stage));
  const Source before = moved.operation->inputs[0].source,
               new_before = find(next)->operation->inputs[0].source;
  std::erase_if(nodes, [](const Node& n) { return !n.operation; });
  redirect_readers(stage, before);
  redirect(moved, before, new_before);
  redirect(*find(next), new_before, stage);
  nodes.push_back(std::move(moved));
  sort();
}

void Graph::redirect_readers(Stage from, const Source& to) {
  for (Node& reader : nodes) redirect(reader, from, to);
}

void Graph::sort() {
  std::vector<Node> sorted;
  const std::function<void(Stage)> add = [&](Stage stage) {  // after all its inputs
    Node* node = find(stage);
    if (!node || !node->operation) return;
    Node own = std::move(*node);
    for (const Input& input : own.operation->inputs)
      if (input.stage()) add(*input.stage());
    sorted.push_back(std::move(own));
  };
  for (std::size_t n = 0; n < nodes.size(); ++n) add(nodes[n].stage);
  nodes = std::move(sorted);
}

std::size_t n_matrices(const Node& node, const Model& m) {
  return node.heads == NodeHeads::shared ? 1 : node.heads == NodeHeads::per_head ? m.n_heads : m.kv_heads();
}

std::size_t nth_matrix(const Graph& g, const Node& node, std::size_t head) {
  return node.heads == NodeHeads::shared ? 0 : node.heads == NodeHeads::per_kv_head ? g.kv_head[head] : head;
}

NodeSet existing_nodes(const Graph& g, const Model& m) {
  NodeSet known, needed, given;
  needed.set(index(g.result));
  for (const auto& stage : m.given.stages) given.set(index(stage.stage));
  for (const Node& node : g.nodes) {
    bool computable = node.operation->known;
    for (const Input& input : node.operation->inputs)
      if (input.stage() && input.is_read()) computable = computable && known[index(*input.stage())];
    known[index(node.stage)] = computable || given[index(node.stage)];
  }
  for (auto node = g.nodes.rbegin(); node != g.nodes.rend(); ++node)
    if (needed[index(node->stage)] && !given[index(node->stage)])
      for (const Input& input : node->operation->inputs)
        if (input.stage()) needed.set(index(*input.stage()));
  return known & (needed | given);
}

std::string formula(const Graph& g, const Model& m, Stage stage, bool brief) {
  const Node* node = g.find(stage);
  if (!node) return "";
  const auto& inputs = node->operation->inputs;
  const Stage* from = inputs.empty() ? nullptr : inputs[0].stage();
  return node->operation->formula(brief, from && is_internal(*from) ? formula(g, m, *from, brief) : "");
}

// The PyTorch program.

namespace {

std::string name_in_torch(const Source& source) {
  if (const auto* stage = std::get_if<Stage>(&source))
    return *stage == Stage::embeddings       ? "x"
           : *stage == Stage::key_embeddings ? "memory"
           : is_internal(*stage)             ? ""  // inlined by its reader
                                             : attention::info(*stage).name;
  switch (const MatrixName name = std::get<MatrixName>(source)) {
    case MatrixName::query_weight:
      return "W_query";
    case MatrixName::key_weight:
      return "W_key";
    case MatrixName::value_weight:
      return "W_value";
    case MatrixName::output_weight:
      return "out_proj";
    case MatrixName::query_norm:
      return "query_norm";
    case MatrixName::key_norm:
      return "key_norm";
    case MatrixName::score_bias:
      return "score_bias";
    default:
      return symbol(name);
  }
}

/// Returns keys and values as every head reads them.
std::string repeat_kv_heads(const Graph& g, const Model& m, const std::string& name) {
  if (m.kv_heads() == m.n_heads) return name;
  if (m.kv_heads() == 1) return name + ".unsqueeze(-3)";  // one for all
  const std::string times = std::to_string(m.n_heads / m.kv_heads());
  return name + (std::ranges::is_sorted(g.kv_head) ? ".repeat_interleave(" + times + ", dim=-3)"
                                                   : ".repeat(1, " + times + ", 1, 1)");
}

/// Returns an expression for use in a longer one.
std::string in_parentheses(const std::string& expression) {
  int depth = 0;
  for (const char c : expression) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ' ' && depth == 0) return "(" + expression + ")";
  }
  return expression;
}

/// Returns a node as PyTorch code; hidden inputs are inlined.
TorchCode code_of(const Graph& g, const Model& m, const Node& node) {
  InputNames names;
  std::vector<std::string> before;
  std::string hidden;
  for (const Input& input : node.operation->inputs) {
    std::string& name = names.emplace_back(name_in_torch(input.source));
    const Node* from = input.stage() ? g.find(*input.stage()) : nullptr;
    if (!from) continue;
    if (is_internal(from->stage)) {
      const TorchCode inner = code_of(g, m, *from);
      before.insert(before.end(), inner.before.begin(), inner.before.end());
      hidden = inner.expression;
      name = in_parentheses(hidden);
    }
    if (from->heads == NodeHeads::per_kv_head && node.heads == NodeHeads::per_head)
      name = repeat_kv_heads(g, m, name);
    if (from->stage == Stage::mask && m.n_heads > 1 && m.sequences.size() > 1 && !m.mask.hidden_keys.empty())
      name += ".unsqueeze(-3)";  // each sequence has a mask of its own, for all heads
  }
  TorchCode code = node.operation->torch_code(names);
  if (code.expression == in_parentheses(hidden)) code.expression = hidden;
  code.before.insert(code.before.begin(), before.begin(), before.end());
  return code;
}

}  // namespace

std::string code_line(const Graph& g, const Model& m, Stage stage) {
  const Node* node = g.find(stage);
  if (!node || m.given.find(stage) || dynamic_cast<const Parameter*>(node->operation.get())) return "";
  return std::string(attention::info(stage).name) + " = " + code_of(g, m, *node).expression;
}

std::vector<std::string> forward_lines(const Graph& g, const Model& m) {
  std::vector<std::string> lines{"n_tokens = x.shape[-2]"};
  if (m.context_length)
    lines.push_back(
        fmt::format("assert n_tokens <= {}, \"more tokens than the context length\"", *m.context_length));
  if (m.has_key_embeddings() || m.additions.positions.rotary || m.additions.positions.has_bias())
    lines.push_back(std::string("n_keys = ") + (m.has_key_embeddings() ? "memory" : "x") + ".shape[-2]");
  const NodeSet present = existing_nodes(g, m);
  std::vector<Stage> returned;
  std::optional<std::size_t> prepared;  // line for the positions that rotate queries and keys
  for (const Node& node : g.nodes) {
    if (!present[index(node.stage)] || is_internal(node.stage)) continue;
    returned.push_back(node.stage);
    if (dynamic_cast<const Parameter*>(node.operation.get())) continue;  // an argument of forward()
    if (node.stage == Stage::scores || node.stage == Stage::dropout_mask || node.stage == Stage::concatenated)
      lines.emplace_back();
    const TorchCode code = code_of(g, m, node);
    const bool is_early = prepared && attention::info(node.stage).line == 1;
    for (const std::string& line : code.before)
      if (std::ranges::count(lines, line) == 0)  // lines that several stages need are written once
        lines.insert(lines.begin() + std::ptrdiff_t(is_early ? (*prepared)++ : lines.size()), line);
    lines.push_back(std::string(attention::info(node.stage).name) + " = " + code.expression);
    lines.insert(lines.end(), code.after.begin(), code.after.end());
    if (node.stage == Stage::values) prepared = lines.size();
  }
  lines.push_back("return {");
  std::ranges::sort(returned);
  for (const Stage stage : returned) {
    const bool is_expanded = stage == Stage::mask && m.sequences.size() > 1;
    lines.push_back("    \"" + std::string(attention::info(stage).name) + "\": " + name_in_torch(stage) +
                    (is_expanded ? ".expand(len(x), -1, -1)" : "") + ",");
  }
  lines.push_back("}");
  return lines;
}

}  // namespace core::graph
