#include <gmock/gmock.h>

#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats::readers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string length_text(std::uint64_t length) {
  std::string bytes;
  for (int k = 0; k < 8; ++k) bytes += static_cast<char>(length >> 8 * k & 0xff);
  return bytes;
}

std::string file_of(const std::string& header, std::size_t n_bytes) {
  return length_text(header.size()) + header + std::string(n_bytes, '\0');
}

std::string error_of_file(const std::string& bytes) {
  const support::TemporaryDirectory directory;
  return support::error_of([&] { open_tensors(written(directory, "m.safetensors", bytes)); });
}

TEST(SafetensorsFile, OfEveryTypeReadsBackExactly) {
  EXPECT_EQ(
      difference(open_tensors(folder + "types.safetensors"), known_tensors(folder + "safetensors.json"), 13),
      "");
  EXPECT_EQ(difference(open_tensors(folder + "fp8.safetensors"), known_tensors(folder + "fp8.json"), 2), "");
}

TEST(SafetensorsFile, OfFiftyGigabytesOpensWithoutBeingRead) {
  const support::TemporaryDirectory directory;
  constexpr std::uint64_t n = 50'000'000'000;
  const std::string header =
      R"({"big":{"dtype":"U8","shape":[5000,10000000],"data_offsets":[0,50000000000]}})";
  const auto path = written(directory, "m.safetensors", length_text(header.size()) + header);
  std::error_code cannot;
  std::filesystem::resize_file(path, 8 + header.size() + n, cannot);  // a hole takes no space
  if (cannot) GTEST_SKIP() << "this file system has no room for a hole of 50 GB";
  const TensorFile file = open_tensors(path);
  const std::size_t last[] = {4999};
  EXPECT_EQ(file.read("big", last).numbers, std::vector<double>(10'000'000, 0.0));
  EXPECT_THAT(support::error_of([&] { file.read("big"); }),
              HasSubstr("numbers at once, got [5000, 10000000]"));
}

TEST(SafetensorsFile, WithAHeaderThatLiesIsRefused) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const auto two = [&](const std::string& b, std::size_t n) {
    return error_of_file(file_of("{" + a + "," + b + "}", n));
  };
  EXPECT_EQ(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]})", 12), "no error");
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})", 12),
              HasSubstr("b: expected its bytes to begin at 8, where those before it end, got 4"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]})", 16),
              HasSubstr("b: expected its bytes to begin at 8, where no other tensor is, got 12"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,8]})", 12),
              HasSubstr("b.data_offsets: expected two offsets [begin, end], the first not the larger"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[3],"data_offsets":[8,16]})", 16),
              HasSubstr("b.data_offsets: expected 12 bytes for float32 [3], got 8"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[4294967297,4294967295],"data_offsets":[8,12]})", 12),
              HasSubstr("expected more than 2^62 bytes"));
  EXPECT_THAT(two(R"("b":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[8,12]})", 12),
              HasSubstr("b.dtype: expected one of \"F64\""));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1.5],"data_offsets":[8,12]})", 12),
              HasSubstr("b.shape[0]: expected"));
  std::string ones = "1";
  for (int k = 1; k < 32; ++k) ones += ",1";
  EXPECT_EQ(two(R"("b":{"dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[8,12]})", 12), "no error");
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1,)" + ones + R"(],"data_offsets":[8,12]})", 12),
              HasSubstr("b.shape: expected at most 32 dimensions, got 33"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[-1],"data_offsets":[8,12]})", 12),
              HasSubstr("b.shape[0]: expected"));
  EXPECT_THAT(two(a, 8), HasSubstr("expected the key \"a\" once, got it twice"));
  EXPECT_THAT(two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]})", 13),
              HasSubstr("expected 12 bytes of tensors after the header, got 13"));
  EXPECT_THAT(two(R"("b":7)", 8), HasSubstr("b: expected"));
}

