#include <sys/socket.h>
#include <array>
#include <bit>

#include "core/check/whole_check.hpp"
#include "core/files/gguf.hpp"
#include "core/files/layers.hpp"
#include "core/importing/import.hpp"
#include "core/model/architecture.hpp"
#include "core/model/connection.hpp"
#include "core/model/tokenizer_files.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/checkpoint_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fuzz {
namespace {

using namespace core::formats;
using core::StopToken;
using core::tokenizers::Tokenizer;

/// Expects the texts of a tokenizer's tokens to join to the text.
void use_tokenizer(const Tokenizer& tokenizer) {
  for (const Bytes text : {"the  cat's 12, caf\u00e9\u0301 \u6f22\U0001F642\n", " <s>[MASK]</s> ", ""})
    attempt([&] {
      std::string together;
      std::vector<std::size_t> ids;
      for (const auto& token : tokenizer.encode(text)) {
        together += token.text;
        ids.push_back(token.id);
      }
      expect(together == text || ids.empty(), "the texts of the tokens are the text");
      tokenizer.decode(ids);
      for (const std::size_t id : ids) tokenizer.bytes(id);
    });
}

void run_tokenizer(Bytes bytes) {
  attempt([&] {
    use_tokenizer(Tokenizer(core::tokenizers::definition_from_json(parse_json(bytes, "tokenizer.json"))));
  });
}

Seeds tokenizer_seeds() {
  Seeds seeds = fixtures({"tokenizers/bert.json", "tokenizers/gpt2.json", "tokenizers/llama2.json",
                          "tokenizers/llama3.json", "tokenizers/metaspace.json", "tokenizers/nfkc.json"});
  seeds.push_back(
      R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"normalizer":{"type":"Replace",)"
      R"("pattern":{"String":"a"},"content":"b"},"pre_tokenizer":{"type":"Metaspace","replacement":"_"}})");
  return seeds;
}

/// Opens a folder with vocab.json and merges.txt (before and after the first NUL), or vocab.txt without NUL.
void run_merges(Bytes bytes) {
  // Created once, because that takes longer than the rest.
  static const support::TemporaryDirectory one_file, two_files;
  const std::size_t at = bytes.find('\0');
  const auto& folder = at == bytes.npos ? one_file : two_files;
  if (at == bytes.npos) {
    support::put_bytes(folder / "vocab.txt", std::string(bytes));
  } else {
    support::put_bytes(folder / "vocab.json", std::string(bytes.substr(0, at)));
    support::put_bytes(folder / "merges.txt", std::string(bytes.substr(at + 1)));
  }
  attempt([&] { use_tokenizer(core::tokenizers::open_tokenizer(folder.path())); });
}

Seeds merges_seeds() {
  using namespace std::string_literals;
  return {"{\"t\":0,\"h\":1,\"e\":2,\"th\":3,\"the\":4}\0#version: 0.2\nt h\nth e\n"s,
          "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##e\nc\n##a\n##t\n"};
}

void run_gguf(Bytes bytes) {
  const MemoryFile memory(bytes);
  attempt([&] {
    const GgufMetadata metadata = gguf_metadata(memory.path());
    attempt([&] { use_tokenizer(Tokenizer(core::tokenizers::definition_from_gguf(metadata))); });
    attempt([&] {
      const TensorFile file = open_gguf(memory.path(), StopToken());
      attempt([&] { core::transformer::architecture_of(metadata, file); });
      read_all(file);
    });
  });
}

// A hand-written GGUF file, because the fixtures are longer than the inputs tried.
std::string bytes_of(auto number) {
  std::string bytes;
  append_little_endian(bytes, number);
  return bytes;
}
std::string text(const std::string& value) {
  return bytes_of(std::uint64_t{value.size()}) + value;
}
std::string pair(const char* key, std::uint32_t type, const std::string& value) {
  return text(key) + bytes_of(type) + value;
}
std::string list(const char* key, std::uint32_t type, const std::vector<std::string>& items) {
  std::string all;
  for (const std::string& item : items) all += item;
  return pair(key, 9, bytes_of(type) + bytes_of(std::uint64_t{items.size()}) + all);
}

/// Returns a file for each kind of tokenizer, with some block types.
Seeds gguf_seeds() {
  struct Held {
    const char* name;
    std::vector<std::uint64_t> lengths;
    std::uint32_t type;
    std::size_t n_bytes;
  };
  const Held held[]{{"token_embd.weight", {32, 8}, 0, 1024},  // F32
                    {"blk.0.attn_q.weight", {32, 2}, 8, 68},  // Q8_0
                    {"blk.0.attn_k.weight", {32, 2}, 2, 36},  // Q4_0
                    {"blk.0.attn_v.weight", {256}, 14, 210},  // Q6_K
                    {"output_norm.weight", {32}, 1, 64}};     // F16
  std::string tensors, numbers;
  for (const auto& [name, lengths, type, n_bytes] : held) {
    tensors += text(name) + bytes_of(static_cast<std::uint32_t>(lengths.size()));
    for (const std::uint64_t length : lengths) tensors += bytes_of(length);
    tensors += bytes_of(type) + bytes_of(std::uint64_t{numbers.size()});
    numbers.append((n_bytes + 31) / 32 * 32, '\x3c');
  }
  Seeds seeds;
  for (const char* tokenizer : {"llama", "gpt2", "bert"}) {
    std::vector<std::string> pairs{pair("general.architecture", 8, text("llama")),
                                   pair("tokenizer.ggml.model", 8, text(tokenizer)),
                                   pair("tokenizer.ggml.pre", 8, text("gpt-2")),
                                   pair("tokenizer.ggml.unknown_token_id", 4, bytes_of(0u))};
    for (const auto& [key, value] : {std::pair{"llama.block_count", 1u},
                                     {"llama.attention.head_count", 1u},
                                     {"llama.attention.head_count_kv", 1u},
                                     {"llama.embedding_length", 32u},
                                     {"llama.feed_forward_length", 32u},
                                     {"llama.context_length", 32u}})
      pairs.push_back(pair(key, 4, bytes_of(value)));
    std::vector<std::string> tokens, types, scores;
    for (const char* token : {"<unk>", "[CLS]", "\u2581a", "a", "b", "ab", "##b", "\u0120a"})
      tokens.push_back(text(token));
    for (const std::uint32_t type : {2, 3, 1, 1, 1, 1, 1, 1}) types.push_back(bytes_of(type));
    for (const float score : {0, 0, -1, 0, 0, -2, 0, 0})
      scores.push_back(bytes_of(std::bit_cast<std::uint32_t>(score)));
    pairs.push_back(list("tokenizer.ggml.tokens", 8, tokens));
    pairs.push_back(list("tokenizer.ggml.token_type", 5, types));
    pairs.push_back(list("tokenizer.ggml.scores", 6, scores));
    pairs.push_back(list("tokenizer.ggml.merges", 8, {text("a b"), text("\u0120 a")}));
    std::string all = "GGUF" + bytes_of(std::uint32_t{3}) + bytes_of(std::uint64_t{std::size(held)}) +
                      bytes_of(std::uint64_t{pairs.size()});
    for (const std::string& each : pairs) all += each;
    all += tensors;
    all.resize((all.size() + 31) / 32 * 32);
    seeds.push_back(all + numbers);
  }
  return seeds;
}

void run_config(Bytes bytes) {
  attempt([&] { core::transformer::architecture_of(parse_json(bytes, "config.json")); });
  attempt([&] {
    const checkpoints::Config config = checkpoints::parse_config(parse_json(bytes, "config.json"));
    const std::vector<TensorInfo> tensors{{"model.layers.0.self_attn.q_proj.weight", Dtype::f32, {8, 8}},
                                          {"model.layers.0.self_attn.k_proj.weight", Dtype::f32, {4, 8}},
                                          {"model.layers.0.self_attn.v_proj.weight", Dtype::f32, {4, 8}},
                                          {"model.layers.0.self_attn.o_proj.weight", Dtype::f32, {8, 8}},
                                          {"h.1.attn.c_attn.weight", Dtype::f32, {8, 24}},
                                          {"h.1.attn.c_proj.weight", Dtype::f32, {8, 8}}};
    const checkpoints::Checkpoint checkpoint = support::checkpoint_of(tensors);
    for (const checkpoints::Layer& layer : checkpoint.layers)
      attempt([&] { checkpoints::infer_layer_rules(checkpoint, layer, config); });
  });
}

Seeds config_seeds() {
  Seeds seeds = fixtures({"transformer/gpt2/config.json", "transformer/llama/config.json",
                          "transformer/qwen3/config.json", "transformer/gpt_neox/config.json",
                          "transformer/bert/config.json"});
  seeds.push_back(
      R"({"model_type":"llama","hidden_size":8,"num_attention_heads":2,"rope_scaling":{"rope_type":"llama3",)"
      R"("factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":64}})");
  return seeds;
}

/// Returns a file with a tensor of made-up numbers for each line "NAME 2x3x4".
TensorFile described(Bytes text) {
  std::vector<TensorEntry> entries;
  while (!text.empty() && entries.size() < 64) {
    const Bytes line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    TensorInfo info{std::string(line.substr(0, line.rfind(' '))), Dtype::f32, {}};
    const auto has_name = [&](const TensorEntry& entry) { return entry.info.name == info.name; };
    if (std::ranges::any_of(entries, has_name)) continue;  // duplicate names are refused at once
    const Bytes lengths = line.substr(std::min(info.name.size(), line.size()));
    for (const char c : lengths) {
      if (c == 't') info.dtype = Dtype::text;
      if (c < '0' || c > '9') {
        if (info.shape.size() < max_dimensions) info.shape.push_back(0);
      } else if (!info.shape.empty() && info.shape.back() < 100) {
        info.shape.back() = info.shape.back() * 10 + static_cast<std::size_t>(c - '0');
      }
    }
    entries.push_back({info, [info](std::span<const std::size_t> leading, const StopToken&) {
                         const auto count = count_of(info.shape);
                         if (!count || *count > 1 << 16) throw core::Error("too many numbers");
                         Tensor tensor{info, {}, {}, {}, {}, 0};
                         if (info.dtype == Dtype::text) tensor.texts.assign(*count, "a");
                         for (std::size_t k = 0; info.dtype != Dtype::text && k < *count; ++k)
                           tensor.numbers.push_back(0.25 * static_cast<double>(k % 5));
                         return slice_tensor(tensor, leading);
                       }});
  }
  return {"/nowhere/a.safetensors", "safetensors", std::move(entries)};
}

/// Reads names and shapes as layers of a checkpoint, as stages, and as a dump of a whole model.
void run_names(Bytes bytes) {
  attempt([&] {
    const TensorFile file = described(bytes);
    const StopToken token;
    attempt([&] {
      const checkpoints::Checkpoint checkpoint = support::read_checkpoint(file);
      core::importing::Choices choices;
      attempt([&] { core::importing::import_tensors(checkpoint, choices, token); });
      attempt([&] { core::importing::layer_names(checkpoint, choices, token); });
      choices.n_heads = 2;
      choices.layer = "1";
      attempt([&] { core::importing::import_tensors(checkpoint, choices, token); });
    });
    const core::transformer::Sizes sizes{3, 8, 2, 1, 4, 16, 32, 64};
    attempt([&] {
      const core::check::Dump dump = core::check::find_dump(file, sizes, {});
      for (const auto& held : dump.hidden) {
        expect(held.first <= sizes.n_layers, "a layer is one of the model's");
        attempt([&] { core::check::read_matrix(file, held.second); });
      }
    });
  });
}

Seeds names_seeds() {
  return {
      "h.0.attn.c_attn.weight 8x24\nh.0.attn.c_attn.bias 24\nh.0.attn.c_proj.weight 8x8\nwte.weight 5x8",
      "layers.1.self_attn.q_proj.weight 8x8\nlayers.1.self_attn.k_proj.weight 4x8\n"
      "layers.1.self_attn.v_proj.weight 4x8\nembeddings 3x8",
      "hidden_states.0 1x3x8\nhidden_states.1 3x8\nattentions.0 1x2x3x3\nlogits 3x32\nblocks.2.hook_q 3x2x4",
      "q 1x3x2x4\nk 1x3x2x4\nv 1x3x2x4\nattn_mask 3x3\nscale \ntokens t3", "weights 4x2x3x3\nscores 2x3x3"};
}

/// Receives frames, as from a process that serves a model, until the connection ends.
void run_frames(Bytes bytes) {
  int ends[2];
  expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "two sockets");
  const core::system::Socket there(core::system::Descriptor{ends[0]}),
      here(core::system::Descriptor{ends[1]});
  there.send(bytes.substr(0, 1 << 15));  // buffered by the system until it is read
  there.shut_down();
  attempt([&] {
    while (true) {
      const auto frame = core::attached::ProtocolFrame::receive(here, std::chrono::milliseconds(1));
      for (const char* name : {"ids", "maps"})
        attempt([&] {
          const auto shape = frame.shape(name);
          attempt([&] { frame.numbers<std::int64_t>(name, shape); });
          if (shape.size() == 3) attempt([&] { frame.matrices(name, shape[0], shape[1], shape[2]); });
        });
    }
  });
}

