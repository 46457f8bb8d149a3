#include "app/ui/widgets/popup_rows.hpp"

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::widgets {
namespace {

constexpr float popup_pitch = 29;  // at scale 1

}  // namespace

void PopupRows::row(const char* words) {
  const float y = centred_y(frame.fonts.sans15, at.y, frame.metrics.frame);
  draw_text(frame.fonts.sans15, {at.x, y}, frame.palette.dim, words);
  platform::move_to({at.x + frame.metrics.px(label_room), at.y});
  at.y += frame.metrics.px(popup_pitch);
}

}  // namespace app::widgets
