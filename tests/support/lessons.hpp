#pragma once

#include <functional>
#include <map>
#include <vector>

#include "app/session/command.hpp"
#include "app/session/store.hpp"
#include "tests/core/lessons/tried.hpp"

namespace support {

/// Returns the directory of the model in lessons about a whole model.
inline std::filesystem::path model_of_lessons() {
  return std::filesystem::path(FIXTURES) / "../../assets/examples/tiny_gpt";
}

/// Returns the user commands for "try it" in a step of a lesson.
inline std::vector<app::Command> tried(const core::lessons::Lesson& lesson, std::size_t step) {
  using Commands = std::vector<app::Command>;
  if (lesson.trains()) {
    const auto changed = [&](const std::function<void(core::training::TrainingSetup&)>& change) {
      const auto& start = lesson.steps[step].start;
      core::training::TrainingSetup setup = start.setup;
      change(setup);
      return app::Command(app::SetLearning{start.task, "", setup});
    };
    const app::ToggleLearnedHead off{1, 1};
    const std::map<std::string, std::vector<Commands>> all_runs{
        {"why-mask",
         {{app::StepLearning{60}},
          {changed([](auto& s) { s.causal = false; }), app::StepLearning{250}},
          {changed([](auto& s) { s.causal = true; })}}},
        {"why-scale",
         {{app::StepLearning{100}},
          {app::StepLearning{100}},
          {changed([](auto& s) { s.mistake = ""; }), app::StepLearning{150}}}},
        {"two-layers",
         {{app::StepLearning{120}}, {changed([](auto& s) { s.n_layers = 2; }), app::StepLearning{250}}}},
        {"taken-over", {{off}, {off, app::StepLearning{100}}}},
    };
    return all_runs.at(lesson.name).at(step);
  }
  if (lesson.model.empty()) {
    Commands commands;
    const auto edits = tests::tried();
    for (const auto& edit : edits.at(lesson.name)[step]) {
      commands.push_back(app::ApplyEdit{edit});
      commands.push_back(app::EndGesture{});
    }
    return commands;
  }
  using core::attention::Stage;
  using core::transformer::PatchedPart;
  const app::Command third_head = app::set<&app::Look::head>(3);
  const std::map<std::string, std::vector<Commands>> all{
      {"next-word",
       {{app::ReadText{"Mr. Darcy and Miss Bingley"}},
        {app::StepGeneration{}},
        {app::ShowLayer{2}},
        {app::ToggleLayerHead{3, 0}},
        {app::ApplyEdit{core::editing::SetCausal{false}}}}},
      {"induction",
       {{app::ReadText{"egg jam ham and egg jam f"}},
        {app::ShowLayer{2}, third_head},
        {app::ToggleLayerHead{2, 3}},
        {app::ToggleLayerHead{2, 3}, app::ToggleLayerHead{2, 0}},
        {app::ToggleLayerHead{0, 2}}}},
      {"two-prompts",
       {{app::TogglePatch{{2, PatchedPart::head, 0}}},
        {app::TogglePatch{{2, PatchedPart::head, 0}}, app::TogglePatch{{2, PatchedPart::head, 3}}},
        {app::TogglePatch{{3, PatchedPart::residual, 0, 13}}}}},
      {"why",
       {{app::PinCell{{Stage::weights, 0, 13, 6}}},
        {app::set<&app::LayersLook::shows_sources>(true), app::set<&app::LayersLook::source>("head 0.2")},
        {app::ShowLayer{0}, app::FollowCell{{Stage::weights, 2, 6, 5}}},
        {app::ToggleLayerHead{0, 2}}}},
  };
  return all.at(lesson.name).at(step);
}

}  // namespace support
