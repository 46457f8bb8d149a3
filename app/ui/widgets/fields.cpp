#include "app/ui/widgets/fields.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/base/number.hpp"
#include "core/base/utf8.hpp"

namespace app::widgets {

bool button(const Frame& frame, const std::string& name, const char* words, const char* help) {
  ImGui::PushID(name.c_str());
  platform::push_font(frame.fonts.sans14);
  const bool clicked = ImGui::Button(words, {0, frame.metrics.frame}),
             pressed = enter_pressed_on_item() || clicked;
  ImGui::PopFont();
  ImGui::PopID();
  frame.landmarks.mark_item(name);
  if (help) tooltip(help);
  return pressed;
}

float button_width(const Frame& frame, const char* words) {
  return text_width(frame.fonts.sans14, words) + 2 * ImGui::GetStyle().FramePadding.x;
}

std::string_view dialog_foot(const Frame& frame, float width, DialogButton primary, DialogButton other,
                             DialogButton destructive) {
  std::string_view pressed;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const auto draw = [&](const DialogButton& b) {
    ImGui::BeginDisabled(!b.enabled);
    if (button(frame, b.name, b.words)) pressed = b.name;
    ImGui::EndDisabled();
  };
  const auto room = [&](const DialogButton& b) { return b.name ? button_width(frame, b.words) + gap : 0; };
  if (destructive.name) draw(destructive);
  platform::move_to({std::round(at.x + width + gap - room(other) - room(primary)), at.y});
  if (other.name) {
    draw(other);
    ImGui::SameLine();
  }
  const auto& p = frame.palette;
  ImGui::PushStyleColor(ImGuiCol_Button, vec(p.accent));
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, vec(mix(p.accent, p.text, 0.2f)));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, vec(mix(p.accent, p.background.back, 0.2f)));
  ImGui::PushStyleColor(ImGuiCol_Text, vec(p.background.back));
  draw(primary);
  ImGui::PopStyleColor(4);
  return pressed;
}

std::optional<bool> checkbox(const Frame& frame, const std::string& name, const char* words, bool on,
                             const char* help) {
  const float box = frame.metrics.px(16), gap = frame.metrics.px(8), height = frame.metrics.frame;
  ImFont* font = frame.fonts.sans15;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float label = formula_width(font, words);
  const bool pressed = hit_area(name.c_str(), {box + (label > 0 ? gap + label : 0), height});
  frame.landmarks.mark_item(name);

  const Palette& p = frame.palette;
  const float alpha = ImGui::GetStyle().Alpha;  // lowered inside BeginDisabled
  const Rgb background = ImGui::IsItemActive()    ? p.control.active
                         : ImGui::IsItemHovered() ? p.control.hovered
                                                  : p.control.rest;
  const ImVec2 corner(at.x, std::round(at.y + (height - box) / 2)), end(corner.x + box, corner.y + box);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_rect(corner, end, packed(background, alpha), frame.metrics.px(3));
  draw_focus(frame, corner, end);
  if (on) {
    const std::array<ImVec2, 3> tick{ImVec2(corner.x + box * 0.22f, corner.y + box * 0.52f),
                                     ImVec2(corner.x + box * 0.43f, corner.y + box * 0.73f),
                                     ImVec2(corner.x + box * 0.80f, corner.y + box * 0.28f)};
    list->AddPolyline(tick.data(), 3, packed(p.accent, alpha), 0, frame.metrics.px(2));
  }
  const Rgb ink = alpha < 1 ? p.faint : p.text;
  draw_formula(font, {end.x + gap, centered_y(font, at.y, height)}, ink, words);
  if (help) tooltip(help);
  return pressed ? std::optional(!on) : std::nullopt;
}

void draw_combo_arrow(const Frame& frame, ImDrawList* list, float right, float middle) {
  const float tip = right - frame.metrics.px(14), half = frame.metrics.px(4),
              top = std::round(middle) - half / 2;
  list->AddTriangleFilled({tip - half, top}, {tip + half, top}, {tip, top + half + 1},
                          packed(frame.palette.dim));
}

bool begin_combo(const Frame& frame, const char* id, const char* shown, ImGuiComboFlags flags) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float right = at.x + ImGui::CalcItemWidth();
  const bool open = ImGui::BeginCombo(id, shown, flags | ImGuiComboFlags_NoArrowButton);
  draw_combo_arrow(frame, list, right, at.y + ImGui::GetFrameHeight() / 2);
  return open;
}

