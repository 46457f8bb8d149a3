#include "core/formats/writers/zip_writer.hpp"

#include <gtest/gtest.h>

using core::formats::ZipWriter;

namespace {

std::string bytes(std::initializer_list<int> list) {
  std::string text;
  for (const int byte : list) text += static_cast<char>(byte);
  return text;
}

TEST(ZipWriter, StoresAFileThatDeflateWouldLengthen) {
  ZipWriter zip;
  zip.add("n", "a");
  // By hand after APPNOTE 4.3: the CRC-32 of "a" is E8B7BE43.
  const std::string fields =
      bytes({20, 0, 0, 8, 0, 0, 0, 0, 33, 0, 0x43, 0xBE, 0xB7, 0xE8, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0});
  const std::string expected = "PK\3\4" + fields + "na" +                                       //
                               "PK\1\2" + bytes({20, 0}) + fields +                             //
                               bytes({0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x01, 0, 0, 0, 0}) + "n" +  //
                               "PK\5\6" + bytes({0, 0, 0, 0, 1, 0, 1, 0, 47, 0, 0, 0, 32, 0, 0, 0, 0, 0});
  EXPECT_EQ(zip.finished(), expected);
}

TEST(ZipWriter, DeflatesWhatGetsShorter) {
  ZipWriter zip;
  zip.add("zeros", std::string(100000, '\0'));
  const std::string archive = zip.finished();
  EXPECT_EQ(archive[8], 8);  // the method
  EXPECT_LT(archive.size(), 2000u);
}

TEST(ZipWriter, WithoutFilesIsAnEmptyArchive) {
  EXPECT_EQ(ZipWriter().finished(), "PK\5\6" + std::string(18, '\0'));
}

}  // namespace
