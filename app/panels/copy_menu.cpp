#include "app/panels/copy_menu.hpp"

#include <array>

#include "app/copying.hpp"
#include "core/error.hpp"

namespace app::panels {
namespace {

using core::formats::CopyExtent;

struct Extent {
  CopyExtent extent;
  const char* name;
  const char* words;
};
constexpr std::array extents{Extent{CopyExtent::matrix, "matrix", "Matrix"},
                             Extent{CopyExtent::row, "row", "Row"},
                             Extent{CopyExtent::number, "number", "Number"}};

bool line(const Frame& frame, const std::string& name, const std::string& words, bool on = false,
          const char* key = nullptr) {
  const bool chosen = ImGui::MenuItem(words.c_str(), key, on);
  frame.landmarks.mark_item(name);
  return chosen;
}

void form_lines(const Frame& frame, const Situation& situation, const CopySource& source,
                const Extent& extent) {
  const auto& forms = core::formats::copy_forms();
  for (std::size_t k = 0; k < forms.size(); ++k) {
    const std::string decimals = std::to_string(frame.view.copy_decimals) + " decimals";
    const CopyChoice choice{extent.extent, k};
    const bool repeats = frame.view.copy == choice;
    if (!line(frame, std::string("copy/") + extent.name + "/" + forms[k].name,
              forms[k].title + (forms[k].takes_decimals ? ", " + decimals : std::string()), false,
              repeats ? "Shift+Ctrl+C" : nullptr))
      continue;
    frame.commands.look([choice](View& view) { view.copy = choice; });
    frame.commands.add(CopyText{copied_as(situation, source, choice)});
  }
}

void decimal_lines(const Frame& frame) {
  for (const int n : {1, 2, 3, 4, 6, 8, 12})
    if (line(frame, "copy/decimals/" + std::to_string(n), std::to_string(n), frame.view.copy_decimals == n))
      frame.commands.look([n](View& view) { view.copy_decimals = n; });
}

void copy_program(const Frame& frame, const Newest& newest) {
  try {
    frame.commands.add(CopyText{program_of(newest.model, newest.view, frame.document.title)});
  } catch (const core::Error& error) {  // not every model can be written so
    frame.commands.add(ShowMessage{error.what(), true});
  }
}

/// A menu that is marked whether it is open or not.
template <class Lines>
void menu(const Frame& frame, const std::string& name, const char* words, bool enabled, Lines lines) {
  const bool open = ImGui::BeginMenu(words, enabled);
  if (!open) frame.landmarks.mark_item(name);
  if (!open) return;
  lines();
  ImGui::EndMenu();
  frame.landmarks.mark_item(name);
}

}  // namespace

void draw_copy_lines(const Frame& frame, const std::optional<CellRef>& cell) {
  const Situation situation = situation_of(frame);
  const CopySource source = copy_source(situation, cell);
  ImGui::MenuItem(source.words.c_str(), nullptr, false, false);
  for (const Extent& extent : extents)
    menu(frame, std::string("copy/") + extent.name, extent.words,
         source.has_cell || extent.extent == CopyExtent::matrix,
         [&] { form_lines(frame, situation, source, extent); });
  menu(frame, "copy/decimals", "Decimals of Markdown and LaTeX", true, [&] { decimal_lines(frame); });
  ImGui::Separator();
  if (line(frame, "copy/program", "The model as a PyTorch program")) copy_program(frame, situation.newest);
}

void draw_copy_popup(const Frame& frame) {
  constexpr const char* name = "copy";
  if (frame.view.dialog == Dialog::none && frame.view.hovered &&
      ImGui::IsMouseClicked(ImGuiMouseButton_Right)) {
    frame.commands.look([cell = frame.view.hovered](View& view) { view.copied_cell = cell; });
    ImGui::OpenPopup(name);
  }
  ImGui::PushFont(frame.fonts.sans16);
  if (ImGui::BeginPopup(name)) {
    draw_copy_lines(frame, frame.view.copied_cell);
    ImGui::EndPopup();
  }
  ImGui::PopFont();
}

}  // namespace app::panels