std::optional<std::size_t> combo(const Frame& frame, const std::string& name, float width,
                                 std::span<const Option> options, std::size_t current,
                                 const std::string& preview_text, ImFont* font) {
  if (!font) font = frame.fonts.sans15;
  std::optional<std::size_t> chosen;
  const bool shows_current = preview_text.empty() && current < options.size();
  const std::string& shown = shows_current ? options[current].words : preview_text;
  platform::push_font(font);
  const std::string preview = shortened(font, shown, width - frame.metrics.px(36));
  ImGui::SetNextItemWidth(width);
  const bool open = begin_combo(frame, ("##" + name).c_str(), preview.c_str(), ImGuiComboFlags_HeightLarge);
  if (!open) {
    frame.landmarks.mark_item(name);
    const std::string help = current < options.size() ? options[current].help : "";
    const std::string whole = preview != shown ? shown : "";
    if (!help.empty() || !whole.empty()) tooltip(whole + (whole.empty() || help.empty() ? "" : "\n") + help);
  } else {
    for (std::size_t i = 0; i < options.size(); ++i) {
      const std::string line = name + "/" + (options[i].name.empty() ? std::to_string(i) : options[i].name);
      if (options[i].has_separator) ImGui::Separator();
      if (ImGui::Selectable((options[i].words + "##" + line).c_str(), i == current)) chosen = i;
      frame.landmarks.mark_item(line);
      if (!options[i].help.empty()) tooltip(options[i].help);
      if (i == current) ImGui::SetItemDefaultFocus();
    }
    ImGui::EndCombo();
    frame.landmarks.mark_item(name);
  }
  ImGui::PopFont();
  return chosen;
}

bool menu_button(const Frame& frame, const std::string& name, const std::string& words, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string shown = shortened(frame.fonts.sans14, words, menu_button_room(frame, width));
  platform::push_font(frame.fonts.sans14);
  ImGui::PushStyleVar(ImGuiStyleVar_ButtonTextAlign, {0, 0.5f});
  const bool pressed = ImGui::Button((shown + "###" + name).c_str(), {width, frame.metrics.frame});
  ImGui::PopStyleVar();
  ImGui::PopFont();
  draw_combo_arrow(frame, ImGui::GetWindowDrawList(), at.x + width, at.y + frame.metrics.frame / 2);
  frame.landmarks.mark_item(name);
  return pressed;
}

float menu_button_room(const Frame& frame, float width) {
  return width - frame.metrics.px(34);
}

std::optional<double> slider(const Frame& frame, const std::string& name, float width, double value,
                             const std::string& shown, ImGuiSliderFlags flags) {
  constexpr double low = 0, high = 1;
  platform::push_font(frame.fonts.mono14);
  ImGui::SetNextItemWidth(width);
  // A double click types, as in every field; Dear ImGui has Ctrl and a click for that.
  bool& ctrl = ImGui::GetIO().KeyCtrl;
  const bool is_ctrl = std::exchange(ctrl, ctrl || ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left));
  // With an empty format it draws nothing over its grab; the text is at the right, as in every field.
  const bool moved = ImGui::SliderScalar(("##" + name).c_str(), ImGuiDataType_Double, &value, &low, &high, "",
                                         ImGuiSliderFlags_AlwaysClamp | flags);
  ctrl = is_ctrl;
  ImGui::PopFont();
  frame.landmarks.mark_item(name);
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  if (!(ImGui::IsItemActive() && ImGui::GetIO().WantTextInput))
    draw_text_right(frame.fonts.mono14, max.x - frame.metrics.px(8),
                    centered_y(frame.fonts.mono14, min.y, frame.metrics.frame), frame.palette.text, shown);
  return moved ? std::optional(value) : std::nullopt;
}

std::optional<std::size_t> segmented(const Frame& frame, const std::string& name,
                                     std::span<const std::string> words, std::size_t current) {
  std::optional<std::size_t> pressed;
  platform::push_font(frame.fonts.sans14);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, 1);
    const std::string part = fmt::format("{}/{}", name, i);
    ImGui::PushStyleColor(ImGuiCol_Button,
                          vec(i == current ? frame.palette.control.active : frame.palette.control.rest));
    ImGui::PushStyleColor(ImGuiCol_Text, vec(i == current ? frame.palette.text : frame.palette.dim));
    if (ImGui::Button((words[i] + "##" + part).c_str(), {0, frame.metrics.frame})) pressed = i;
    if (enter_pressed_on_item()) pressed = i;
    ImGui::PopStyleColor(2);
    frame.landmarks.mark_item(part);
  }
  ImGui::PopFont();
  return pressed;
}

