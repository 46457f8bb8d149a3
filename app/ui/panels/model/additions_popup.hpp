#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/fields.hpp"

namespace app::panels {

// Of the popups of MODEL, at scale 1.
constexpr float popup_labels = 92, popup_controls = 200;

/// The rows of a popup of MODEL, with what several of them need.
struct PopupFields : widgets::PopupRows {
  /// A field as wide as the controls; the text that was handed in.
  std::optional<std::string> field(const char* words, const char* name, const std::string& shown,
                                   const std::string& help);
  /// The same for a whole number, which may be negative, and for a finite number; what is none is refused.
  std::optional<std::int64_t> whole(const char* words, const char* name, std::int64_t value,
                                    const std::string& help);
  std::optional<double> real(const char* words, const char* name, double value, const std::string& help);
  /// Says in one line what a field expected and what was found.
  void refuse(const char* field, const char* expected, const std::string& found) const;
};

/// Whole numbers with blanks, commas or semicolons between them; nothing where there is anything else.
std::optional<std::vector<std::size_t>> counts_in(std::string text);

/// How positions enter, each way in words: "rotary halves", "ALiBi", "8 buckets".
std::vector<std::string> positions_words(const core::attention::Positions& positions);

/// The rows of a popup in which that is switched and set.
void positions_rows(PopupFields& fields, const core::attention::Model& model);

/// What a model adds to the paper and which keys it hides, in words: "grouped 4 → 2 · rotary halves · window
/// 3, 0 · sink"; "" when it adds nothing.
std::string additions_words(const core::attention::Model& model, std::size_t sequence);

/// The switches and numbers of all that, in a popup of that name with its top left corner there, where it is
/// open.
void draw_additions_popup(const Frame& frame, const char* name, ImVec2 top_left);

}  // namespace app::panels
