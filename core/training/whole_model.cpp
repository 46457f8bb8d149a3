#include "core/training/whole_model.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/read_layer.hpp"
#include "core/model/tokenizer_files.hpp"

namespace core::training {
namespace {

using attention::Linear;
using formats::json_quoted;
using formats::checkpoints::Family;
using formats::checkpoints::TensorRole;

constexpr std::size_t n_context = 256;  // of positions that need no learned numbers
constexpr std::size_t d_missing_mlp = 4;
constexpr std::uint64_t max_cached_bytes = std::uint64_t{1} << 30;

// The family of transformers.

/// A family of transformers and its keys of config.json, in which signs stand for sizes.
struct ExportFamily {
  const char* type;
  const char* architecture;
  /// $v: vocabulary, $n: context, $d: width, $l: layers, $h: heads, $k: KV heads, $m: hidden units.
  const char* config;
};
constexpr ExportFamily gpt2{
    "gpt2", "GPT2LMHeadModel",
    R"("n_positions": $n, "n_embd": $d, "n_layer": $l, "n_head": $h, "n_inner": $m, "activation_function": "gelu",
  "layer_norm_epsilon": 1e-05)"};
constexpr ExportFamily bigcode{
    "gpt_bigcode", "GPTBigCodeForCausalLM",
    R"("n_positions": $n, "n_embd": $d, "n_layer": $l, "n_head": $h, "n_inner": $m, "multi_query": true,
  "activation_function": "gelu", "layer_norm_epsilon": 1e-05)"};
constexpr ExportFamily neox{
    "gpt_neox", "GPTNeoXForCausalLM",
    R"("max_position_embeddings": $n, "hidden_size": $d, "num_hidden_layers": $l, "num_attention_heads": $h,
  "intermediate_size": $m, "hidden_act": "gelu", "layer_norm_eps": 1e-05, "rotary_pct": 1.0, "rotary_emb_base": 10000,
  "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
  "use_parallel_residual": false)"};
constexpr ExportFamily starcoder2{
    "starcoder2", "Starcoder2ForCausalLM",
    R"("max_position_embeddings": $n, "hidden_size": $d, "num_hidden_layers": $l, "num_attention_heads": $h,
  "num_key_value_heads": $k, "intermediate_size": $m, "hidden_act": "gelu", "norm_epsilon": 1e-05, "rope_theta": 10000.0,
  "use_bias": true, "sliding_window": null)"};
constexpr const char* llama_config =
    R"("max_position_embeddings": $n, "hidden_size": $d, "num_hidden_layers": $l, "num_attention_heads": $h,
  "num_key_value_heads": $k, "intermediate_size": $m, "hidden_act": "gelu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
  "attention_bias": true, "mlp_bias": true)";
constexpr ExportFamily llama{"llama", "LlamaForCausalLM", llama_config},
    arcee{"arcee", "ArceeForCausalLM", llama_config};
constexpr ExportFamily mpt{
    "mpt", "MptForCausalLM",
    R"("max_seq_len": $n, "d_model": $d, "n_layers": $l, "n_heads": $h, "expansion_ratio": 4, "no_bias": true,
  "attn_config": {"alibi": true, "alibi_bias_max": 8})"};

/// Returns the nearest family.
ExportFamily family_of(const TrainingSetup& s) {
  const bool is_grouped = s.kv_heads() != s.n_heads;
  if (s.positions == PositionChoice::alibi) return mpt;
  if (s.positions != PositionChoice::rotary) return is_grouped && s.kv_heads() == 1 ? bigcode : gpt2;
  if (s.norm != NormChoice::rms) return is_grouped ? starcoder2 : neox;
  return s.d_mlp == 0 ? llama : arcee;  // whose MLPs have a gate, and none
}

/// Returns the hidden units of the exported MLP; those of MPT have a fixed number, and
/// further ones are zeros.
std::size_t exported_mlp(const TrainingSetup& s) {
  if (s.positions == PositionChoice::alibi) return std::max(s.d_mlp, 4 * s.d_model);
  return s.d_mlp == 0 ? d_missing_mlp : s.d_mlp;
}

std::size_t exported_context(const Network& network) {
  return network.position_embedding ? network.n_tokens() : std::max(n_context, network.n_tokens());
}

std::string config_json(const Network& network, const ExportFamily& family) {
  const TrainingSetup& s = network.setup;
  std::string text = fmt::format(
      "{{\"model_type\": \"{}\", \"architectures\": [\"{}\"], \"vocab_size\": $v,\n  {},\n  \"tie_word_embeddings\": false, "
      "\"bos_token_id\": null, \"eos_token_id\": null, \"torch_dtype\": \"float32\"}}\n",
      family.type, family.architecture, family.config);
  const std::pair<const char*, std::size_t> sizes[]{{"$v", network.n_vocabulary()},
                                                    {"$n", exported_context(network)},
                                                    {"$d", s.d_model},
                                                    {"$l", s.n_layers},
                                                    {"$h", s.n_heads},
                                                    {"$k", s.kv_heads()},
                                                    {"$m", exported_mlp(s)}};
  for (const auto& [sign, size] : sizes)
    for (std::size_t at = text.find(sign); at != text.npos; at = text.find(sign))
      text.replace(at, 2, std::to_string(size));
  return text;
}

// Its tensors.

class TensorList {
 public:
  explicit TensorList(const Family& family) : family_(family) {}

