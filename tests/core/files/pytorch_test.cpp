#include <gmock/gmock.h>

#include "core/files/tensor_formats.hpp"
#include "core/out/numpy.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats::readers {
namespace {

using namespace std::string_literals;

using testing::ElementsAre;
using testing::HasSubstr;

const std::string torch_files = folder + "pytorch/";

void expect_known(const std::filesystem::path& path, const std::string& json) {
  const TensorFile file = open_tensors(path);
  const auto known = known_tensors(torch_files + json);
  EXPECT_STREQ(file.format(), "pytorch");
  EXPECT_EQ(difference(file, known, known.size()), "") << path;
}

TEST(PytorchFile, OfEitherFormatReadsBackExactly) {
  for (const std::string name :
       {"types", "views", "state_dict", "nested", "parameters", "protocol3", "protocol4", "protocol5"})
    for (const char* ending : {".pt", ".legacy.pt"})
      expect_known(torch_files + name + ending, name + ".json");
  expect_known(torch_files + "types.big.pt", "types.json");
}

TEST(PytorchFile, OfOneTensorCallsItAsTheFile) {
  expect_known(torch_files + "single.pt", "single.json");
  const TensorFile file = open_tensors(torch_files + "single.legacy.pt");
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.tensors()[0].name, "single.legacy");
}

TEST(PytorchFile, IsKnownByItsContentWhateverItsName) {
  const support::TemporaryDirectory directory;
  for (const char* name : {"a.weights", "a.npz", "a.bin", "a.ckpt"})
    expect_known(written(directory, name, support::bytes_of(torch_files + "state_dict.pt")),
                 "state_dict.json");
  for (const char* name : {"a.weights", "a.bin", "a.ckpt"})
    expect_known(written(directory, name, support::bytes_of(torch_files + "state_dict.legacy.pt")),
                 "state_dict.json");
}

TEST(PytorchFile, SaysWhatElseIsInIt) {
  EXPECT_THAT(open_tensors(torch_files + "nested.pt").notes(),
              ElementsAre("Left out as no tensors: optimizer.param_groups.0.lr, "
                          "optimizer.param_groups.0.betas.0, optimizer.param_groups.0.betas.1 and 18 more."));
  EXPECT_TRUE(open_tensors(torch_files + "state_dict.pt").notes().empty());
}

