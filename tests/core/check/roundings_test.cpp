// Mistakes in several arithmetics, computed by NumPy: tests/fixtures/check/make_rounded.py.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "core/check/check.hpp"
#include "tests/core/check/check_fixture.hpp"

namespace core::check {
namespace {

using formats::Tensor;
using support::checked;
using support::CheckFixture;
using support::named;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Causes = std::set<std::string>;
using Stages = std::set<std::string>;

const std::map<std::string, std::string> arithmetics{{"float64", ""},
                                                     {"float32", ""},
                                                     {"float16", "half_precision"},
                                                     {"bfloat16", "bfloat16_precision"},
                                                     {"tf32", "tf32_precision"},
                                                     {"tf32_cut", "tf32_precision"}};
const std::array subsets{Stages{"scores", "weights", "output"}, Stages{"weights", "output"},
                         Stages{"output"}};

/// Returns the causes of mistakes joined by "+".
Causes causes_of(const std::string& made) {
  Causes causes;
  std::istringstream names(made);
  for (std::string name; std::getline(names, name, '+');)
    if (const auto* row = bugs::find_offered_bug(name)) causes.insert(std::string(cause_of(*row)));
  return causes;
}

/// Returns the first stage in which two cases differ clearly, or "".
std::string first_differing_stage(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (const attention::StageInfo& stage : attention::stages())
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (a[k].name != stage.name) continue;
      if (a[k].shape != b[k].shape) return stage.name;
      for (std::size_t n = 0; n < a[k].numbers.size(); ++n) {
        const double x = a[k].numbers[n], y = b[k].numbers[n];
        const bool same = x == y || (std::isnan(x) && std::isnan(y));
        if (!same && !(std::abs(x - y) <= 1e-6 + 1e-5 * std::abs(y))) return stage.name;
      }
    }
  return "";
}

class RoundedTensors : public testing::TestWithParam<const char*> {
 protected:
  CheckFixture fixture{std::string("rounded_") + GetParam()};

  /// Returns the causes expected from these stages: the mistake if it shows, and the arithmetic.
  Causes expected(const std::string& mistake, const std::string& arithmetic, const Stages& stages) const {
    Causes causes;
    if (!first_differing_stage(fixture.tensors(mistake + ".float64", stages),
                               fixture.tensors("right.float64", stages))
             .empty())
      causes = causes_of(mistake);
    if (!arithmetics.at(arithmetic).empty()) causes.insert(arithmetics.at(arithmetic));
    return causes;
  }

  void expect_named(const std::string& mistake, const std::string& arithmetic, const Stages& stages) {
    // −10⁹ overflows float16, and a softmax over queries with no unmasked key makes every output NaN.
    if (mistake == "mask_finite" && arithmetic == "float16") return;
    const std::vector<Tensor> tensors = fixture.tensors(mistake + "." + arithmetic, stages);
    const bool nothing_to_see = std::ranges::all_of(tensors, [](const Tensor& tensor) {
      return std::ranges::all_of(tensor.numbers, [](double x) { return std::isnan(x); });
    });
    const Causes causes = nothing_to_see ? causes_of(mistake) : expected(mistake, arithmetic, stages);
    const Report report = checked(fixture.model, tensors);
    const std::string of = mistake + "." + arithmetic + " from " + testing::PrintToString(stages);
    const bool is_unknown = mistake == "base_two";  // not in the table of mistakes
    // For tensors kept in float16 the type already explains the rounding.
    const bool errs_as_kept = arithmetic == "float16" && causes == Causes{"half_precision"};
    EXPECT_EQ(report.agrees, (causes.empty() || errs_as_kept) && !is_unknown) << of;
    std::vector<Causes> found;
    for (const Explanation& e : report.explanations) found.emplace_back(e.causes.begin(), e.causes.end());
    ++n_checks;
    n_alternatives += found.size() > 1;
    if (is_unknown) {
      for (const Explanation& e : report.explanations)
        EXPECT_THAT(e.sentences, Contains(HasSubstr("ln 2"))) << of;
    } else if (errs_as_kept) {
      EXPECT_THAT(found, IsEmpty()) << of;
    } else if (!causes.empty()) {
      EXPECT_THAT(found, Contains(causes)) << of;
    }
    if (!stages.empty()) return;
    const std::string first =
        first_differing_stage(fixture.tensors(mistake + ".float64"), fixture.tensors("right.float64"));
    if (!first.empty() && report.first_difference()) {
      EXPECT_EQ(attention::info(report.first_difference()->stage).name, first) << of;
    }
  }

  std::size_t n_checks = 0, n_alternatives = 0;
};

TEST_P(RoundedTensors, AreExplainedByTheMistakeAndTheArithmetic) {
  std::size_t k = 0;
  for (const std::string& name : fixture.cases()) {
    const std::string mistake = name.substr(0, name.rfind('.')), arithmetic = name.substr(mistake.size() + 1);
    // From all stages, from some, or not at all: with each mistake another arithmetic.
    const std::size_t turn = (k + k / arithmetics.size()) % 3;
    if (turn < 2) expect_named(mistake, arithmetic, turn == 0 ? Stages{} : subsets[k % subsets.size()]);
    ++k;
  }
  EXPECT_GE(n_checks, 20u);
  EXPECT_LE(n_alternatives, n_checks / 5) << "few tensors may not tell causes apart, but most do";
}

INSTANTIATE_TEST_SUITE_P(Models, RoundedTensors, testing::Values("full", "plain", "cross", "cut"),
                         [](const auto& of) { return std::string(of.param); });

/// Tensors of the correct model in one arithmetic, to be modified.
struct JudgedTensors : support::CheckOfOneModel {
  JudgedTensors() : CheckOfOneModel("rounded_plain") {}

