#include "core/check/names.hpp"

#include <algorithm>
#include <array>

#include "core/text/ascii.hpp"
#include "core/text/number.hpp"

namespace core::check {
namespace {

using enum Stage;

/// What people call a stage, or what may be one of several, the likeliest first.
struct Known {
  const char* names;  ///< blanks between them
  std::vector<Stage> stages;
};
const std::array table{
    Known{" x input inputs embedding emb input_embeddings hidden_states ", {embeddings}},
    Known{" q qs query query_states ", {queries}},
    Known{" k ks key key_states ", {keys}},
    Known{" v vs value value_states ", {values}},
    Known{" score raw_scores qk qkt qk_t dots dot_products ", {scores}},
    Known{" attn_scores attention_scores logits attn_logits ", {scores, scaled_scores, masked_scores}},
    Known{" scaled scores_scaled scaled_attn_scores attn_scores_scaled attn_scaled ", {scaled_scores}},
    Known{" causal_mask attn_mask attention_mask ", {mask}},
    Known{" masked scores_masked masked_attn_scores attn_scores_masked masked_scaled_scores ",
          {masked_scores}},
    Known{" weights_unmasked ", {unmasked_weights}},
    Known{" weights_zeroed ", {zeroed_weights}},
    Known{" row_sum ", {row_sums}},
    Known{
        " attn att attention attentions attn_weights attn_weight attention_weights attn_probs attention_probs probs weight ",
        {weights, dropped_weights}},
    Known{" softmax a p alpha ", {weights}},
    Known{" drop_mask keep_mask dropout ", {dropout_mask}},
    Known{
        " dropped weights_dropped dropped_attn_weights attn_weights_dropped attn_dropped weights_after_dropout ",
        {dropped_weights}},
    Known{" context ctx context_heads contexts_per_head head_outputs heads z context_layer ",
          {contexts, concatenated, output}},
    Known{" context_vec context_vecs context_vector context_vectors ", {output, concatenated, contexts}},
    Known{" concat merged joined concatenated_heads context_concat merged_heads ", {concatenated}},
    Known{" out outputs y o result ", {output}},
    Known{" attn_output attention_output attn_out ", {output, concatenated}},
};

Meaning find(std::string_view name) {
  if (const auto* stage = attention::find_stage(name)) {
    // Contexts that are already side by side are what comes next.
    if (stage->stage == contexts) return {{contexts, concatenated}, true};
    return {{stage->stage}, true};
  }
  const std::string wanted = " " + std::string(name) + " ";
  const auto known = std::ranges::find_if(table, [&](const Known& k) {
    return std::string_view(k.names).find(wanted) != std::string_view::npos;
  });
  return known == table.end() ? Meaning() : Meaning{known->stages, false};
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