TEST(SafetensorsFile, WithAHeaderBeyondItsEndIsRefused) {
  EXPECT_THAT(error_of_file(length_text(10'000'000'000) + "{\"a\":" + std::string(87, ' ')),
              HasSubstr("expected a header of at most 92 bytes, it claims 10000000000"));
  EXPECT_THAT(error_of_file(length_text(~std::uint64_t{0}) + "{}"),
              HasSubstr("it claims 18446744073709551615"));
}

/// Writes a .safetensors file of one tensor of two bytes.
void write_shard(const std::filesystem::path& path, const char* name, float first, float second) {
  support::write(path, {{name, {2}, {first, second}, "U8"}});
}

std::string index_of_two(const std::string& second) {
  return R"({"metadata": {"total_size": 4}, "weight_map": {"a": "m-1-of-2.safetensors", "b": ")" + second +
         "\"}}";
}

struct ShardedCheckpoint {
  support::TemporaryDirectory directory;
  std::filesystem::path index =
      written(directory, "model.safetensors.index.json", index_of_two("m-2-of-2.safetensors"));
  ShardedCheckpoint() {
    write_shard(directory / "m-1-of-2.safetensors", "a", 1, 2);
    write_shard(directory / "m-2-of-2.safetensors", "b", 3, 4);
  }
  std::string error(const std::string& text) {
    written(directory, "model.safetensors.index.json", text);
    return support::error_of([&] { open_tensors(index); });
  }
};

TEST(IndexFile, OpensItsFilesAsOne) {
  const ShardedCheckpoint checkpoint;
  const TensorFile file = open_tensors(checkpoint.index);
  EXPECT_STREQ(file.format(), "index");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.read("a").numbers, (std::vector<double>{1, 2}));
  EXPECT_EQ(file.read("b").numbers, (std::vector<double>{3, 4}));
  EXPECT_TRUE(file.notes().empty());
  EXPECT_TRUE(has_tensor_ending(checkpoint.index));
  EXPECT_FALSE(has_tensor_ending("session.json"));
}

TEST(IndexFile, MayNameFilesOfPytorch) {
  const support::TemporaryDirectory directory;
  written(directory, "pytorch_model-1.bin", support::bytes_of(folder + "pytorch/parameters.pt"));
  const auto index =
      written(directory, "pytorch_model.bin.index.json", R"({"weight_map": {"w": "pytorch_model-1.bin"}})");
  const TensorFile file = open_tensors(index);
  EXPECT_EQ(difference(file.read("w"), known_tensors(folder + "pytorch/parameters.json").at("w")), "");
  EXPECT_THAT(file.notes(),
              ElementsAre("Left out: 1 tensor of pytorch_model-1.bin that the index does not name."));
}

TEST(IndexFile, ThatIsWrongIsRefusedByName) {
  ShardedCheckpoint checkpoint;
  EXPECT_THAT(checkpoint.error(index_of_two("m-3-of-3.safetensors")),
              HasSubstr("index.json: weight_map.b: the file \"m-3-of-3.safetensors\" is missing beside it"));
  for (const char* outside :
       {"../m-2-of-2.safetensors", "/etc/passwd", "..", ".", "", "a/b.safetensors", "a\\\\b"})
    EXPECT_THAT(checkpoint.error(index_of_two(outside)),
                HasSubstr("weight_map.b: expected the name of a file in the folder of the index, got"))
        << outside;
  EXPECT_THAT(checkpoint.error(index_of_two("m-1-of-2.safetensors")),
              HasSubstr("expected the tensor \"b\" in m-1-of-2.safetensors, got none of that name"));
  EXPECT_THAT(checkpoint.error(index_of_two("model.safetensors.index.json")),
              HasSubstr("expected a file of torch.save"));
  EXPECT_THAT(checkpoint.error(R"({"weight_map": {}})"), HasSubstr("weight_map: expected tensors, got none"));
  EXPECT_THAT(checkpoint.error(R"({"weight_map": 3})"), HasSubstr("weight_map: expected an object"));
  EXPECT_THAT(checkpoint.error(R"({"a": 3})"), HasSubstr("expected the key \"weight_map\""));
  written(checkpoint.directory, "m-2-of-2.safetensors",
          "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 548105171\n");
  EXPECT_THAT(checkpoint.error(index_of_two("m-2-of-2.safetensors")),
              HasSubstr("m-2-of-2.safetensors: is a Git LFS pointer of 548 MB"));
}

TEST(Folder, WithAnIndexThatMissesAFileSaysSo) {
  const ShardedCheckpoint checkpoint;
  EXPECT_TRUE(open_tensors(checkpoint.directory.path()).notes().empty());
  std::filesystem::remove(checkpoint.directory / "m-2-of-2.safetensors");
  const TensorFile file = open_tensors(checkpoint.directory.path());
  ASSERT_EQ(file.tensors().size(), 1u);
  ASSERT_EQ(file.notes().size(), 1u);
  EXPECT_THAT(file.notes()[0], HasSubstr("the file \"m-2-of-2.safetensors\" is missing beside it"));
}

