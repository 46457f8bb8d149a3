#include <gmock/gmock.h>

#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/out/numpy.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats::readers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy(const std::string& dictionary, const std::string& data) {
  const std::string header = dictionary + "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 0xff) +
         static_cast<char>(header.size() >> 8) + header + data;
}

std::string error_of_npy(const std::string& bytes) {
  const support::TemporaryDirectory directory;
  return reading_error(written(directory, "a.npy", bytes));
}

TEST(NpyFile, OfEveryTypeAndOrderReadsBackExactly) {
  const auto known = known_tensors(folder + "npy.json");
  ASSERT_EQ(known.size(), 47u);
  for (const auto& [name, tensor] : known)
    EXPECT_EQ(difference(open_tensors(folder + "npy/" + name + ".npy"), known, 1), "");
}

TEST(NpyFile, RefusesAPartThatIsNotThere) {
  const TensorFile file = open_tensors(folder + "npy/f4.little.C.npy");
  EXPECT_THAT(support::error_of([&] {
                file.read("f4.little.C", std::vector<std::size_t>{0, 3});
              }),
              HasSubstr("f4.little.C: expected index 1 of [2, 3, 4] to be below 3, got 3"));
  EXPECT_THAT(support::error_of([&] { file.read("other"); }),
              HasSubstr("there is no tensor \"other\" in it"));
}

TEST(NpyFile, OfOtherThanNumbersOrWithClaimsThatItsSizeDoesNotBearIsRefused) {
  const std::pair<std::string, const char*> wrong[] = {
      {"objects", "objects.npy: expected numbers, got Python objects (pickle)"},
      {"complex", "expected real numbers, got complex ones"},
      {"records", "got the type \"[('x', '<f4'), ('y', '<i4')]\""},
      {"long_double", "got the type \"<f16\""},
      {"ten_gigabytes", "expected 10000000000 bytes for float64 [1250000000], got 8"},
      {"overflow", "expected more than 2^62 bytes"},
      {"wraps_to_one", "expected more than 2^62 bytes"}};
  for (const auto& [name, expected] : wrong)
    EXPECT_THAT(support::error_of([&] { open_tensors(folder + "damaged/" + name + ".npy"); }),
                HasSubstr(expected));
  EXPECT_THAT(error_of_npy(support::bytes_of(folder + "npy/f4.little.C.npy") + "x"),
              HasSubstr("expected 96 bytes for float32 [2, 3, 4], got 97"));
}

// 1, -2 and 0.5 as ml_dtypes writes bfloat16: raw bytes of a type that NumPy does not name.
TEST(NpyFile, OfBfloat16IsReadIfItsHeaderOrNameSaysSo) {
  const support::TemporaryDirectory directory;
  const auto file = [](const std::string& type) {
    return npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (3,), }",
               std::string("\x80\x3f\x00\xc0\x00\x3f", 6));
  };
  for (const auto& [name, type] : {std::pair{"weights_bf16.npy", "<V2"},
                                   {"q.bfloat16.npy", "|V2"},
                                   {"BF16 keys.npy", "<V2"},
                                   {"weights.npy", "bfloat16"}}) {
    const TensorFile opened = open_tensors(written(directory, name, file(type)));
    EXPECT_EQ(opened.tensors()[0].dtype, Dtype::bf16) << name;
    EXPECT_EQ(opened.read(opened.tensors()[0].name).numbers, (std::vector<double>{1, -2, 0.5})) << name;
  }
  const TensorFile archive = open_tensors(
      written(directory, "jax_bfloat16.npz", zip_bytes({{"queries.npy", [&] { return file("<V2"); }}})));
  EXPECT_EQ(archive.read("queries").numbers, (std::vector<double>{1, -2, 0.5}));
  EXPECT_THAT(error_of_npy(file("<V2")),
              HasSubstr("got the type \"<V2\", as NumPy writes bfloat16: save x.astype(\"float32\"), or put "
                        "bfloat16 into the name of the file"));
  const auto bytes = [](const std::string& type) {
    return npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }", "\x38\x40");
  };
  for (const char* type : {"<V1", "<f1", "|V1"}) {
    EXPECT_THAT(error_of_npy(bytes(type)), HasSubstr("as NumPy writes float8: save x.astype(\"float32\")"));
    EXPECT_EQ(open_tensors(written(directory, "e4m3.npy", bytes(type))).read("e4m3").numbers,
              (std::vector<double>{1, 2}));
  }
}

