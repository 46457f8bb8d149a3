#include "core/check/names.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace core::check {
namespace {

using enum Stage;

/// What people call a stage, or what may be one of several, the likeliest first.
struct Known {
  const char* names;  ///< blanks between them
  std::vector<Stage> stages;
  Held held = Held::nothing;
};
const std::array table{
    Known{" x input inputs embedding emb input_embeddings ", {embeddings}},
    Known{" hidden_states ", {embeddings}, Held::entering},
    Known{" hidden_state hiddens hidden residual resid_pre hook_resid_pre layer_input block_input ",
          {},
          Held::entering},
    Known{" resid_post hook_resid_post layer_output block_output ", {}, Held::leaving},
    Known{" last_hidden_state last_hidden_states ln_final.hook_normalized ", {}, Held::normed},
    Known{" lm_logits prediction_logits ", {}, Held::logits},
    Known{" memory encoder_hidden_states encoder_output encoder_outputs key_input ", {key_embeddings}},
    Known{" q qs query query_states hook_q xq ", {queries, rotated_queries, normed_queries}},
    Known{" k ks key key_states hook_k xk ", {keys, rotated_keys, normed_keys}},
    Known{" v vs value value_states hook_v xv ", {values}},
    Known{" q_norm q_normed query_norm query_normed normed_q normed_query norm_q q_normalized q_normalised ",
          {normed_queries}},
    Known{" k_norm k_normed key_norm key_normed normed_k normed_key norm_k k_normalized k_normalised ",
          {normed_keys}},
    Known{
        " q_rot q_rotated q_rope q_roped q_rotary q_embed q_pe query_rot query_rotated query_rope query_rotary "
        "queries_rot queries_rotated queries_rope rot_q rotated_q rotated_query rope_q hook_rot_q xq_rot ",
        {rotated_queries}},
    Known{
        " k_rot k_rotated k_rope k_roped k_rotary k_embed k_pe key_rot key_rotated key_rope key_rotary keys_rot "
        "keys_rotated keys_rope rot_k rotated_k rotated_key rope_k hook_rot_k xk_rot ",
        {rotated_keys}},
    Known{" score raw_scores qk qkt qk_t dots dot_products ", {scores}},
    Known{" logits ", {scores, scaled_scores, masked_scores, capped_scores, biased_scores}, Held::logits},
    Known{" attn_scores attention_scores attn_logits attention_logits ",
          {scores, scaled_scores, masked_scores, capped_scores, biased_scores}},
    Known{" scaled scores_scaled scaled_attn_scores attn_scores_scaled attn_scaled ", {scaled_scores}},
    Known{" capped cap softcapped soft_capped scores_capped attn_scores_capped capped_attn_scores "
          "capped_attn_logits ",
          {capped_scores}},
    Known{" bias attn_bias pos_bias position_biases alibi alibi_bias alibi_biases rel_bias rel_pos_bias "
          "relative_bias relative_position_bias relative_attention_bias ",
          {position_bias}},
    Known{
        " biased scores_biased attn_scores_biased biased_attn_scores scores_with_bias attn_scores_with_bias ",
        {biased_scores}},
    Known{" causal_mask attn_mask attention_mask ", {mask}},
    Known{" masked scores_masked masked_attn_scores attn_scores_masked masked_scaled_scores ",
          {masked_scores}},
    Known{" hook_attn_scores ", {masked_scores, scaled_scores, capped_scores, biased_scores}},
    Known{" weights_unmasked ", {unmasked_weights}},
    Known{" weights_zeroed ", {zeroed_weights}},
    Known{" row_sum ", {row_sums}},
    Known{
        " attn att attention attentions attn_weights attn_weight attention_weights attn_probs attention_probs probs weight ",
        {weights, dropped_weights}},
    Known{" softmax a p alpha hook_pattern ", {weights}},
    Known{" drop_mask keep_mask dropout ", {dropout_mask}},
    Known{
        " dropped weights_dropped dropped_attn_weights attn_weights_dropped attn_dropped weights_after_dropout ",
        {dropped_weights}},
    Known{" context ctx context_heads contexts_per_head head_outputs heads z context_layer hook_z ",
          {contexts, concatenated, output}},
    Known{" context_vec context_vecs context_vector context_vectors ", {output, concatenated, contexts}},
    Known{" concat merged joined concatenated_heads context_concat merged_heads ", {concatenated}},
    Known{" out outputs y o result attn_output attention_output attn_out hook_attn_out ",
          {output, concatenated, contexts}},
};

const Known* row_named(std::string_view name) {
  const std::string wanted = " " + std::string(name) + " ";
  const auto known = std::ranges::find_if(table, [&](const Known& k) {
    return std::string_view(k.names).find(wanted) != std::string_view::npos;
  });
  return known == table.end() ? nullptr : &*known;
}

Meaning find(std::string_view name) {
  if (const auto* stage = attention::find_stage(name)) {
    // Contexts that are already side by side are what comes next.
    if (stage->stage == contexts) return {{contexts, concatenated}, true};
    // And queries and keys that keep their name when they are normed and turned.
    if (stage->stage == queries) return {{queries, rotated_queries, normed_queries}, true};
    if (stage->stage == keys) return {{keys, rotated_keys, normed_keys}, true};
    return {{stage->stage}, true};
  }
  const Known* known = row_named(name);
  return known ? Meaning{known->stages, false} : Meaning();
}

/// As the table has names.
std::string as_known(std::string_view base) {
  std::string name = text::lower(base);
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == ' '; }, '_');
  return name;
}

