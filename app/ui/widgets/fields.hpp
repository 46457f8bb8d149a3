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

/// Draws a gray button as wide as its label and marks it in landmarks; returns whether it was pressed.
bool button(const Frame& frame, const std::string& name, const char* words, const char* help = nullptr);

/// Returns the width of that button, in pixels.
float button_width(const Frame& frame, const char* words);

/// One button at the foot of a dialog; not drawn without a name.
struct DialogButton {
  const char *name = nullptr, *words = "";
  bool enabled = true;
};
/// Draws the foot of a dialog: the destructive button at the left, the other and the primary one at the
/// right. Returns the name of the pressed button, or "".
std::string_view dialog_foot(const Frame& frame, float width, DialogButton primary, DialogButton other = {},
                             DialogButton destructive = {});

/// Draws a checkbox; `words` may hold subscripts ("W_q"). Returns the new state if it was toggled.
std::optional<bool> checkbox(const Frame& frame, const std::string& name, const char* words, bool on,
                             const char* help = nullptr);

/// Draws the small triangle of a combo box inside its right edge.
void draw_combo_arrow(const Frame& frame, ImDrawList* list, float right, float middle);
/// Calls ImGui::BeginCombo with that triangle instead of its arrow button.
bool begin_combo(const Frame& frame, const char* id, const char* shown, ImGuiComboFlags flags = 0);

/// One line of a combo box.
struct Option {
  std::string words;
  std::string help = {};       ///< its tooltip, or ""
  bool has_separator = false;  ///< a line separates it from the option above
  std::string name = {};       ///< of its landmark; "" for its index
};
/// Draws a combo box; its lines are marked "name/0", "name/1", …. It shows the current line, or preview_text
/// unless empty, in sans15 unless another font is given. Returns the index of the chosen line, even if it is
/// the current one.
std::optional<std::size_t> combo(const Frame& frame, const std::string& name, float width,
                                 std::span<const Option> options, std::size_t current,
                                 const std::string& preview_text = "", ImFont* font = nullptr);

/// Draws a button like a closed combo box, for one that opens a popup; returns whether it was pressed.
bool menu_button(const Frame& frame, const std::string& name, const std::string& words, float width);
/// Returns the room for its words, in pixels; longer ones are shortened.
float menu_button_room(const Frame& frame, float width);

/// Draws a slider from 0 to 1 with a text at its right end; returns the new value if it was moved.
std::optional<double> slider(const Frame& frame, const std::string& name, float width, double value,
                             const std::string& shown, ImGuiSliderFlags flags = 0);

/// Draws a row of buttons, exactly one on, marked "name/0", …. Returns the index of the pressed one.
std::optional<std::size_t> segmented(const Frame& frame, const std::string& name,
                                     std::span<const std::string> words, std::size_t current);

/// One tab; the current one has an accent underline.
struct TabItem {
  std::string name;   ///< landmark
  std::string words;  ///< may hold subscripts
};
/// Draws tabs in as many lines as the width requires; returns the index of the pressed one.
std::optional<std::size_t> tabs(const Frame& frame, float width, std::span<const TabItem> all,
                                std::size_t current);

enum class Alignment { left, center, right };

/// Appearance and behavior of a text field.
struct FieldStyle {
  float width = 0;
  ImFont* font = nullptr;
  Alignment alignment = Alignment::center;
  /// Returns the text one step up (+1) or down (−1), for the arrow keys; if empty, they do nothing.
  std::function<std::string(const std::string& text, int direction)> step = {};
  bool shows_error = true;  ///< shows the error below the field; else it appears elsewhere
  std::string hint = {};    ///< shown while the field is empty
  /// Returns an alternative to a refused text, as the label and commands of a button; may be empty.
  std::function<std::optional<std::pair<std::string, std::vector<Command>>>(const std::string& text)> offer =
      {};
};

/// Result of a text field in this frame.
struct FieldAnswer {
  std::optional<std::string> text;  ///< submitted by Enter, Tab, the arrow keys or a click elsewhere
  bool lost_focus = false;          ///< the field lost the keyboard focus, with or without a new text
};

/// Returns the characters typed in this frame, in UTF-8.
std::string typed_characters();

/// Returns whether the text that was submitted in a field was refused; the field still shows it.
bool is_refused(const Frame& frame, const std::string& name);
/// Returns whether that is true of any field, below which is the error.
bool shows_refusal(const Frame& frame);

/// Draws a field that shows a text until another one is typed; unfinished text is kept in Forms::typed, which
/// can also request the keyboard focus.
FieldAnswer text_field(const Frame& frame, const std::string& name, const std::string& shown,
                       const FieldStyle& style);

/// Returns value + 1, or for a negative direction value − 1, at least 0.
std::uint64_t by_one(std::uint64_t value, int direction);

/// Shows a one-line error with the expected and the found text of a field.
void report_invalid(const Frame& frame, const char* field, const char* expected, const std::string& found);

/// Draws a field for a whole number; other text gives an error message that names the field as `words`.
std::optional<std::uint64_t> count_field(
    const Frame& frame, const std::string& name, const char* words, std::uint64_t value, float width,
    const std::function<std::uint64_t(std::uint64_t value, int direction)>& step = by_one,
    const decltype(FieldStyle::offer)& offer = {});

/// Returns the finite number that the user typed, or nothing; accepts "−", "+", surrounding spaces and a
/// decimal comma.
std::optional<double> read_number(std::string text);

/// Draws a field for a finite number; other text gives an error message.
std::optional<double> real_field(const Frame& frame, const std::string& name, const char* words, double value,
                                 float width);

/// Rows of a form, in a table: a column of labels as wide as the widest of them, and one of controls. Its
/// columns have the widths of the previous frame.
///
/// The table ends with the object, which must be before the window or popup around it ends; marked
/// "form/<id>".
class FormRows {
 public:
  const Frame& frame;
  /// Begins a form that is as wide as its controls, or whose controls share that width in pixels, in as many
  /// pairs of columns; then labels are not narrower than those of other forms.
  FormRows(const Frame& frame, const char* id, float width = 0, int n_pairs = 1);
  ~FormRows();
  FormRows(const FormRows&) = delete;
  FormRows& operator=(const FormRows&) = delete;
  /// Draws a label and moves ImGui's cursor to its control.
  void row(const char* label) const;
  /// Returns the width from the cursor to the end of the controls, in pixels.
  static float control_width() { return ImGui::GetContentRegionAvail().x; }

 private:
  std::string landmark_;
  float min_label_width_;
  bool is_open_;
};

/// Draws a label within a line; the next item follows it.
void inline_label(const Frame& frame, const char* words);

}  // namespace app::widgets
