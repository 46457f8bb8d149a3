#include <gmock/gmock.h>

#include "core/base/utf8.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/out/tables.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats::readers {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::IsEmpty;

std::string error_of_table(std::string_view text, const TableRules& rules = {}) {
  return support::error_of([&] { parse_table(text, "a.csv: ", rules); });
}

void expect_two_by_two(std::string_view text, const TableRules& rules = {}) {
  const Tensor tensor = parse_table(text, "a.csv: ", rules);
  EXPECT_EQ(tensor.shape, (TensorShape{2, 2})) << text;
  EXPECT_THAT(tensor.numbers, ElementsAre(1, -2.5, 300, 4)) << text;
}

TEST(Table, FindsTheSeparatorOut) {
  expect_two_by_two("1,-2.5\r\n3e2,4\r\n");
  expect_two_by_two("1;-2.5\n300;4");
  expect_two_by_two("1\t-2.5\n300\t4\n\n");
  expect_two_by_two("  1   -2.5 \n300 4 \n");
  expect_two_by_two("\"1\",\" -2.5\"\n300,\"4\"\n");
  expect_two_by_two(
      "\xEF\xBB\xBF"
      "1, −2.5\n+300, 4");
}

TEST(Table, HasADecimalCommaOnlyWhenThatIsSaid) {
  TableRules comma;
  comma.decimal_comma = true;
  expect_two_by_two("1;-2,5\n300;4", comma);
  EXPECT_EQ(
      error_of_table("1;-2,5\n300;4"),
      "a.csv: line 1, column 2: expected a number with a decimal point, got \"-2,5\"; for decimal commas "
      "give --decimal-comma, or choose them in the dialog");
  for (const char* text : {"0,25;0,75\n1;0", "0,25;1\n0;1"})  // no names of columns or rows
    EXPECT_THAT(error_of_table(text),
                testing::HasSubstr("line 1, column 1: expected a number with a decimal point"));
  const support::TemporaryDirectory directory;
  for (const char* name : {"a.csv", "a.txt"}) {
    support::put_bytes(directory / name, "1;-2,5\n300;4");
    for (const auto& path : {directory / name, directory.path()}) {
      const TensorFile file = open_tensors(path, StopToken(), DecimalMark::comma);
      EXPECT_THAT(file.read("a").numbers, ElementsAre(1, -2.5, 300, 4)) << path;
    }
    std::filesystem::remove(directory / name);
  }
}

TEST(Table, FindsNamesOfRowsAndColumnsOut) {
  const auto both = parse_table(",The,3\nThe,1,2\n\"dog, \"\"old\"\"\",3,4\n", "");
  EXPECT_THAT(both.column_labels, ElementsAre("The", "3"));
  EXPECT_THAT(both.row_labels, ElementsAre("The", "dog, \"old\""));
  EXPECT_THAT(both.numbers, ElementsAre(1, 2, 3, 4));
  const auto columns = parse_table("a,b\n1,2\n", "");
  EXPECT_THAT(columns.column_labels, ElementsAre("a", "b"));
  EXPECT_THAT(columns.row_labels, IsEmpty());
  const auto numbered = parse_table(",0,1\n0,5,6\n1,7,8\n", "");
  EXPECT_THAT(numbered.row_labels, ElementsAre("0", "1"));
  EXPECT_EQ(numbered.shape, (TensorShape{2, 2}));
  const auto shorter = parse_table("a;b\nx;1;2\n", "");
  EXPECT_THAT(shorter.column_labels, ElementsAre("a", "b"));
  EXPECT_THAT(shorter.row_labels, ElementsAre("x"));
}

TEST(Table, DoesNotTakeANumberGoneWrongForAName) {
  EXPECT_EQ(error_of_table("1e-05f,0.2,0.3\n0.1,0.5,0.6\n0.3,0.8,0.9"),
            "a.csv: line 1, column 1: expected a number, got \"1e-05f\"");
  EXPECT_EQ(error_of_table("a,b,c\n1.0.0,0,0\n0.5,0.5,0"),
            "a.csv: line 2, column 1: expected a number, got \"1.0.0\"");
  EXPECT_EQ(error_of_table("n/a,0,0\n0.5,0.5,0"), "a.csv: line 1, column 1: expected a number, got \"n/a\"");
  EXPECT_EQ(error_of_table("NA,NA,NA\n1,2,3\n4,5,6"),
            "a.csv: line 1, column 1: expected a number, got \"NA\"");
  // A number among textual labels is a label, and so is text that only begins with a number.
  EXPECT_THAT(parse_table("in,1,2\n2024,3,4\n", "").row_labels, ElementsAre("in", "2024"));
  EXPECT_THAT(parse_table("2nd,1,2\n3rd,3,4\n", "").row_labels, ElementsAre("2nd", "3rd"));
  EXPECT_THAT(parse_table("a;b\n4x;1;2\n7;3;4\n", "").row_labels, ElementsAre("4x", "7"));
}