  /// Adds a tensor, of one dimension if it is a bias or the factors of a norm.
  void add(TensorRole role, std::size_t layer, const char* ending, const mat& numbers,
           bool is_vector = false) {
    std::string name = std::string(text::split_words(family_.names.of(role)).front()) + "." + ending;
    if (const std::size_t at = name.find('#'); at != name.npos) name.replace(at, 1, std::to_string(layer));
    if (role < TensorRole::head_dense) name.insert(0, text::split_words(family_.prefixes).front());
    formats::Tensor tensor;
    tensor.name = name;
    tensor.dtype = formats::Dtype::f32;
    tensor.shape = is_vector ? formats::TensorShape{numbers.n_cols}
                             : formats::TensorShape{numbers.n_rows, numbers.n_cols};
    const mat by_row = numbers.t();
    tensor.numbers.assign(by_row.begin(), by_row.end());
    for (double& number : tensor.numbers) number = static_cast<float>(number);
    all.push_back(std::move(tensor));
  }
  void add(TensorRole role, std::size_t layer, const NetworkNorm& norm) {
    if (norm.weight) add(role, layer, "weight", *norm.weight, true);
    if (norm.bias) add(role, layer, "bias", *norm.bias, true);
  }
  void add(TensorRole role, std::size_t layer, const Linear& linear) {
    add(role, layer, "weight", family_.in_by_out ? *linear.weight : mat(linear.weight->t()));
    if (linear.bias) add(role, layer, "bias", *linear.bias, true);
  }
  bool has(TensorRole role) const { return *family_.names.of(role); }
  const Family& family() const { return family_; }

  std::vector<formats::Tensor> all;

