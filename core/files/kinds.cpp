#include "core/files/kinds.hpp"

#include <algorithm>
#include <array>

#include "core/base/find.hpp"
#include "core/base/text.hpp"

namespace core::formats::checkpoints {
namespace {

using enum Sight;
using enum Positions;
using enum Fused;

constexpr bool scaled = true, unscaled = false;
constexpr bool pre = true, post = false;  // where the norm is

constexpr std::array kind_table{
    Kind{"GPT-2", " gpt2 imagegpt decision_transformer ", " c_attn ", past, before, scaled, side_by_side,
         pre},
    Kind{"GPT", " openai-gpt ", "", past, before, scaled, side_by_side, post},
    Kind{"GPT-Neo", " gpt_neo ", " .attn.attention.q_proj ", past, before, unscaled, side_by_side, pre},
    Kind{"GPT-J", " gptj ", " .h.#.attn.q_proj ", past, rotary, scaled, side_by_side, pre},
    Kind{"CodeGen", " codegen ", " .h.#.attn.qkv_proj ", past, rotary, scaled, in_fours, pre},
    Kind{"GPT-NeoX", " gpt_neox gpt_neox_japanese persimmon ", " .attention.query_key_value ", past, rotary,
         scaled, by_head, pre},
    Kind{"ChatGLM", " chatglm ", " .encoder.layers.#.self_attention.query_key_value ", past, rotary, scaled,
         side_by_side, pre},
    Kind{"Bloom", " bloom ", " .self_attention.query_key_value ", past, alibi, scaled, by_head, pre},
    Kind{"Falcon", " falcon refinedweb refinedwebmodel RefinedWeb RefinedWebModel ", "", past, rotary, scaled,
         by_head, pre},
    Kind{"StarCoder", " gpt_bigcode ", "", past, before, scaled, by_head, pre},
    Kind{"MPT", " mpt ", " .blocks.#.attn.Wqkv ", past, alibi, scaled, side_by_side, pre},
    Kind{"InternLM2", " internlm2 ", " .wqkv ", past, rotary, scaled, by_head, pre},
    Kind{"OPT", " opt xglm biogpt ", "", past, before, scaled, side_by_side, pre},
    Kind{"Phi", " phi phi3 phi3small phimoe ", " self_attn.qkv_proj ", past, rotary, scaled, side_by_side,
         pre},
    Kind{"Llama",
         " llama llama4 llama4_text mistral mistral3 ministral mixtral qwen2 qwen2_moe qwen3 qwen3_moe gemma "
         "gemma2 gemma3 gemma3_text stablelm cohere cohere2 olmo olmoe granite granitemoe starcoder2 smollm3 "
         "glm glm4 exaone4 nemotron helium gpt_oss dbrx seed_oss ",
         "", past, rotary, scaled, side_by_side, pre},
    Kind{"Baichuan", " baichuan ", " .self_attn.W_pack ", past, rotary, scaled, side_by_side, pre},
    Kind{"OLMo 2", " olmo2 olmo3 ", "", past, rotary, scaled, side_by_side, post},
    Kind{"T5", " t5 mt5 umt5 longt5 switch_transformers byt5 pix2struct udop ",
         " SelfAttention.q EncDecAttention.q ", by_side, relative, unscaled, side_by_side, pre},
    Kind{"BART", " bart marian blenderbot-small plbart ", "", by_side, before, scaled, side_by_side, post},
    Kind{"Whisper, mBART and Pegasus",
         " whisper mbart pegasus blenderbot m2m_100 nllb-moe speech_to_text speecht5 trocr ", "", by_side,
         before, scaled, side_by_side, pre},
    Kind{"CLIP", " clip clip_text_model clip_vision_model ",
         " text_model.encoder vision_model.encoder .resblocks. ", by_tower, before, scaled, side_by_side,
         pre},
    Kind{"SigLIP", " siglip siglip2 siglip_text_model siglip_vision_model siglip2_vision_model ", "", all,
         before, scaled, side_by_side, pre},
    Kind{"RoFormer", " roformer ", " .roformer. ", all, rotary, scaled, side_by_side, post},
    Kind{"ESM", " esm ", " .esm. ", all, before, scaled, side_by_side, pre},
    Kind{
        "BERT",
        " bert roberta xlm-roberta camembert distilbert electra albert ernie layoutlm flaubert xlm splinter ",
        " attention.self.query. .q_lin ", all, before, scaled, side_by_side, post},
    Kind{"ModernBERT", " modernbert ", " .layers.#.attn.Wqkv ", all, rotary, scaled, side_by_side, pre},
    Kind{"Nomic BERT", " nomic_bert ", "", all, rotary, scaled, side_by_side, post},
    Kind{"DeBERTa", " deberta deberta-v2 ", " .query_proj attention.self.in_proj ", all, relative, scaled,
         by_head, post},
    Kind{"MPNet", " mpnet ", " attention.attn.q. ", all, relative, scaled, side_by_side, post},
    Kind{"ViT", " vit deit dinov2 vit_mae vit_msn videomae ijepa yolos dpt vit_hybrid ",
         " attention.attention.query .attention.q_proj .attn.qkv. ", all, before, scaled, side_by_side, pre},
    Kind{"BEiT and Swin", " beit data2vec-vision swin swinv2 donut-swin ", "", all, relative, scaled,
         side_by_side, pre},
    Kind{"wav2vec 2.0", " wav2vec2 hubert unispeech unispeech-sat sew data2vec-audio ", "", all, before,
         scaled, side_by_side, post},
};

constexpr std::array absence_table{
    Absence{"rotary", "rotary positions"},
    Absence{"scaling",
            "rotary positions stretched for longer texts by another rule than linear or Llama 3's"},
    Absence{"relative", "relative position biases"},
    Absence{"alibi", "ALiBi's biases by distance"},
    Absence{"window", "windows of another kind than a sliding one"},
    Absence{"cap", "a cap on the scores"},
    Absence{"norm", "norms of queries and keys"},
    Absence{"clip", "clipped queries, keys and values"},
    Absence{"sinks", "learned attention sinks"},
    Absence{"extra_keys", "keys and values that are learned beside the tokens'"},
    Absence{"bias", "a bias of the scores that is not the same for all sequences"},
    Absence{"mask", "a mask that is not the same for all heads and sequences"},
};

bool names(std::string_view words, const std::string& word) {
  return words.find(" " + word + " ") != words.npos;
}

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

std::span<const Kind> kinds() {
  return kind_table;
}

const Kind& kind_named(std::string_view name) {
  return *find_by(kind_table, name, [](const Kind& kind) { return std::string_view(kind.name); });
}

const Kind* kind_of_type(const std::string& type) {
  if (type.empty()) return nullptr;
  for (const Kind& kind : kind_table)
    if (names(kind.types, type)) return &kind;
  const Kind* longest = nullptr;  // "gpt2lmheadmodel" begins as gpt2 does
  std::size_t length = 0;
  const bool is_architecture =
      type.find("model") != type.npos || type.find("for") != type.npos || type.find("head") != type.npos;
  for (const Kind& kind : kind_table)
    for_each_word(kind.types, [&](std::string_view word) {
      const std::string begin = without_joints(word);
      if (is_architecture && type.starts_with(begin) && begin.size() > length)
        longest = &kind, length = begin.size();
    });
  return longest;
}

const Kind* kind_by_sign(const std::string& weight) {
  const std::string name = numberless("." + weight);
  const Kind* found = nullptr;
  for (const Kind& kind : kind_table)
    for_each_word(kind.signs, [&](std::string_view sign) {
      if (!found && name.find(sign) != name.npos) found = &kind;
    });
  return found;
}

std::span<const Absence> absences() {
  return absence_table;
}

const Absence& absence_named(std::string_view name) {
  return *find_by(absence_table, name, [](const Absence& absence) { return std::string_view(absence.name); });
}

}  // namespace core::formats::checkpoints
