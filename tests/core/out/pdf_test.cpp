#include "core/out/pdf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.hpp"

namespace core::figures {
namespace {

using testing::HasSubstr;

TEST(Pdf, IsOnePageAsLargeAsTheFigureAndTheSameEachTime) {
  DisplayList list;
  list.width = 400, list.height = 200, list.title = "Weights, head 1";
  list.items.emplace_back(Box{{10, 10, 50, 20}, colour::rgb(0x112233)});
  list.items.emplace_back(Text{{20, 40}, Anchor::start, {{"head 1", 14, colour::rgb(0)}}});
  const std::string pdf = pdf_of(list);
  EXPECT_TRUE(pdf.starts_with("%PDF-1.4"));
  EXPECT_THAT(pdf, HasSubstr("/MediaBox [ 0 0 300 150 ]")) << "a pixel is 1/96 of an inch, a point 1/72";
  EXPECT_THAT(pdf, HasSubstr("/Count 1"));
  EXPECT_THAT(pdf, HasSubstr("/Title"));
  EXPECT_EQ(pdf.find("/CreationDate"), pdf.npos);
  EXPECT_EQ(pdf, pdf_of(list));
}

TEST(Pdf, RefusesPagesThatNoReaderTakes) {
  DisplayList list;
  list.width = 20000, list.height = 10;
  EXPECT_THAT(support::error_of([&] { pdf_of(list); }), HasSubstr("at most 19200 pixels"));
}

}  // namespace
}  // namespace core::figures
