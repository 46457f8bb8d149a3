#pragma once

#include <span>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Where the rows of MODEL stand: a column of labels and one of controls.
struct Form {
  const Frame& frame;
  float width;  ///< of a whole row
  ImVec2 at{};  ///< top left corner of the current row
  float label_width() const { return frame.metrics.px(80); }
  float field_width() const { return frame.metrics.px(44); }
  float control_width() const { return width - label_width(); }
  /// Writes the row's label and puts the cursor at the control's column.
  void label(const char* words) const;
  /// The cursor at an offset from the row's left end.
  void place(float offset) const;
};

/// A sentence on hover over a label that stands there; marked "model/label/<words>".
void explain_label(const Frame& frame, ImVec2 min, const char* words);

/// One row of MODEL, as the table lists them.
struct ModelRow {
  bool (*present)(const Frame&);
  void (*draw)(const Form&);
  float gap;       ///< above it, at scale 1
  float more = 0;  ///< what the row is higher than others, at scale 1
};

/// Where the numbers of an unchanged preset can be looked up, in at most two lines; marked "model/evidence".
void evidence_row(const Form& form);

std::span<const ModelRow> shape_rows();  ///< preset, sizes, projections
std::span<const ModelRow> head_rows();   ///< the chosen head on or off, what was given or typed over
std::span<const ModelRow> mask_rows();
std::span<const ModelRow> rule_rows();  ///< scale, scores, merging, output, context, batch
std::span<const ModelRow> dropout_rows();
std::span<const ModelRow> mistake_rows();   ///< what no other row can show
std::span<const ModelRow> addition_rows();  ///< what models of today add, in a line

/// The button in the line of the heading that opens a popup with all that a model can add to the paper.
void draw_additions_button(const Form& form);

/// Whether the model adds anything to the paper but rules of its mask.
bool has_additions(const Frame& frame);

inline bool always(const Frame&) {
  return true;
}
inline bool has_projections(const Frame& frame) {
  return frame.pending.model.projections.has_value();
}

}  // namespace app::panels
