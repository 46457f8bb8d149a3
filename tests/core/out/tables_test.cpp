#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "core/out/tables.hpp"

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

TEST(CsvText, KeepsSpreadsheetsFromRunningLabels) {  // see OWASP's "CSV Injection"
  // Nor may a formula begin after a character that other programs take for a separator.
  EXPECT_EQ(csv_text({{{1, 2}}, {"a"}, {"b;=c", "d\t=e"}}), ",\"b;=c\",\"d\t=e\"\r\na,1,2\r\n");
  const LabeledMatrix m{{{-1, 2, 3}}, {"=HYPERLINK(\"x\")"}, {"-", "+1", "'=x"}};
  EXPECT_EQ(csv_text(m), ",'-,'+1,''=x\r\n\"'=HYPERLINK(\"\"x\"\")\",-1,2,3\r\n");
  const LabeledMatrix plain{{{1, 2}}, {"it's"}, {"'", "a=b"}};
  EXPECT_EQ(csv_text(plain), ",',a=b\r\nit's,1,2\r\n");
}

LabeledMatrix example() {
  return {arma::mat{{0.1, -INFINITY}, {1, NAN}}, {"a|b", "c"}, {"0", "x,y"}};
}

std::string copied(const char* form, CopyScope extent, std::size_t row = 0, std::size_t column = 0,
                   int decimals = 2) {
  const auto& forms = copy_formats();
  const auto found =
      std::find_if(forms.begin(), forms.end(), [&](const auto& f) { return std::string(f.name) == form; });
  return found->text(example(), {extent, row, column}, decimals);
}

TEST(CopyText, AsTsvIsNumbersAlone) {
  EXPECT_EQ(copied("tsv", CopyScope::matrix), "0.1\t-inf\n1\tnan");
  EXPECT_EQ(copied("tsv", CopyScope::row, 1), "1\tnan");
  EXPECT_EQ(copied("tsv", CopyScope::number), "0.1");
}

TEST(CopyText, AsCsvHasTheLabels) {
  EXPECT_EQ(copied("csv", CopyScope::matrix), ",0,\"x,y\"\r\na|b,0.1,-inf\r\nc,1,nan\r\n");
  EXPECT_EQ(copied("csv", CopyScope::row, 1), ",0,\"x,y\"\r\nc,1,nan\r\n");
  EXPECT_EQ(copied("csv", CopyScope::number, 1, 0), "1");
}

TEST(CopyText, AsMarkdownIsATableWhoseLabelsAreEscaped) {
  EXPECT_EQ(copied("markdown", CopyScope::matrix),
            "| | 0 | x,y |\n|---|---:|---:|\n| a\\|b | 0.10 | −∞ |\n| c | 1.00 | NaN |\n");
  EXPECT_EQ(copied("markdown", CopyScope::number, 0, 0, 4), "0.1000");
}

TEST(CopyText, AsMarkdownHasNeitherLinksNorTagsNorLinesOfLabels) {
  const LabeledMatrix m{
      arma::mat(1, 1, arma::fill::ones), {"![x](http://y)\n| forged"}, {"<b>&\u202e\u0085"}};
  EXPECT_EQ(copy_formats()[2].text(m, {CopyScope::matrix, 0, 0}, 0),
            "| | \\<b\\>\\&   |\n|---|---:|\n| \\!\\[x\\](http://y) \\| forged | 1 |\n");
}

TEST(CopyText, AsLatexIsAMatrix) {
  EXPECT_EQ(copied("latex", CopyScope::matrix),
            "\\begin{bmatrix}\n  0.10 & -\\infty \\\\\n  1.00 & \\mathrm{NaN}\n\\end{bmatrix}\n");
}

TEST(CopyText, AsPythonKeepsEveryDigit) {
  EXPECT_EQ(copied("numpy", CopyScope::row), "np.array([0.1, -float('inf')])");
  EXPECT_EQ(copied("pytorch", CopyScope::matrix),
            "torch.tensor([[0.1, -float('inf')],\n              [1., float('nan')]], dtype=torch.float64)\n");
  EXPECT_EQ(copied("numpy", CopyScope::number), "0.1");
}

TEST(CopyText, RoundsANegativeNumberToAPlainZero) {
  const LabeledMatrix m{arma::mat(1, 1, arma::fill::value(-0.001)), {"a"}, {"b"}};
  EXPECT_EQ(copy_formats()[3].text(m, {CopyScope::number, 0, 0}, 2), "0.00");
}

}  // namespace
}  // namespace core::formats
