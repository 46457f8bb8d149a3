#include <array>
#include <variant>

#include "app/cli/arguments.hpp"
#include "core/base/draw_op.hpp"
#include "core/editing/draw.hpp"
#include "core/editing/presets.hpp"
#include "core/files/composed_weights.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/readers.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/out/numpy.hpp"
#include "core/out/tables.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fuzz {
namespace {

using namespace core::formats;
using core::StopToken;

/// Opens the bytes with a reader and reads all tensors.
template <TensorFile (*open)(const std::filesystem::path&, const StopToken&)>
void open_bytes(Bytes bytes) {
  attempt([&] {
    const MemoryFile file(bytes);
    const StopToken token;
    read_all(open(file.path(), token));
  });
}

TensorFile open_table(const std::filesystem::path& path, const StopToken& progress) {
  return readers::open_table(path, progress, DecimalMark::point);
}
TensorFile open_text(const std::filesystem::path& path, const StopToken& progress) {
  return readers::open_text(path, progress, DecimalMark::comma);
}
TensorFile open_any(const std::filesystem::path& path, const StopToken& progress) {
  return open_tensors(path, progress);
}

Seeds npy_seeds() {
  return {npy_bytes(arma::mat{{1, 2.5, -3}, {4, 5, 6}}), npy_strings({"a", "bc"}, {2}), npy_header({2, 0}),
          npy_header({1}, "|b1") + "\1"};
}

Seeds npz_seeds() {
  const auto model = core::editing::find_preset("004-causal")->make();
  return {npz_bytes(model, {"weights"}, nullptr)};
}

Seeds safetensors_seeds() {
  Seeds seeds;
  for (const std::string header :
       {R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})",
        R"({"__metadata__":{"a":"b"},"x":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}})"}) {
    std::string bytes;
    append_little_endian(bytes, std::uint64_t{header.size()});
    seeds.push_back(bytes + header + std::string(8, '\1'));
  }
  return seeds;
}

Seeds pytorch_seeds() {
  return fixtures({"formats/pytorch/nested.pt", "formats/pytorch/nested.legacy.pt",
                   "formats/pytorch/parameters.pt", "formats/pytorch/protocol5.legacy.pt",
                   "formats/pytorch/refused/function.pt", "formats/pytorch/refused/module.legacy.pt"});
}

Seeds pickle_seeds() {
  Seeds seeds = pytorch_seeds();
  std::erase_if(seeds, [](const std::string& bytes) { return bytes.starts_with("PK"); });
  seeds.push_back(
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aK\x01X\x01\x00\x00\x00"
      "b]q\x01(K\x02G?\xf0\x00\x00\x00\x00\x00\x00"
      "eu.");
  return seeds;
}

Seeds table_seeds() {
  return {csv_text({arma::mat{{1, 0.5}, {-1e300, 4}}, {"=a", "b"}, {"0", "1"}}), "a;b\n1,5;2\n",
          "1\t2\n3\t4\n", "\"a \"\"b\"\"\",1e-400\nc,nan\n", "1 2\n3 4"};
}

Seeds printed_seeds() {
  return {"tensor([[1., 2.],\n        [3., inf]], dtype=torch.float64)",
          "array([[1, 2], [3, 4]])",
          "[[0.1, 0.2], [0.3, 0.4]]",
          "weights = Parameter containing:\ntensor([[True, False]])",
          "1,2\n3,4",
          "<tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 2.]], dtype=float32)>",
          "{{1., 2.}, {3., 4.}}",
          "\n(0 ,.,.) = \n1.0e-02 *\n 0.5 1\n[torch.FloatTensor of size 1x1x2]\n",
          "A =\n\n  1.0e+03 *\n\n  Columns 1 through 1\n\n 0.5\n\n  Column 2\n\n 1\n",
          "w(:,:,1) =\n\n 1 2\n\nw(:,:,2) =\n\n 3 4\n",
          "1×2×1 Array{Float64, 3}:\n[:, :, 1] =\n 1.0 2.0\n",
          ", , 1\n\n     [,1]\n[1,]  0.5\n     [,2]\n[1,]  1.5\n"};
}

