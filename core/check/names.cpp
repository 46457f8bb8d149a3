#include "core/check/names.hpp"

#include <algorithm>
#include <array>

#include "core/text/ascii.hpp"
#include "core/text/number.hpp"

namespace core::check {
namespace {

using enum Stage;

struct Known {
  std::string_view name;
  std::array<Stage, 3> stages;
  std::size_t count = 1;
};

constexpr Known one(std::string_view name, Stage stage) {
  return {name, {stage}, 1};
}
constexpr Known either(std::string_view name, Stage first, Stage second) {
  return {name, {first, second}, 2};
}
constexpr Known any(std::string_view name, Stage first, Stage second, Stage third) {
  return {name, {first, second, third}, 3};
}

constexpr std::array table{
    one("x", embeddings),
    one("input", embeddings),
    one("inputs", embeddings),
    one("embedding", embeddings),
    one("emb", embeddings),
    one("input_embeddings", embeddings),
    one("hidden_states", embeddings),
    one("q", queries),
    one("qs", queries),
    one("query", queries),
    one("query_states", queries),
    one("k", keys),
    one("ks", keys),
    one("key", keys),
    one("key_states", keys),
    one("v", values),
    one("vs", values),
    one("value", values),
    one("value_states", values),
    one("score", scores),
    one("raw_scores", scores),
    one("qk", scores),
    one("qkt", scores),
    one("qk_t", scores),
    one("dots", scores),
    one("dot_products", scores),
    any("attn_scores", scores, scaled_scores, masked_scores),
    any("attention_scores", scores, scaled_scores, masked_scores),
    any("logits", scores, scaled_scores, masked_scores),
    any("attn_logits", scores, scaled_scores, masked_scores),
    one("scaled", scaled_scores),
    one("scores_scaled", scaled_scores),
    one("scaled_attn_scores", scaled_scores),
    one("attn_scores_scaled", scaled_scores),
    one("attn_scaled", scaled_scores),
    one("causal_mask", mask),
    one("attn_mask", mask),
    one("attention_mask", mask),
    one("masked", masked_scores),
    one("scores_masked", masked_scores),
    one("masked_attn_scores", masked_scores),
    one("attn_scores_masked", masked_scores),
    one("masked_scaled_scores", masked_scores),
    one("weights_unmasked", unmasked_weights),
    one("weights_zeroed", zeroed_weights),
    one("row_sum", row_sums),
    either("attn", weights, dropped_weights),
    either("att", weights, dropped_weights),
    either("attention", weights, dropped_weights),
    either("attentions", weights, dropped_weights),
    either("attn_weights", weights, dropped_weights),
    either("attn_weight", weights, dropped_weights),
    either("attention_weights", weights, dropped_weights),
    either("attn_probs", weights, dropped_weights),
    either("attention_probs", weights, dropped_weights),
    either("probs", weights, dropped_weights),
    either("weight", weights, dropped_weights),
    one("softmax", weights),
    one("a", weights),
    one("p", weights),
    one("alpha", weights),
    one("drop_mask", dropout_mask),
    one("keep_mask", dropout_mask),
    one("dropout", dropout_mask),
    one("dropped", dropped_weights),
    one("weights_dropped", dropped_weights),
    one("dropped_attn_weights", dropped_weights),
    one("attn_weights_dropped", dropped_weights),
    one("attn_dropped", dropped_weights),
    one("weights_after_dropout", dropped_weights),
    any("context", contexts, concatenated, output),
    any("ctx", contexts, concatenated, output),
    any("context_heads", contexts, concatenated, output),
    any("contexts_per_head", contexts, concatenated, output),
    any("head_outputs", contexts, concatenated, output),
    any("heads", contexts, concatenated, output),
    any("z", contexts, concatenated, output),
    any("context_layer", contexts, concatenated, output),
    any("context_vec", output, concatenated, contexts),
    any("context_vecs", output, concatenated, contexts),
    any("context_vector", output, concatenated, contexts),
    any("context_vectors", output, concatenated, contexts),
    one("concat", concatenated),
    one("merged", concatenated),
    one("joined", concatenated),
    one("concatenated_heads", concatenated),
    one("context_concat", concatenated),
    one("merged_heads", concatenated),
    one("out", output),
    one("outputs", output),
    one("y", output),
    one("o", output),
    one("result", output),
    either("attn_output", output, concatenated),
    either("attention_output", output, concatenated),
    either("attn_out", output, concatenated),
};

Meaning find(std::string_view name) {
  if (const auto* stage = attention::find_stage(name)) {
    // Contexts that are already side by side are what comes next.
    if (stage->stage == contexts) return {{contexts, concatenated}, true};
    return {{stage->stage}, true};
  }
  const auto known = std::find_if(table.begin(), table.end(), [&](const Known& k) { return k.name == name; });
  if (known == table.end()) return {};
  return {{known->stages.begin(), known->stages.begin() + static_cast<std::ptrdiff_t>(known->count)}, false};
}

/// Cuts "head12" with what stands before it from the end of a name.
std::optional<std::size_t> cut_number(std::string& name, std::string_view word) {
  const std::size_t at = name.rfind(word);
  if (at == std::string::npos || at == 0) return std::nullopt;
  const auto number = text::parse_whole_number(std::string_view(name).substr(at + word.size()));
  if (!number) return std::nullopt;
  name.resize(at);
  while (!name.empty() && std::string_view("._-/ ").find(name.back()) != std::string_view::npos)
    name.pop_back();
  return number;
}

}  // namespace

Name take_apart(std::string_view name) {
  Name result{std::string(name), {}, {}};
  constexpr std::string_view sequence = "sequence";
  if (name.starts_with(sequence)) {
    std::string_view rest = name.substr(sequence.size());
    const auto number = text::take_whole_number(rest);
    if (number && rest.starts_with('/')) {
      result.sequence = *number;
      result.base = rest.substr(1);
    }
  }
  result.head = cut_number(result.base, "head");
  return result;
}

Meaning meaning_of(std::string_view base) {
  std::string name = text::lower(base);
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == ' '; }, '_');
  if (Meaning whole = find(name); !whole.stages.empty()) return whole;
  const std::size_t last = name.find_last_of("./");
  if (last == std::string::npos) return {};
  const std::string_view end = std::string_view(name).substr(last + 1);
  if (end == "weight") return {};  // of a learned projection
  return find(end);
}

}  // namespace core::check
