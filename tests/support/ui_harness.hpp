#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/state/any_command.hpp"
#include "app/ui/frame.hpp"
#include "app/work/extents.hpp"
#include "tests/support/bare_imgui.hpp"
#include "tests/support/hands.hpp"

namespace support {

/// Real panels in a real ImGui, without a window and without OpenGL.
///
/// Edits and changes of the view are carried out after each frame, as the program does; everything that was
/// asked for is kept.
class UiHarness : public Hands {
 public:
  using Draw = std::function<void(const app::Frame&)>;

  explicit UiHarness(Draw draw, ImVec2 size = {1600, 1000});

  core::attention::Model model;
  app::View view;
  app::DocumentState document;
  app::Message message;

  const app::Landmarks& landmarks() const override { return landmarks_; }

  /// What was asked for since the last call, of one kind.
  template <class Kind>
  std::vector<Kind> asked() const {
    std::vector<Kind> found;
    for (const app::Command& command : asked_)
      if (const auto* kind = command.as<Kind>()) found.push_back(*kind);
    return found;
  }
  /// The edits of one kind among them.
  template <class Kind>
  std::vector<Kind> edits() const {
    std::vector<Kind> found;
    for (const auto& apply : asked<app::ApplyEdit>())
      if (const auto* kind = std::get_if<Kind>(&apply.edit)) found.push_back(*kind);
    return found;
  }
  void forget() { asked_.clear(); }

  /// Of the last frame.
  int vertices() const { return vertices_; }

 private:
  void frame(const InputFrame& input) override;
  void carry_out(const app::Command& command);
  app::Shown shown(const app::View& of) const { return {model, trace_, version_, of.look, of.selection}; }
  app::Newest newest(const app::View& of) const { return {model, of.look, of.selection}; }

  BareImGui imgui_;
  Draw draw_;
  std::vector<app::Command> asked_;
  app::Landmarks landmarks_;
  app::Extents extents_;
  app::Jobs jobs_;
  app::Statistics statistics_{jobs_};
  core::attention::Trace trace_;
  core::attention::Model traced_;
  std::uint64_t version_ = 0;
  int vertices_ = 0;
};

}  // namespace support