bool is_joint(char c) {
  return std::string_view("./_-").find(c) != std::string_view::npos;
}

/// Takes the word before a number away, when it is one for layers: "attn_layer" of "attn_layer3" is "attn".
bool cut_word_and_joints(std::string& name) {
  const std::size_t before = name.size();
  while (!name.empty() && is_joint(name.back())) name.pop_back();
  for (const std::string_view word : {"layers", "layer", "blocks", "block"}) {
    if (!name.ends_with(word)) continue;
    name.erase(name.rfind(word));
    break;
  }
  while (!name.empty() && is_joint(name.back())) name.pop_back();
  return name.size() < before;
}

/// The beginning of a name up to its first number that stands alone or behind a word for layers, else all of
/// it: "model.layers.3" of "model.layers.3.self_attn".
std::string up_to_number(const std::string& name) {
  for (std::size_t begin = 0, end = 0; begin < name.size(); begin = end + 1) {
    end = begin;
    while (end < name.size() && !is_joint(name[end])) ++end;
    std::string part = text::lower(name.substr(begin, end - begin));
    const std::size_t digits = part.find_first_of("0123456789");
    if (digits == part.npos || part.find_first_not_of("0123456789", digits) != part.npos) continue;
    part.resize(digits);
    if (part.empty() || cut_word_and_joints(part)) return name.substr(0, end);
  }
  return name;
}

/// Whether it is a learned number and no stage: "c_attn.weight", or what our exports call "projections.…".
bool is_learned(std::string_view name) {
  const std::string_view end = name.substr(name.find_last_of("./") + 1);
  return end == "weight" || end == "bias" || name.starts_with("projections.");
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
  const std::string name = as_known(base);
  if (Meaning whole = find(name); !whole.stages.empty()) return whole;
  const std::size_t last = name.find_last_of("./");
  if (last == std::string::npos) return {};
  if (is_learned(name)) return {};
  return find(std::string_view(name).substr(last + 1));
}

Held held_by(std::string_view base) {
  const std::string name = as_known(base);
  if (const Known* known = row_named(name)) return known->held;
  std::string_view word = std::string_view(name).substr(name.find_last_of("./") + 1);
  if (const Known* known = row_named(word)) return known->held;
  // "my_hidden_states"; one word alone, as "my_hidden", may be of anything
  for (std::size_t joint = word.find('_'); joint != word.npos; joint = word.find('_')) {
    word.remove_prefix(joint + 1);
    if (word.find('_') == word.npos) break;
    if (const Known* known = row_named(word)) return known->held;
  }
  return Held::nothing;
}

std::vector<WithoutNumber> without_numbers(const std::string& name) {
  std::vector<WithoutNumber> all;
  for (std::size_t begin = 0, end = 0; begin < name.size(); begin = std::max(begin + 1, end)) {
    if (!text::is_digit(name[begin])) continue;
    end = begin;
    while (end < name.size() && text::is_digit(name[end])) ++end;
    std::string before = name.substr(0, begin);
    const bool parted_before = cut_word_and_joints(before);
    std::size_t next = end;
    while (next < name.size() && is_joint(name[next])) ++next;
    const std::string rest = name.substr(next);
    all.push_back({before.empty() || rest.empty() ? before + rest : before + "_" + rest,
                   name.substr(begin, end - begin), parted_before || (before.empty() && next > end), rest});
  }
  return all;
}

Said said_by(std::string_view name) {
  constexpr std::size_t shortest = 3;  // "x2" is another x, and not that of layer 2
  const Name parts = take_apart(name);
  Said said{parts, meaning_of(parts.base), "", parts.base};
  const std::size_t last = parts.base.find_last_of("./");
  if (!said.meaning.stages.empty()) {
    if (last != std::string::npos)
      said.layer = up_to_number(parts.base.substr(0, last)), said.own = parts.base.substr(last + 1);
    return said;
  }
  if (is_learned(text::lower(parts.base))) return said;
  for (const auto& [base, number, is_parted, behind] : without_numbers(parts.base)) {
    if (!is_parted && base.size() < shortest) continue;
    said.meaning = meaning_of(base);
    if (said.meaning.stages.empty()) continue;
    said.layer = number, said.own = base;
    break;
  }
  return said;
}

std::vector<std::string> layers_of(const std::vector<Said>& names) {
  using Key = std::tuple<std::string, std::optional<std::size_t>, std::optional<std::size_t>>;
  std::vector<std::string> layers;
  std::set<std::string_view> seen;
  std::map<Key, std::string> known;
  bool are_several = false;
  for (const Said& said : names) {
    if (said.meaning.stages.empty()) continue;
    if (seen.insert(said.layer).second) layers.push_back(said.layer);
    const auto [first, is_new] =
        known.try_emplace({said.own, said.parts.sequence, said.parts.head}, said.layer);
    are_several = are_several || (!is_new && first->second != said.layer);
  }
  if (!are_several) return {};
  std::ranges::sort(layers, text::comes_before);
  if (layers.size() > 2) std::erase(layers, "");
  return layers;
}

}  // namespace core::check
