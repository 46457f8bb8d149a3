#include "core/files/stage_names.hpp"

#include <algorithm>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/graph/stages.hpp"

namespace core::formats {
namespace {

using attention::Stage;

/// Common names of a stage, or of one of several, the likeliest first.
struct KnownName {
  const char* names;  ///< separated by spaces
  std::vector<Stage> stages;
  ModelTensor model_tensor = ModelTensor::nothing;
};
/// Returns those stages, then the others of the steps from scores to the softmax input, which share names.
std::vector<Stage> any_scores(std::vector<Stage> likeliest) {
  using enum Stage;
  for (const Stage stage : {scaled_scores, capped_scores, biased_scores, masked_scores})
    if (std::ranges::find(likeliest, stage) == likeliest.end()) likeliest.push_back(stage);
  return likeliest;
}

std::vector<KnownName> known_name_table() {
  using enum Stage;
  return {
      {"x input inputs embedding emb input_embeddings", {embeddings}},
      {"hidden_states", {embeddings}, ModelTensor::entering},
      {"hidden_state hiddens hidden residual resid_pre hook_resid_pre layer_input block_input",
       {},
       ModelTensor::entering},
      {"resid_post hook_resid_post layer_output block_output", {}, ModelTensor::leaving},
      {"last_hidden_state last_hidden_states ln_final.hook_normalized", {}, ModelTensor::normed},
      {"lm_logits prediction_logits", {}, ModelTensor::logits},
      {"memory encoder_hidden_states encoder_output encoder_outputs key_input", {key_embeddings}},
      {"q qs query query_states hook_q xq", {queries, rotated_queries, normed_queries}},
      {"k ks key key_states hook_k xk", {keys, rotated_keys, normed_keys}},
      {"v vs value value_states hook_v xv", {values}},
      {"q_norm q_normed query_norm query_normed normed_q normed_query norm_q q_normalized q_normalised",
       {normed_queries}},
      {"k_norm k_normed key_norm key_normed normed_k normed_key norm_k k_normalized k_normalised",
       {normed_keys}},
      {"q_rot q_rotated q_rope q_roped q_rotary q_embed q_pe query_rot query_rotated query_rope query_rotary "
       "queries_rot queries_rotated queries_rope rot_q rotated_q rotated_query rope_q hook_rot_q xq_rot",
       {rotated_queries}},
      {"k_rot k_rotated k_rope k_roped k_rotary k_embed k_pe key_rot key_rotated key_rope key_rotary keys_rot "
       "keys_rotated keys_rope rot_k rotated_k rotated_key rope_k hook_rot_k xk_rot",
       {rotated_keys}},
      {"score raw_scores qk qkt qk_t dots dot_products", {scores}},
      {"logits", any_scores({scores, scaled_scores, masked_scores}), ModelTensor::logits},
      {"attn_scores attention_scores attn_logits attention_logits",
       any_scores({scores, scaled_scores, masked_scores})},
      {"bias attn_bias pos_bias position_biases alibi alibi_bias alibi_biases rel_bias rel_pos_bias "
       "relative_bias relative_position_bias relative_attention_bias",
       {position_bias}},
      {"causal_mask attn_mask attention_mask", {mask}},
      {"hook_attn_scores", any_scores({masked_scores})},
      {"weights_unmasked", {unmasked_weights}},
      {"weights_zeroed", {zeroed_weights}},
      {"row_sum", {row_sums}},
      {"attn att attention attentions attn_weights attn_weight attention_weights attn_probs attention_probs probs weight",
       {weights, dropped_weights}},
      {"softmax a p alpha hook_pattern", {weights}},
      {"drop_mask keep_mask dropout", {dropout_mask}},
      {"dropped weights_dropped dropped_attn_weights attn_weights_dropped attn_dropped weights_after_dropout",
       {dropped_weights}},
      {"context ctx context_heads contexts_per_head head_outputs heads z context_layer hook_z",
       {contexts, concatenated, output}},
      {"context_vec context_vecs context_vector context_vectors", {output, concatenated, contexts}},
      {"concat merged joined concatenated_heads context_concat merged_heads", {concatenated}},
      {"out outputs y o result attn_output attention_output attn_out hook_attn_out",
       {output, concatenated, contexts}},
      {"scaled scores_scaled scaled_attn_scores attn_scores_scaled attn_scaled", {scaled_scores}},
      {"capped cap softcapped soft_capped scores_capped attn_scores_capped capped_attn_scores "
       "capped_attn_logits",
       {capped_scores}},
      {"biased scores_biased attn_scores_biased biased_attn_scores scores_with_bias attn_scores_with_bias",
       {biased_scores}},
      {"masked scores_masked masked_attn_scores attn_scores_masked masked_scaled_scores", {masked_scores}},
  };
}

const std::vector<KnownName> known_names = known_name_table();

const KnownName* row_named(std::string_view name) {
  const auto known =
      std::ranges::find_if(known_names, [&](const KnownName& k) { return text::has_word(k.names, name); });
  return known == known_names.end() ? nullptr : &*known;
}

NameMeaning stages_named(std::string_view name) {
  using enum Stage;
  if (const auto* stage = attention::find_stage(name)) {
    // Contexts that are already concatenated are the next stage.
    if (stage->stage == contexts) return {{contexts, concatenated}, true};
    // Queries and keys may keep their name after norm and rotation.
    if (stage->stage == queries) return {{queries, rotated_queries, normed_queries}, true};
    if (stage->stage == keys) return {{keys, rotated_keys, normed_keys}, true};
    return {{stage->stage}, true};
  }
  const KnownName* known = row_named(name);
  return known ? NameMeaning{known->stages, false} : NameMeaning();
}

/// Normalizes a name to the spelling of the table.
std::string normalize_name(std::string_view base) {
  std::string name = text::lower(base);
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == ' '; }, '_');
  return name;
}

