#include <array>
#include <cmath>
#include <string>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/number.hpp"

namespace app::panels {
namespace {

using namespace core::attention;
using namespace core::editing;

std::string rate_text(double rate) {
  const double hundredths = std::round(rate * 100);
  if (std::fabs(hundredths / 100 - rate) > 1e-12) return core::text::number_text(rate);
  const auto n = static_cast<int>(hundredths);
  return std::to_string(n / 100) + "." + std::to_string(n / 10 % 10) + std::to_string(n % 10);
}

void rate_row(const Form& form) {
  form.label("dropout");
  const Frame& frame = form.frame;
  double rate = frame.newest.model.dropout.rate;
  constexpr double low = 0, high = 1;
  platform::push_font(frame.fonts.mono14);
  ImGui::SetNextItemWidth(form.control_width());
  // Without a format the slider writes nothing over its grab; the number stands at the right, as in every
  // field.
  const bool moved = ImGui::SliderScalar("##rate", ImGuiDataType_Double, &rate, &low, &high, "",
                                         ImGuiSliderFlags_AlwaysClamp);
  ImGui::PopFont();
  frame.landmarks.mark_item("model/dropout");
  widgets::tooltip(
      "The share of the weights that is dropped; the others grow by 1/(1 − rate). Ctrl+click to type.");
  const ImVec2 max = ImGui::GetItemRectMax();
  if (!(ImGui::IsItemActive() && ImGui::GetIO().WantTextInput)) {
    ImFont* font = frame.fonts.mono14;
    const float y = widgets::centred_y(font, form.at.y, frame.metrics.frame);
    widgets::draw_text_right(font, max.x - frame.metrics.px(8), y, frame.palette.text,
                             rate_text(frame.newest.model.dropout.rate));
  }
  if (!moved) return;
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left))
    rate = std::round(rate * 100) / 100;  // typed rates stay as they are
  if (rate != frame.newest.model.dropout.rate) frame.commands.edit(SetDropoutRate{rate});
}

void seed_row(const Form& form) {
  const Frame& frame = form.frame;
  form.label("seed");
  const auto step = [](std::uint64_t seed, int direction) {
    return direction > 0 ? seed + 1 : seed > 0 ? seed - 1 : 0;
  };
  const float width = frame.metrics.px(frame.metrics.compact ? 44 : 56);
  if (const auto seed =
          widgets::count_field(frame, "model/seed", "seed", frame.newest.model.dropout.seed, width, step))
    frame.commands.edit(SetDropoutSeed{*seed});
  widgets::tooltip("What the generator starts from: the same seed draws the same masks, as in PyTorch");
  form.place(form.label_width() + width + frame.metrics.px(frame.metrics.compact ? 8 : 14));
  const char* help = "Evaluation, when off: nothing is dropped.";
  if (const auto on =
          widgets::checkbox(frame, "model/training", "training", frame.newest.model.dropout.training, help))
    frame.commands.edit(SetTraining{*on});
}

void stream_row(const Form& form) {
  const Frame& frame = form.frame;
  const std::array options{widgets::Option{"mt19937", "As everywhere since PyTorch 2.7"},
                           widgets::Option{"mkl", "As on Linux on x86 before PyTorch 2.7"}};
  const std::size_t current = frame.newest.model.dropout.stream == DropoutStream::mkl ? 1 : 0;
  form.label("generator");
  const char* again = "↻";
  const float button = widgets::text_width(frame.fonts.sans14, again) + 2 * frame.metrics.px(8);
  const float width = form.control_width() - button - frame.metrics.px(8);
  if (const auto chosen =
          widgets::combo(frame, "model/stream", width, options[current].words, options, current))
    frame.commands.edit(SetDropoutStream{*chosen == 1 ? DropoutStream::mkl : DropoutStream::mt19937});
  form.place(form.width - button);
  if (widgets::button(frame, "model/draw_again", again, "Draw again: the next seed, another mask"))
    frame.commands.edit(SetDropoutSeed{frame.newest.model.dropout.seed + 1});
}

void given_mask_row(const Form& form) {
  form.label("drop mask");
  if (widgets::button(form.frame, "model/draw_instead", "given · draw instead",
                      "The mask came with the file; draw it from the seed"))
    form.frame.commands.edit(SetDropoutMask{});
}

bool is_given(const Frame& frame) {
  return !frame.newest.model.dropout.given.empty();
}
bool is_drawn(const Frame& frame) {
  return frame.newest.model.dropout.rate > 0 && !is_given(frame);
}

constexpr std::array dropout_table{ModelRow{always, rate_row, 4}, ModelRow{always, seed_row, 0},
                                   ModelRow{is_drawn, stream_row, 0}, ModelRow{is_given, given_mask_row, 0}};

}  // namespace

std::span<const ModelRow> dropout_rows() {
  return dropout_table;
}

}  // namespace app::panels
