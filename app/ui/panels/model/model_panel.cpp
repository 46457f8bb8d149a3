#include "app/ui/panels/model/model_panel.hpp"

#include <array>

#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using Rows = std::span<const ModelRow>;

/// Calls each(row) for the rows that the model has, in the order of the panel.
template <class Each>
void for_each_row(const Frame& frame, Each each) {
  for (const Rows rows :
       {shape_rows(), addition_rows(), head_rows(), mask_rows(), dropout_rows(), rule_rows(), mistake_rows()})
    for (const ModelRow& row : rows)
      if (row.present(frame)) each(row);
}

}  // namespace

void Form::label(const char* words) const {
  ImFont* font = frame.fonts.sans15;
  widgets::draw_text(font, {at.x, widgets::centred_y(font, at.y, frame.metrics.frame)}, frame.palette.dim,
                     words);
  place(label_width());
}

void Form::place(float offset) const {
  ImGui::SetCursorScreenPos({at.x + offset, at.y});
}

float model_panel_height(const Frame& frame) {
  float height = 2 * frame.metrics.px(10) + frame.metrics.px(24);
  for_each_row(frame, [&](const ModelRow& row) {
    height += frame.metrics.pitch + frame.metrics.px(row.gap) + frame.metrics.px(row.more);
  });
  return height;
}

void draw_model(const Frame& frame) {
  const ImVec2 start = ImGui::GetCursorScreenPos();
  Form form{frame, ImGui::GetContentRegionAvail().x, start};
  widgets::section_heading(frame, form.width, "MODEL");
  draw_additions_button(form);
  form.at.y += frame.metrics.px(24);
  for_each_row(frame, [&](const ModelRow& row) {
    form.at.y += frame.metrics.px(row.gap);
    form.place(0);
    row.draw(form);
    form.at.y += frame.metrics.pitch + frame.metrics.px(row.more);
  });
  ImGui::SetCursorScreenPos(start);
  ImGui::Dummy({form.width, form.at.y - start.y});
}

}  // namespace app::panels
