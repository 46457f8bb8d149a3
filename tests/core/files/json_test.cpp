#include "core/files/json.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.hpp"

namespace core::formats {
namespace {

std::string error_in_json(const std::string& text) {
  return support::error_of([&] { parse_json(text, "f.json"); });
}

TEST(ParseJson, KeepsOrderAndExactNumbers) {
  EXPECT_EQ(json_text(parse_json(
                R"( {"b": [1, -2.5, 18446744073709551615, -0], "a": {"x": null, "y": [true, "é\n"]}} )", "")),
            R"({"b": [1, -2.5, 18446744073709551615, -0], "a": {"x": null, "y": [true, "é\n"]}})");
}

TEST(ParseJson, ReadsMinusZero) {
  EXPECT_TRUE(std::signbit(parse_json("-0", "").number()));
  EXPECT_FALSE(std::signbit(parse_json("0", "").number()));
}

TEST(ParseJson, NamesLineAndColumn) {
  EXPECT_EQ(error_in_json("{\n  \"a\": [1, 2\n}"), "f.json: line 3, column 1: expected JSON, got \"}\"");
  EXPECT_EQ(error_in_json(""), "f.json: line 1, column 1: expected more JSON, got the end of the text");
  EXPECT_EQ(error_in_json("{\"a\": [1,"),
            "f.json: line 1, column 10: expected more JSON, got the end of the text");
  EXPECT_EQ(error_in_json("[\"éé\", x]"), "f.json: line 1, column 8: expected JSON, got \"x]\"");
  EXPECT_EQ(error_in_json("[1] 2"), "f.json: line 1, column 5: expected JSON, got \"2\"");
}

TEST(ParseJson, RefusesNumbersThatAreNone) {
  EXPECT_EQ(error_in_json("[NaN]"), "f.json: line 1, column 2: expected a finite number, got NaN");
  EXPECT_EQ(error_in_json("[-Infinity]"), "f.json: line 1, column 3: expected a finite number, got Infinity");
  EXPECT_EQ(error_in_json("[1e999]"),
            "f.json: line 1, column 6: expected a number within float64, got \"1e999\"");
}

TEST(ParseJson, RefusesAKeyTwice) {
  EXPECT_EQ(error_in_json(R"({"a": 1, "a": 2})"),
            "f.json: top level: expected the key \"a\" once, got it twice");
  EXPECT_EQ(error_in_json(R"({"a": [{}, {"b": 1, "b": 1}]})"),
            "f.json: a[1]: expected the key \"b\" once, got it twice");
}

TEST(ParseJson, RefusesWhatIsNestedTooDeep) {
  const auto nested = [](std::size_t n) {
    std::string text(n, '[');
    return text.append(n, ']');
  };
  EXPECT_EQ(error_in_json(nested(64)), "no error");
  EXPECT_EQ(error_in_json(nested(65)), "f.json: expected at most 64 levels of lists and objects, got more");
  EXPECT_EQ(error_in_json(std::string(1'000'000, '[')),
            "f.json: expected at most 64 levels of lists and objects, got more");
}

TEST(ParseJson, RefusesWhatIsNotUtf8) {
  EXPECT_EQ(error_in_json("[\"a\xff\"]"), "f.json: line 1, column 4: expected JSON, got \"�\\\"]\"");
}

TEST(Json, NamesThePlaceAndWhatWasExpected) {
  const Json top = parse_json(R"({"a": {"b": [1, "two"]}, "empty": []})", "f.json");
  const auto b = top.required("a").required("b").items("a list");
  EXPECT_EQ(b[0].number(), 1);
  EXPECT_EQ(support::error_of([&] { b[1].number(); }), "f.json: a.b[1]: expected a number, got \"two\"");
  EXPECT_EQ(support::error_of([&] { top.required("c"); }), "f.json: expected the key \"c\", got none");
  EXPECT_EQ(support::error_of([&] { top.required("empty").items("some"); }),
            "f.json: empty: expected some, got an empty list");
  EXPECT_TRUE(top.required("empty").items_or_empty("any").empty());
  EXPECT_EQ(support::error_of([&] {
              top.expect_keys({"a", "emty"});
            }),
            "f.json: expected only the keys a, emty, got \"empty\"; did you mean \"emty\"?");
}

TEST(Json, HasNoMemberAndNoFirstItemWhereItIsNeitherObjectNorList) {
  const Json top = parse_json("[[2, 3], 5]", "f.json");
  EXPECT_FALSE(top.member("a"));
  EXPECT_EQ(top.first()->first()->whole(0), 2u);
  EXPECT_FALSE(top.first()->first()->first());
}

TEST(Json, OfAPartKeepsTheWhole) {
  const auto part = [] {
    return parse_json(R"({"a": "a text too long to stand in the string itself"})", "f").required("a");
  }();
  EXPECT_EQ(part.text(), "a text too long to stand in the string itself");
}

TEST(JsonQuoted, HoldsNothingThatATerminalObeys) {
  const std::string text = "é\x7f\u009b\u202e\u2028\u0085😀";
  EXPECT_EQ(json_quoted(text), R"("é\u007f\u009b\u202e\u2028\u0085😀")");
  EXPECT_EQ(parse_json(json_quoted(text), "x").text(), text);
}

TEST(JsonQuoted, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_quoted("a\xff\"\n"), "\"a�\\\"\\n\"");
}

TEST(QuotedBriefly, CutsBetweenCharacters) {
  EXPECT_EQ(quoted_briefly("a23456789b23456789c23456789d23456789éé"),
            "\"a23456789b23456789c23456789d23456789éé\"");
  EXPECT_EQ(quoted_briefly("a23456789b23456789c23456789d23456789123éé"),
            "\"a23456789b23456789c23456789d23456789123…\"");
}

}  // namespace
}  // namespace core::formats
