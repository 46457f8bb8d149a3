#include "core/lessons/expression.hpp"

#include <gmock/gmock.h>

#include "core/base/error.hpp"

namespace core::lessons {
namespace {

/// A subject of two matrices, a number and a text; `m` was zero before, `v` has no head 1.
std::optional<LessonValue> subject(const NameReference& reference) {
  if (reference.name == "m")
    return reference.before ? arma::mat(2, 2, arma::fill::zeros) : arma::mat{{1, 2}, {3, 4}};
  if (reference.name == "v") return reference.head.value_or(0) == 0 ? arma::mat{{5, 6, 7}} : arma::mat();
  if (reference.name == "n") return reference.before ? 1.0 : 2.0;
  if (reference.name == "word") return std::string("none");
  if (reference.name == "broken") throw Error("must not be asked for");
  return std::nullopt;
}

TEST(Expression, HasTheUsualPrecedenceAndLooksAtCells) {
  for (const char* text : {"1 + 2 * 3 == 7",
                           "not 1 > 2 and 2 - 1 - 1 == 0",
                           "-2 + 3 == 1",
                           "1e-9 < 0.5",
                           "n == 2 and before.n == 1",
                           "m[1, 0] == 3",
                           "m[-1, -1] == 4",
                           "v[-1] == 7",
                           "not m[9, 0] > 0 and not m[9, 0] < 1",
                           "max(m) - min(m) == 3",
                           "sum(m == 4) == 1",
                           "sum(m != before.m) == 4",
                           "moved(m) == 4",
                           "changed(n)",
                           "changed(v@1) or moved(v@1) == 0",
                           "word == 'none'",
                           "word != 'other'",
                           "sum(row(m, -1)) == 7",
                           "sum(row_sums(m) * 2) == 20",
                           "row_moves(m)[1] == 4",
                           "max(but_last(row_moves(m))) == 2",
                           "if(n == 2, 5, broken) == 5",
                           "1 or broken",
                           "not (0 and broken)",
                           "argmax(m, 0) == 1"})
    EXPECT_TRUE(holds(text, subject)) << text;
}

TEST(Expression, FillsATextWithNumbersAndWords) {
  EXPECT_EQ(interpolate("{n} of {sum(m)}: {list(row(m, 0))}, {word & ' at ' & 1 / 3}.", subject),
            "2 of 10: 1 and 2, none at 0.3333.");
}

TEST(Expression, NamesWhatItCannotRead) {
  struct Case {
    const char *text, *why;
  };
  for (const Case& c : std::vector<Case>{{"unknown > 1", "there is no \"unknown\""},
                                         {"max(m", "expected \")\""},
                                         {"max(m, m)", "max takes 1 arguments"},
                                         {"1 2", "unexpected \"2\""},
                                         {"word + 1", "expected a number"},
                                         {"n[0]", "expected a matrix"},
                                         {"'open", "expected \"'\""},
                                         {"", "expected a value"}})
    try {
      holds(c.text, subject);
      ADD_FAILURE() << c.text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(c.why)) << c.text;
    }
}

}  // namespace
}  // namespace core::lessons