void run_index(Bytes bytes) {
  attempt([&] {
    const MemoryFile file(bytes);
    const StopToken token;
    readers::open_index(file.path(), token);
  });
}

/// Composes weights of a .safetensors file, which follows a line of JSON: config.json and
/// adapter_config.json.
void run_composed(Bytes bytes) {
  static const support::TemporaryDirectory folder;
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string config(bytes.substr(0, end));
  attempt([&] {
    const StopToken token;
    const MemoryFile memory(bytes.substr(std::min(end + 1, bytes.size())));
    const TensorFile file = readers::open_safetensors(memory.path(), token);
    std::vector<TensorEntry> entries;
    for (const TensorInfo& info : file.tensors())
      entries.push_back({info,
                         [&file, name = info.name](std::span<const std::size_t> leading, const StopToken& t) {
                           return file.read(name, leading, t);
                         },
                         {}});
    support::put_bytes(folder / "adapter_config.json", config);
    const auto moved =
        std::make_shared<const TensorFile>(folder / "model.safetensors", "safetensors", std::move(entries));
    read_all(*checkpoints::compose_weights(moved, parse_json(config, "config.json")));
  });
}

Seeds composed_seeds() {
  const std::string config =
      R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "quantization_config": {"weight_block_size": [1, 2]}})";
  Seeds seeds;
  for (const std::string tensors :
       {R"("a.q_proj.weight":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]},
            "a.q_proj.weight_scale":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})",
        R"("a.q_proj.weight":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},
            "a.q_proj.lora_A.weight":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[4,6]},
            "a.q_proj.lora_B.weight":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[6,7]},
            "a.q_proj.lora_magnitude_vector":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[7,8]})",
        R"("a.weight_g":{"dtype":"F16","shape":[1,1],"data_offsets":[0,2]},
            "a.weight_v":{"dtype":"F16","shape":[1,3],"data_offsets":[2,8]})"}) {
    const std::string header = "{" + tensors + "}";
    std::string bytes = config + "\n";
    append_little_endian(bytes, std::uint64_t{header.size()});
    seeds.push_back(bytes + header + std::string(8, '\x38'));
  }
  return seeds;
}

Seeds index_seeds() {
  return {R"({"metadata": {}, "weight_map": {"a": "model-1.safetensors", "b": "../b.bin"}})"};
}

Seeds any_seeds() {
  Seeds seeds;
  for (const auto& some : {npy_seeds(), npz_seeds(), safetensors_seeds(), table_seeds(), printed_seeds()})
    seeds.insert(seeds.end(), some.begin(), some.end());
  return seeds;
}

void run_draw(Bytes bytes) {
  attempt([&] { core::random::parse_random_ops(bytes, 1000); });
}

Seeds draw_seeds() {
  return {"rand(6,3) Linear(3,2,bias)", "randint(0,10,3,2)", "Dropout(0.5,6,6) normal(0,1,2)"};
}

void run_sentence(Bytes bytes) {
  for (const auto rule : {core::text::TokenRule::words, core::text::TokenRule::characters})
    attempt([&] {
      for (const std::string& token : core::text::tokens(bytes, rule))
        expect(!token.empty(), "a token has characters");
    });
}

Seeds sentence_seeds() {
  return {"Your journey starts with one step.", "I'm 3.5 \"漢字\"\n🙂"};
}

/// Parses clipboard text as a pasted matrix.
void run_pasted(Bytes bytes) {
  for (const bool decimal_comma : {false, true})
    attempt([&] {
      const Tensor tensor = readers::parse_numbers(bytes, "pasted: ", decimal_comma);
      expect(count_of(tensor.shape) == tensor.numbers.size(), "there are as many numbers as the shape says");
    });
}

Seeds pasted_seeds() {
  return {"1\t2\n3\t4", "1,5;2\n3;4", "[[1, 2], [3, 4]]", "tensor([0.5, inf])", "\"a\nb\"\t1\n"};
}