TEST(NpyFile, RefusesIntegersThatFloat64CannotHold) {
  const TensorFile file = open_tensors(folder + "damaged/large_integer.npy");
  EXPECT_THAT(support::error_of([&] { file.read("large_integer"); }),
              HasSubstr("(up to 2^53), got a larger one at place 1"));
  const std::string least("\x00\x00\x00\x00\x00\x00\x00\x80", 8), most("\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
  EXPECT_EQ(error_of_npy(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", least)), "no error");
  EXPECT_THAT(error_of_npy(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", most)),
              HasSubstr("place 0"));
  EXPECT_THAT(
      error_of_npy(npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", std::string(8, '\xff'))),
      HasSubstr("place 0"));
}

TEST(NpyFile, HasADictionaryOfThreeKeysAndNothingElse) {
  const std::string data(8, '\0');
  EXPECT_EQ(error_of_npy(npy("{\"shape\": (1L,), 'fortran_order': True, 'descr': '<f8'}  ", data)),
            "no error");
  const std::pair<const char*, const char*> wrong[] = {
      {"{'descr': '<f8', 'fortran_order': False}",
       "the keys 'descr', 'fortran_order' and 'shape', got its end"},
      {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "each once"},
      {"{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", "expected True or False"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "expected a length"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", "expected a length"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} or True", "nothing after '}'"},
      {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "the type \"\""},
      {"__import__('os')", "expected '{'"}};
  for (const auto& [dictionary, expected] : wrong)
    EXPECT_THAT(error_of_npy(npy(dictionary, data)), HasSubstr(expected)) << dictionary;
}

TEST(OpeningTensors, NamesThePathThatCannotBeRead) {
  EXPECT_EQ(support::error_of([] { open_tensors("/nowhere/a.npy"); }), "/nowhere/a.npy: no such file");
  const support::TemporaryDirectory directory;
  EXPECT_THAT(support::error_of(
                  [&] { open_tensors(written(directory, "photo.jpg", std::string("\xff\xd8\xff\0", 4))); }),
              HasSubstr("photo.jpg: expected a file of tensors ("));
}

TEST(OpeningTensors, SurvivesAFileThatIsCutShortLater) {
  const support::TemporaryDirectory directory;
  const auto path = written(directory, "a.npy", support::bytes_of(folder + "npy/f4.little.C.npy"));
  const TensorFile file = open_tensors(path);
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT(support::error_of([&] { file.read("a"); }), HasSubstr("became shorter while it was read"));
}

TEST(Reading, StopsWhenItIsCanceled) {
  const TensorFile file = open_tensors(folder + "npy/f4.little.C.npy");
  core::StopToken progress;
  progress.stop();
  EXPECT_THROW(file.read("f4.little.C", {}, progress), core::Stopped);
}

TEST(NpzFile, StoredOrDeflatedOrWith64BitSizesReadsBackExactly) {
  const auto known = known_tensors(folder + "npy.json");
  EXPECT_EQ(difference(open_tensors(folder + "stored.npz"), known, 42), "");
  EXPECT_EQ(difference(open_tensors(folder + "deflated.npz"), known, 42), "");
  EXPECT_EQ(difference(open_tensors(folder + "zip64.npz"), known, 2), "");
}

TEST(NpzFile, OfSeveralMegabytesGivesItsPartsInAnyOrder) {
  constexpr std::size_t n_layers = 9, n = 250;
  const auto number = [](std::size_t layer, std::size_t i, std::size_t j) {  // varied but not random
    return static_cast<double>((layer * 7919 + i * 131 + j * j * 17) % 4093) / 8;
  };
  std::string bytes = npy_header({n_layers, n, n});
  for (std::size_t layer = 0; layer < n_layers; ++layer) {
    arma::mat numbers(n, n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) numbers(i, j) = number(layer, i, j);
    append_rows(bytes, numbers);
  }
  const std::string archive = zip_bytes({{"w.npy", [&] { return bytes; }}});
  const support::TemporaryDirectory directory;
  support::put_bytes(directory.path() / "w.npz", archive);
  ASSERT_LT(archive.size(), bytes.size() / 2) << "it is to be deflated";
  const TensorFile file = open_tensors(directory.path() / "w.npz");
  for (const std::size_t layer :
       {std::size_t{4}, std::size_t{8}, std::size_t{0}, std::size_t{4}, std::size_t{7}}) {
    const Tensor part = file.read("w", std::vector{layer});
    ASSERT_EQ(part.numbers.size(), n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        ASSERT_EQ(part.numbers[i * n + j], number(layer, i, j)) << layer << ' ' << i << ' ' << j;
  }
}

TEST(NpzFile, MayHoldTexts) {
  const TensorFile file = open_tensors(folder + "words.npz");
  EXPECT_EQ(file.find("tokens")->dtype, Dtype::text);
  EXPECT_THAT(file.read("tokens").texts, ElementsAre("Zoë", "£12", "🙂 a", ""));
  EXPECT_THAT(support::error_of([&] { matrix(file.read("tokens")); }),
              HasSubstr("expected numbers, got text"));
}

TEST(NpzFile, ThatLiesIsRefused) {
  const std::pair<const char*, const char*> wrong[] = {
      {"bomb.npz", "it unpacks to more than the 160 bytes that it claims"},
      {"claims_too_much.npz", "\"a.npy\" claims 1000000000 bytes in"},
      {"claims_what_it_has_not.npz", "it unpacks to 160 bytes and claims 240"},
      {"names_twice.npz", "two of its members have one name"},
      {"shares_bytes.npz", "its records contradict each other"},
      {"wrong_checksum.npz", "its checksum is not the one that the archive gives"},
      {"method_12.npz", "expected it stored or deflated, got method 12"},
      {"model.pt", "expected tensors, got none in it"}};
  for (const auto& [name, expected] : wrong)
    EXPECT_THAT(reading_error(folder + "damaged/" + name),
                testing::AllOf(HasSubstr(name + std::string(": ")), HasSubstr(expected)));
}

TEST(NpzFile, LeavesOutWhatCannotBeRead) {
  const std::string objects = support::bytes_of(folder + "damaged/objects.npy"),
                    row = support::bytes_of(folder + "npy/row.npy");
  const auto member = [](const std::string& bytes) { return [bytes] { return bytes; }; };
  const support::TemporaryDirectory directory;
  const auto path = written(
      directory, "a.npz",
      zip_bytes(
          {{"objects.npy", member(objects)}, {"row.npy", member(row)}, {"about.txt", member("words")}}));
  const TensorFile file = open_tensors(path);
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.read("row").numbers, (std::vector<double>{0, 1, 2}));
  EXPECT_THAT(file.notes(),
              ElementsAre("Left out: objects: expected numbers, got Python objects (pickle), which are never "
                          "opened.",
                          "Left out: \"about.txt\" is no .npy file."));
  EXPECT_THAT(support::error_of([&] { file.read("objects"); }), HasSubstr("got Python objects (pickle)"));
  const auto alone = written(directory, "b.npz", zip_bytes({{"objects.npy", member(objects)}}));
  EXPECT_EQ(
      support::error_of([&] { open_tensors(alone); }),
      alone.string() + ": objects: expected numbers, got Python objects (pickle), which are never opened");
}

}  // namespace
}  // namespace core::formats::readers
