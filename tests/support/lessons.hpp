#pragma once

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
