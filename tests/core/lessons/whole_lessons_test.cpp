// The lessons about a whole model, tried on that model.
#include <gmock/gmock.h>

#include <set>

#include "core/editing/edit.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/core/model/goldens.hpp"

namespace core::lessons {
namespace {

using experiment::Experiment;
using experiment::TextReading;
using testing::HasSubstr;

/// A user's edits in a step, and the layer and head selected afterwards.
struct Tried {
  Experiment experiment;
  std::size_t layer = 0, head = 0;
};

struct WholeLesson : testing::Test {
  std::shared_ptr<const transformer::Transformer> model =
      transformer::goldens::opened(transformer::goldens::tiny_gpt);
  transformer::goldens::Tools tools;

  const LessonStep& step_of(const char* lesson, std::size_t step) { return find_lesson(lesson)->steps[step]; }
  TextReading read(const Experiment& e) { return experiment::read(*model, e, nullptr, tools.context); }
  WholeStepState at(const TextReading& before, const TextReading& now, std::size_t layer, std::size_t head) {
    return {*model, before, now, layer, head};
  }
  /// Expects a step to be done only after it was tried, and returns its observation.
  std::string seen_after(const char* lesson, std::size_t step, const Tried& tried) {
    const LessonStep& what = step_of(lesson, step);
    const TextReading before = read(experiment_at_start(what)), now = read(tried.experiment);
    EXPECT_FALSE(is_done(what, at(before, before, before.experiment.layer, 0))) << lesson << " " << step;
    const WholeStepState state = at(before, now, tried.layer, tried.head);
    EXPECT_TRUE(is_done(what, state)) << lesson << " " << step;
    return seen(what, state);
  }
  Experiment start(const char* lesson, std::size_t step) {
    return experiment_at_start(step_of(lesson, step));
  }
};

TEST_F(WholeLesson, NextWordIsSeenStepByStep) {
  constexpr const char* lesson = "next-word";
  Experiment longer = start(lesson, 0);
  longer.text += " Bingley";
  EXPECT_THAT(seen_after(lesson, 0, {longer}), HasSubstr("10 tokens instead of 7"));

  Experiment written = start(lesson, 1);
  written.made = {*model->tokenizer().find("ĠB")};
  EXPECT_THAT(seen_after(lesson, 1, {written}), HasSubstr("It generated “ B”; next it predicts “ing”"));

  Experiment one_off = start(lesson, 3);
  one_off.heads_off = {{3, 0}};
  EXPECT_THAT(seen_after(lesson, 3, {one_off}), HasSubstr("Without 1 head “ B” has 0."));

  const TextReading plain = read(start(lesson, 4));
  const attention::Model unedited = experiment::unedited_layer(*model, plain, 0);
  attention::Model after = unedited;
  after.mask.causal = false;
  const Experiment edited = experiment::with_layer(plain.experiment, 0, unedited, after, "mask");
  EXPECT_THAT(seen_after(lesson, 4, {edited}), HasSubstr("With layer 0 edited “ B” has 0."));
}

/// Expected values: NumPy, by the functions of tests/python/check_circuits.py.
TEST_F(WholeLesson, TwoPromptsAreSeenStepByStep) {
  using transformer::Patch, transformer::PatchedPart;
  const auto seen_with = [&](std::size_t step, const std::set<Patch>& patches) {
    Experiment e = start("two-prompts", step);
    e.patches = patches;
    const TextReading first = read(e.unedited()), now = read(e), before = read(start("two-prompts", step));
    const WholeStepState state{*model, before, now, 2, 0, &first};
    const LessonStep& what = step_of("two-prompts", step);
    EXPECT_FALSE(is_done(what, {*model, before, before, 2, 0, &first})) << step;
    return (is_done(what, state) ? "" : "not done: ") + seen(what, state);
  };
  EXPECT_THAT(seen_with(0, {{2, PatchedPart::head, 0}}),
              HasSubstr("With head 2.0 from A, the difference has gone 0.362"));
  EXPECT_THAT(seen_with(0, {{2, PatchedPart::head, 2}}), HasSubstr("not done"));
  EXPECT_THAT(
      seen_with(1, {{2, PatchedPart::head, 0}, {2, PatchedPart::head, 3}}),
      HasSubstr(
          "With head 2.0 and head 2.3 from A, 0.7546 of the difference comes back, and the top prediction "
          "after “food” is “ig”"));
  EXPECT_THAT(seen_with(2, {{3, PatchedPart::residual, 0, 13}}),
              HasSubstr("layer 3, position 13 recovers 0.966"));
}

TEST_F(WholeLesson, PinsTheTokenOfStepsThatMeasureIt) {
  for (const Lesson& lesson : lessons())
    for (const LessonStep& step : lesson.steps)
      if (step.done.find("followed_probability") != std::string::npos ||
          step.seen.find("{followed}") != std::string::npos) {
        EXPECT_TRUE(step.pins_token) << lesson.name << ": " << step.title;
      }
}

TEST_F(WholeLesson, NextWordAsksForTheFirstLayerThatKnows) {
  const LessonStep& what = step_of("next-word", 2);
  const TextReading reading = read(experiment_at_start(what));
  std::vector<bool> done;
  for (std::size_t layer = 0; layer < 4; ++layer)
    done.push_back(is_done(what, at(reading, reading, layer, 0)));
  EXPECT_EQ(std::ranges::count(done, true), 1);
  EXPECT_FALSE(done[3]) << "where the step begins";
}

TEST_F(WholeLesson, InductionIsSeenStepByStep) {
  constexpr const char* lesson = "induction";
  Experiment ham = start(lesson, 0);
  ham.text = "egg jam ham and egg jam f";
  EXPECT_THAT(seen_after(lesson, 0, {ham}), HasSubstr("“ig” has 0.0"));
  EXPECT_THAT(seen_after(lesson, 1, {start(lesson, 1), 2, 3}), HasSubstr("head 2.3 puts 0.5158"));

  // Probabilities: NumPy's (tests/fixtures/transformer/make_lens.py).
  Experiment off = start(lesson, 2);
  off.heads_off = {{2, 3}};
  EXPECT_THAT(seen_after(lesson, 2, {off}), HasSubstr("Without head 2.3 “ig” has 0.3760 instead of 0.9285"));
  off.heads_off.insert({2, 0});
  EXPECT_THAT(seen_after(lesson, 3, {off}),
              HasSubstr("Without 2.0 and 2.3 “ig” has 0.0135 instead of 0.9285"));
  off.heads_off = {{0, 2}};
  EXPECT_THAT(seen_after(lesson, 4, {off}), HasSubstr("Without head 0.2, head 2.2 puts 0."));
}

/// "Ablate 2.0 first: the others still copy. Then ablate 2.3": probabilities as NumPy computes them.
TEST_F(WholeLesson, InductionNamesTheHeadsThatBackEachOtherUp) {
  const LessonStep& step = step_of("induction", 3);
  const Experiment plain = experiment_at_start(step);
  const TextReading before = read(plain);
  using Heads = decltype(Experiment::heads_off);
  const auto after = [&](const Heads& off) {
    Experiment e = plain;
    e.heads_off = off;
    const TextReading now = read(e);
    const WholeStepState state = at(before, now, 2, 0);
    return std::pair(is_done(step, state), seen(step, state));
  };
  for (const auto& [head, words] : {std::pair(0, "0.6590"), {1, "0.9341"}, {2, "0.7547"}, {3, "0.3760"}})
    EXPECT_THAT(after({{2, static_cast<std::size_t>(head)}}).second, HasSubstr(words)) << head;
  EXPECT_FALSE(after({{2, 0}}).first);
  EXPECT_TRUE(after({{2, 0}, {2, 3}}).first);
}

TEST_F(WholeLesson, InductionTakesNoOtherHeadForOne) {
  const LessonStep &find = step_of("induction", 1), &remove = step_of("induction", 2),
                   &earlier = step_of("induction", 4);
  Experiment experiment = experiment_at_start(find);
  const TextReading before = read(experiment);
  std::vector<std::size_t> found_in;
  for (std::size_t layer = 0; layer < 4; ++layer)
    for (std::size_t head = 0; head < 4; ++head)
      if (is_done(find, at(before, before, layer, head))) found_in.push_back(layer);
  EXPECT_EQ(found_in, (std::vector<std::size_t>{2, 2, 2, 2}));  // the model card's induction heads
  experiment.heads_off = {{1, 1}};
  const TextReading other = read(experiment);
  EXPECT_FALSE(is_done(remove, at(before, other, 1, 1)));
  EXPECT_FALSE(is_done(earlier, at(before, other, 1, 1)));
}

TEST_F(WholeLesson, TakesAnyText) {
  for (const Lesson& lesson : lessons()) {
    if (lesson.model.empty()) continue;
    for (const LessonStep& step : lesson.steps) {
      const LessonStep& what = step;
      const TextReading before = read(experiment_at_start(what));
      for (const char* text : {"a", "漢字 🙂", "Emma was very much"}) {
        Experiment other{.text = text, .heads_off = {{0, 2}, {2, 0}, {2, 3}, {3, 3}}};
        const TextReading now = read(other);
        const WholeStepState state = at(before, now, 3, 3);
        if (!is_done(what, state)) continue;
        EXPECT_EQ(seen(what, state).back(), '.') << lesson.name << ": " << step.title;
      }
    }
  }
}

}  // namespace
}  // namespace core::lessons
