#include <gmock/gmock.h>

#include "core/graph/attend.hpp"
#include "tests/golden/fixture_model.hpp"
#include "tests/support/matchers.hpp"

namespace golden {
namespace {

/// Returns the IDs of the cases with every stage.
std::vector<std::string> full_cases() {
  std::vector<std::string> ids;
  for (const auto& [id, schema] : support::fixture_schemas())
    if (schema == "attention-fixture-1") ids.push_back(id);
  return ids;
}

TEST(Fixtures, AreAllThere) {
  std::size_t n_printed = 0;
  for (const std::string& id : full_cases()) n_printed += support::read_fixture(id).printed.size();
  EXPECT_EQ(full_cases().size(), 25u);
  EXPECT_EQ(n_printed, 10u) << "tensors of numbers that notebooks print";
}

struct FullCase : testing::TestWithParam<std::string> {
  support::Fixture fixture = support::read_fixture(GetParam());
};

TEST_P(FullCase, EqualsEveryStageAndWhatTheNotebookPrints) {
  expect_stages(fixture, model_of(fixture));
  expect_printed(fixture, model_of(fixture));
}

TEST_P(FullCase, EqualsEveryStageOfTheEngine) {
  expect_stages_of_engine(fixture, model_of(fixture));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, FullCase, testing::ValuesIn(full_cases()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace golden
