#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "core/base/number.hpp"
#include "core/files/json.hpp"
#include "core/files/session.hpp"
#include "core/out/export.hpp"
#include "tests/support/temporary_directory.hpp"

/// Sessions with every option, exported and compared with make_sessions.py, which shares no code with the
/// program.
namespace core::formats {
namespace {

using Rows = std::vector<std::vector<double>>;

double number_of(const Json& json) {
  return json.number(AllowedNumbers::any);
}

Rows rows_of(const Json& json) {
  Rows rows;
  for (const Json& row : json.items("rows")) {
    rows.emplace_back();
    for (const Json& cell : row.items("numbers")) rows.back().push_back(number_of(cell));
  }
  return rows;
}

Rows rows_of_csv(const std::string& text) {
  Rows rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    line.pop_back();  // CR
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');)
      rows.back().push_back(text::parse_number(cell).value());
  }
  return rows;
}

/// Compares within 1e-12 of the number plus, because sums cancel, 1e-15 of the largest.
bool is_near(double actual, double expected, double largest) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= 1e-12 * std::abs(expected) + 1e-15 * largest;
}

void expect_near(const Rows& actual, const Rows& expected, const std::string& stage) {
  double largest = 0;
  for (const auto& row : expected)
    for (const double number : row)
      if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  ASSERT_EQ(actual.size(), expected.size()) << stage;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size()) << stage;
    for (std::size_t j = 0; j < expected[i].size(); ++j)
      EXPECT_TRUE(is_near(actual[i][j], expected[i][j], largest))
          << stage << "[" << i << "][" << j << "]: " << actual[i][j] << " instead of " << expected[i][j];
  }
}

class SessionStages : public testing::TestWithParam<const char*> {};

TEST_P(SessionStages, AreThoseOfAnIndependentComputation) {
  const std::string base = std::string(FIXTURES "/sessions/") + GetParam();
  const Json expected = parse_json(support::bytes_of(base + ".expected.json"), base + ".expected.json");
  const support::TemporaryDirectory dir;
  const auto written = export_stages(load_session(base + ".json").model, dir.path(), {.labels = false});
  for (const auto& [stage, rows] : expected.members())
    expect_near(rows_of_csv(support::bytes_of(dir / (stage + ".csv"))), rows_of(rows), stage);
  EXPECT_EQ(written.size(), expected.members().size());
}

INSTANTIATE_TEST_SUITE_P(
    Every, SessionStages,
    testing::Values("only_embeddings", "null_projections_scale_none", "negative_infinity_biases_output",
                    "renormalise_query_bias", "zero_after_softmax_key_bias", "large_negative_value_bias",
                    "uniform_scores", "reshape_without_transpose", "empty_rows_negative_infinity_nan",
                    "empty_rows_negative_infinity_zeros", "empty_rows_renormalise_nan",
                    "empty_rows_renormalise_zeros", "empty_rows_zero_after_softmax_nan",
                    "empty_rows_zero_after_softmax_zeros", "given_dropout", "dropout_in_evaluation",
                    "dropout_of_everything", "batch", "batch_of_one_text"),
    [](const auto& session) { return std::string(session.param); });

}  // namespace
}  // namespace core::formats
