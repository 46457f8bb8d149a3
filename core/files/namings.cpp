#include "core/files/namings.hpp"

#include <utility>
#include <vector>

namespace core::formats::checkpoints {
namespace {

/// Encloses short names that would clash elsewhere.
namespace layouts {

constexpr bool causal = true, not_causal = false;

/// Returns a naming of three nn.Linear and one for the output.
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

/// Returns a naming of individually named tensors, or of the parameters of several modules.
Naming parameters(const char* name, const char* about, const char* family, bool is_causal,
                  Orientation orientation, std::array<std::string, 3> weights,
                  std::array<std::string, 3> biases, const std::string& output,
                  const std::string& output_bias, bool has_fused_bias = false) {
  return {name,   about,       family,        is_causal, orientation, std::move(weights), std::move(biases),
          output, output_bias, has_fused_bias};
}

/// Returns a naming of one fused weight and one for the output.
Naming fused_weight(const char* name, const char* about, const char* family, bool is_causal,
                    const std::string& weight, const std::string& bias, const std::string& output,
                    Orientation orientation = Orientation::out_by_in) {
  return parameters(name, about, family, is_causal, orientation, {weight, weight, weight}, {bias, bias, bias},
                    output + ".weight", output + ".bias", true);
}

/// Returns a naming of one fused nn.Linear and one for the output.
Naming fused_linear(const char* name, const char* about, const char* family, bool is_causal,
                    const std::string& all, const std::string& output) {
  return fused_weight(name, about, family, is_causal, all + ".weight", all + ".bias", output);
}

/// Returns the namings of the attention of Keras and Flax, whose kernels are [d_model, heads, d_head]; names
/// have points in safetensors, and slashes in archives of NumPy.
std::vector<Naming> kernels() {
  std::vector<Naming> all;
  for (const auto& [output, about] :
       {std::pair{"attention_output", "Keras: query, key, value, attention_output with kernels of heads"},
        std::pair{"out", "Flax: query, key, value, out with kernels of heads"}})
    for (const auto& [point, end] : {std::pair{".", ""}, std::pair{"/", ""}, std::pair{"/", ":0"}}) {
      const auto name = [&](const std::string& module, const char* last) {
        return module + point + last + end;
      };
      all.push_back(parameters("kernels", about, "", not_causal, Orientation::heads_inside,
                               {name("query", "kernel"), name("key", "kernel"), name("value", "kernel")},
                               {name("query", "bias"), name("key", "bias"), name("value", "bias")},
                               name(output, "kernel"), name(output, "bias")));
    }
  return all;
}

std::vector<Naming> naming_table() {
  using enum Orientation;
  std::vector<Naming> table{
      fused_weight("gpt2", "GPT-2: c_attn holds queries, keys and values side by side", "GPT-2", causal,
                   "c_attn.weight", "c_attn.bias", "c_proj", inferred_from_shape),
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
  for (Naming& each : kernels()) table.push_back(std::move(each));
  return table;
}

}  // namespace layouts
}  // namespace

std::span<const Naming> namings() {
  static const std::vector<Naming> table = layouts::naming_table();
  return table;
}

}  // namespace core::formats::checkpoints
