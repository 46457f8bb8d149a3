#include <array>

#include "core/editing/presets.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/readers.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/out/numpy.hpp"
#include "core/out/tables.hpp"
#include "tests/fuzz/expecting.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fuzz {
namespace {

using namespace core::formats;
using core::Token;
using Bytes = std::string_view;
using Seeds = std::vector<std::string>;

std::string matrix_as_npy() {
  return npy_bytes(arma::mat{{1, 2.5, -3}, {4, 5, 6}});
}

Seeds npy_seeds() {
  return {matrix_as_npy(), npy_words({"a", "bc"}, {2}), npy_header({2, 0}), npy_header({1}, "|b1") + "\1"};
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
  Seeds seeds;
  for (const char* name : {"nested.pt", "nested.legacy.pt", "parameters.pt", "protocol5.legacy.pt",
                           "refused/function.pt", "refused/module.legacy.pt"})
    seeds.push_back(support::bytes_of(std::string(FIXTURES "/formats/pytorch/") + name));
  return seeds;
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
  return {"tensor([[1., 2.],\n        [3., inf]], dtype=torch.float64)", "array([[1, 2], [3, 4]])",
          "[[0.1, 0.2], [0.3, 0.4]]", "weights = Parameter containing:\ntensor([[True, False]])", "1,2\n3,4"};
}

void run_index(Bytes bytes) {
  attempt([&] {
    const MemoryFile file(bytes);
    const Token token;
    readers::open_index(file.path(), token);
  });
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
            "c_codecs\nencode\n", "storage", "cpu"}},
    Target{"table",
           open_bytes<readers::open_table>,
           table_seeds,
           {"\xEF\xBB\xBF", "\r\n", "-inf", "1e-400", "\"\""}},
    Target{"printed",
           open_bytes<readers::open_text>,
           printed_seeds,
           {"dtype=torch.", "dtype=float32", "array(", "tensor(", "grad_fn=<", "..., ", "np.float64(",
            "device='cuda:0'"}},
    Target{"any", open_bytes<open_tensors>, any_seeds},
    Target{"index", run_index, index_seeds, {"\"weight_map\"", ".safetensors", "../"}},
};

}  // namespace

std::span<const Target> tensor_targets() {
  return tensor_table;
}

}  // namespace fuzz