std::optional<std::size_t> tabs(const Frame& frame, float width, std::span<const TabItem> all,
                                std::size_t current) {
  std::optional<std::size_t> pressed;
  ImFont* font = frame.fonts.sans16;
  const Palette& p = frame.palette;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.px(30), pad = frame.metrics.px(6);
  float gap = frame.metrics.px(frame.metrics.compact ? 10 : 14), taken = pad;
  for (const TabItem& tab : all) taken += formula_width(font, tab.words) + pad;
  if (all.size() > 1)  // spread a few tabs over the line
    gap = std::clamp(std::floor((width - taken) / static_cast<float>(all.size() - 1)), gap,
                     frame.metrics.px(28));
  float x = origin.x, y = origin.y;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float words = formula_width(font, all[i].words);
    if (x > origin.x && x + words + pad > origin.x + width) x = origin.x, y += height;
    platform::move_to({x - pad, y});
    if (hit_area(all[i].name.c_str(), {words + 2 * pad, height})) pressed = i;
    frame.landmarks.mark_item(all[i].name);
    const bool bright = i == current || ImGui::IsItemHovered();
    draw_formula(font, {x, centered_y(font, y, height)}, bright ? p.text : p.dim, all[i].words);
    const ImVec2 line(x - pad / 2, y + height - frame.metrics.px(2));
    if (i == current) {
      const ImVec2 end(x + words + pad / 2, y + height);
      draw_rect(line, end, p.accent);
    }
    x += words + gap + pad;
  }
  y += height;
  ImGui::GetWindowDrawList()->AddLine({origin.x, y}, {origin.x + width, y}, packed(p.line));
  reserve_room(origin, {width, y + 1 - origin.y});
  return pressed;
}

namespace {

constexpr std::size_t max_typed_bytes = std::size_t{1} << 17;  // links are long; ImGui drops a longer paste

/// State of the field's callback; ImGui holds the text while the field is active.
struct InputCallbackState {
  const FieldStyle& style;
  bool stepped = false;
  bool replaces = false;   ///< typed characters replace the text, else they follow it
  std::string early_text;  ///< typed before the field was active
};

int input_callback(ImGuiInputTextCallbackData* data) {
  auto& callback_state = *static_cast<InputCallbackState*>(data->UserData);
  if (data->EventFlag ==
      ImGuiInputTextFlags_CallbackAlways) {  // requested while the field waits for the keyboard focus
    if (callback_state.replaces && callback_state.early_text.empty()) return 0;
    if (callback_state.replaces) data->DeleteChars(0, data->BufTextLen);
    if (!callback_state.early_text.empty())
      data->InsertChars(data->BufTextLen, callback_state.early_text.c_str());
    data->CursorPos = data->SelectionStart = data->SelectionEnd = data->BufTextLen;
    return 0;
  }
  const int direction = data->EventKey == ImGuiKey_UpArrow ? 1 : -1;
  const std::string next = callback_state.style.step(
      std::string(data->Buf, static_cast<std::size_t>(data->BufTextLen)), direction);
  data->DeleteChars(0, data->BufTextLen);
  data->InsertChars(0, next.c_str());
  data->SelectAll();
  callback_state.stepped = true;
  return 0;
}

float padding_for(Alignment alignment, float width, float text, float min_padding) {
  if (alignment == Alignment::left) return min_padding;
  return std::max(min_padding,
                  alignment == Alignment::center ? (width - text) / 2 : width - text - min_padding);
}

std::optional<std::uint64_t> read_count(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return core::text::parse_unsigned(text);
}

/// Draws the error message below a field, with a button for the alternative.
void draw_callout(const Frame& frame, const std::string& name, const SubmittedField& refused,
                  const FieldStyle& style, ImVec2 min, ImVec2 max) {
  const auto& m = frame.metrics;
  const auto& p = frame.palette;
  const float width = m.px(264), right = ImGui::GetIO().DisplaySize.x - width - m.px(32);
  ImGui::SetNextWindowPos({std::max(m.px(8), std::min(min.x, right)), max.y + m.px(4)});
  const auto offer = style.offer ? style.offer(refused.text) : std::nullopt;
  const int through = offer ? 0 : ImGuiWindowFlags_NoInputs;  // clicks pass through to the window below
  begin_note(frame, "refusal", p.strong_line, ImGuiWindowFlags_Tooltip | through);
  paragraph(frame.fonts.sans14, p.text, width, refused.error);
  if (offer) {
    const std::string button = name + "/offer";
    if (!dialog_foot(frame, width, {button.c_str(), offer->first.c_str()}).empty()) {
      frame.commands.add(set<&Forms::submitted>(std::nullopt), ShowMessage{""});
      for (const Command& command : offer->second) frame.commands.add(command);
    }
  }
  const auto [at, far] = window_rect();
  ImGui::PushClipRect(at, far, false);
  draw_rect(at, {at.x + m.px(3), far.y}, p.status.bad);
  ImGui::PopClipRect();
  frame.landmarks.mark(name + "/refused", at, far);
  ImGui::End();
}

/// Draws the error at a field whose text was refused, until a text is accepted, Escape, or the offer.
void draw_field_error(const Frame& frame, const std::string& name, const FieldStyle& style) {
  const auto& submitted = frame.forms.submitted;
  if (!submitted || submitted->field != name) return;
  if (submitted->error.empty()) {  // the answer arrived in this frame
    const SubmittedField answered{name, frame.message.text, submitted->text};
    const bool refused = frame.message.is_error;
    frame.commands.add(set<&Forms::submitted>(refused ? std::optional(answered) : std::nullopt));
    if (!refused) return;
  } else if (!frame.message.is_error || frame.message.text != submitted->error ||
             platform::key_pressed(ImGuiKey_Escape, false)) {
    frame.commands.add(set<&Forms::submitted>(std::nullopt));
    if (frame.message.text == submitted->error) frame.commands.add(ShowMessage{""});
    return;
  }
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  outline(min, max, frame.palette.status.bad, 2);
  if (style.shows_error && !submitted->error.empty()) draw_callout(frame, name, *submitted, style, min, max);
}

constexpr float label_gap = 12, pair_gap = 20, min_label_width = 104;  // at scale 1

}  // namespace

