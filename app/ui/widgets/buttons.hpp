#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::widgets {

/// A grey button as wide as its words; marked in landmarks. True when it was pressed.
bool button(const Frame& frame, const std::string& name, const char* words, const char* help = nullptr);

/// A checkbox; the words may hold subscripts ("W_q"). The new state when it was switched.
std::optional<bool> checkbox(const Frame& frame, const std::string& name, const char* words, bool on,
                             const char* help = nullptr);

/// The small triangle of what opens a list, in a field that ends there.
void draw_combo_arrow(const Frame& frame, ImDrawList* list, float right, float middle);
/// ImGui::BeginCombo with that triangle instead of a button.
bool begin_combo(const Frame& frame, const char* id, const char* shown, ImGuiComboFlags flags = 0);

/// One line of a combo box.
struct Option {
  std::string words;
  std::string help;     ///< its tooltip, or ""
  bool parted = false;  ///< a line parts it from the option above
};
/// A combo box; its lines are marked "name/0", "name/1", …. The index of the line that was chosen, even the
/// current one.
std::optional<std::size_t> combo(const Frame& frame, const std::string& name, float width,
                                 const std::string& shown, std::span<const Option> options,
                                 std::size_t current);

/// Side by side, exactly one is on; marked "name/0", …. The index of the one that was pressed.
std::optional<std::size_t> segmented(const Frame& frame, const std::string& name,
                                     std::span<const std::string> words, std::size_t current);

/// One tab over an accent underline.
struct TabWords {
  std::string name;   ///< landmark
  std::string words;  ///< may hold subscripts
};
/// Tabs in as many lines as the width needs. The index of the one that was pressed.
std::optional<std::size_t> tabs(const Frame& frame, float width, std::span<const TabWords> all,
                                std::size_t current);

}  // namespace app::widgets
