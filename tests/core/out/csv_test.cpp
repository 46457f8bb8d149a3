#include "core/out/csv.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace core::formats {
namespace {

TEST(CsvText, HasAHeaderAndRowLabels) {
  EXPECT_EQ(csv_text({{{1, 0.5}, {-INFINITY, NAN}}, {"a", "b"}, {"0", "1"}}),
            ",0,1\r\na,1,0.5\r\nb,-inf,nan\r\n");
}

TEST(CsvText, WithoutLabelsIsNumbersAlone) {
  EXPECT_EQ(csv_text({{{1, 0.5}, {-0.0, INFINITY}}, {"a", "b"}, {"0", "1"}}, false), "1,0.5\r\n-0,inf\r\n");
}

TEST(CsvText, QuotesLabelsThatNeedIt) {
  EXPECT_EQ(csv_text({{{1, 2, 3, 4}}, {"a,b"}, {"say \"x\"", "two\nlines", "\r", " plain é"}}),
            ",\"say \"\"x\"\"\",\"two\nlines\",\"'\r\", plain é\r\n\"a,b\",1,2,3,4\r\n");
}

TEST(CsvText, KeepsSpreadsheetsFromRunningLabels) {  // as OWASP's "CSV Injection" has it
  // Nor does one begin behind what other programs take for a separator.
  EXPECT_EQ(csv_text({{{1, 2}}, {"a"}, {"b;=c", "d\t=e"}}), ",\"b;=c\",\"d\t=e\"\r\na,1,2\r\n");
  const LabelledMatrix m{{{-1, 2, 3}}, {"=HYPERLINK(\"x\")"}, {"-", "+1", "'=x"}};
  EXPECT_EQ(csv_text(m), ",'-,'+1,''=x\r\n\"'=HYPERLINK(\"\"x\"\")\",-1,2,3\r\n");
  const LabelledMatrix plain{{{1, 2}}, {"it's"}, {"'", "a=b"}};
  EXPECT_EQ(csv_text(plain), ",',a=b\r\nit's,1,2\r\n");
}

}  // namespace
}  // namespace core::formats
