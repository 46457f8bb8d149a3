// Attention with modern options, against cases computed from the definitions by loops in NumPy.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/check/check.hpp"
#include "core/engine/engine.hpp"
#include "core/files/json.hpp"
#include "core/files/session.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/out/numpy.hpp"
#include "core/system/file.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/temporary_directory.hpp"

namespace golden {
namespace {

using core::formats::Json;
namespace attention = core::attention;

constexpr double rounding = 1e-12;  // float64 sums in other orders

struct Case {
  attention::Model model;
  Json stages;
};

Case read_case(const std::string& name) {
  const std::string path = std::string(FIXTURES "/modern/") + name + ".json";
  const Json json = core::formats::parse_json(core::system::read_file(path, 1 << 20), path);
  const std::string session = core::formats::json_text(json.required("session"));
  return {core::formats::parse_session(session, name).model, json.required("stages")};
}

void expect_modern_stages(const Case& expected, const attention::Trace& trace) {
  std::set<std::string> found;
  for (const auto& [name, heads] : expected.stages.members()) {
    SCOPED_TRACE(name);
    const attention::StageInfo* stage = attention::find_stage(name);
    ASSERT_NE(stage, nullptr);
    EXPECT_TRUE(stage->present(expected.model));
    const auto matrices = heads.items("a matrix for each head");
    ASSERT_EQ(matrices.size(), stage->count(expected.model.n_heads));
    for (std::size_t h = 0; h < matrices.size(); ++h)
      EXPECT_TRUE(support::is_near(trace.at(stage->stage, h),
                                   matrices[h].matrix(core::formats::AllowedNumbers::any), rounding,
                                   rounding));
    found.insert(name);
  }
  EXPECT_TRUE(found.contains("weights") && found.contains("output") && found.contains("mask"));
}

struct Modern : testing::TestWithParam<std::string> {};

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(FIXTURES "/modern"))
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

TEST_P(Modern, EveryStageIsAsDefinedAndTheEngineSaysTheSame) {
  const Case expected = read_case(GetParam());
  expect_modern_stages(expected, attention::attend(expected.model));
  attention::fast::Engine engine(2);
  engine.compute(expected.model, 0);
  expect_modern_stages(expected, engine.trace());
}

TEST_P(Modern, ItsExportAgreesWithIt) {
  const attention::Model model = read_case(GetParam()).model;
  const support::TemporaryDirectory folder;
  const auto path = folder / "export.npz";
  support::put_bytes(path, core::formats::npz_bytes(model));
  const auto file = core::formats::open_tensors(path);
  const auto report = core::check::check(model, core::check::match(model, file, {}), {});
  EXPECT_TRUE(report.agrees) << core::check::report_text(report);
  EXPECT_TRUE(report.not_given.empty());
}

INSTANTIATE_TEST_SUITE_P(Cases, Modern, testing::ValuesIn(all_cases()), [](const auto& named) {
  std::string name = named.param;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace golden