  std::vector<Tensor> right_in(const std::string& arithmetic) const {
    return fixture.tensors("right." + arithmetic);
  }
  /// Multiplies a tensor's deviations from the exact one by `times` wherever where(row, column) holds.
  template <class Where>
  void move(Tensor& tensor, double times, Where where) const {
    std::vector<Tensor> all = right_in("float64");
    const Tensor& exact = named(all, tensor.name);
    const std::size_t n_columns = tensor.shape.back();
    for (std::size_t n = 0; n < tensor.numbers.size(); ++n)
      if (where(n / n_columns, n % n_columns))
        tensor.numbers[n] = exact.numbers[n] + times * (tensor.numbers[n] - exact.numbers[n]);
  }
};

TEST_F(JudgedTensors, AreNotRoundedWhenOneIsNot) {
  const auto expect_no_cause = [&](const char* arithmetic, const char* stage, auto change) {
    SCOPED_TRACE(std::string(arithmetic) + " " + stage);
    std::vector<Tensor> tensors = right_in(arithmetic);
    change(named(tensors, stage));
    const Report report = checked(model, tensors);
    EXPECT_THAT(report.causes(), IsEmpty());
    ASSERT_NE(report.first_difference(), nullptr);
    EXPECT_EQ(report.first_difference()->tensor, stage) << "the others are rounded";
  };
  const auto moved = [&](double times, auto where) {
    return [=, this](Tensor& tensor) { move(tensor, times, where); };
  };
  for (const char* arithmetic : {"float16", "bfloat16", "tf32"})
    for (const char* stage : {"scores", "weights", "output"})
      expect_no_cause(arithmetic, stage, moved(10, [](std::size_t, std::size_t) { return true; }));
  expect_no_cause("tf32", "output", moved(10, [](std::size_t row, std::size_t) { return row == 7; }));
  expect_no_cause("tf32", "output", moved(10, [](std::size_t, std::size_t column) { return column == 5; }));
  expect_no_cause("tf32", "output", moved(0, [](std::size_t row, std::size_t) { return row % 2 == 0; }));
  expect_no_cause("tf32", "output", [](Tensor& tensor) {
    for (double& number : tensor.numbers) number *= 1.004;
  });
}

TEST_F(JudgedTensors, KeepTheFirstStageThatIsNotRounded) {
  std::vector<Tensor> tensors = right_in("bfloat16");
  for (double& number : named(tensors, "weights").numbers) number *= 1.25;
  const Report report = checked(model, tensors);
  EXPECT_EQ(report.first_difference()->tensor, "weights");
  EXPECT_THAT(report.causes(), IsEmpty());
  EXPECT_THAT(report_text(report), HasSubstr("agrees as bfloat16"));
}

TEST_F(JudgedTensors, TellCoarseSumsFromCoarseStages) {
  // 64 terms; every partial sum is rounded.
  CheckFixture wide("rounded_sums");
  EXPECT_THAT(checked(wide.model, wide.tensors("float16_sums")).causes(), ElementsAre("half_precision_sums"));
  std::vector<Tensor> stages = wide.tensors("float16");
  for (Tensor& tensor : stages) tensor.dtype = formats::Dtype::f32;
  EXPECT_THAT(checked(wide.model, stages).causes(), ElementsAre("half_precision"));
}

TEST_F(JudgedTensors, DescribeWhatNoCauseExplains) {
  std::vector<Tensor> tensors = right_in("float64");
  Tensor& output = named(tensors, "output");
  const std::size_t n_columns = output.shape.back();
  for (std::size_t n = 3; n < output.numbers.size(); n += 4)
    output.numbers[n] *= 1 + 0.05 * static_cast<double>(n / n_columns % 3);
  const Report report = checked(model, tensors);
  EXPECT_THAT(report.causes(), IsEmpty());
  EXPECT_THAT(report.pattern, HasSubstr("every 4th column"));
  EXPECT_THAT(report_text(report), HasSubstr("\nWhat differs: " + report.pattern + ".\n"));
  EXPECT_THAT(report_json(report), HasSubstr("\"pattern\": \"" + report.pattern + "\""));
}

TEST_F(JudgedTensors, SayHowManyHeadsAndWhichBlocks) {
  const Report heads = checked(model, fixture.tensors("n_heads_other.float64"));
  ASSERT_EQ(heads.explanations.size(), 1u);
  EXPECT_THAT(heads.explanations[0].sentences, ElementsAre("there are 8 heads instead of 4"));
  EXPECT_EQ(heads.explanations[0].model.n_heads, 8u);
  const CheckFixture full("rounded_full");
  const Report blocks = checked(full.model, full.tensors("last_block_dropped.float64"));
  EXPECT_THAT(blocks.causes(), Contains("last_block_dropped"));
  EXPECT_THAT(report_text(blocks), HasSubstr("keys from 6 on, as with blocks of "));
}

}  // namespace
}  // namespace core::check
