#include "core/model/families.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace core::transformer {
namespace {

struct Named {
  Role role;
  const char* name;
};

template <std::size_t n>
constexpr Names names_of(const Named (&named)[n]) {
  Names result;
  for (const char*& name : result.names) name = "";
  for (const Named& each : named) result.names[static_cast<std::size_t>(each.role)] = each.name;
  return result;
}

using enum Role;

constexpr Names gpt2_names = names_of({{token_embedding, "wte"},
                                       {position_embedding, "wpe"},
                                       {attention_norm, "h.#.ln_1"},
                                       {fused, "h.#.attn.c_attn"},
                                       {output, "h.#.attn.c_proj"},
                                       {mlp_norm, "h.#.ln_2"},
                                       {up, "h.#.mlp.c_fc"},
                                       {down, "h.#.mlp.c_proj"},
                                       {final_norm, "ln_f"},
                                       {head, "lm_head"}});

constexpr Names llama_names = names_of({{token_embedding, "embed_tokens"},
                                        {attention_norm, "layers.#.input_layernorm"},
                                        {query, "layers.#.self_attn.q_proj"},
                                        {key, "layers.#.self_attn.k_proj"},
                                        {value, "layers.#.self_attn.v_proj"},
                                        {output, "layers.#.self_attn.o_proj"},
                                        {query_norm, "layers.#.self_attn.q_norm"},
                                        {key_norm, "layers.#.self_attn.k_norm"},
                                        {mlp_norm, "layers.#.post_attention_layernorm"},
                                        {gate, "layers.#.mlp.gate_proj"},
                                        {up, "layers.#.mlp.up_proj"},
                                        {down, "layers.#.mlp.down_proj"},
                                        {final_norm, "norm"},
                                        {head, "lm_head"}});

constexpr Names neox_names = names_of({{token_embedding, "embed_in"},
                                       {attention_norm, "layers.#.input_layernorm"},
                                       {fused, "layers.#.attention.query_key_value"},
                                       {output, "layers.#.attention.dense"},
                                       {mlp_norm, "layers.#.post_attention_layernorm"},
                                       {up, "layers.#.mlp.dense_h_to_4h"},
                                       {down, "layers.#.mlp.dense_4h_to_h"},
                                       {final_norm, "final_layer_norm"},
                                       {head, "embed_out"}});

constexpr Names bert_names = names_of({{token_embedding, "embeddings.word_embeddings"},
                                       {position_embedding, "embeddings.position_embeddings"},
                                       {segment_embedding, "embeddings.token_type_embeddings"},
                                       {embedding_norm, "embeddings.LayerNorm"},
                                       {query, "encoder.layer.#.attention.self.query"},
                                       {key, "encoder.layer.#.attention.self.key"},
                                       {value, "encoder.layer.#.attention.self.value"},
                                       {output, "encoder.layer.#.attention.output.dense"},
                                       {attention_norm, "encoder.layer.#.attention.output.LayerNorm"},
                                       {up, "encoder.layer.#.intermediate.dense"},
                                       {down, "encoder.layer.#.output.dense"},
                                       {mlp_norm, "encoder.layer.#.output.LayerNorm"},
                                       {head_dense, "cls.predictions.transform.dense"},
                                       {head_norm, "cls.predictions.transform.LayerNorm"},
                                       {head, "cls.predictions.decoder"},
                                       {head_bias, "cls.predictions"}});

constexpr Names roberta_names = [] {
  Names names = bert_names;
  for (const auto& [role, name] : {Named{head_dense, "lm_head.dense"}, Named{head_norm, "lm_head.layer_norm"},
                                   Named{head, "lm_head.decoder"}, Named{head_bias, "lm_head"}})
    names.names[static_cast<std::size_t>(role)] = name;
  return names;
}();

constexpr Names distilbert_names = names_of({{token_embedding, "embeddings.word_embeddings"},
                                             {position_embedding, "embeddings.position_embeddings"},
                                             {embedding_norm, "embeddings.LayerNorm"},
                                             {query, "transformer.layer.#.attention.q_lin"},
                                             {key, "transformer.layer.#.attention.k_lin"},
                                             {value, "transformer.layer.#.attention.v_lin"},
                                             {output, "transformer.layer.#.attention.out_lin"},
                                             {attention_norm, "transformer.layer.#.sa_layer_norm"},
                                             {up, "transformer.layer.#.ffn.lin1"},
                                             {down, "transformer.layer.#.ffn.lin2"},
                                             {mlp_norm, "transformer.layer.#.output_layer_norm"},
                                             {head_dense, "vocab_transform"},
                                             {head_norm, "vocab_layer_norm"},
                                             {head, "vocab_projector"}});

constexpr Names gguf_names = names_of({{token_embedding, "token_embd"},
                                       {position_embedding, "position_embd"},
                                       {attention_norm, "blk.#.attn_norm"},
                                       {query, "blk.#.attn_q"},
                                       {key, "blk.#.attn_k"},
                                       {value, "blk.#.attn_v"},
                                       {fused, "blk.#.attn_qkv"},
                                       {output, "blk.#.attn_output"},
                                       {query_norm, "blk.#.attn_q_norm"},
                                       {key_norm, "blk.#.attn_k_norm"},
                                       {mlp_norm, "blk.#.ffn_norm"},
                                       {gate, "blk.#.ffn_gate"},
                                       {up, "blk.#.ffn_up"},
                                       {down, "blk.#.ffn_down"},
                                       {final_norm, "output_norm"},
                                       {head, "output"}});

constexpr Names gguf_bert_names = names_of({{token_embedding, "token_embd"},
                                            {position_embedding, "position_embd"},
                                            {segment_embedding, "token_types"},
                                            {embedding_norm, "token_embd_norm"},
                                            {query, "blk.#.attn_q"},
                                            {key, "blk.#.attn_k"},
                                            {value, "blk.#.attn_v"},
                                            {fused, "blk.#.attn_qkv"},
                                            {output, "blk.#.attn_output"},
                                            {attention_norm, "blk.#.attn_output_norm"},
                                            {up, "blk.#.ffn_up"},
                                            {down, "blk.#.ffn_down"},
                                            {mlp_norm, "blk.#.layer_output_norm"}});

constexpr bool looks_back = true, both_ways = false;
constexpr bool by_rotation = true, by_table = false;
constexpr bool x_in_by_out = true, out_by_in = false;
constexpr bool in_groups = true, each_its_own = false;

constexpr Norm layer_before{NormKind::layer, NormPlace::before, 1e-5};
constexpr Norm rms_before{NormKind::rms, NormPlace::before, 1e-6};
constexpr Norm layer_after{NormKind::layer, NormPlace::after, 1e-12};

constexpr std::array family_table{
    Family{"GPT-2",
           " gpt2 ",
           " gpt2 ",
           "transformer.",
           gpt2_names,
           gguf_names,
           layer_before,
           {Activation::gelu_tanh, false, false},
           looks_back,
           by_table,
           x_in_by_out},
    Family{"Llama",
           " llama mistral qwen2 qwen3 ",
           " llama qwen2 qwen3 ",
           "model.",
           llama_names,
           gguf_names,
           rms_before,
           {Activation::silu, true, false},
           looks_back,
           by_rotation,
           out_by_in,
           in_groups},
    Family{"GPT-NeoX",
           " gpt_neox ",
           " gptneox ",
           "gpt_neox.",
           neox_names,
           gguf_names,
           layer_before,
           {Activation::gelu_erf, false, true},
           looks_back,
           by_rotation,
           out_by_in,
           each_its_own,
           formats::checkpoints::Fused::by_head},
    Family{"BERT",
           " bert ",
           " bert ",
           "bert.",
           bert_names,
           gguf_bert_names,
           layer_after,
           {Activation::gelu_erf, false, false},
           both_ways,
           by_table,
           out_by_in},
    Family{"RoBERTa",
           " roberta xlm-roberta camembert ",
           "",
           "roberta.",
           roberta_names,
           gguf_bert_names,
           layer_after,
           {Activation::gelu_erf, false, false},
           both_ways,
           by_table,
           out_by_in,
           each_its_own,
           formats::checkpoints::Fused::side_by_side,
           Activation::gelu_erf},
    Family{"DistilBERT",
           " distilbert ",
           "",
           "distilbert.",
           distilbert_names,
           gguf_bert_names,
           layer_after,
           {Activation::gelu_erf, false, false},
           both_ways,
           by_table,
           out_by_in},
};

const Family* with_word(const char* Family::*words, std::string_view word) {
  const std::string between = " " + std::string(word) + " ";
  const auto found = std::ranges::find_if(family_table, [&](const Family& family) {
    return std::string_view(family.*words).find(between) != std::string_view::npos;
  });
  return found == family_table.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Family> families() {
  return family_table;
}

const Family& family_named(std::string_view name) {
  return *std::ranges::find(family_table, name, &Family::name);
}

const Family* family_of_type(std::string_view type) {
  return with_word(&Family::types, type);
}

const Family* family_of_gguf(std::string_view architecture) {
  return with_word(&Family::gguf, architecture);
}

std::string names_of_families() {
  return text::joined(family_table, ", ", &Family::name);
}

}  // namespace core::transformer