/// Parses arguments, one per line. A wrong command must get a one-line error.
void run_arguments(Bytes bytes) {
  std::vector<std::string> arguments(1);
  for (const char c : bytes) {
    if (c == '\n')
      arguments.emplace_back();
    else if (c != '\0')  // arguments cannot contain NUL
      arguments.back() += c;
  }
  const app::CommandLine parsed = app::parse_arguments(arguments);
  if (const auto* wrong = std::get_if<app::UsageError>(&parsed)) expect_line(wrong->message);
}

Seeds arguments_seeds() {
  return {
      "export\n--preset\n004-causal\n--stages\nweights,scores\n--format\nnpy\n--out\na",
      "check\na.npz\n--against\nb\n--map\nx=weights\n--layout\nbthd\n--layer\n2\n--rtol\n1e-3\n--json",
      "predict\nm\n--text\nthe\n--off\n5.1,3.0\n--top\n3",
      "session\n--given\nweights=a.npy:x\n--layer\n3\n--ignore\nrotary,alibi\n--heads\n2\n--out\na.json",
      "figure\n--preset\n004-causal\n--stage\nweights\n--head\n0\n--range\n-1:2\n--scale\n2\n--out\na.svg",
      "generate\nm\n--text\na\n--temperature\n0.8\n--seed\n18446744073709551615",
      "draw\n--seed\n1\nLinear(3,2)",
      "--version",
      "a.json"};
}

const std::array tensor_table{
    Target{"npy", open_bytes<readers::open_npy>, npy_seeds, {"'fortran_order': True, ", "'<f2'", "'>i8'"}},
    Target{"npz", open_bytes<readers::open_npz>, npz_seeds, {".npy", "'descr'", "PK\x05\x06", "'<U4'"}},
    Target{"safetensors",
           open_bytes<readers::open_safetensors>,
           safetensors_seeds,
           {"\"__metadata__\":", "\"F8_E4M3\"", "\"BOOL\"", "\"I64\"", "\"F16\"", "\"shape\":[]",
            "\"data_offsets\":"}},
    Target{"pytorch", open_bytes<readers::open_pytorch>, pytorch_seeds},
    Target{"pickle",
           open_bytes<readers::open_pytorch>,
           pickle_seeds,
           {"ctorch._utils\n_rebuild_tensor_v2\n", "ccollections\nOrderedDict\n",
            "ctorch._utils\n_rebuild_parameter\n", "ctorch\nBFloat16Storage\n", "ctorch\nSize\n",
            "cargparse\nNamespace\n", "ccollections\ndefaultdict\n", "c_codecs\nencode\n", "storage", "cpu"}},
    Target{"table", open_bytes<open_table>, table_seeds, {"\xEF\xBB\xBF", "\r\n", "-inf", "1e-400", "\"\""}},
    Target{"printed",
           open_bytes<open_text>,
           printed_seeds,
           {"dtype=torch.", "dtype=float32", "array(", "tensor(", "grad_fn=<", "..., ", "np.float64(",
            "device='cuda:0'", "numpy=", "-element Vector{", "[torch.FloatTensor of size ", "Columns ",
            "[,1]", " ="}},
    Target{"any", open_bytes<open_any>, any_seeds},
    Target{"composed",
           run_composed,
           composed_seeds,
           {"\"F8_E4M3\"", "\"shape\":[", ".weight_scale_inv", ".scale_weight", ".lora_A.default.weight",
            ".lora_B.weight", ".base_layer.weight", "parametrizations.weight.original0",
            "\"use_rslora\": true"}},
    Target{"index", run_index, index_seeds, {"\"weight_map\"", ".safetensors", "../"}},
    Target{"draw", run_draw, draw_seeds, {"Embedding(", "uniform(", "Dropout("}},
    Target{"sentence", run_sentence, sentence_seeds},
    Target{"pasted", run_pasted, pasted_seeds},
    Target{
        "arguments",
        run_arguments,
        arguments_seeds,
        {"--off", "--given", "--layer", "--map", "--all-heads", "--strip", "--first-line", "--first-column",
         "--decimal-comma", "--mistake", "--allow-outside", "--colours", "--sequence", "--no-labels"}},
};

}  // namespace

std::span<const Target> tensor_targets() {
  return tensor_table;
}

}  // namespace fuzz
