#include "tests/fuzz/targets.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "core/attention/attend.hpp"
#include "core/editing/presets.hpp"
#include "core/editing/sentence.hpp"
#include "core/error.hpp"
#include "core/formats/files/json.hpp"
#include "core/formats/files/little_endian.hpp"
#include "core/formats/readers/npy.hpp"
#include "core/formats/readers/npz.hpp"
#include "core/formats/readers/pickle.hpp"
#include "core/formats/readers/printed.hpp"
#include "core/formats/readers/pytorch.hpp"
#include "core/formats/readers/safetensors.hpp"
#include "core/formats/readers/shards.hpp"
#include "core/formats/readers/table.hpp"
#include "core/formats/readers/tensor_formats.hpp"
#include "core/formats/sessions/session.hpp"
#include "core/formats/writers/csv.hpp"
#include "core/formats/writers/npy.hpp"
#include "core/formats/writers/npz_writer.hpp"
#include "core/random/draw_op.hpp"
#include "core/text/code_points.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fuzz {
namespace {

using namespace core;
using namespace core::formats;
using Bytes = std::string_view;
using Seeds = std::vector<std::string>;

/// Ends the program, so that a fuzzer keeps what led there.
void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

/// An error is one line that can be shown, of a length that a person can read.
void expect_line(const std::string& line) {
  expect(!line.empty() && line.find('\n') == line.npos, "an error is one line");
}

/// Does what may throw core::Error and nothing else.
template <class Action>
void attempt(Action action) {
  try {
    action();
  } catch (const Error& error) {
    expect_line(text::printable(error.what()));
  }
}

/// A file without a name that holds the bytes.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    expect(write_all(descriptor_.number(), bytes) == 0, "there is memory for the file");
  }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_.number()); }

 private:
  Descriptor descriptor_;
};

/// Reads all of a file whose tensors claim no more numbers than a small one has.
void read_all(const TensorFile& file) {
  constexpr std::uint64_t most = 1 << 16;
  for (const TensorInfo& info : file.tensors()) {
    expect(text::printable(info.name) == info.name, "a name does nothing to a terminal");
    const auto count = count_of(info.shape);
    if (!count || *count > most) continue;
    attempt([&] {
      const Tensor tensor = file.read(info.name);
      expect((info.dtype == Dtype::text ? tensor.texts.size() : tensor.numbers.size()) == *count,
             "a tensor has as many numbers as its shape says");
    });
  }
}

template <TensorFile (*open)(const std::filesystem::path&, const Token&)>
void open_bytes(Bytes bytes) {
  attempt([&] {
    const MemoryFile file(bytes);
    const Token token;
    read_all(open(file.path(), token));
  });
}

std::string matrix_as_npy() {
  return npy_bytes(arma::mat{{1, 2.5, -3}, {4, 5, 6}});
}

Seeds npy_seeds() {
  return {matrix_as_npy(), npy_words({"a", "bc"}, {2}), npy_header({2, 0}), npy_header({1}, "|b1") + "\1"};
}

Seeds npz_seeds() {
  const auto model = editing::find_preset("004-causal")->make();
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

void run_pickle(Bytes bytes) {
  attempt([&] {
    const readers::Fetch fetch = [bytes](std::uint64_t from, std::uint64_t count, std::string&,
                                         const Token&) { return bytes.substr(from, count); };
    readers::PickleBytes pickle(fetch, 0, bytes.size(), "a.pkl: ");
    readers::read_pickle(pickle);
  });
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

Seeds session_seeds() {
  Seeds seeds;
  for (const char* name : {"004-causal", "multi-head"})
    seeds.push_back(session_text({editing::find_preset(name)->make(), "{\"tab\": 1}"}));
  seeds.push_back(R"({"attnscope": 1, "embeddings": [[0], [1]], "scale": 0, "tokens": ["a", "b"]})");
  seeds.push_back(R"({"attnscope": 1, "given": {"weights": [[[1, "inf"], [0, 1]]]}, "heads_off": [0]})");
  seeds.push_back(R"({"attnscope": 1, "embeddings": {"file": "../a.npy", "tensor": "x", "at": [1]}})");
  seeds.push_back(
      R"({"attnscope":1,"embeddings":[[1,2],[3,4]],"mask":{"window":[1,0],"cells":[[1,0,false]]},)"
      R"("dropout":{"rate":0.5,"mask":[[[1,0],[0,1]]]}})");
  return seeds;
}

/// What can be read can be written, and is the same when it is read again.
void run_session(Bytes bytes) {
  attempt([&] {
    const Session session = parse_session(bytes, "/nowhere/a.json");
    const std::string written = session_text(session);
    expect(session_text(parse_session(written, "/nowhere/a.json")) == written, "a session reads back");
    if (session.model.n_tokens() <= 16 && session.model.sequences.size() <= 4)
      attention::attend(session.model, 0);
  });
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

void run_json(Bytes bytes) {
  attempt([&] {
    const std::string written = json_text(parse_json(bytes, "a.json"));
    expect(json_text(parse_json(written, "a.json")) == written, "JSON reads back");
  });
}

Seeds json_seeds() {
  return {R"({"a": [1, -0, 1e-5, "b\u202e", null, true, {}]})", "[[[[]]]]", "1e400"};
}

void run_draw(Bytes bytes) {
  attempt([&] { random::parse_draw_ops(bytes, 1000); });
}

Seeds draw_seeds() {
  return {"rand(6,3) Linear(3,2,bias)", "randint(0,10,3,2)", "Dropout(0.5,6,6) normal(0,1,2)"};
}

void run_sentence(Bytes bytes) {
  for (const auto rule : {text::TokenRule::words, text::TokenRule::characters})
    attempt([&] {
      for (const std::string& token : text::tokens(bytes, rule))
        expect(!token.empty(), "a token has characters");
    });
}

Seeds sentence_seeds() {
  return {"Your journey starts with one step.", "I'm 3.5 \"漢字\"\n🙂"};
}

const std::array targets_table{
    Target{"npy", open_bytes<readers::open_npy>, npy_seeds},
    Target{"npz", open_bytes<readers::open_npz>, npz_seeds},
    Target{"safetensors", open_bytes<readers::open_safetensors>, safetensors_seeds},
    Target{"pytorch", open_bytes<readers::open_pytorch>, pytorch_seeds},
    Target{"pickle", run_pickle, pickle_seeds},
    Target{"table", open_bytes<readers::open_table>, table_seeds},
    Target{"printed", open_bytes<readers::open_text>, printed_seeds},
    Target{"any", open_bytes<open_tensors>, printed_seeds},
    Target{"index", run_index, index_seeds},
    Target{"session", run_session, session_seeds},
    Target{"json", run_json, json_seeds},
    Target{"draw", run_draw, draw_seeds},
    Target{"sentence", run_sentence, sentence_seeds},
};

}  // namespace

std::span<const Target> targets() {
  return targets_table;
}

}  // namespace fuzz
