#include "core/files/families.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/base/words.hpp"

namespace core::formats::checkpoints {
namespace {

/// Encloses short names that would clash elsewhere.
namespace rows {

using enum TensorRole;

struct TensorRoleName {
  TensorRole role;
  const char* name;
};

/// Returns the names of tensors by role; roles that are not listed are as in others.
template <std::size_t n>
constexpr RoleNames make_names(
    const TensorRoleName (&named)[n], RoleNames others = [] {
      RoleNames none;
      for (const char*& name : none.names) name = "";
      return none;
    }()) {
  for (const TensorRoleName& each : named) others.names[static_cast<std::size_t>(each.role)] = each.name;
  return others;
}

constexpr RoleNames gpt2_names = make_names({{token_embedding, "wte"},
                                             {position_embedding, "wpe"},
                                             {attention_norm, "h.#.ln_1"},
                                             {fused, "h.#.attn.c_attn"},
                                             {output, "h.#.attn.c_proj"},
                                             {mlp_norm, "h.#.ln_2"},
                                             {up, "h.#.mlp.c_fc"},
                                             {down, "h.#.mlp.c_proj"},
                                             {final_norm, "ln_f"},
                                             {head, "lm_head"}});

constexpr RoleNames llama_names = make_names({{token_embedding, "embed_tokens"},
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

/// With gate and up in one weight.
constexpr RoleNames phi3_names = make_names(
    {{fused, "layers.#.self_attn.qkv_proj"}, {gate, ""}, {up, "layers.#.mlp.gate_up_proj"}}, llama_names);
/// Attention and MLP in parallel, with the same input.
constexpr RoleNames cohere_names = make_names({{mlp_norm, ""}}, llama_names);
constexpr RoleNames phi_names = make_names({{output, "layers.#.self_attn.dense"},
                                            {mlp_norm, ""},
                                            {gate, ""},
                                            {up, "layers.#.mlp.fc1"},
                                            {down, "layers.#.mlp.fc2"},
                                            {final_norm, "final_layernorm"}},
                                           llama_names);
constexpr RoleNames starcoder2_names =
    make_names({{gate, ""}, {up, "layers.#.mlp.c_fc"}, {down, "layers.#.mlp.c_proj"}}, llama_names);
/// With norms of the outputs of attention and the MLP.
constexpr RoleNames gemma2_names = make_names({{attention_output_norm, "layers.#.post_attention_layernorm"},
                                               {mlp_norm, "layers.#.pre_feedforward_layernorm"},
                                               {mlp_output_norm, "layers.#.post_feedforward_layernorm"}},
                                              llama_names);
constexpr RoleNames vaultgemma_names =
    make_names({{attention_output_norm, ""}, {mlp_output_norm, ""}}, gemma2_names);
constexpr RoleNames exaone4_names = make_names({{attention_norm, ""}, {mlp_norm, ""}}, gemma2_names);
constexpr RoleNames glm4_names = make_names({{gate, ""},
                                             {up, "layers.#.mlp.gate_up_proj"},
                                             {attention_output_norm, "layers.#.post_self_attn_layernorm"},
                                             {mlp_output_norm, "layers.#.post_mlp_layernorm"}},
                                            llama_names);
constexpr RoleNames glm_names = make_names({{attention_output_norm, ""}, {mlp_output_norm, ""}}, glm4_names);
constexpr RoleNames olmo_names =
    make_names({{attention_norm, ""}, {mlp_norm, ""}, {final_norm, ""}}, llama_names);

constexpr RoleNames gpt_neo_names = make_names({{fused, ""},
                                                {query, "h.#.attn.attention.q_proj"},
                                                {key, "h.#.attn.attention.k_proj"},
                                                {value, "h.#.attn.attention.v_proj"},
                                                {output, "h.#.attn.attention.out_proj"}},
                                               gpt2_names);
constexpr RoleNames gptj_names = make_names({{position_embedding, ""},
                                             {fused, ""},
                                             {query, "h.#.attn.q_proj"},
                                             {key, "h.#.attn.k_proj"},
                                             {value, "h.#.attn.v_proj"},
                                             {output, "h.#.attn.out_proj"},
                                             {mlp_norm, ""},
                                             {up, "h.#.mlp.fc_in"},
                                             {down, "h.#.mlp.fc_out"}},
                                            gpt2_names);
constexpr RoleNames codegen_names =
    make_names({{fused, "h.#.attn.qkv_proj"}, {query, ""}, {key, ""}, {value, ""}}, gptj_names);
constexpr RoleNames openai_names =
    make_names({{token_embedding, "tokens_embed"}, {position_embedding, "positions_embed"}, {final_norm, ""}},
               gpt2_names);
constexpr RoleNames opt_names = make_names({{token_embedding, "embed_tokens"},
                                            {position_embedding, "embed_positions"},
                                            {attention_norm, "layers.#.self_attn_layer_norm"},
                                            {query, "layers.#.self_attn.q_proj"},
                                            {key, "layers.#.self_attn.k_proj"},
                                            {value, "layers.#.self_attn.v_proj"},
                                            {output, "layers.#.self_attn.out_proj"},
                                            {mlp_norm, "layers.#.final_layer_norm"},
                                            {up, "layers.#.fc1"},
                                            {down, "layers.#.fc2"},
                                            {final_norm, "final_layer_norm"},
                                            {head, "lm_head"}});
constexpr RoleNames opt_narrow_names =
    make_names({{embedding_projection, "project_in"}, {output_projection, "project_out"}}, opt_names);
constexpr RoleNames biogpt_names =
    make_names({{final_norm, "layer_norm"}, {head, "output_projection"}}, opt_names);
constexpr RoleNames bloom_names = make_names({{token_embedding, "word_embeddings"},
                                              {embedding_norm, "word_embeddings_layernorm"},
                                              {attention_norm, "h.#.input_layernorm h.#.ln_attn"},
                                              {fused, "h.#.self_attention.query_key_value"},
                                              {output, "h.#.self_attention.dense"},
                                              {mlp_norm, "h.#.post_attention_layernorm h.#.ln_mlp"},
                                              {up, "h.#.mlp.dense_h_to_4h"},
                                              {down, "h.#.mlp.dense_4h_to_h"},
                                              {final_norm, "ln_f"},
                                              {head, "lm_head"}});
constexpr RoleNames mpt_names = make_names({{token_embedding, "wte"},
                                            {attention_norm, "blocks.#.norm_1"},
                                            {fused, "blocks.#.attn.Wqkv"},
                                            {output, "blocks.#.attn.out_proj"},
                                            {mlp_norm, "blocks.#.norm_2"},
                                            {up, "blocks.#.ffn.up_proj"},
                                            {down, "blocks.#.ffn.down_proj"},
                                            {final_norm, "norm_f"},
                                            {head, "lm_head"}});

constexpr RoleNames mixtral_names = make_names({{gate, ""},
                                                {up, ""},
                                                {down, ""},
                                                {router, "layers.#.block_sparse_moe.gate"},
                                                {expert_gate, "layers.#.block_sparse_moe.experts.@.w1"},
                                                {expert_up, "layers.#.block_sparse_moe.experts.@.w3"},
                                                {expert_down, "layers.#.block_sparse_moe.experts.@.w2"}},
                                               llama_names);
constexpr RoleNames qwen_moe_names = make_names({{router, "layers.#.mlp.gate"},
                                                 {expert_gate, "layers.#.mlp.experts.@.gate_proj"},
                                                 {expert_up, "layers.#.mlp.experts.@.up_proj"},
                                                 {expert_down, "layers.#.mlp.experts.@.down_proj"},
                                                 {shared_gate, "layers.#.mlp.shared_expert.gate_proj"},
                                                 {shared_up, "layers.#.mlp.shared_expert.up_proj"},
                                                 {shared_down, "layers.#.mlp.shared_expert.down_proj"},
                                                 {shared_expert_gate, "layers.#.mlp.shared_expert_gate"}},
                                                mixtral_names);

constexpr RoleNames olmoe_names = make_names(
    {{shared_gate, ""}, {shared_up, ""}, {shared_down, ""}, {shared_expert_gate, ""}}, qwen_moe_names);
/// With all experts in one tensor.
constexpr RoleNames granite_moe_names = make_names({{router, "layers.#.block_sparse_moe.router.layer"},
                                                    {expert_gate, ""},
                                                    {expert_up, "layers.#.block_sparse_moe.input_linear"},
                                                    {expert_down, "layers.#.block_sparse_moe.output_linear"}},
                                                   mixtral_names);

/// With MLPs in the first layers.
constexpr RoleNames glm4_moe_names = make_names({{gate, "layers.#.mlp.gate_proj"},
                                                 {up, "layers.#.mlp.up_proj"},
                                                 {down, "layers.#.mlp.down_proj"},
                                                 {shared_gate, "layers.#.mlp.shared_experts.gate_proj"},
                                                 {shared_up, "layers.#.mlp.shared_experts.up_proj"},
                                                 {shared_down, "layers.#.mlp.shared_experts.down_proj"},
                                                 {shared_expert_gate, ""},
                                                 {router_correction, "layers.#.mlp.gate"}},
                                                qwen_moe_names);
constexpr RoleNames ernie_moe_names =
    make_names({{router_correction, "layers.#.mlp.moe_statics"}}, glm4_moe_names);
constexpr RoleNames apertus_names = make_names({{attention_norm, "layers.#.attention_layernorm"},
                                                {mlp_norm, "layers.#.feedforward_layernorm"},
                                                {gate, ""},
                                                {activation_parameters, "layers.#.mlp.act_fn"}},
                                               llama_names);

constexpr RoleNames neox_names = make_names({{token_embedding, "embed_in"},
                                             {attention_norm, "layers.#.input_layernorm"},
                                             {fused, "layers.#.attention.query_key_value"},
                                             {output, "layers.#.attention.dense"},
                                             {mlp_norm, "layers.#.post_attention_layernorm"},
                                             {up, "layers.#.mlp.dense_h_to_4h"},
                                             {down, "layers.#.mlp.dense_4h_to_h"},
                                             {final_norm, "final_layer_norm"},
                                             {head, "embed_out"}});

constexpr RoleNames bert_names = make_names({{token_embedding, "embeddings.word_embeddings"},
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

constexpr RoleNames roberta_names = make_names({{head_dense, "lm_head.dense"},
                                                {head_norm, "lm_head.layer_norm"},
                                                {head, "lm_head.decoder"},
                                                {head_bias, "lm_head"}},
                                               bert_names);

constexpr RoleNames electra_names = make_names({{embedding_projection, "embeddings_project"},
                                                {head_dense, "generator_predictions.dense"},
                                                {head_norm, "generator_predictions.LayerNorm"},
                                                {head, "generator_lm_head"}},
                                               bert_names);
constexpr RoleNames modernbert_names = make_names({{token_embedding, "embeddings.tok_embeddings"},
                                                   {embedding_norm, "embeddings.norm"},
                                                   {attention_norm, "layers.#.attn_norm"},
                                                   {fused, "layers.#.attn.Wqkv"},
                                                   {output, "layers.#.attn.Wo"},
                                                   {mlp_norm, "layers.#.mlp_norm"},
                                                   {up, "layers.#.mlp.Wi"},
                                                   {down, "layers.#.mlp.Wo"},
                                                   {final_norm, "final_norm"},
                                                   {head_dense, "head.dense"},
                                                   {head_norm, "head.norm"},
                                                   {head, "decoder"}});

/// All layers share their weights.
constexpr RoleNames albert_names =
    make_names({{embedding_projection, "encoder.embedding_hidden_mapping_in"},
                {query, "encoder.albert_layer_groups.0.albert_layers.0.attention.query"},
                {key, "encoder.albert_layer_groups.0.albert_layers.0.attention.key"},
                {value, "encoder.albert_layer_groups.0.albert_layers.0.attention.value"},
                {output, "encoder.albert_layer_groups.0.albert_layers.0.attention.dense"},
                {attention_norm, "encoder.albert_layer_groups.0.albert_layers.0.attention.LayerNorm"},
                {up, "encoder.albert_layer_groups.0.albert_layers.0.ffn"},
                {down, "encoder.albert_layer_groups.0.albert_layers.0.ffn_output"},
                {mlp_norm, "encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm"},
                {head_dense, "predictions.dense"},
                {head_norm, "predictions.LayerNorm"},
                {head, "predictions.decoder"},
                {head_bias, "predictions"}},
               bert_names);
constexpr RoleNames xlm_names = make_names({{token_embedding, "embeddings"},
                                            {position_embedding, "position_embeddings"},
                                            {embedding_norm, "layer_norm_emb"},
                                            {query, "attentions.#.q_lin"},
                                            {key, "attentions.#.k_lin"},
                                            {value, "attentions.#.v_lin"},
                                            {output, "attentions.#.out_lin"},
                                            {attention_norm, "layer_norm1.#"},
                                            {up, "ffns.#.lin1"},
                                            {down, "ffns.#.lin2"},
                                            {mlp_norm, "layer_norm2.#"},
                                            {head, "pred_layer.proj"}});

constexpr RoleNames distilbert_names = make_names({{token_embedding, "embeddings.word_embeddings"},
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

constexpr RoleNames gguf_names = make_names({{token_embedding, "token_embd"},
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

constexpr RoleNames gguf_bert_names = make_names({{token_embedding, "token_embd"},
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

constexpr ModelNorm layer_before{NormKind::layer, NormPlace::before, 1e-5};
constexpr ModelNorm layer_after{NormKind::layer, NormPlace::after, 1e-12};
constexpr ModelNorm rms_before{NormKind::rms, NormPlace::before, 1e-6};

constexpr auto rotary = PositionKind::rotary;
constexpr RotaryRule interleaved{.interleaved = true};
constexpr RotaryRule not_supported{.is_supported = false};
constexpr WindowRule if_on{.use = WindowUse::if_on};
constexpr WindowRule in_full_models{.in_full_models = true};

/// Returns a family with some fields changed, so that common values are listed once.
template <class Change>
constexpr Family like(Family family, const char* types, Change change) {
  family.types = types, family.weights = "", family.full_model = family.gguf = "";
  change(family);
  return family;
}

constexpr Family bert{.name = "BERT",
                      .types = " bert ",
                      .weights = " attention.self.query. .q_lin ",
                      .mask_kind = MaskKind::all,
                      .norm = layer_after,
                      .full_model = "BERT",
                      .gguf = " bert ",
                      .prefixes = "bert.",
                      .names = bert_names,
                      .gguf_names = gguf_bert_names,
                      .mlp = {Activation::gelu_erf}};

/// Most modern decoders, including the common settings of their whole models.
constexpr Family llama{.name = "Llama",
                       .types = " llama ",
                       .positions = rotary,
                       .norm = rms_before,
                       .has_head_norms = true,
                       .has_common_names = true,
                       .full_model = "Llama",
                       .gguf = " llama qwen2 qwen3 ",
                       .prefixes = "model.",
                       .names = llama_names,
                       .gguf_names = gguf_names,
                       .mlp = {.activation = Activation::silu, .gated = true},
                       .reads_kv_heads = true};

constexpr Family phi3{.name = "Phi",
                      .types = " phi3 ",
                      .weights = " self_attn.qkv_proj ",
                      .positions = rotary,
                      .norm = rms_before,
                      .has_common_names = true,
                      .window = in_full_models,
                      .full_model = "Phi-3",
                      .prefixes = "model.",
                      .names = phi3_names,
                      .mlp = {.activation = Activation::silu, .gated = true},
                      .reads_kv_heads = true,
                      .reads_rotary_fraction = true};

constexpr Family neox{.name = "GPT-NeoX",
                      .types = " gpt_neox ",
                      .weights = " .attention.query_key_value ",
                      .positions = rotary,
                      .fused = FusedLayout::by_head,
                      .norm = layer_before,
                      .rotary = {.fraction = 0.25},
                      .full_model = "GPT-NeoX",
                      .gguf = " gptneox ",
                      .prefixes = "gpt_neox.",
                      .names = neox_names,
                      .gguf_names = gguf_names,
                      .mlp = {.activation = Activation::gelu_erf, .parallel = true},
                      .reads_rotary_fraction = true,
                      .reads_parallel_mlp = true};

constexpr Family olmo2 = like(llama, " olmo2 ", [](Family& f) {
  f.name = f.full_model = "OLMo 2", f.has_common_names = false;
  f.norm_over = NormScope::all_heads, f.names = exaone4_names;
});

constexpr Family qwen_moe = like(llama, " qwen3_moe ", [](Family& f) {
  f.full_model = "Qwen MoE", f.names = qwen_moe_names, f.has_narrow_experts = true;
  f.window = {.use = WindowUse::if_on, .in_full_models = true};
});

constexpr Family gemma = like(llama, " gemma ", [](Family& f) {
  f.norms_plus_one = true, f.scales_embeddings = true;
  f.full_model = "Gemma", f.mlp = {.activation = Activation::gelu_tanh, .gated = true};
});

constexpr Family gptj{.name = "GPT-J",
                      .types = " gptj ",
                      .weights = " .h.#.attn.q_proj ",
                      .positions = rotary,
                      .norm = layer_before,
                      .rotary = {.interleaved = true, .has_fixed_base = true},
                      .full_model = "GPT-J",
                      .prefixes = "transformer.",
                      .names = gptj_names,
                      .mlp = {.activation = Activation::gelu_tanh, .parallel = true},
                      .reads_rotary_fraction = true};

constexpr Family opt{.name = "OPT",
                     .types = " opt ",
                     .norm = layer_before,
                     .full_model = "OPT",
                     .prefixes = "model.decoder. decoder.",
                     .names = opt_narrow_names,
                     .mlp = {Activation::relu},
                     .first_position = 2};

constexpr Family t5{.name = "T5",
                    .types = " t5 mt5 umt5 longt5 switch_transformers byt5 ",
                    .weights = " SelfAttention.q EncDecAttention.q ",
                    .mask_kind = MaskKind::by_side,
                    .positions = PositionKind::relative,
                    .is_scaled = false,
                    .has_bias_table = true};

constexpr std::array family_table{
    Family{.name = "GPT-2",
           .types = " gpt2 ",
           .weights = " c_attn ",
           .norm = layer_before,
           .grouped_family = "StarCoder",
           .full_model = "GPT-2",
           .gguf = " gpt2 ",
           .prefixes = "transformer.",
           .names = gpt2_names,
           .gguf_names = gguf_names,
           .mlp = {Activation::gelu_tanh},
           .in_by_out = true},
    Family{.name = "GPT-2", .types = " imagegpt decision_transformer "},
    Family{.name = "GPT",
           .types = " openai-gpt ",
           .norm = {NormKind::layer, NormPlace::after, 1e-5},
           .full_model = "GPT",
           .prefixes = "transformer.",
           .names = openai_names,
           .mlp = {Activation::gelu_tanh},
           .in_by_out = true},
    Family{.name = "GPT-Neo",
           .types = " gpt_neo ",
           .weights = " .attn.attention.q_proj ",
           .norm = layer_before,
           .is_scaled = false,
           .window = in_full_models,
           .full_model = "GPT-Neo",
           .prefixes = "transformer.",
           .names = gpt_neo_names,
           .mlp = {Activation::gelu_tanh}},
    gptj,
    like(gptj, " codegen ",
         [](Family& f) {
           f.name = f.full_model = "CodeGen", f.weights = " .h.#.attn.qkv_proj ";
           f.fused = FusedLayout::four_blocks, f.names = codegen_names;
         }),
    Family{.name = "ChatGLM",
           .types = " chatglm ",
           .weights = " .encoder.layers.#.self_attention.query_key_value ",
           .positions = rotary,
           .rotary = not_supported},
    Family{.name = "Bloom",
           .types = " bloom ",
           .weights = " .self_attention.query_key_value ",
           .positions = PositionKind::alibi,
           .fused = FusedLayout::by_head,
           .norm = layer_before,
           .grouped_family = "Falcon",
           .full_model = "Bloom",
           .prefixes = "transformer.",
           .names = bloom_names,
           .mlp = {Activation::gelu_tanh}},
    Family{.name = "Falcon",
           .types = " falcon refinedweb refinedwebmodel RefinedWeb RefinedWebModel ",
           .positions = rotary,
           .fused = FusedLayout::by_head,
           .norm = layer_before,
           .slopes = AlibiSlopes::scaled,
           .full_model = "Falcon",
           .prefixes = "transformer.",
           .names = bloom_names,
           .mlp = {.activation = Activation::gelu_erf, .parallel = true},
           .reads_kv_heads = true,
           .reads_alibi = true,
           .reads_parallel_mlp = true},
    Family{.name = "StarCoder",
           .types = " gpt_bigcode ",
           .fused = FusedLayout::by_head,
           .norm = layer_before,
           .full_model = "StarCoder",
           .prefixes = "transformer.",
           .names = gpt2_names,
           .mlp = {Activation::gelu_tanh},
           .reads_kv_heads = true},
    Family{.name = "MPT",
           .types = " mpt ",
           .weights = " .blocks.#.attn.Wqkv ",
           .positions = PositionKind::alibi,
           .norm = layer_before,
           .slopes = AlibiSlopes::mpt,
           .full_model = "MPT",
           .prefixes = "transformer.",
           .names = mpt_names,
           .mlp = {Activation::gelu_erf},
           .reads_alibi = true},
    Family{.name = "InternLM2",
           .types = " internlm2 ",
           .weights = " .wqkv ",
           .positions = rotary,
           .fused = FusedLayout::by_head},
    opt,
    like(opt, " xglm ", [](Family&) {}),
    like(opt, " biogpt ",
         [](Family& f) {
           f.full_model = "BioGPT", f.prefixes = "biogpt.", f.names = biogpt_names;
           f.mlp = {Activation::gelu_erf}, f.scales_embeddings = true;
           f.norm.epsilon = 1e-12;
         }),
    phi3,
    like(phi3, " phi3small phimoe ", [](Family&) {}),
    like(phi3, " phi ",
         [](Family& f) {
           f.rotary.fraction = 0.5, f.norm = layer_before, f.window = {};
           f.full_model = "Phi", f.names = phi_names;
           f.mlp = {.activation = Activation::gelu_tanh, .parallel = true};
         }),
    llama,
    like(llama, " mistral ministral ",
         [](Family& f) {
           f.full_model = "Llama";
           f.window = {.use = WindowUse::always, .width = 4096, .in_full_models = true};
         }),
    like(llama, " qwen2 qwen3 ",
         [](Family& f) {
           f.full_model = "Llama";
           f.window = {.use = WindowUse::if_on, .n_first_full_layers = 28, .in_full_models = true};
         }),
    qwen_moe,
    like(qwen_moe, " qwen2_moe ", [](Family& f) { f.full_model = "Qwen MoE", f.has_shared_expert = true; }),
    like(llama, " mistral3 dbrx minimax ", [](Family&) {}),
    like(llama, " apertus ",
         [](Family& f) { f.full_model = "Apertus", f.names = apertus_names, f.mlp = {Activation::xielu}; }),
    like(llama, " olmoe ",
         [](Family& f) {
           f.norm_over = NormScope::all_heads;
           f.full_model = "OLMoE", f.names = olmoe_names;
         }),
    like(llama, " granitemoe ",
         [](Family& f) {
           f.full_model = "Granite MoE", f.names = granite_moe_names, f.normalizes_experts = true;
         }),
    like(llama, " mixtral ",
         [](Family& f) {
           f.full_model = "Mixtral", f.names = mixtral_names;
           f.window = in_full_models, f.normalizes_experts = true;
         }),
    like(llama, " granite seed_oss ", [](Family& f) { f.full_model = "Llama"; }),
    like(llama, " arcee ",
         [](Family& f) {
           f.full_model = "Arcee", f.names = make_names({{gate, ""}}, llama_names);
           f.mlp = {Activation::relu_squared};
         }),
    like(llama, " ernie4_5 helium ",
         [](Family& f) {
           f.rotary = interleaved;
           f.full_model = "Llama";
         }),
    like(llama, " ernie4_5_moe ",
         [](Family& f) {
           f.rotary = interleaved, f.full_model = "ERNIE 4.5 MoE", f.names = ernie_moe_names;
           f.has_narrow_experts = f.has_shared_expert = f.normalizes_experts = true;
         }),
    like(llama, " dots1 ",
         [](Family& f) {
           f.full_model = "dots.llm1", f.names = glm4_moe_names, f.routing = Routing::sigmoid;
           f.has_narrow_experts = f.has_shared_expert = true, f.window = in_full_models;
         }),
    like(llama, " glm4_moe ",
         [](Family& f) {
           f.rotary.fraction = 0.5, f.reads_rotary_fraction = true;
           f.full_model = "GLM-4 MoE", f.names = glm4_moe_names, f.routing = Routing::sigmoid;
           f.has_narrow_experts = f.has_shared_expert = true;
         }),
    like(llama, " jamba ", [](Family& f) { f.positions = PositionKind::learned; }),
    like(llama, " olmo ",
         [](Family& f) {
           f.norm = layer_before;
           f.full_model = "OLMo", f.names = olmo_names, f.norms_without_parameters = true;
         }),
    like(llama, " starcoder2 ",
         [](Family& f) {
           f.norm = layer_before, f.window = in_full_models;
           f.full_model = "StarCoder2", f.names = starcoder2_names, f.mlp = {Activation::gelu_tanh};
         }),
    like(llama, " eurobert ", [](Family& f) { f.mask_kind = MaskKind::all, f.full_model = "Llama"; }),
    like(llama, " llama4 llama4_text ", [](Family& f) { f.rotary = not_supported; }),
    gemma,
    like(gemma, " gemma2 ",
         [](Family& f) {
           f.full_model = "Gemma 2", f.names = gemma2_names;
           f.window = {.full = {.n = 2}, .in_full_models = true};
         }),
    like(gemma, " vaultgemma ",
         [](Family& f) {
           f.full_model = "VaultGemma", f.names = vaultgemma_names;
           f.window = {.full = {.n = 2}, .in_full_models = true};
         }),
    like(gemma, " gemma3_text ",
         [](Family& f) {
           f.full_model = "Gemma 3", f.names = gemma2_names;
           f.window = {.full = {.n = 6, .key = "sliding_window_pattern"}, .in_full_models = true};
         }),
    like(gemma, " gemma3 ", [](Family& f) { f.window.full = {.n = 6, .key = "sliding_window_pattern"}; }),
    like(llama, " gpt_oss ", [](Family& f) { f.window.full = {.n = 2}; }),
    like(llama, " stablelm ",
         [](Family& f) {
           f.rotary.fraction = 0.25, f.reads_rotary_fraction = true;
           f.norm = layer_before, f.norm_over = NormScope::own_head;
           f.full_model = "StableLM", f.reads_parallel_mlp = true;
           f.names = make_names({{query_norm, "layers.#.self_attn.q_layernorm.norms.@"},
                                 {key_norm, "layers.#.self_attn.k_layernorm.norms.@"}},
                                llama_names);
         }),
    like(llama, " nemotron ",
         [](Family& f) {
           f.rotary.fraction = 0.5, f.reads_rotary_fraction = true;
           f.norm = layer_before, f.norms_plus_one = true, f.has_head_norms = false;
           f.full_model = "Nemotron", f.names = make_names({{gate, ""}}, llama_names);
           f.mlp = {Activation::relu_squared};
         }),
    like(llama, " glm ",
         [](Family& f) {
           f.rotary = {.interleaved = true, .fraction = 0.5}, f.reads_rotary_fraction = true;
           f.full_model = "GLM", f.names = glm_names;
         }),
    like(llama, " glm4 ",
         [](Family& f) {
           f.rotary = {.interleaved = true, .fraction = 0.5}, f.reads_rotary_fraction = true;
           f.full_model = "GLM-4", f.names = glm4_names;
         }),
    like(llama, " cohere ",
         [](Family& f) {
           f.rotary = interleaved, f.norm = layer_before, f.norm_over = NormScope::own_head;
           f.full_model = "Cohere", f.names = cohere_names, f.mlp.parallel = true;
         }),
    like(llama, " cohere2 ",
         [](Family& f) {
           f.rotary = interleaved, f.norm = layer_before;
           f.full_model = "Cohere", f.names = cohere_names, f.mlp.parallel = true;
           f.window = {.full = {.n = 4, .key = "sliding_window_pattern"}, .in_full_models = true};
           f.rotary_layers = RotaryLayers::windowed;
         }),
    like(llama, " exaone4 ",
         [](Family& f) {
           f.rotary_layers = RotaryLayers::windowed_if_any, f.window = in_full_models;
           f.full_model = "EXAONE 4", f.names = exaone4_names;
         }),
    like(llama, " smollm3 ",
         [](Family& f) {
           f.window = {.use = WindowUse::if_on, .in_full_models = true};
           f.no_rotary = {.n = 4, .key = "no_rope_layer_interval"};
           f.full_model = "Llama";
         }),
    neox,
    like(neox, " gpt_neox_japanese ", [](Family& f) { f.rotary.fraction = 1; }),
    like(neox, " persimmon ", [](Family& f) { f.rotary.fraction = 0.5; }),
    Family{.name = "Baichuan",
           .types = " baichuan ",
           .weights = " .self_attn.W_pack ",
           .positions = PositionKind::rotary_or_alibi,
           .rotary = {.has_fixed_base = true}},
    olmo2,
    like(olmo2, " olmo3 ",
         [](Family& f) {
           f.full_model = "OLMo 2", f.window = in_full_models, f.rotary.scales_only_full_attention = true;
         }),
    t5,
    like(t5, " pix2struct udop ", [](Family& f) { f.has_bias_table = false; }),
    Family{.name = "BART",
           .types = " bart marian blenderbot-small plbart ",
           .mask_kind = MaskKind::by_side,
           .norm = layer_after},
    Family{.name = "Whisper, mBART and Pegasus",
           .types = " whisper mbart pegasus blenderbot m2m_100 nllb-moe speech_to_text speecht5 trocr ",
           .mask_kind = MaskKind::by_side},
    Family{.name = "CLIP",
           .types = " clip clip_text_model clip_vision_model ",
           .weights = " text_model.encoder vision_model.encoder .resblocks. ",
           .mask_kind = MaskKind::by_tower},
    Family{.name = "SigLIP",
           .types = " siglip siglip2 siglip_text_model siglip_vision_model siglip2_vision_model ",
           .mask_kind = MaskKind::all},
    Family{.name = "RoFormer",
           .types = " roformer ",
           .weights = " .roformer. ",
           .mask_kind = MaskKind::all,
           .positions = rotary,
           .norm = layer_after,
           .rotary = {.interleaved = true, .has_fixed_base = true}},
    Family{.name = "ESM",
           .types = " esm ",
           .weights = " .esm. ",
           .mask_kind = MaskKind::all,
           .positions = PositionKind::rotary_by_tensors,
           .rotary = {.has_fixed_base = true}},
    bert,
    like(bert, " roberta xlm-roberta camembert ",
         [](Family& f) {
           f.full_model = "RoBERTa", f.prefixes = "roberta.", f.names = roberta_names;
           f.positions_follow_padding = true, f.head_activation = Activation::gelu_erf;
         }),
    like(bert, " distilbert ",
         [](Family& f) {
           f.full_model = "DistilBERT", f.prefixes = "distilbert.", f.names = distilbert_names;
         }),
    like(bert, " electra ",
         [](Family& f) {
           f.full_model = "ELECTRA", f.prefixes = "electra.", f.names = electra_names;
           f.head_activation = Activation::gelu_erf;
         }),
    like(bert, " ernie ", [](Family& f) { f.full_model = "ERNIE", f.prefixes = "ernie."; }),
    like(bert, " albert ",
         [](Family& f) {
           f.full_model = "ALBERT", f.prefixes = "albert.", f.names = albert_names;
           f.mlp = {Activation::gelu_tanh};
         }),
    like(bert, " xlm flaubert ",
         [](Family& f) { f.full_model = "XLM", f.prefixes = "transformer.", f.names = xlm_names; }),
    like(bert, " layoutlm splinter rembert megatron-bert ", [](Family&) {}),
    Family{.name = "ModernBERT",
           .types = " modernbert ",
           .weights = " .layers.#.attn.Wqkv ",
           .mask_kind = MaskKind::all,
           .positions = rotary,
           .norm = layer_before,
           .window = {.full = {.n = 3, .key = "global_attn_every_n_layers", .from_first = true},
                      .is_two_sided = true,
                      .in_full_models = true},
           .full_model = "ModernBERT",
           .prefixes = "model.",
           .names = modernbert_names,
           .mlp = {.activation = Activation::gelu_erf, .gated = true},
           .head_activation = Activation::gelu_erf},
    Family{.name = "Nomic BERT",
           .types = " nomic_bert ",
           .mask_kind = MaskKind::all,
           .positions = rotary,
           .norm = layer_after},
    Family{.name = "DeBERTa",
           .types = " deberta deberta-v2 ",
           .weights = " .query_proj attention.self.in_proj ",
           .mask_kind = MaskKind::all,
           .positions = PositionKind::relative,
           .fused = FusedLayout::by_head,
           .norm = layer_after},
    Family{.name = "MPNet",
           .types = " mpnet ",
           .weights = " attention.attn.q. ",
           .mask_kind = MaskKind::all,
           .positions = PositionKind::relative,
           .norm = layer_after,
           .has_bias_table = true},
    Family{.name = "ViT",
           .types = " vit deit dinov2 vit_mae vit_msn videomae ijepa yolos dpt vit_hybrid ",
           .weights = " attention.attention.query .attention.q_proj .attn.qkv. ",
           .mask_kind = MaskKind::all},
    Family{.name = "BEiT and Swin",
           .types = " beit data2vec-vision swin swinv2 donut-swin ",
           .mask_kind = MaskKind::all,
           .positions = PositionKind::relative},
    Family{.name = "wav2vec 2.0",
           .types = " wav2vec2 hubert unispeech unispeech-sat sew data2vec-audio ",
           .mask_kind = MaskKind::all,
           .norm = layer_after},
};

constexpr std::array feature_table{
    Feature{"rotary", "rotary positions"},
    Feature{"scaling", "rotary positions scaled for longer texts by a rule that is not known"},
    Feature{"relative", "relative position biases"},
    Feature{"alibi", "ALiBi's biases by distance"},
    Feature{"window", "windows of another kind than a sliding one"},
    Feature{"cap", "a cap on the scores"},
    Feature{"norm", "norms of queries and keys"},
    Feature{"clip", "clipped queries, keys and values"},
    Feature{"sinks", "learned attention sinks"},
    Feature{"extra_keys", "keys and values that are learned beside the tokens'"},
    Feature{
        "source",
        "keys and values of another sequence (a tensor encoder_hidden_states beside the embeddings tells them)"},
    Feature{"bias", "a bias of the scores that is not the same for all sequences"},
    Feature{"mask", "a mask that is not the same for all heads and sequences"},
    Feature{"tensors", "tensors whose use is not known"},
};

}  // namespace rows

std::string strip_separators(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c != '-' && c != '_') result += text::lower(c);
  return result;
}

/// Returns ".h.#.attn" for ".h.12.attn".
std::string replace_numbers(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool is_digit = text::is_digit(c);
    if (is_digit && (result.ends_with('.') || result.ends_with('#'))) {
      if (result.back() == '.') result += '#';
    } else {
      result += c;
    }
  }
  return result;
}

template <class Is>
const Family* first_family(Is is_it) {
  const auto found = std::ranges::find_if(rows::family_table, is_it);
  return found == rows::family_table.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Family> families() {
  return rows::family_table;
}

const Family& family_named(std::string_view name) {
  return *std::ranges::find(rows::family_table, name, &Family::name);
}

const Family& full_model_family_named(std::string_view name) {
  return *std::ranges::find(rows::family_table, name, &Family::full_model);
}

const Family* family_of_type(const std::string& type) {
  for (const Family& family : rows::family_table)
    if (text::has_word(family.types, type)) return &family;
  const Family* longest = nullptr;  // "gpt2lmheadmodel" starts with "gpt2"
  std::size_t length = 0;
  const bool is_architecture =
      type.find("model") != type.npos || type.find("for") != type.npos || type.find("head") != type.npos;
  for (const Family& family : rows::family_table)
    for (const std::string_view word : text::split_words(family.types)) {
      const std::string begin = strip_separators(word);
      if (is_architecture && type.starts_with(begin) && begin.size() > length)
        longest = &family, length = begin.size();
    }
  return longest;
}

const Family* family_by_weight(const std::string& weight) {
  const std::string name = replace_numbers("." + weight);
  return first_family([&](const Family& family) { return text::contains_any_word(name, family.weights); });
}

const Family* family_of_gguf(std::string_view architecture) {
  return first_family([&](const Family& family) { return text::has_word(family.gguf, architecture); });
}

std::span<const Feature> features() {
  return rows::feature_table;
}

const Feature& feature_named(std::string_view name) {
  return *std::ranges::find(rows::feature_table, name, &Feature::name);
}

}  // namespace core::formats::checkpoints
