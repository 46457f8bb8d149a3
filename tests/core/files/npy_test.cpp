#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats::readers {
namespace {

using testing::HasSubstr;

std::string npy(const std::string& dictionary, const std::string& data) {
  const std::string header = dictionary + "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 0xff) +
         static_cast<char>(header.size() >> 8) + header + data;
}

std::string error_of_npy(const std::string& bytes) {
  const support::TemporaryDirectory directory;
  return support::error_of([&] {
    const TensorFile file = open_tensors(written(directory, "a.npy", bytes));
    file.read("a");
  });
}

TEST(NpyFile, OfEveryTypeAndOrderReadsBackExactly) {
  const auto known = known_tensors(folder + "npy.json");
  ASSERT_EQ(known.size(), 47u);
  for (const auto& [name, tensor] : known) {
    const TensorFile file = open_tensors(folder + "npy/" + name + ".npy");
    ASSERT_EQ(file.tensors().size(), 1u);
    EXPECT_EQ(file.tensors().front(), static_cast<const TensorInfo&>(tensor));
    EXPECT_EQ(difference(file.read(name), tensor), "") << name;
  }
}

TEST(NpyFile, GivesThePartAtLeadingIndices) {
  const auto known = known_tensors(folder + "npy.json");
  for (const char* name : {"f4.little.C", "f4.little.F", "i8.big.C", "i8.big.F"}) {
    const TensorFile file = open_tensors(folder + "npy/" + name + ".npy");
    const std::size_t at[] = {1, 2};
    for (const std::size_t n : {1u, 2u}) {
      const auto leading = std::span(at).first(n);
      EXPECT_EQ(difference(file.read(name, leading), part_of(known.at(name), leading)), "")
          << name << " " << n;
    }
  }
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

TEST(NpyFile, RefusesWhatIsNotNumbers) {
  const auto error = [](const char* name) {
    return support::error_of([&] { open_tensors(folder + "damaged/" + name); });
  };
  EXPECT_THAT(error("objects.npy"), HasSubstr("objects.npy: expected numbers, got Python objects (pickle)"));
  EXPECT_THAT(error("complex.npy"), HasSubstr("expected real numbers, got complex ones"));
  EXPECT_THAT(error("records.npy"), HasSubstr("got the type \"[('x', '<f4'), ('y', '<i4')]\""));
  EXPECT_THAT(error("long_double.npy"), HasSubstr("got the type \"<f16\""));
}

TEST(NpyFile, RefusesTextsWithoutCharactersOfWhichItCouldClaimAnyNumber) {
  EXPECT_THAT(error_of_npy(npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000,)}", "")),
              HasSubstr("got the type \"<U0\""));
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

TEST(NpyFile, RefusesClaimsThatItsSizeDoesNotBear) {
  const auto error = [](const char* name) {
    return support::error_of([&] { open_tensors(folder + "damaged/" + name); });
  };
  EXPECT_THAT(error("ten_gigabytes.npy"),
              HasSubstr("expected 10000000000 bytes for float64 [1250000000], got 8"));
  EXPECT_THAT(error("overflow.npy"), HasSubstr("expected more than 2^62 bytes"));
  EXPECT_THAT(error("wraps_to_one.npy"), HasSubstr("expected more than 2^62 bytes"));
}

TEST(NpyFile, CutAnywhereIsRefusedInOneLine) {
  const std::string whole = support::bytes_of(folder + "npy/f4.little.C.npy");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string error = error_of_npy(whole.substr(0, length));
    ASSERT_THAT(error, HasSubstr("a.npy: expected")) << length;
    ASSERT_EQ(error.find('\n'), error.npos);
  }
  EXPECT_THAT(error_of_npy(whole + "x"), HasSubstr("expected 96 bytes for float32 [2, 3, 4], got 97"));
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

TEST(Reading, StopsWhenItIsCancelled) {
  const TensorFile file = open_tensors(folder + "npy/f4.little.C.npy");
  core::Token progress;
  progress.stop();
  EXPECT_THROW(file.read("f4.little.C", {}, progress), core::Stopped);
}

}  // namespace
}  // namespace core::formats::readers
