#pragma once

#include "app/session/command.hpp"
#include "tests/support/program.hpp"

namespace gui {

/// Some panels of the window alone, drawn and carried out by the program's own loop; what they ask for is
/// kept.
class Panels : public Program {
 public:
  explicit Panels(app::Loop::Draw draw, ImVec2 size = {1600, 1000});

  const core::attention::Model& model() const { return store.model(); }
  const app::View& view() const { return store.view(); }
  const app::Message& message() const { return store.message(); }

  void look(const std::function<void(app::View&)>& change) { store.dispatch(app::ChangeView{change}); }
  void change(const std::function<void(core::attention::Model&)>& change);
  void show(core::attention::Model model);
  /// A preset in place of all work.
  void load(const std::string& preset);

  /// What was asked for since the last call, of one kind.
  template <class Kind>
  std::vector<Kind> asked() const {
    std::vector<Kind> found;
    for (const app::Command& command : *asked_)
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
  void forget() { asked_->clear(); }

  /// Of the last frame.
  int vertices() const { return ImGui::GetDrawData()->TotalVtxCount; }

 private:
  using Asked = std::shared_ptr<std::vector<app::Command>>;
  Panels(app::Loop::Draw draw, ImVec2 size, Asked asked);

  Asked asked_;
};

}  // namespace gui
