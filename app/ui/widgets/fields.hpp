#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/ui/frame.hpp"

namespace app::widgets {

enum class Alignment { left, centre, right };

/// How a field of text behaves.
struct FieldStyle {
  float width = 0;
  ImFont* font = nullptr;
  Alignment alignment = Alignment::centre;
  /// The text one step up (+1) or down (−1) from a text, for the arrow keys; empty: they do nothing.
  std::function<std::string(const std::string& text, int direction)> step;
  bool tells_refusal = true;  ///< in words below it; else there are such words elsewhere
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

/// A field for a whole number; what is none becomes an error message that names the field as `words`.
std::optional<std::uint64_t> count_field(
    const Frame& frame, const std::string& name, const char* words, std::uint64_t value, float width,
    const std::function<std::uint64_t(std::uint64_t value, int direction)>& step);

/// The finite number that a person typed, or nothing; "−", "+", blanks around and a decimal comma are
/// understood.
std::optional<double> read_number(std::string text);

/// A field for a finite number.
std::optional<double> real_field(const Frame& frame, const std::string& name, const char* words, double value,
                                 float width);

}  // namespace app::widgets