Seeds frames_seeds() {
  using core::attached::array_of;
  using core::attached::frame_bytes;
  core::attached::Array maps = array_of("maps", arma::fmat(4, 3, arma::fill::ones));
  maps.shape = {2, 2, 3};
  return {frame_bytes(R"({"id":1,"pieces":["a","b"],"ends":[1,2]})",
                      {array_of("ids", std::vector<std::size_t>{3, 4})}),
          frame_bytes(R"({"id":2,"mask":"causal"})", {maps}) + frame_bytes(R"({"id":3,"progress":[1,2]})"),
          frame_bytes(R"({"id":null,"error":{"code":"malformed","message":"no"}})")};
}

const std::array model_table{
    Target{"gguf",
           run_gguf,
           gguf_seeds,
           {"general.alignment", "tokenizer.ggml.pre", "tokenizer.ggml.unknown_token_id",
            "llama.rope.scaling.type"}},
    Target{
        "tokenizer",
        run_tokenizer,
        tokenizer_seeds,
        {"\"Sequence\"", "\"normalizers\"", "\"pretokenizers\"", "\"Split\"", "\"Regex\"", "\"Punctuation\"",
         "\"StripAccents\"", "\"Prepend\"", "\"byte_fallback\"", "\"TemplateProcessing\""}},
    Target{"merges", run_merges, merges_seeds},
    Target{"config",
           run_config,
           config_seeds,
           {"\"rope_scaling\"", "\"yarn\"", "\"partial_rotary_factor\"", "\"sliding_window\"",
            "\"layer_types\"", "\"alibi\"", "\"text_config\""}},
    Target{"frames", run_frames, frames_seeds, {"ATNS", "data_offsets", "\"F32\"", "\"I64\""}},
    Target{"names", run_names, names_seeds, {"attentions", "hidden_states", "resid_post", "query_key_value"}},
};

}  // namespace

std::span<const Target> model_targets() {
  return model_table;
}

}  // namespace fuzz