TEST(Folder, LeavesOutWhatCannotBeRead) {
  const support::TemporaryDirectory directory;
  written(directory, "a.csv", "1,2\n");
  written(directory, "b.csv", "1,x\n");
  written(directory, "training_args.bin", support::bytes_of(folder + "pytorch/refused/module.pt"));
  const TensorFile file = open_tensors(directory.path());
  ASSERT_EQ(file.tensors().size(), 1u);
  ASSERT_EQ(file.notes().size(), 2u);
  EXPECT_THAT(file.notes()[0], testing::StartsWith("Left out: b.csv: line 1, column 2: expected a number"));
  EXPECT_THAT(file.notes()[1],
              testing::StartsWith("Left out: training_args.bin: holds a torch.nn.Module (model.GPT)"));
  EXPECT_THAT(support::error_of([&] { file.read("b"); }),
              HasSubstr("there is no tensor \"b\" in it (Left out: "));
}

TEST(Folder, WithTheSameTensorsTwiceTakesThoseOfSafetensors) {
  const support::TemporaryDirectory directory;
  write_shard(directory / "model.safetensors", "w", 1, 2);
  written(directory, "a_pytorch_model.bin", support::bytes_of(folder + "pytorch/parameters.pt"));
  const TensorFile file = open_tensors(directory.path());
  EXPECT_EQ(file.read("w").numbers, (std::vector<double>{1, 2}));
  EXPECT_THAT(file.notes(),
              ElementsAre("Left out: a_pytorch_model.bin has the tensors of a .safetensors file "
                          "beside it."));
}

TEST(UnreadableFormat, IsNamedWithWhatToDo) {
  const support::TemporaryDirectory directory;
  const auto tensorflow = std::string(40, '\1') + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  const std::tuple<const char*, std::string, const char*> formats[] = {
      {"m.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 548105171\n",
       "is a Git LFS pointer of 548 MB, not the file itself: run git lfs pull"},
      {"m.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 13000000000\n",
       "is a Git LFS pointer of 13.0 GB"},
      {"m.bin", std::string("lmgg\3\0\0\0", 8), "is a file of llama.cpp from before GGUF, which is not read"},
      {"m.h5", "\x89HDF\r\n\x1a\n\1\2\3",
       "is an HDF5 file, which is not read: write its arrays with numpy.savez"},
      {"m.pt", std::string(512, ' ') + "\x89HDF\r\n\x1a\n", "is an HDF5 file"},
      {"m.model", std::string("\x08\x07\x12\x07pytorch\x1a\x03") + "2.1",
       "is an ONNX model, which is not read"},
      {"m.onnx", "\x08\x07:", "is an ONNX model"},
      {"m.ckpt.index", tensorflow, "is of a TensorFlow checkpoint, which is not read"},
      {"m.ckpt.data-00000-of-00001", "abc", "is of a TensorFlow checkpoint"},
      {"m.mat", "MATLAB 5.0 MAT-file, Platform", "is a MATLAB file, which is not read"},
      {"m.parquet", "PAR1\x15\x04\x15", "is a Parquet table, which is not read"},
      {"m.tflite", std::string("\x1c\0\0\0TFL3\x14", 9), "is a TensorFlow Lite model"},
      {"m.msgpack", "\x81\xa1", "is a msgpack file, as Flax writes it"},
      {"m.txt", "<!DOCTYPE html><html>", "is a web page, not a file of tensors"},
      {"m.npy.gz", "\x1f\x8b\x08", "is packed with gzip: unpack it with gunzip first"},
      {"m.bin", "raw numbers", "expected a file of torch.save, an archive or a pickle"}};
  EXPECT_EQ(open_tensors(written(directory, "m.csv", "MATLAB a,PAR1\n1,2\n")).tensors().size(), 1u);
  EXPECT_EQ(open_tensors(written(directory, "n.csv", "PAR1,GGUF\n1,2\n")).tensors().size(), 1u);
  for (const auto& [name, bytes, words] : formats) {
    const auto path = written(directory, name, bytes);
    const std::string error = support::error_of([&] { open_tensors(path); });
    EXPECT_THAT(error, testing::StartsWith(path.string() + ": ")) << name;
    EXPECT_THAT(error, HasSubstr(words)) << name;
  }
}

}  // namespace
}  // namespace core::formats::readers