std::uint64_t by_one(std::uint64_t value, int direction) {
  return direction > 0 ? value + 1 : value > 0 ? value - 1 : 0;
}

void report_invalid(const Frame& frame, const char* field, const char* expected, const std::string& found) {
  frame.commands.add(
      ShowMessage{std::string(field) + ": expected " + expected + ", found \"" + found + "\"", true});
}

std::string typed_characters() {
  std::string text;
  for (const ImWchar c : ImGui::GetIO().InputQueueCharacters) core::text::append_character(text, c);
  return text;
}

bool is_refused(const Frame& frame, const std::string& name) {
  return shows_refusal(frame) && frame.forms.submitted->field == name;
}

bool shows_refusal(const Frame& frame) {
  return frame.forms.submitted && !frame.forms.submitted->error.empty();
}

FieldAnswer text_field(const Frame& frame, const std::string& name, const std::string& shown,
                       const FieldStyle& style) {
  const auto& typed = frame.forms.typed;
  const bool mine = typed && typed->field == name;
  const std::string before = mine                      ? typed->text
                             : is_refused(frame, name) ? frame.forms.submitted->text
                                                       : shown;
  std::vector<char> buffer(before.begin(), before.end());
  buffer.resize(before.size() + max_typed_bytes);

  platform::push_font(style.font);
  const float min_padding = frame.metrics.px(5);
  const float padding =
      padding_for(style.alignment, style.width, text_width(style.font, before), min_padding);
  const float vertical = (frame.metrics.frame - platform::font_size(style.font)) / 2;
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {padding, vertical});
  ImGui::SetNextItemWidth(style.width);
  const bool needs_focus = mine && typed->needs_focus, caret_at_end = needs_focus && !typed->selected;
  ImGuiInputTextFlags flags = caret_at_end ? 0 : ImGuiInputTextFlags_AutoSelectAll;
  if (needs_focus) flags |= ImGuiInputTextFlags_CallbackAlways;
  if (style.step) flags |= ImGuiInputTextFlags_CallbackHistory;
  InputCallbackState callback_state{style, false, !caret_at_end, needs_focus ? typed_characters() : ""};
  if (needs_focus) platform::focus_next_item();
  const bool needs_callback = needs_focus || style.step;
  ImGui::InputTextWithHint(("##" + name).c_str(), style.hint.c_str(), buffer.data(), buffer.size(), flags,
                           needs_callback ? input_callback : nullptr, &callback_state);
  ImGui::PopStyleVar();
  ImGui::PopFont();
  frame.landmarks.mark_item(name);

  const std::string after(buffer.data());
  FieldAnswer answer;
  answer.lost_focus = ImGui::IsItemDeactivated();
  if (ImGui::IsItemActive()) {
    outline(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), frame.palette.accent, 2);
    if (after != before || needs_focus) frame.commands.add(set<&Forms::typed>(TypedField{name, after}));
  } else if (needs_focus && !answer.lost_focus && !callback_state.early_text.empty()) {
    const std::string so_far = (caret_at_end ? before : "") + callback_state.early_text;
    frame.commands.add(set<&Forms::typed>(TypedField{name, so_far, true, false}));
  } else if (mine && (answer.lost_focus || !needs_focus)) {
    answer.lost_focus = true;
    frame.commands.add(set<&Forms::typed>(std::nullopt));
  }
  if ((answer.lost_focus || callback_state.stepped) && after != shown) answer.text = after;
  if (answer.text)
    frame.commands.add(set<&Forms::submitted>(SubmittedField{name, "", *answer.text}));
  else
    draw_field_error(frame, name, style);
  return answer;
}

