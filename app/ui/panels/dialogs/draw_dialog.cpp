#include "app/ui/panels/dialogs/draw_dialog.hpp"

#include <algorithm>
#include <array>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/file_dialogs.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/error.hpp"
#include "core/editing/draw.hpp"

namespace app::panels {

namespace {

using namespace core::editing;

template <auto member, class Value>
void change(const Frame& frame, Value value) {
  ModelDraw draw = frame.forms.draw.draw;
  draw.*member = std::move(value);
  frame.commands.add(set<&DrawForm::draw>(std::move(draw)));
}

void seed_row(const Frame& frame, const ModelDraw& draw) {
  dialog_label(frame, "seed");
  const auto step = [](std::uint64_t seed, int direction) {
    return direction > 0 ? seed + 1 : seed > 0 ? seed - 1 : 0;
  };
  if (const auto seed =
          widgets::count_field(frame, "draw/seed", "seed", draw.seed, frame.metrics.px(96), step))
    change<&ModelDraw::seed>(frame, *seed);
}

void embeddings_row(const Frame& frame, const ModelDraw& draw) {
  const std::array<std::string, 5> words{"keep", "rand first", "randn first", "rand last", "randn last"};
  dialog_label(frame, "embeddings");
  if (const auto chosen =
          widgets::segmented(frame, "draw/embeddings", words, static_cast<std::size_t>(draw.embeddings)))
    change<&ModelDraw::embeddings>(frame, static_cast<EmbeddingsDraw>(*chosen));
}

void layers_row(const Frame& frame, const ModelDraw& draw) {
  const std::array<std::string, 2> words{"Q, K, V", "K, Q, V"};
  dialog_label(frame, "layers");
  if (const auto chosen =
          widgets::segmented(frame, "draw/order", words, static_cast<std::size_t>(draw.order)))
    change<&ModelDraw::order>(frame, static_cast<LayerOrder>(*chosen));
  ImGui::SameLine(0, frame.metrics.px(16));
  if (const auto on = widgets::checkbox(frame, "draw/bias", "with biases", draw.bias))
    change<&ModelDraw::bias>(frame, *on);
}

void output_row(const Frame& frame, const ModelDraw& draw) {
  const std::array<std::string, 3> words{"none", "without bias", "with bias"};
  dialog_label(frame, "output layer");
  if (const auto chosen =
          widgets::segmented(frame, "draw/output", words, static_cast<std::size_t>(draw.output)))
    change<&ModelDraw::output>(frame, static_cast<OutputLayer>(*chosen));
}

void torch_box(const Frame& frame, const std::string& lines) {
  const ImVec2 start = ImGui::GetCursorScreenPos();
  dialog_label(frame, "in PyTorch");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = platform::font_size(frame.fonts.mono13) + frame.metrics.px(4);
  const ImVec2 size(draw_dialog_width(frame) - draw_dialog_labels(frame), 11 * line + frame.metrics.px(16));
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(frame.palette.ground.back));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.metrics.px(12), frame.metrics.px(8)});
  platform::begin_child("torch", size, false,
                        ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_HorizontalScrollbar);
  platform::push_font(frame.fonts.mono13);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, frame.metrics.px(4)});
  std::string_view rest = lines;
  for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    ImGui::TextUnformatted(rest.data(), rest.data() + end);
    rest.remove_prefix(end + 1);
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  frame.landmarks.mark("draw/torch", at, {at.x + size.x, at.y + size.y});
  const float below = ImGui::GetCursorScreenPos().y;
  platform::move_to({start.x, start.y + frame.metrics.pitch});
  if (widgets::button(frame, "draw/copy", "Copy", "Copies these lines")) frame.commands.add(CopyText{lines});
  platform::move_to({start.x, below + frame.metrics.px(4)});
}

}  // namespace

void draw_draw_dialog(const Frame& frame) {
  const DrawForm& form = frame.forms.draw;
  seed_row(frame, form.draw);
  if (const auto typed = drawn_before_row(frame, "draw/before", form.before)) {
    frame.commands.add(set<&DrawForm::before>(typed->shown));
    change<&ModelDraw::before>(frame, typed->ops);
  }
  embeddings_row(frame, form.draw);
  layers_row(frame, form.draw);
  output_row(frame, form.draw);
  const bool good = form.before.error.empty();
  torch_box(frame, good ? torch_lines(frame.pending.model, form.draw) : "");
  if (dialog_buttons(frame, "Draw", good)) {
    frame.commands.edit(ReplaceModel{initialized_model(frame.pending.model, form.draw)});
    close_dialog(frame);
  }
}

namespace {

constexpr const char* hint =
    "What the same seed sampled before, as for attnscope draw: rand(6,3) Linear(3,2) randint(0,10,6) …";

TypedBefore read(const std::string& text) {
  try {
    return {{text, ""}, core::random::parse_draw_ops(text, core::editing::most_numbers_before)};
  } catch (const core::Error& error) {
    return {{text, error.what()}, {}};
  }
}

}  // namespace

float draw_dialog_width(const Frame& frame) {
  return std::min(frame.metrics.px(580), ImGui::GetIO().DisplaySize.x - frame.metrics.px(80));
}

float draw_dialog_labels(const Frame& frame) {
  return frame.metrics.px(104);
}

void dialog_label(const Frame& frame, const char* words) {
  ImFont* font = frame.fonts.sans15;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::draw_text(font, {at.x, widgets::centred_y(font, at.y, frame.metrics.frame)}, frame.palette.dim,
                     words);
  platform::move_to({at.x + draw_dialog_labels(frame), at.y});
}

std::optional<TypedBefore> drawn_before_row(const Frame& frame, const std::string& name,
                                            const RngPrefix& before) {
  const float left = ImGui::GetCursorScreenPos().x,
              width = draw_dialog_width(frame) - draw_dialog_labels(frame);
  dialog_label(frame, "sampled before");
  widgets::FieldStyle style;
  style.width = width, style.font = frame.fonts.mono14, style.alignment = widgets::Alignment::left;
  const widgets::FieldAnswer answer = widgets::text_field(frame, name, before.text, style);

  const bool bad = !before.error.empty();
  const ImVec2 at(left + draw_dialog_labels(frame), ImGui::GetCursorScreenPos().y);
  platform::move_to(at);
  widgets::paragraph(frame.fonts.sans14, bad ? frame.palette.status.bad : frame.palette.faint, width,
                     bad ? before.error : hint);
  if (bad) frame.landmarks.mark_item(name + "/error");
  const float two_lines = 2 * platform::font_size(frame.fonts.sans14) + frame.metrics.px(8);
  platform::move_to({left, std::max(ImGui::GetCursorScreenPos().y, at.y + two_lines)});

  return answer.text ? std::optional(read(*answer.text)) : std::nullopt;
}

bool dialog_buttons(const Frame& frame, const char* words, bool enabled) {
  const bool confirmed = confirm_buttons(frame, draw_dialog_width(frame), words, enabled) == "dialog/confirm";
  return enabled && (confirmed || widgets::enter_confirms());
}

}  // namespace app::panels