 private:
  const Family& family_;
};

/// Returns queries, keys and values as one weight, in the family's order of columns.
Linear fused(const attention::Projections& p, const TrainingSetup& s, const Family& family) {
  const Linear* parts[]{&p.query, &p.key, &p.value};
  const std::size_t n_columns = (s.n_heads + 2 * s.kv_heads()) * s.d_head();
  mat weight(s.d_model, n_columns), bias(1, n_columns);
  for (std::size_t part = 0; part < 3; ++part) {
    const arma::uvec columns =
        formats::checkpoints::fused_columns(part, {s.d_head(), s.kv_heads()}, s.n_heads, family.fused);
    weight.cols(columns) = *parts[part]->weight;
    if (parts[part]->bias) bias.cols(columns) = **parts[part]->bias;
  }
  return {weight, p.query.bias ? std::optional<SharedMatrix>(bias) : std::nullopt};
}

Linear zeros(std::size_t d_in, std::size_t d_out, bool has_bias) {
  Linear linear{mat(d_in, d_out, arma::fill::zeros), std::nullopt};
  if (has_bias) linear.bias = mat(1, d_out, arma::fill::zeros);
  return linear;
}

/// Returns a matrix in the corner of zeros.
SharedMatrix padded(mat numbers, std::size_t n_rows, std::size_t n_columns) {
  numbers.resize(n_rows, n_columns);
  return numbers;
}

void add_layer(TensorList& tensors, const Network& network, std::size_t l) {
  const NetworkLayer& layer = network.layers[l];
  const TrainingSetup& s = network.setup;
  const attention::Projections& p = *layer.attention.projections;
  tensors.add(TensorRole::attention_norm, l, layer.attention_norm);
  if (tensors.has(TensorRole::fused)) {
    tensors.add(TensorRole::fused, l, fused(p, s, tensors.family()));
  } else {
    tensors.add(TensorRole::query, l, p.query);
    tensors.add(TensorRole::key, l, p.key);
    tensors.add(TensorRole::value, l, p.value);
  }
  Linear output = *p.output;
  for (const std::size_t head : layer.attention.heads_off)
    output.weight.edit().rows(head * s.d_head(), (head + 1) * s.d_head() - 1).zeros();
  tensors.add(TensorRole::output, l, output);
  const std::size_t d_mlp = exported_mlp(s);
  tensors.add(TensorRole::mlp_norm, l, layer.up ? layer.mlp_norm : layer.attention_norm);
  Linear up = zeros(s.d_model, d_mlp, s.has_biases()), down = zeros(d_mlp, s.d_model, s.has_biases());
  if (tensors.has(TensorRole::gate)) tensors.add(TensorRole::gate, l, up);
  if (layer.up) {
    up.weight = padded(layer.up->weight, s.d_model, d_mlp);
    down.weight = padded(layer.down->weight, d_mlp, s.d_model);
    if (layer.up->bias) up.bias = layer.up->bias, down.bias = layer.down->bias;
  }
  tensors.add(TensorRole::up, l, up);
  tensors.add(TensorRole::down, l, down);
}

std::string tokenizer_json(const TaskData& data) {
  std::string vocabulary;
  for (std::size_t id = 0; id < data.letters().size(); ++id)
    vocabulary += fmt::format("{}{}: {}", id > 0 ? ", " : "", json_quoted(data.letters()[id]), id);
  return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
  "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
    "vocab": {)" +
         vocabulary + "}, \"merges\": []}}\n";
}

ModelFiles nearest_files(const Network& network, const TaskData& data) {
  const ExportFamily family = family_of(network.setup);
  TensorList tensors(*formats::checkpoints::family_of_type(family.type));
  tensors.add(TensorRole::token_embedding, 0, "weight", network.token_embedding);
  if (tensors.has(TensorRole::position_embedding))
    tensors.add(TensorRole::position_embedding, 0, "weight",
                network.position_embedding
                    ? **network.position_embedding
                    : mat(exported_context(network), network.setup.d_model, arma::fill::zeros));
  for (std::size_t l = 0; l < network.layers.size(); ++l) add_layer(tensors, network, l);
  tensors.add(TensorRole::final_norm, 0, network.final_norm);
  tensors.add(TensorRole::head, 0, "weight", network.unembedding->t());
  return {config_json(network, family), tokenizer_json(data),
          "{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"clean_up_tokenization_spaces\": false}\n",
          std::move(tensors.all)};
}

/// Returns whether the attention of a layer has other options than the setup, by an edit.
bool is_edited(Network network) {
  Network plain(network.setup, network.n_vocabulary(), network.n_tokens());
  const auto expected = plain.parameters(), got = network.parameters();
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (got.size() != expected.size() || got[k].name != expected[k].name) return true;
    *expected[k].numbers = *got[k].numbers;
  }
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    attention::Model& of_setup = plain.layers[l].attention;
    of_setup.sequences = network.layers[l].attention.sequences;
    of_setup.heads_off = network.layers[l].attention.heads_off;
    if (of_setup != network.layers[l].attention) return true;
  }
  return false;
}

}  // namespace