std::optional<std::uint64_t> count_field(const Frame& frame, const std::string& name, const char* words,
                                         std::uint64_t value, float width,
                                         const std::function<std::uint64_t(std::uint64_t, int)>& step,
                                         const decltype(FieldStyle::offer)& offer) {
  FieldStyle style;
  style.width = width, style.font = frame.fonts.mono14, style.offer = offer;
  style.step = [&](const std::string& text, int direction) {
    return std::to_string(step(read_count(text).value_or(value), direction));
  };
  const FieldAnswer answer = text_field(frame, name, std::to_string(value), style);
  if (!answer.text) return std::nullopt;
  const auto count = read_count(*answer.text);
  if (!count) report_invalid(frame, words, "a whole number", *answer.text);
  return count;
}

std::optional<double> read_number(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), is_space));
  constexpr std::string_view minus = "−";
  if (const std::size_t at = text.find(minus); at != text.npos) text.replace(at, minus.size(), "-");
  if (const std::size_t at = text.find(','); at != text.npos) text[at] = '.';
  if (text.starts_with('+')) text.erase(0, 1);
  const auto parsed = core::text::parse_number(text);
  return parsed && std::isfinite(*parsed) ? parsed : std::nullopt;
}

std::optional<double> real_field(const Frame& frame, const std::string& name, const char* words, double value,
                                 float width) {
  const FieldAnswer answer =
      text_field(frame, name, core::text::number_text(value), {.width = width, .font = frame.fonts.mono14});
  if (!answer.text) return std::nullopt;
  const auto number = read_number(*answer.text);
  if (!number) report_invalid(frame, words, "a number", *answer.text);
  return number;
}

FormRows::FormRows(const Frame& frame_, const char* id, float width, int n_pairs)
    : frame(frame_),
      landmark_(std::string("form/") + id),
      min_label_width_(width > 0 ? frame_.metrics.px(min_label_width) : 0) {
  const ImGuiTableFlags fits = width > 0 ? 0 : ImGuiTableFlags_NoHostExtendX;
  is_open_ = ImGui::BeginTable(
      id, 2 * n_pairs, ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings | fits, {width, 0});
  for (int k = 0; is_open_ && width > 0 && k < n_pairs; ++k) {
    ImGui::TableSetupColumn("labels");
    ImGui::TableSetupColumn("controls", ImGuiTableColumnFlags_WidthStretch);
  }
}

FormRows::~FormRows() {
  if (!is_open_) return;
  ImGui::EndTable();
  frame.landmarks.mark_item(landmark_);
}

void FormRows::row(const char* label) const {
  if (!is_open_) return;
  ImGui::TableNextColumn();
  ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 begin = at;
  if (ImGui::TableGetColumnIndex() > 0) at.x += frame.metrics.px(pair_gap);
  draw_label(frame, frame.fonts.sans15, at, frame.palette.dim, label);
  const float width = text_width(frame.fonts.sans15, label) + frame.metrics.px(label_gap);
  reserve_room(begin, {at.x - begin.x + std::max(min_label_width_, width), frame.metrics.frame});
  ImGui::TableNextColumn();
}

void inline_label(const Frame& frame, const char* words) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_label(frame, frame.fonts.sans15, at, frame.palette.dim, words);
  reserve_room(at, {text_width(frame.fonts.sans15, words), frame.metrics.frame});
  ImGui::SameLine();
}

}  // namespace app::widgets
