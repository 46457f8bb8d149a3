#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::widgets {

/// A grey button as wide as its words; marked in landmarks. True when it was pressed.
bool button(const Frame& frame, const std::string& name, const char* words, const char* help = nullptr);

/// How wide that is.
float button_width(const Frame& frame, const char* words);

/// One button at the foot of a dialog; none where it has no name.
struct DialogButton {
  const char *name = nullptr, *words = "";
  bool enabled = true;
};
/// The foot of a dialog: what destroys something alone at the left, at the right the primary one, with
/// another beside it. The name of the one that was pressed, or "".
std::string_view dialog_foot(const Frame& frame, float width, DialogButton primary, DialogButton other = {},
                             DialogButton destructive = {});

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
  std::string help = {};  ///< its tooltip, or ""
  bool parted = false;    ///< a line parts it from the option above
};
/// A combo box; its lines are marked "name/0", "name/1", …. It shows the current line unless other words are
/// given. The index of the line that was chosen, even the current one.
std::optional<std::size_t> combo(const Frame& frame, const std::string& name, float width,
                                 std::span<const Option> options, std::size_t current,
                                 const std::string& other_words = "");

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

enum class Alignment { left, centre, right };

/// How a field of text behaves.
struct FieldStyle {
  float width = 0;
  ImFont* font = nullptr;
  Alignment alignment = Alignment::centre;
  /// The text one step up (+1) or down (−1) from a text, for the arrow keys; empty: they do nothing.
  std::function<std::string(const std::string& text, int direction)> step;
  bool tells_refusal = true;  ///< in words below it; else there are such words elsewhere
  /// What may be done instead of a refused text, in words and as what it asks for; empty: nothing.
  std::function<std::optional<std::pair<std::string, std::vector<Command>>>(const std::string& text)> offer =
      {};
};

/// What became of a field in this frame.
struct FieldAnswer {
  std::optional<std::string> text;  ///< handed in: by Enter, Tab, the arrow keys or a click elsewhere
  bool left = false;                ///< the keyboard went elsewhere, with or without a new text
};

/// The letters typed in this frame, in UTF-8.
std::string typed_letters();

/// A field that shows a text until another one is typed; the unfinished text is kept in View::typed,
/// which can also ask for the keyboard.
FieldAnswer text_field(const Frame& frame, const std::string& name, const std::string& shown,
                       const FieldStyle& style);

/// One more or one less, down to 0.
std::uint64_t by_one(std::uint64_t value, int direction);

/// Says in one line what a field expected and what was found.
void refuse(const Frame& frame, const char* field, const char* expected, const std::string& found);

/// A field for a whole number; what is none becomes an error message that names the field as `words`.
std::optional<std::uint64_t> count_field(
    const Frame& frame, const std::string& name, const char* words, std::uint64_t value, float width,
    const std::function<std::uint64_t(std::uint64_t value, int direction)>& step = by_one,
    const decltype(FieldStyle::offer)& offer = {});

/// The finite number that a person typed, or nothing; "−", "+", blanks around and a decimal comma are
/// understood.
std::optional<double> read_number(std::string text);

/// A field for a finite number.
std::optional<double> real_field(const Frame& frame, const std::string& name, const char* words, double value,
                                 float width);

/// The rows of a popup: labels at the left, controls beside them.
struct PopupRows {
  const Frame& frame;
  ImVec2 at;         ///< top left corner of the next row
  float label_room;  ///< from there to the controls, at scale 1
  /// Writes a label and puts the cursor where its control begins.
  void row(const char* words);
};

}  // namespace app::widgets