TEST(Table, TakesNamesAsItIsTold) {
  TableRules rules;
  rules.header = false, rules.row_labels = true;
  const auto tensor = parse_table("1,2\n3,4\n", "", rules);
  EXPECT_THAT(tensor.row_labels, ElementsAre("1", "3"));
  EXPECT_THAT(tensor.numbers, ElementsAre(2, 4));
}

TEST(Table, ReadsBackWhatIsExported) {
  const LabeledMatrix matrix{{{0.1, -INFINITY}, {1e-310, NAN}}, {"\"a\",\nb", "1"}, {"2", "x;y"}};
  for (const bool labels : {true, false}) {
    const Tensor tensor = parse_table(csv_text(matrix, labels), "");
    Tensor expected = tensor;
    expected.numbers = {0.1, -INFINITY, 1e-310, NAN};
    expected.shape = {2, 2};
    EXPECT_EQ(difference(tensor, expected), "");
    if (labels) {
      EXPECT_EQ(tensor.row_labels, matrix.row_labels);
      EXPECT_EQ(tensor.column_labels, matrix.column_labels);
    }
  }
}

TEST(Table, NamesLineAndColumnOfWhatIsWrong) {
  EXPECT_EQ(error_of_table("1,2\n3,x\n"), "a.csv: line 2, column 2: expected a number, got \"x\"");
  EXPECT_EQ(error_of_table("1,2\n3,\n"), "a.csv: line 2, column 2: expected a number, got \"\"");
  EXPECT_EQ(error_of_table("1,2\n3\n"), "a.csv: line 2: expected 2 fields as in line 1, got 1");
  EXPECT_EQ(error_of_table("1,2\n\n3,4,5\n"), "a.csv: line 3: expected 2 fields as in line 1, got 3");
  EXPECT_EQ(error_of_table("1,1e999\n"),
            "a.csv: line 1, column 2: expected a number within float64, got \"1e999\"");
  EXPECT_EQ(error_of_table("1,\"2\n3,4"), "a.csv: line 1: expected a closing quote, got the end of the text");
  EXPECT_EQ(error_of_table("1,\"2\"3\n"), "a.csv: line 1: expected a separator after a closing quote");
  EXPECT_EQ(error_of_table("a,b\n"), "a.csv: expected numbers, got only a line of names");
  EXPECT_EQ(error_of_table(" \n\n"), "a.csv: expected numbers, got nothing");
  EXPECT_EQ(error_of_table("a,b,c\nx,y,1,2\n"), "a.csv: line 2, column 2: expected a number, got \"y\"");
}

TEST(Table, KeepsCountOfLinesWithinQuotes) {
  EXPECT_EQ(error_of_table(",a\n\"x\ny\",1\nz,?\n"), "a.csv: line 4, column 2: expected a number, got \"?\"");
}

TEST(Table, RefusesNamesThatAreNotUtf8) {
  EXPECT_EQ(error_of_table(",a\nb,1\nZo\xEB,2\n"),
            "a.csv: line 3, column 1: expected a name in UTF-8, got \"Zo\xEF\xBF\xBD\"");
  EXPECT_EQ(error_of_table(",a,Zo\xEB\nb,1,2\n"),
            "a.csv: line 1, column 3: expected a name in UTF-8, got \"Zo\xEF\xBF\xBD\"");
  EXPECT_EQ(error_of_table(",Zoë\nb,1\n"), "no error");
}

TEST(Table, MayBeInUtf16) {
  const std::string text = "The,Zoë\n0.25,0.75\n";
  const auto units = [&](bool is_little_endian) {
    std::string bytes = is_little_endian ? "\xFF\xFE" : "\xFE\xFF";
    for (const char32_t c : text::decode_utf8_lossy(text)) {
      const char low = static_cast<char>(c & 0xFF), high = static_cast<char>(c >> 8);
      bytes += is_little_endian ? std::string{low, high} : std::string{high, low};
    }
    return bytes;
  };
  const support::TemporaryDirectory directory;
  for (const bool is_little_endian : {true, false})
    for (const char* name : {"a.csv", "a.txt"}) {
      support::put_bytes(directory / name, units(is_little_endian));
      const Tensor tensor = open_tensors(directory / name).read("a");
      EXPECT_THAT(tensor.numbers, ElementsAre(0.25, 0.75));
      EXPECT_THAT(tensor.column_labels, ElementsAre("The", "Zoë"));
    }
  EXPECT_EQ(utf8_text("\xFF\xFE\x3D\xD8\x00\xDE\x00\xDC"s), "😀\uFFFD");  // a pair, and half of one
  EXPECT_EQ(utf8_text("\xEF\xBB\xBF"
                      "1,2"),
            "\xEF\xBB\xBF"
            "1,2");
}