std::string no_export_reason(const TrainingSetup& s) {
  const bool is_rotary = s.positions == PositionChoice::rotary, is_grouped = s.kv_heads() != s.n_heads;
  const std::string of_positions = std::string(" with --positions ") + word_of(position_words, s.positions);
  const std::string option =
      !s.mistake.empty()                        ? "--mistake " + s.mistake
      : !s.causal                               ? "--mask off"
      : s.norm == NormChoice::none              ? "--norm none"
      : s.norm == NormChoice::rms && !is_rotary ? "--norm rms" + of_positions
      : is_grouped && !is_rotary && (s.kv_heads() > 1 || s.positions == PositionChoice::alibi)
          ? fmt::format("--kv-heads {}{}", s.kv_heads(), of_positions)
      : s.positions == PositionChoice::alibi && s.d_mlp > 4 * s.d_model
          ? fmt::format("--mlp {}{} and --width {}", s.d_mlp, of_positions, s.d_model)
          : "";
  return option.empty() ? "" : "no model of transformers has " + option;
}

ModelFiles model_files(const Network& network, const TaskData& data) {
  if (const std::string reason = no_export_reason(network.setup); !reason.empty()) throw Error(reason);
  if (is_edited(network))
    throw Error("no model of transformers has the options of attention that were edited");
  return nearest_files(network, data);
}

std::string safetensors_bytes(const std::vector<formats::Tensor>& tensors) {
  std::string header = R"({"__metadata__": {"format": "pt"})", data;
  for (const formats::Tensor& tensor : tensors) {
    const std::size_t begin = data.size();
    for (const double number : tensor.numbers)
      formats::append_little_endian(data, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    header += fmt::format(", {}: {{\"dtype\": \"F32\", \"shape\": {}, \"data_offsets\": [{}, {}]}}",
                          json_quoted(tensor.name), formats::shape_text(tensor.shape), begin, data.size());
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // numbers are aligned
  std::string bytes;
  formats::append_little_endian(bytes, std::uint64_t{header.size()});
  return bytes + header + data;
}

std::shared_ptr<const transformer::Transformer> whole_model(const Network& network, const TaskData& data,
                                                            const std::string& name) {
  const TrainingSetup& s = network.setup;
  if (!s.mistake.empty()) throw Error("--mistake " + s.mistake + ": a whole model is computed without bugs");
  Network intended = network;
  for (NetworkLayer& layer : intended.layers) layer.attention.heads_off.clear();
  ModelFiles files = nearest_files(intended, data);
  transformer::Architecture architecture =
      transformer::architecture_of(formats::parse_json(files.config, "config.json"));
  architecture.has_norms = s.norm != NormChoice::none;
  architecture.causal = s.causal;
  architecture.sizes.kv_heads = s.kv_heads();
  architecture.sizes.d_hidden = exported_mlp(s);
  if (s.norm == NormChoice::rms)
    architecture.norm.kind = formats::checkpoints::NormKind::rms, architecture.norm.epsilon = 1e-6;
  std::vector<formats::TensorEntry> entries;
  for (formats::Tensor& tensor : files.tensors) entries.push_back(formats::make_entry(std::move(tensor)));
  auto weights = std::make_shared<const transformer::Weights>(
      formats::TensorFile(name, "safetensors", std::move(entries)), architecture, max_cached_bytes);
  return std::make_shared<const transformer::Transformer>(
      name, std::move(architecture), std::move(weights),
      std::make_shared<const tokenizers::Tokenizer>(
          tokenizers::definition_from_json(formats::parse_json(files.tokenizer, "tokenizer.json"))));
}

}  // namespace core::training
