#include "core/files/families.hpp"

#include <algorithm>
#include <vector>

#include "core/base/find.hpp"
#include "core/base/text.hpp"

namespace core::formats::checkpoints {
namespace {

/// Its short names are no one else's.
namespace rows {

using enum Role;

struct Named {
  Role role;
  const char* name;
};

/// Names of tensors by role, the others as in another family.
template <std::size_t n>
constexpr Names names_of(
    const Named (&named)[n], Names others = [] {
      Names none;
      for (const char*& name : none.names) name = "";
      return none;
    }()) {
  for (const Named& each : named) others.names[static_cast<std::size_t>(each.role)] = each.name;
  return others;
}

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

constexpr Names roberta_names = names_of({{head_dense, "lm_head.dense"},
                                          {head_norm, "lm_head.layer_norm"},
                                          {head, "lm_head.decoder"},
                                          {head_bias, "lm_head"}},
                                         bert_names);

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

constexpr Norm layer_before{NormKind::layer, NormPlace::before, 1e-5};
constexpr Norm layer_after{NormKind::layer, NormPlace::after, 1e-12};
constexpr Norm rms_before{NormKind::rms, NormPlace::before, 1e-6};
constexpr Norm rms_after{NormKind::rms, NormPlace::after, 1e-6};

constexpr auto rotary = Positions::rotary;
constexpr RotaryRule interleaved{.interleaved = true};
constexpr RotaryRule not_supported{.is_supported = false};
constexpr WindowRule if_on{.use = WindowRule::Use::if_on};

/// A family with some fields changed: what most model types of one have in common is said once.
template <class Change>
constexpr Family like(Family family, const char* types, Change change) {
  family.types = types, family.weights = "", family.whole = family.gguf = "";
  change(family);
  return family;
}

constexpr Family bert{.name = "BERT",
                      .types = " bert ",
                      .weights = " attention.self.query. .q_lin ",
                      .visibility = Visibility::all,
                      .norm = layer_after,
                      .whole = "BERT",
                      .gguf = " bert ",
                      .prefixes = "bert.",
                      .names = bert_names,
                      .gguf_names = gguf_bert_names,
                      .mlp = {Activation::gelu_erf}};

/// Decoders as most are today; what most of them have that whole models need is here as well.
constexpr Family llama{.name = "Llama",
                       .types = " llama ",
                       .positions = rotary,
                       .norm = rms_before,
                       .has_head_norms = true,
                       .has_common_names = true,
                       .whole = "Llama",
                       .gguf = " llama qwen2 qwen3 ",
                       .prefixes = "model.",
                       .names = llama_names,
                       .gguf_names = gguf_names,
                       .mlp = {.activation = Activation::silu, .gated = true},
                       .has_groups = true};

constexpr Family phi3{.name = "Phi",
                      .types = " phi3 phi3small phimoe ",
                      .weights = " self_attn.qkv_proj ",
                      .positions = rotary,
                      .has_common_names = true};

constexpr Family neox{.name = "GPT-NeoX",
                      .types = " gpt_neox ",
                      .weights = " .attention.query_key_value ",
                      .positions = rotary,
                      .fused = Fused::by_head,
                      .norm = layer_before,
                      .rotary = {.fraction = 0.25},
                      .whole = "GPT-NeoX",
                      .gguf = " gptneox ",
                      .prefixes = "gpt_neox.",
                      .names = neox_names,
                      .gguf_names = gguf_names,
                      .mlp = {.activation = Activation::gelu_erf, .parallel = true},
                      .partial_rotary = true};

constexpr Family t5{.name = "T5",
                    .types = " t5 mt5 umt5 longt5 switch_transformers byt5 ",
                    .weights = " SelfAttention.q EncDecAttention.q ",
                    .visibility = Visibility::by_side,
                    .positions = Positions::relative,
                    .is_scaled = false,
                    .has_bias_table = true};

constexpr std::array family_table{
    Family{.name = "GPT-2",
           .types = " gpt2 ",
           .weights = " c_attn ",
           .norm = layer_before,
           .if_grouped = "StarCoder",
           .whole = "GPT-2",
           .gguf = " gpt2 ",
           .prefixes = "transformer.",
           .names = gpt2_names,
           .gguf_names = gguf_names,
           .mlp = {Activation::gelu_tanh},
           .in_by_out = true},
    Family{.name = "GPT-2", .types = " imagegpt decision_transformer "},
    Family{.name = "GPT", .types = " openai-gpt ", .norm = layer_after},
    Family{
        .name = "GPT-Neo", .types = " gpt_neo ", .weights = " .attn.attention.q_proj ", .is_scaled = false},
    Family{.name = "GPT-J",
           .types = " gptj ",
           .weights = " .h.#.attn.q_proj ",
           .positions = rotary,
           .rotary = {.interleaved = true, .has_fixed_base = true}},
    Family{.name = "CodeGen",
           .types = " codegen ",
           .weights = " .h.#.attn.qkv_proj ",
           .positions = rotary,
           .fused = Fused::in_fours,
           .rotary = {.interleaved = true, .has_fixed_base = true}},
    Family{.name = "ChatGLM",
           .types = " chatglm ",
           .weights = " .encoder.layers.#.self_attention.query_key_value ",
           .positions = rotary,
           .rotary = not_supported},
    Family{.name = "Bloom",
           .types = " bloom ",
           .weights = " .self_attention.query_key_value ",
           .positions = Positions::alibi,
           .fused = Fused::by_head,
           .if_grouped = "Falcon"},
    Family{.name = "Falcon",
           .types = " falcon refinedweb refinedwebmodel RefinedWeb RefinedWebModel ",
           .positions = rotary,
           .fused = Fused::by_head,
           .slopes = Slopes::scaled},
    Family{.name = "StarCoder", .types = " gpt_bigcode ", .fused = Fused::by_head},
    Family{.name = "MPT",
           .types = " mpt ",
           .weights = " .blocks.#.attn.Wqkv ",
           .positions = Positions::alibi,
           .slopes = Slopes::mpt},
    Family{.name = "InternLM2",
           .types = " internlm2 ",
           .weights = " .wqkv ",
           .positions = rotary,
           .fused = Fused::by_head},
    Family{.name = "OPT", .types = " opt xglm biogpt "},
    phi3,
    like(phi3, " phi ", [](Family& f) { f.rotary.fraction = 0.5; }),
    llama,
    like(llama, " mistral ",
         [](Family& f) {
           f.whole = "Llama";
           f.window = {.use = WindowRule::Use::always, .width = 4096, .in_whole_models = true};
         }),
    like(llama, " qwen2 qwen3 ",
         [](Family& f) {
           f.whole = "Llama";
           f.window = {.use = WindowRule::Use::if_on, .n_full_first = 28, .in_whole_models = true};
         }),
    like(llama, " qwen2_moe qwen3_moe ", [](Family& f) { f.window = if_on; }),
    like(llama, " mistral3 ministral mixtral olmo olmoe granite granitemoe starcoder2 dbrx seed_oss ",
         [](Family&) {}),
    like(llama, " llama4 llama4_text ", [](Family& f) { f.rotary = not_supported; }),
    like(llama, " gemma ", [](Family& f) { f.norms_plus_one = true; }),
    like(llama, " gemma2 ",
         [](Family& f) {
           f.norms_plus_one = true;
           f.window.full = {.n = 2};
         }),
    like(llama, " gemma3 gemma3_text ",
         [](Family& f) {
           f.norms_plus_one = true;
           f.window.full = {.n = 6, .key = "sliding_window_pattern"};
         }),
    like(llama, " gpt_oss ", [](Family& f) { f.window.full = {.n = 2}; }),
    like(llama, " stablelm ", [](Family& f) { f.rotary.fraction = 0.25; }),
    like(llama, " nemotron ", [](Family& f) { f.rotary.fraction = 0.5; }),
    like(llama, " glm glm4 ", [](Family& f) { f.rotary = {.interleaved = true, .fraction = 0.5}; }),
    like(llama, " cohere helium ", [](Family& f) { f.rotary = interleaved; }),
    like(llama, " cohere2 ",
         [](Family& f) {
           f.rotary = interleaved;
           f.window.full = {.n = 4, .key = "sliding_window_pattern"};
           f.rotary_layers = RotaryLayers::windowed;
         }),
    like(llama, " exaone4 ", [](Family& f) { f.rotary_layers = RotaryLayers::windowed_if_any; }),
    like(llama, " smollm3 ",
         [](Family& f) {
           f.window = if_on;
           f.no_rotary = {.n = 4, .key = "no_rope_layer_interval"};
         }),
    neox,
    like(neox, " gpt_neox_japanese ", [](Family& f) { f.rotary.fraction = 1; }),
    like(neox, " persimmon ", [](Family& f) { f.rotary.fraction = 0.5; }),
    Family{.name = "Baichuan",
           .types = " baichuan ",
           .weights = " .self_attn.W_pack ",
           .positions = Positions::rotary_or_alibi,
           .rotary = {.has_fixed_base = true}},
    Family{.name = "OLMo 2", .types = " olmo2 olmo3 ", .positions = rotary, .norm = rms_after},
    t5,
    like(t5, " pix2struct udop ", [](Family& f) { f.has_bias_table = false; }),
    Family{.name = "BART",
           .types = " bart marian blenderbot-small plbart ",
           .visibility = Visibility::by_side,
           .norm = layer_after},
    Family{.name = "Whisper, mBART and Pegasus",
           .types = " whisper mbart pegasus blenderbot m2m_100 nllb-moe speech_to_text speecht5 trocr ",
           .visibility = Visibility::by_side},
    Family{.name = "CLIP",
           .types = " clip clip_text_model clip_vision_model ",
           .weights = " text_model.encoder vision_model.encoder .resblocks. ",
           .visibility = Visibility::by_tower},
    Family{.name = "SigLIP",
           .types = " siglip siglip2 siglip_text_model siglip_vision_model siglip2_vision_model ",
           .visibility = Visibility::all},
    Family{.name = "RoFormer",
           .types = " roformer ",
           .weights = " .roformer. ",
           .visibility = Visibility::all,
           .positions = rotary,
           .norm = layer_after,
           .rotary = {.interleaved = true, .has_fixed_base = true}},
    Family{.name = "ESM",
           .types = " esm ",
           .weights = " .esm. ",
           .visibility = Visibility::all,
           .positions = Positions::rotary_by_tensors,
           .rotary = {.has_fixed_base = true}},
    bert,
    like(bert, " roberta xlm-roberta camembert ",
         [](Family& f) {
           f.whole = "RoBERTa", f.prefixes = "roberta.", f.names = roberta_names;
           f.begins_behind_padding = true, f.head_activation = Activation::gelu_erf;
         }),
    like(bert, " distilbert ",
         [](Family& f) { f.whole = "DistilBERT", f.prefixes = "distilbert.", f.names = distilbert_names; }),
    like(bert, " electra albert ernie layoutlm flaubert xlm splinter ", [](Family&) {}),
    Family{.name = "ModernBERT",
           .types = " modernbert ",
           .weights = " .layers.#.attn.Wqkv ",
           .visibility = Visibility::all,
           .positions = rotary,
           .window = {.full = {.n = 3, .key = "global_attn_every_n_layers", .from_first = true},
                      .is_two_sided = true}},
    Family{.name = "Nomic BERT",
           .types = " nomic_bert ",
           .visibility = Visibility::all,
           .positions = rotary,
           .norm = layer_after},
    Family{.name = "DeBERTa",
           .types = " deberta deberta-v2 ",
           .weights = " .query_proj attention.self.in_proj ",
           .visibility = Visibility::all,
           .positions = Positions::relative,
           .fused = Fused::by_head,
           .norm = layer_after},
    Family{.name = "MPNet",
           .types = " mpnet ",
           .weights = " attention.attn.q. ",
           .visibility = Visibility::all,
           .positions = Positions::relative,
           .norm = layer_after,
           .has_bias_table = true},
    Family{.name = "ViT",
           .types = " vit deit dinov2 vit_mae vit_msn videomae ijepa yolos dpt vit_hybrid ",
           .weights = " attention.attention.query .attention.q_proj .attn.qkv. ",
           .visibility = Visibility::all},
    Family{.name = "BEiT and Swin",
           .types = " beit data2vec-vision swin swinv2 donut-swin ",
           .visibility = Visibility::all,
           .positions = Positions::relative},
    Family{.name = "wav2vec 2.0",
           .types = " wav2vec2 hubert unispeech unispeech-sat sew data2vec-audio ",
           .visibility = Visibility::all,
           .norm = layer_after},
};

constexpr std::array feature_table{
    Feature{"rotary", "rotary positions"},
    Feature{"scaling",
            "rotary positions stretched for longer texts by another rule than linear or Llama 3's"},
    Feature{"relative", "relative position biases"},
    Feature{"alibi", "ALiBi's biases by distance"},
    Feature{"window", "windows of another kind than a sliding one"},
    Feature{"cap", "a cap on the scores"},
    Feature{"norm", "norms of queries and keys"},
    Feature{"clip", "clipped queries, keys and values"},
    Feature{"sinks", "learned attention sinks"},
    Feature{"extra_keys", "keys and values that are learned beside the tokens'"},
    Feature{"bias", "a bias of the scores that is not the same for all sequences"},
    Feature{"mask", "a mask that is not the same for all heads and sequences"},
};

constexpr bool causal = true, not_causal = false;

/// Three nn.Linear and one for the output.
Naming linear(const char* name, const char* about, const char* family, bool is_causal,
              std::array<std::string, 3> names, const std::string& output) {
  Naming naming{name,
                about,
                family,
                is_causal,
                Orientation::out_by_in,
                names,
                names,
                output + ".weight",
                output + ".bias"};
  for (std::string& weight : naming.weights) weight += ".weight";
  for (std::string& bias : naming.biases) bias += ".bias";
  return naming;
}

/// Tensors under names of their own, or several modules' parameters.
Naming parameters(const char* name, const char* about, const char* family, bool is_causal,
                  Orientation orientation, std::array<std::string, 3> weights,
                  std::array<std::string, 3> biases, const std::string& output,
                  const std::string& output_bias, bool has_fused_bias = false) {
  return {name,   about,       family,        is_causal, orientation, std::move(weights), std::move(biases),
          output, output_bias, has_fused_bias};
}

/// One weight for all three and one for the output.
Naming fused_weight(const char* name, const char* about, const char* family, bool is_causal,
                    const std::string& weight, const std::string& bias, const std::string& output,
                    Orientation orientation = Orientation::out_by_in) {
  return parameters(name, about, family, is_causal, orientation, {weight, weight, weight}, {bias, bias, bias},
                    output + ".weight", output + ".bias", true);
}

/// One nn.Linear for all three and one for the output.
Naming fused_linear(const char* name, const char* about, const char* family, bool is_causal,
                    const std::string& all, const std::string& output) {
  return fused_weight(name, about, family, is_causal, all + ".weight", all + ".bias", output);
}

std::vector<Naming> naming_table() {
  using enum Orientation;
  return {
      fused_weight("gpt2", "GPT-2: c_attn holds queries, keys and values side by side", "GPT-2", causal,
                   "c_attn.weight", "c_attn.bias", "c_proj", by_shape),
      linear("llama", "Llama and Mistral: q_proj, k_proj, v_proj, o_proj", "Llama", causal,
             {"q_proj", "k_proj", "v_proj"}, "o_proj"),
      linear("opt", "OPT, BART, CLIP: q_proj, k_proj, v_proj, out_proj", "", causal,
             {"q_proj", "k_proj", "v_proj"}, "out_proj"),
      linear("phi", "Phi: q_proj, k_proj, v_proj, dense", "Phi", causal, {"q_proj", "k_proj", "v_proj"},
             "dense"),
      fused_linear("phi3", "Phi-3: qkv_proj holds queries, keys and values side by side", "Phi", causal,
                   "qkv_proj", "o_proj"),
      fused_linear("codegen", "CodeGen: qkv_proj holds queries, values and keys in four blocks of heads",
                   "CodeGen", causal, "qkv_proj", "out_proj"),
      fused_linear("baichuan", "Baichuan: W_pack holds queries, keys and values side by side", "Baichuan",
                   causal, "W_pack", "o_proj"),
      fused_linear("query_key_value_by_head",
                   "GPT-NeoX, Bloom, Falcon: query_key_value holds queries, keys and values by head", "",
                   causal, "query_key_value", "dense"),
      fused_linear("mpt", "MPT: Wqkv holds queries, keys and values side by side", "MPT", causal, "Wqkv",
                   "out_proj"),
      fused_linear("modern_bert", "ModernBERT: Wqkv holds queries, keys and values side by side",
                   "ModernBERT", not_causal, "Wqkv", "Wo"),
      fused_linear("internlm2", "InternLM2: wqkv holds queries, keys and values by group", "InternLM2",
                   causal, "wqkv", "wo"),
      linear("t5", "T5: SelfAttention.q, k, v, o", "T5", not_causal,
             {"SelfAttention.q", "SelfAttention.k", "SelfAttention.v"}, "SelfAttention.o"),
      linear("t5_cross", "T5: EncDecAttention.q, k, v, o", "T5", not_causal,
             {"EncDecAttention.q", "EncDecAttention.k", "EncDecAttention.v"}, "EncDecAttention.o"),
      linear("bert", "BERT: self.query, self.key, self.value, output.dense", "BERT", not_causal,
             {"self.query", "self.key", "self.value"}, "output.dense"),
      linear("deberta", "DeBERTa: self.query_proj, self.key_proj, self.value_proj, output.dense", "DeBERTa",
             not_causal, {"self.query_proj", "self.key_proj", "self.value_proj"}, "output.dense"),
      parameters("deberta_fused", "DeBERTa: self.in_proj holds queries, keys and values by head", "DeBERTa",
                 not_causal, out_by_in, {"self.in_proj.weight", "self.in_proj.weight", "self.in_proj.weight"},
                 {"self.q_bias", "", "self.v_bias"}, "output.dense.weight", "output.dense.bias"),
      linear("vit", "ViT: attention.query, attention.key, attention.value, output.dense", "ViT", not_causal,
             {"attention.query", "attention.key", "attention.value"}, "output.dense"),
      linear("albert", "ALBERT: attention.query, attention.key, attention.value, attention.dense", "BERT",
             not_causal, {"attention.query", "attention.key", "attention.value"}, "attention.dense"),
      linear("distilbert", "DistilBERT: q_lin, k_lin, v_lin, out_lin", "BERT", not_causal,
             {"q_lin", "k_lin", "v_lin"}, "out_lin"),
      linear("mpnet", "MPNet: attn.q, attn.k, attn.v, attn.o", "MPNet", not_causal,
             {"attn.q", "attn.k", "attn.v"}, "attn.o"),
      fused_weight("multihead_attention", "torch.nn.MultiheadAttention: in_proj_weight", "", not_causal,
                   "in_proj_weight", "in_proj_bias", "out_proj"),
      parameters("multihead_attention_apart", "torch.nn.MultiheadAttention with other widths: q_proj_weight",
                 "", not_causal, out_by_in, {"q_proj_weight", "k_proj_weight", "v_proj_weight"},
                 {"in_proj_bias", "in_proj_bias", "in_proj_bias"}, "out_proj.weight", "out_proj.bias", true),
      fused_linear("timm", "timm: qkv holds queries, keys and values side by side", "ViT", not_causal, "qkv",
                   "proj"),
      parameters("transformer_lens", "TransformerLens: W_Q, W_K, W_V, W_O of each head", "", causal,
                 head_first, {"W_Q", "W_K", "W_V"}, {"b_Q", "b_K", "b_V"}, "W_O", "b_O"),
      parameters("transformer_lens_grouped", "TransformerLens: W_Q of each head, _W_K and _W_V of groups", "",
                 causal, head_first, {"W_Q", "_W_K", "_W_V"}, {"b_Q", "_b_K", "_b_V"}, "W_O", "b_O"),
      linear("notebook", "teaching code with nn.Linear: W_query, W_key, W_value, out_proj", "", causal,
             {"W_query", "W_key", "W_value"}, "out_proj"),
      parameters("notebook_parameters", "teaching code with x @ W: W_query, W_key, W_value", "", causal,
                 in_by_out, {"W_query", "W_key", "W_value"}, {"b_query", "b_key", "b_value"}, "W_out",
                 "b_out"),
      linear("w_q", "teaching code with nn.Linear: W_q, W_k, W_v, W_o", "", causal, {"W_q", "W_k", "W_v"},
             "W_o"),
      parameters("w_q_parameters", "teaching code with x @ W: W_q, W_k, W_v, W_o", "", causal, in_by_out,
                 {"W_q", "W_k", "W_v"}, {"b_q", "b_k", "b_v"}, "W_o", "b_o"),
      linear("query_key_value", "teaching code with nn.Linear: query, key, value, proj", "", causal,
             {"query", "key", "value"}, "proj"),
      linear("wq", "Meta's Llama: wq, wk, wv, wo", "Llama", causal, {"wq", "wk", "wv"}, "wo"),
      linear("to_q", "diffusers: to_q, to_k, to_v, to_out.0", "", not_causal, {"to_q", "to_k", "to_v"},
             "to_out.0"),
      linear("x_transformers", "x-transformers: to_q, to_k, to_v, to_out", "", causal,
             {"to_q", "to_k", "to_v"}, "to_out"),
      fused_linear("to_qkv", "vit-pytorch: to_qkv holds queries, keys and values side by side", "",
                   not_causal, "to_qkv", "to_out"),
      fused_linear("to_qkv_0", "vit-pytorch: to_qkv holds queries, keys and values side by side", "",
                   not_causal, "to_qkv", "to_out.0"),
  };
}

}  // namespace rows

std::string without_joints(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c != '-' && c != '_') result += text::lower(c);
  return result;
}

/// ".h.12.attn" as ".h.#.attn".
std::string numberless(const std::string& name) {
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

template <class Each>
void for_each_word(std::string_view words, Each each) {
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (end > at) each(words.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace

bool has_word(std::string_view words, std::string_view word) {
  return !word.empty() && words.find(" " + std::string(word) + " ") != words.npos;
}

std::span<const Family> families() {
  return rows::family_table;
}

const Family& family_named(std::string_view name) {
  return *std::ranges::find(rows::family_table, name, &Family::name);
}

const Family& whole_family_named(std::string_view name) {
  return *std::ranges::find(rows::family_table, name, &Family::whole);
}

const Family* family_of_type(const std::string& type) {
  for (const Family& family : rows::family_table)
    if (has_word(family.types, type)) return &family;
  const Family* longest = nullptr;  // "gpt2lmheadmodel" begins as gpt2 does
  std::size_t length = 0;
  const bool is_architecture =
      type.find("model") != type.npos || type.find("for") != type.npos || type.find("head") != type.npos;
  for (const Family& family : rows::family_table)
    for_each_word(family.types, [&](std::string_view word) {
      const std::string begin = without_joints(word);
      if (is_architecture && type.starts_with(begin) && begin.size() > length)
        longest = &family, length = begin.size();
    });
  return longest;
}

const Family* family_by_weight(const std::string& weight) {
  const std::string name = numberless("." + weight);
  const Family* found = nullptr;
  for (const Family& family : rows::family_table)
    for_each_word(family.weights, [&](std::string_view part) {
      if (!found && name.find(part) != name.npos) found = &family;
    });
  return found;
}

const Family* family_of_gguf(std::string_view architecture) {
  const auto has_it = [&](const Family& family) { return has_word(family.gguf, architecture); };
  const auto found = std::ranges::find_if(rows::family_table, has_it);
  return found == rows::family_table.end() ? nullptr : &*found;
}

std::string names_of_whole_families() {
  std::vector<std::string> names;
  for (const Family& family : rows::family_table)
    if (*family.whole && std::ranges::find(names, family.whole) == names.end()) names.push_back(family.whole);
  return text::joined(names, ", ");
}

std::span<const Naming> namings() {
  static const std::vector<Naming> table = rows::naming_table();
  return table;
}

std::span<const Feature> features() {
  return rows::feature_table;
}

const Feature& feature_named(std::string_view name) {
  return *std::ranges::find(rows::feature_table, name, &Feature::name);
}

}  // namespace core::formats::checkpoints