bool is_separator(char c) {
  return std::string_view("./_-").find(c) != std::string_view::npos;
}

/// Removes a word for layers before a number: "attn_layer" of "attn_layer3" becomes "attn".
bool strip_layer_word(std::string& name) {
  const std::size_t before = name.size();
  while (!name.empty() && is_separator(name.back())) name.pop_back();
  for (const std::string_view word : {"layers", "layer", "blocks", "block"}) {
    if (!name.ends_with(word)) continue;
    name.erase(name.rfind(word));
    break;
  }
  while (!name.empty() && is_separator(name.back())) name.pop_back();
  return name.size() < before;
}

/// Returns a name up to its first number that is separate or follows a word for layers, else all of it:
/// "model.layers.3" of "model.layers.3.self_attn".
std::string layer_prefix(const std::string& name) {
  for (std::size_t begin = 0, end = 0; begin < name.size(); begin = end + 1) {
    end = begin;
    while (end < name.size() && !is_separator(name[end])) ++end;
    std::string part = text::lower(name.substr(begin, end - begin));
    const std::size_t digits = part.find_first_of("0123456789");
    if (digits == part.npos || part.find_first_not_of("0123456789", digits) != part.npos) continue;
    part.resize(digits);
    if (part.empty() || strip_layer_word(part)) return name.substr(0, end);
  }
  return name;
}

/// Whether a name is that of a parameter: "c_attn.weight", or "projections.…" in attnscope's exports.
bool is_parameter(std::string_view name) {
  const std::string_view end = name.substr(name.find_last_of("./") + 1);
  return end == "weight" || end == "bias" || name.starts_with("projections.");
}

/// Removes "head12" and the separators before it from the end of a name; returns the number.
std::optional<std::size_t> strip_number(std::string& name, std::string_view word) {
  const std::size_t at = name.rfind(word);
  if (at == std::string::npos || at == 0) return std::nullopt;
  const auto number = text::parse_unsigned(std::string_view(name).substr(at + word.size()));
  if (!number) return std::nullopt;
  name.resize(at);
  while (!name.empty() && (is_separator(name.back()) || name.back() == ' ')) name.pop_back();
  return number;
}

}  // namespace

NameParts split_name(std::string_view name) {
  NameParts result{std::string(name), {}, {}};
  constexpr std::string_view sequence = "sequence";
  if (name.starts_with(sequence)) {
    std::string_view rest = name.substr(sequence.size());
    const auto number = text::consume_unsigned(rest);
    if (number && rest.starts_with('/')) {
      result.sequence = *number;
      result.base = rest.substr(1);
    }
  }
  result.head = strip_number(result.base, "head");
  return result;
}

NameMeaning meaning_of(std::string_view base) {
  const std::string name = normalize_name(base);
  if (NameMeaning whole = stages_named(name); !whole.stages.empty()) return whole;
  const std::size_t last = name.find_last_of("./");
  return last == name.npos || is_parameter(name) ? NameMeaning()
                                                 : stages_named(std::string_view(name).substr(last + 1));
}

ModelTensor model_tensor_of(std::string_view base) {
  const std::string name = normalize_name(base);
  if (const KnownName* known = row_named(name)) return known->model_tensor;
  std::string_view word = std::string_view(name).substr(name.find_last_of("./") + 1);
  if (const KnownName* known = row_named(word)) return known->model_tensor;
  // "my_hidden_states"; a single word, as in "my_hidden", is too vague
  for (std::size_t joint = word.find('_'); joint != word.npos; joint = word.find('_')) {
    word.remove_prefix(joint + 1);
    if (word.find('_') == word.npos) break;
    if (const KnownName* known = row_named(word)) return known->model_tensor;
  }
  return ModelTensor::nothing;
}

std::vector<NumberedName> split_numbers(const std::string& name) {
  std::vector<NumberedName> all;
  for (std::size_t begin = 0, end = 0; begin < name.size(); begin = std::max(begin + 1, end)) {
    if (!text::is_digit(name[begin])) continue;
    end = begin;
    while (end < name.size() && text::is_digit(name[end])) ++end;
    std::string before = name.substr(0, begin);
    const bool parted_before = strip_layer_word(before);
    std::size_t next = end;
    while (next < name.size() && is_separator(name[next])) ++next;
    const std::string rest = name.substr(next);
    all.push_back({before.empty() || rest.empty() ? before + rest : before + "_" + rest,
                   name.substr(begin, end - begin), parted_before || (before.empty() && next > end), rest});
  }
  return all;
}

ParsedName parse_name(std::string_view name) {
  constexpr std::size_t shortest = 3;  // "x2" is another x, not that of layer 2
  const NameParts parts = split_name(name);
  ParsedName parsed{parts, meaning_of(parts.base), "", parts.base};
  const std::size_t last = parts.base.find_last_of("./");
  if (!parsed.meaning.stages.empty()) {
    if (last != std::string::npos)
      parsed.layer = layer_prefix(parts.base.substr(0, last)), parsed.own = parts.base.substr(last + 1);
    return parsed;
  }
  if (is_parameter(text::lower(parts.base))) return parsed;
  for (const auto& [base, number, is_separate, suffix] : split_numbers(parts.base)) {
    if (!is_separate && base.size() < shortest) continue;
    parsed.meaning = meaning_of(base);
    if (parsed.meaning.stages.empty()) continue;
    parsed.layer = number, parsed.own = base;
    break;
  }
  return parsed;
}

}  // namespace core::formats