TEST(Table, MayHaveAnIndexAsItsFirstLineOrColumn) {
  const support::TemporaryDirectory directory;
  const StopToken progress;
  const auto open = [&](const char* text) {
    support::put_bytes(directory / "a.csv", text);
    return open_tensors(directory / "a.csv");
  };
  const TensorFile column = open("0,0.5,0.5\n1,0.25,0.75\n2,1,0\n");
  EXPECT_EQ(find_index(column, progress), (TableIndex{false, true}));
  const Tensor named = with_index_as_names(column, {false, true}, progress).read("a");
  EXPECT_THAT(named.numbers, ElementsAre(0.5, 0.5, 0.25, 0.75, 1, 0));
  EXPECT_THAT(named.row_labels, ElementsAre("0", "1", "2"));
  EXPECT_THAT(named.column_labels, IsEmpty());
  EXPECT_THAT(index_assumptions(column, column.read("a"), {}),
              ElementsAre("the first column of a, 0, 1 …, is a column of numbers and no names of rows "
                          "(--first-column says which)"));
  EXPECT_THAT(index_assumptions(column, column.read("a"), {.column = false}), IsEmpty());
  const Tensor under_names =
      with_index_as_names(open("i,x,y\n1,0.5,0.5\n2,0.25,0.75\n3,1,0\n"), {false, true}, progress).read("a");
  EXPECT_THAT(under_names.column_labels, ElementsAre("x", "y"));
  EXPECT_THAT(under_names.row_labels, ElementsAre("1", "2", "3"));
  const Tensor line = with_index_as_names(open("0,1,2\n5,6,7\n"), {true, false}, progress).read("a");
  EXPECT_THAT(line.numbers, ElementsAre(5, 6, 7));
  EXPECT_THAT(line.column_labels, ElementsAre("0", "1", "2"));
  for (const char* text : {"0,1\n1,0\n", "1,2\n2,1\n3,3\n4,5\n6,6\n", "0.5,1\n1,2\n2,3\n"})
    EXPECT_FALSE(find_index(open(text), progress).column) << text;
  EXPECT_EQ(support::error_of([&] {
              with_index_as_names(column, {true, false}, progress);
            }),
            (directory / "a.csv").string() +
                ": expected a table whose first line is 0, 1, 2 … or 1, 2, 3 …, which can be names");
}

TEST(WrittenNumber, MayBeWrittenInManyWays) {
  EXPECT_EQ(parse_number_field(" +1.5 "), 1.5);
  EXPECT_EQ(parse_number_field("1."), 1.0);
  EXPECT_EQ(parse_number_field(".5"), 0.5);
  EXPECT_EQ(parse_number_field("-Infinity"), -INFINITY);
  EXPECT_EQ(parse_number_field("1E-3"), 1e-3);
  EXPECT_TRUE(std::isnan(parse_number_field("NaN").value()));
  for (const char* text : {"", "-", "--1", "+-1", "0x10", "1 2", "1e", "infinite", "1_000"})
    EXPECT_EQ(parse_number_field(text), std::nullopt) << text;
}

TEST(LastDigit, IsHalfOfWhatItShows) {
  EXPECT_DOUBLE_EQ(half_last_digit("0.1234"), 0.00005);
  EXPECT_DOUBLE_EQ(half_last_digit("-1.50e-03"), 0.000005);
  EXPECT_DOUBLE_EQ(half_last_digit("2.5e+01"), 0.5);
  EXPECT_EQ(half_last_digit("12"), 0);
  EXPECT_EQ(half_last_digit("0.0e-2147483648"), 0);
  EXPECT_EQ(half_last_digit("0.0e-99999999999"), 0);
  EXPECT_EQ(half_last_digit("-inf"), 0);
}

TEST(Table, TakesNumbersThatFloat64CannotHoldForNumbers) {
  const auto small = parse_table("1e-400,0.5\n-1e-99999999999999999999,0.75\n", "");
  EXPECT_THAT(small.numbers, ElementsAre(0, 0.5, 0, 0.75));
  EXPECT_THAT(small.row_labels, IsEmpty());
  EXPECT_EQ(error_of_table("1e400,0.5\n1,2\n"),
            "a.csv: line 1, column 1: expected a number within float64, got \"1e400\"");
}

TEST(Table, TakesTheSignBeforeALabelAwayThatKeepsSpreadsheetsFromRunningIt) {
  const std::vector<std::string> labels{"=1+1", "-", "'=x", "'", "it's", "@a"};
  const LabeledMatrix m{arma::mat(6, 6, arma::fill::ones), labels, labels};
  const Tensor tensor = parse_table(csv_text(m), "");
  EXPECT_EQ(tensor.row_labels, labels);
  EXPECT_EQ(tensor.column_labels, labels);
}

TEST(Table, OfOneEndlessLineIsRefusedBeforeItTakesAllMemory) {
  EXPECT_EQ(error_of_table(std::string(3 << 20, '\t')),
            "a.csv: line 1: expected at most 1048576 fields, got more");
}

}  // namespace
}  // namespace core::formats::readers