TEST(PytorchFile, LeavesOutWhatIsNoTensorByItsNameAndRunsNothing) {
  const std::pair<const char*, const char*> read[] = {
      {"runs.pt", "run (posix.system)"},
      {"runs.legacy.pt", "run (posix.system)"},
      {"namespace.pt", "args (argparse.Namespace)"},
      {"function.pt", "function (posixpath.join)"},
      {"numpy_number.pt", "best (numpy._core.multiarray.scalar)"},
      {"set.pt", "tags (__builtin__.set)"}};
  for (const auto& [name, words] : read) {
    const TensorFile file = open_tensors(torch_files + "refused/" + name);
    EXPECT_EQ(file.read("w").numbers, (std::vector<double>{1, 1})) << name;
    EXPECT_THAT(file.notes(), ElementsAre("Left out, as only tensors are read: " + std::string(words) + "."));
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/attnscope_was_here")) << "something was run";
}

TEST(PytorchFile, OfAttentionsOfAllLayersHasThemInAnyContainer) {
  const TensorFile want = open_tensors(torch_files + "attentions/want.npz");
  for (const auto& [name, tensor] : {std::pair{"tuple.pt", "2"},
                                     {"list.pt", "2"},
                                     {"dict.pt", "attentions.2"},
                                     {"model_output.pt", "attentions.2"}}) {
    const TensorFile file = open_tensors(torch_files + "attentions/" + name);
    EXPECT_EQ(file.read(tensor).numbers, want.read("weights").numbers) << name;
    EXPECT_THAT(file.notes(), testing::Each(testing::Not(HasSubstr("ModelOutput")))) << name;
  }
}

TEST(PytorchFile, WithMoreThanTensorsIsRefusedByItsName) {
  const std::pair<const char*, const char*> refused[] = {
      {"module.pt", "holds a torch.nn.Module (model.GPT), only tensors can be read: save model.state_dict()"},
      {"module.legacy.pt",
       "holds a torch.nn.Module (model.GPT), only tensors can be read: save model.state_dict()"},
      {"runs.pkl", "holds posix.system, only tensors can be read"},
      {"runs4.pkl", "holds posix.system, only tensors can be read"},
      {"numpy.pkl", "numpy.savez"},
      {"plain.pkl", "is a pickle without tensors: save them with torch.save, numpy.savez or safetensors"},
      {"tensor.pkl",
       "holds torch.storage._load_from_bytes, only tensors can be read: save them with "
       "torch.save"},
      {"sparse.pt",
       "holds torch._utils._rebuild_sparse_tensor, only tensors can be read: save "
       "tensor.to_dense()"},
      {"complex.pt",
       "holds torch.ComplexFloatStorage, only tensors can be read: save "
       "torch.view_as_real(tensor)"},
      {"fnuz.pt", "holds numbers of the type torch.float8_e5m2fnuz, which are not read"},
      {"nothing.pt", "expected tensors, got none in it"},
      {"names_twice.pt", "two tensors are called \"a.b\""},
      {"script.pt", "holds a TorchScript program, only tensors can be read: save module.state_dict()"}};
  for (const auto& [name, words] : refused) {
    const std::string path = torch_files + "refused/" + name;
    const std::string error = support::error_of([&] { open_tensors(path); });
    EXPECT_THAT(error, testing::StartsWith(path + ": ")) << name;
    EXPECT_THAT(error, HasSubstr(words)) << name;
    EXPECT_EQ(error.find('\n'), error.npos) << name;
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/attnscope_was_here")) << "something was run";
}

TEST(PytorchFile, OfAnOldProtocolIsRefusedWithWhatToDo) {
  const support::TemporaryDirectory directory;
  // {"a": [1]} in protocol 0, ([1], "a") in 1, torch.save's first pickle in 0, and no pickles at all.
  const std::pair<std::string, bool> files[] = {
      {"(dp0\nVa\np1\n(lp2\nI1\nas.", true},   {std::string("(]q\0K\1aX\1\0\0\0aq\1tq\2.", 20), true},
      {"L119547037146038801333356L\n.", true}, {"cnumpy._core.multiarray\n_reconstruct\np0\n(.", true},
      {"(they are no pickles)", false},        {"Lines of text\n", false}};
  for (const auto& [bytes, is_old] : files) {
    support::put_bytes(directory / "old.pkl", bytes);
    const std::string error = support::error_of([&] { open_tensors(directory / "old.pkl"); });
    EXPECT_EQ(error.find("is a pickle of protocol 0 or 1, only 2 to 5 are read: save it again") != error.npos,
              is_old)
        << error;
    EXPECT_FALSE(error.empty());
  }
}

/// Returns a data.pkl of one tensor: "(…t" with storage "0" of `count` numbers, followed by `rest`.
std::string pickle_of(const std::string& count, const std::string& rest) {
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"s +
         "0X\3\0\0\0cpu"s + count + "tQ" + rest + "\x89NtR.";
}

/// Returns the error of opening an archive with this pickle and a storage of 16 bytes.
std::string error_of_pickle(const std::string& pickle) {
  const support::TemporaryDirectory directory;
  const std::string bytes =
      zip_bytes({{"a/data.pkl", [&] { return pickle; }}, {"a/data/0", [] { return std::string(16, '\0'); }}});
  return reading_error(written(directory, "a.pt", bytes));
}

/// Returns the notes of a dict of a tensor "w" and a value "x" with this pickle code.
std::vector<std::string> notes_with(const std::string& value) {
  const std::string tensor = pickle_of("K\4", "K\0K\4\x85K\1\x85"s), begin = "\x80\x02}(X\1\0\0\0w"s;
  const support::TemporaryDirectory directory;
  const std::string pickle = begin + tensor.substr(2, tensor.size() - 3) + "X\1\0\0\0x"s + value + "u.";
  const std::string bytes =
      zip_bytes({{"a/data.pkl", [&] { return pickle; }}, {"a/data/0", [] { return std::string(16, '\0'); }}});
  const TensorFile file = open_tensors(written(directory, "a.pt", bytes));
  EXPECT_EQ(file.info("w").shape, (TensorShape{4}));
  return file.notes();
}

TEST(PytorchFile, WithOneUnknownValueKeepsTheTensorsBesideIt) {
  const std::string left = "Left out, as only tensors are read: x";
  const std::pair<std::string, std::string> values[] = {
      {"ctorch\ndevice\nX\3\0\0\0cpu\x85R"s, " (torch.device)."},
      {"ccollections\ndefaultdict\ncbuiltins\nlist\n\x85R", " (collections.defaultdict)."},
      {"ccollections\nCounter\n}\x85R", " (collections.Counter)."},
      {"cargparse\nNamespace\n)\x81}X\2\0\0\0lrK\1sb"s, " (argparse.Namespace)."},
      {"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R(K\1K\1\x85NtbN0"s,
       " (numpy.core.multiarray._reconstruct)."},
      {"ctorch.nn.modules\nLinear\n)\x81}(X\x0b\0\0\0_parameters}X\x08\0\0\0_modules}ub"s,
       " (torch.nn.modules.Linear)."},
      {"\x8f(K\1\x90", " (builtins.set)."},
      {"(K\1\x91", " (builtins.set)."},
      {"cfunctools\npartial\ncos\nsystem\n\x85R)R", " (functools.partial)."},
      {"cbuiltins\nint\n", " (builtins.int)."},
      {"ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nComplexFloatStorage\nX\1\0\0\0"s
       "0X\3\0\0\0cpuK\2tQK\0K\2\x85K\1\x85\x89NtR"s,
       " (torch.ComplexFloatStorage)."}};
  for (const auto& [code, words] : values)
    EXPECT_THAT(notes_with(code), testing::Contains(left + words)) << words;
}

TEST(PytorchFile, WithATensorBeyondItsStorageIsRefused) {
  const std::string four = "K\4", two_by_two = "K\2K\2\x86", steps = "K\2K\1\x86";
  EXPECT_EQ(error_of_pickle(pickle_of(four, "K\0"s + two_by_two + steps)), "no error");
  EXPECT_THAT(error_of_pickle(pickle_of("K\5", "K\0"s + two_by_two + steps)),
              HasSubstr("a: expected a storage of 20 bytes, got 16"));
  const std::string within = "expected it within its storage of 4 numbers, got ";
  EXPECT_THAT(error_of_pickle(pickle_of(four, "K\1"s + two_by_two + steps)),
              HasSubstr(within + "[2, 2] with strides [2, 1] from 1"));
  EXPECT_THAT(error_of_pickle(pickle_of(four, "K\0"s + two_by_two + "K\3K\1\x86")), HasSubstr(within));
  const std::string largest = "\x8a\x08" + std::string(7, '\xff') + "\x7f";
  EXPECT_THAT(error_of_pickle(pickle_of(four, largest + two_by_two + steps)), HasSubstr(within));
  EXPECT_THAT(error_of_pickle(pickle_of(four, "K\0"s + two_by_two + largest + "K\1\x86")), HasSubstr(within));
  EXPECT_THAT(error_of_pickle(pickle_of(four, "K\0"s + largest + largest + "\x86" + steps)),
              HasSubstr(within));
  EXPECT_THAT(error_of_pickle(pickle_of(largest, "K\0"s + two_by_two + steps)),
              HasSubstr("expected a storage of 18446744073709551615 bytes"));
  EXPECT_THAT(error_of_pickle(pickle_of(four, "K\0"s + two_by_two + "K\1\x85")),
              HasSubstr("expected a stride for each of 2 lengths, got 1"));
  EXPECT_THAT(error_of_pickle(pickle_of(four, "J\xff\xff\xff\xff" + two_by_two + steps)),
              HasSubstr("expected an offset, got no number from 0"));
}

TEST(PytorchFile, ThatRepeatsANumberTooOftenIsRefused) {
  const std::string many = "J\0\0\1\0"s;  // 65536
  EXPECT_EQ(error_of_pickle(pickle_of("K\4", "K\0K\4"s + many + "\x86K\1K\0\x86"s)), "no error");
  EXPECT_THAT(error_of_pickle(pickle_of("K\4", "K\0"s + many + many + "\x86" + "K\0K\0\x86"s)),
              HasSubstr("expected at most 1024 times as many numbers as it has stored"));
}

TEST(PytorchFile, OfAPickleThatWouldTakeAllMemoryIsRefused) {
  const std::string begin = "\x80\x02";
  const auto repeated = [](const std::string& text, std::size_t count) {
    std::string all;
    for (std::size_t k = 0; k < count; ++k) all += text;
    return all;
  };
  EXPECT_THAT(error_of_pickle(begin + repeated("]", 2'000'000)), HasSubstr("expected at most 2^20 values"));
  EXPECT_THAT(error_of_pickle(begin + repeated("N", 2'000'000)), HasSubstr("2^20 values on its stack"));
  EXPECT_THAT(error_of_pickle(begin + repeated("(", 2'000'000)), HasSubstr("2^20 marks"));
  EXPECT_THAT(error_of_pickle(begin + "N" + repeated("\x94", 2'000'000)),
              HasSubstr("2^20 values that are kept"));
  EXPECT_THAT(error_of_pickle(begin + "B\xff\xff\xff\xff"), HasSubstr("expected 4294967295 more bytes"));
  EXPECT_THAT(error_of_pickle(begin + "\x8e" + std::string(8, '\xff')), HasSubstr("more bytes, got the end"));
  EXPECT_THAT(error_of_pickle(begin + "]q\0h\0a."s), HasSubstr("expected at most 64 levels"));  // recursive
  std::string doubled = begin + "]q\0"s;  // thirty lists, each with the previous one twice
  for (char k = 1; k < 30; ++k) doubled += "0]q"s + k + "(h" + char(k - 1) + "h" + char(k - 1) + "e";
  EXPECT_THAT(error_of_pickle(doubled + "."), HasSubstr("expected at most 2^20 values"));
  const std::string long_name =
      "X"
      "\0\0\1\0"s +
      std::string(65536, 'a') + "q\1";
  EXPECT_THAT(error_of_pickle(begin + long_name + repeated("h\1h\1\x93", 100)),
              HasSubstr("fewer long names"));
}

TEST(PytorchFile, WhosePickleUnpacksToTooMuchIsRefused) {
  const std::string begin = "\x80\x02";
  EXPECT_THAT(error_of_pickle(begin + std::string((1 << 26) - 1, 'a')),
              testing::EndsWith("a.pt: data.pkl: expected at most 67108864 bytes, got 67108865"));
}

TEST(PytorchFile, OfAPickleWithoutSenseIsRefused) {
  const std::string begin = "\x80\x02";
  const std::pair<std::string, const char*> wrong[] = {{"", "expected 1 more bytes, got the end"},
                                                       {".", "expected a value, got none"},
                                                       {"i", "got opcode 105"},
                                                       {"h\1.", "got number 1"},
                                                       {"NR.", "expected a value"},
                                                       {"NNR.", "expected a name and a tuple"},
                                                       {"]N\x86s.", "expected"},
                                                       {"}Na.", "expected a list to add to"},
                                                       {"](NNu.", "expected a dict"},
                                                       {"}(Nu.", "expected a dict to add pairs to"},
                                                       {"t.", "expected a mark"},
                                                       {"N0.", "expected a value"},
                                                       {"}NK\1s.", "keys"},
                                                       {"\x80\x06.", "protocol 2 to 5"},
                                                       {"NQ.", "expected a storage by its key"},
                                                       {"NNb.", "set the state of"},
                                                       {"cos\nsystem\n.", "holds os.system"},
                                                       {"c\x1b[2J\nx\n)R.", "holds \"\\u001b[2J.x\""}};
  for (const auto& [code, words] : wrong)
    EXPECT_THAT(error_of_pickle(begin + code), HasSubstr(words)) << code;
}

}  // namespace
}  // namespace core::formats::readers
