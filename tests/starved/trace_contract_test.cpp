// Whatever an update throws, the visible trace belongs to the displayed model.
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "app/session/live_trace.hpp"
#include "core/base/error.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/attend.hpp"
#include "tests/core/engine/agreement.hpp"
#include "tests/starved/allocation_failer.hpp"
#include "tests/support/random_model.hpp"

namespace starved {
namespace {

using core::attention::Model;
using core::attention::Trace;
using core::attention::fast::Engine;

struct Edit {
  const char* name;
  std::function<void(Model&)> make;
};

/// Returns one edit for each way in which an engine updates to the next model.
std::vector<Edit> edits() {
  return {{"embedding", [](Model& m) { m.sequences[0].embeddings.set(1, 2, 2.5); }},
          {"query weight", [](Model& m) { m.projections->query.weight.set(1, 3, 1.5); }},
          {"key bias", [](Model& m) { m.projections->key.bias->set(0, 2, -1.5); }},
          {"value weight", [](Model& m) { m.projections->value.weight.set(0, 5, 1.5); }},
          {"output weight", [](Model& m) { m.projections->output->weight.set(0, 1, 3); }},
          {"mask cell",
           [](Model& m) {
             m.mask.cells = {{4, 1, false}};
           }},
          {"dropout", [](Model& m) { m.dropout.seed += 1; }},
          {"scale", [](Model& m) { m.scale.rule = core::attention::ScaleRule::none; }},
          {"another shape", [](Model& m) { m.n_heads = 4; }},
          {"what an engine leaves to the formulas", [](Model& m) { m.heads_off = {1}; }},
          {"not a finite number", [](Model& m) { m.sequences[0].embeddings.set(2, 2, INFINITY); }}};
}

std::vector<Model> models() {
  support::Random random(5);
  Model plain = core::attention::fast::calm_model(random, 7, 6, 8, 2), today = plain;
  plain.dropout.rate = 0.25;
  today.additions.positions.rotary.emplace();
  today.mask.window.left = 3;
  return {plain, today};
}

/// Calls action() with each of its allocations failing, alone or with all later ones, then look() with
/// enough memory.
void fail_each(const std::function<void()>& prepare, const std::function<void()>& action,
               const std::function<void()>& look) {
  const auto act = [&](std::size_t failing, bool and_all_that_follow) {
    prepare();
    const AllocationFailer failer(failing, and_all_that_follow);
    try {
      action();
    } catch (const std::bad_alloc&) {
    } catch (const std::runtime_error&) {  // Armadillo's form of the same error
    }
    return failer.n_allocations();
  };
  const std::size_t n_allocations = act(SIZE_MAX, false);
  ASSERT_GT(n_allocations, 0u);
  for (const bool and_all_that_follow : {false, true})
    for (std::size_t number = 0; number < n_allocations; ++number) {
      act(number, and_all_that_follow);
      SCOPED_TRACE(testing::Message() << "allocation " << number << " of " << n_allocations);
      ASSERT_NO_FATAL_FAILURE(look());
    }
}

/// Expects the held model to be the old or the new one, and the trace to belong to it.
void expect_true(const Model& held, const Trace& trace, const Model& before, const Model& after) {
  ASSERT_TRUE(held == before || held == after);
  ASSERT_TRUE(core::attention::fast::agree(held, trace, core::attention::attend(held), 1e-12));
}

TEST(TraceContract, HoldsWhateverAllocationOfAnUpdateOfTheEngineFails) {
  for (const Model& before : models())
    for (const Edit& edit : edits()) {
      SCOPED_TRACE(edit.name);
      Model after = before;
      edit.make(after);
      Engine engine(2);
      fail_each(
          [&] { engine.compute(before); }, [&] { engine.update(after); },
          [&] {
            expect_true(engine.model(), engine.trace(), before, after);
            EXPECT_TRUE(arma::approx_equal(arma::mat(engine.output()),
                                           arma::mat(*engine.trace().at(core::attention::Stage::output)),
                                           "absdiff", 0) ||
                        !engine.trace().at(core::attention::Stage::output)->is_finite());
          });
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(TraceContract, HoldsWhenARuleRefusesTheModel) {
  const Model before = models().front();
  Model after = before;
  after.n_heads = 3;  // does not divide 8 columns
  Engine engine(2);
  engine.compute(before);
  EXPECT_THROW(engine.update(after), core::Error);
  expect_true(engine.model(), engine.trace(), before, before);
}

TEST(TraceContract, HoldsInWhatTheWindowShows) {
  support::Random random(6);
  const Model before =
      core::attention::fast::calm_model(random, 170, 4, 8, 2);  // large enough for the engine
  Model after = before;
  after.sequences[0].embeddings.set(1, 2, 2.5);
  app::Jobs jobs;
  bool refuses = false;
  app::LiveTrace live(jobs, before, 1e9, [&] {
    if (refuses) throw core::Error("no room");
  });
  const auto look = [&] { expect_true(live.model(), live.trace(), before, after); };
  fail_each([&] { live.follow(before, 0); }, [&] { live.follow(after, 0); }, look);
  live.follow(before, 0);
  refuses = true;
  EXPECT_THROW(live.follow(after, 0), core::Error);
  look();
}

}  // namespace
}  // namespace starved
