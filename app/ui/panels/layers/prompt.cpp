#include "app/ui/panels/layers/prompt.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>

#include "app/session/whole_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"

namespace app::panels {

std::string wrapped(const std::string& plain, const std::function<bool(const std::string&)>& fits) {
  std::string lines;
  std::size_t begin = 0, blank = std::string::npos;  // of the last line; its last blank
  const auto wrap = [&] {
    if (blank == std::string::npos || fits(lines.substr(begin))) return;
    lines[blank] = '\n';
    begin = blank + 1, blank = std::string::npos;
  };
  for (const char c : plain) {
    if (c == ' ' || c == '\n') wrap();
    if (c == '\n') {
      lines += "\r\n";
      begin = lines.size(), blank = std::string::npos;
      continue;
    }
    if (c == ' ') blank = lines.size();
    lines += c;
  }
  wrap();
  return lines;
}

std::string plain_of(const std::string& lines) {
  std::string plain;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (lines[k] == '\r') {
      plain += '\n';
      if (k + 1 < lines.size() && lines[k + 1] == '\n') ++k;
    } else {
      plain += lines[k] == '\n' ? ' ' : lines[k];
    }
  }
  return plain;
}

std::size_t place_in_lines(const std::string& lines, std::size_t place_in_text) {
  std::size_t k = 0;
  for (; k < lines.size() && place_in_text > 0; --place_in_text)
    k += lines[k] == '\r' && k + 1 < lines.size() && lines[k + 1] == '\n' ? 2 : 1;
  return k;
}

namespace {

constexpr std::size_t most_chips = 400;
constexpr std::ptrdiff_t fewest_lines = 3, most_lines = 7;  // of the field
constexpr float chips_height = 132;

/// The lines of a field, and how they are broken.
struct FieldLines {
  std::string text;
  std::function<bool(const std::string&)> fits;
};

int on_prompt(ImGuiInputTextCallbackData* data) {
  auto& lines = *static_cast<FieldLines*>(data->UserData);
  if (data->EventFlag == ImGuiInputTextFlags_CallbackResize) {
    lines.text.resize(static_cast<std::size_t>(data->BufTextLen));
    data->Buf = lines.text.data();
  } else if (data->EventFlag == ImGuiInputTextFlags_CallbackCharFilter) {
    if (data->EventChar == '\n') data->EventChar = '\r';  // a line of the text ends: see wrapped()
  } else if (data->EventFlag == ImGuiInputTextFlags_CallbackEdit) {
    const std::string before(data->Buf, static_cast<std::size_t>(data->BufTextLen));
    const std::string after = wrapped(plain_of(before), lines.fits);
    if (after == before) return 0;
    const std::size_t place = plain_of(before.substr(0, static_cast<std::size_t>(data->CursorPos))).size();
    data->DeleteChars(0, data->BufTextLen);
    data->InsertChars(0, after.data(), after.data() + after.size());
    data->CursorPos = static_cast<int>(place_in_lines(after, place));
    data->SelectionStart = data->SelectionEnd = data->CursorPos;
  }
  return 0;
}

/// The text that is read, or the one that was typed and cannot be.
std::string text_of_prompt(const Frame& frame) {
  const WholeModel& whole = *frame.pending.whole;
  const auto& refused = frame.pending.layers->refused;
  return refused ? refused->text : core::experiment::whole_text(*whole.model, whole.experiment);
}

void draw_field(const Frame& frame, float width) {
  ImFont* font = frame.fonts.sans15;
  const float room = width - 2 * ImGui::GetStyle().FramePadding.x - ImGui::GetStyle().ScrollbarSize;
  FieldLines lines{"", [&](const std::string& line) { return widgets::text_width(font, line) <= room; }};
  const std::string before = text_of_prompt(frame);
  lines.text = wrapped(before, lines.fits);
  const auto n = static_cast<float>(
      std::clamp<std::ptrdiff_t>(1 + std::ranges::count(lines.text, '\n'), fewest_lines, most_lines));
  const float height = n * platform::font_size(font) + 2 * ImGui::GetStyle().FramePadding.y + 2;
  platform::push_font(font);
  lines.text.reserve(lines.text.size() + 64);
  ImGui::InputTextMultiline("##prompt", lines.text.data(), lines.text.capacity() + 1, {width, height},
                            ImGuiInputTextFlags_CallbackResize | ImGuiInputTextFlags_CallbackCharFilter |
                                ImGuiInputTextFlags_CallbackEdit | ImGuiInputTextFlags_NoHorizontalScroll,
                            on_prompt, &lines);
  ImGui::PopFont();
  frame.landmarks.mark_item("whole/prompt");
  if (ImGui::IsItemActive())
    widgets::outline(ImGui::GetWindowDrawList(), ImGui::GetItemRectMin(), ImGui::GetItemRectMax(),
                     packed(frame.palette.accent), 2);
  if (ImGui::IsItemDeactivated() && platform::key_pressed(ImGuiKey_Escape)) return;  // which keeps the text
  const std::string text = plain_of(lines.text.c_str());
  if (text != before) frame.commands.add(ReadText{text});
}

std::string hex_of(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr const char* digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (!text.empty()) text += ' ';
    (text += digits[byte >> 4]) += digits[byte & 15];
  }
  return text;
}

void chip_tooltip(const Frame& frame, const core::experiment::Reading& now, std::size_t i) {
  const auto& token = now.tokens[i];
  const auto of = frame.pending.whole->model->token(token.id);
  std::string words = "token " + std::to_string(i) + ", id " + std::to_string(token.id);
  if (token.is_put_in)
    words += "\nadded by the tokenizer: " + of.piece;
  else
    words += "\nbytes " + hex_of(of.bytes) + "\nin the vocabulary: " + of.piece;
  if (token.is_special) words += "\na special token of the model";
  if (i + now.experiment.made.size() >= now.tokens.size()) words += "\ngenerated by the model";
  words += "\nClick to mark its query in every map";
  ImGui::SetTooltip("%s", words.c_str());
}

/// As many lines as the tokens need, at most a few.
float chips_room(const Frame& frame, float width) {
  const auto& names = frame.pending.reading->readings()->now->names;
  const float height = frame.metrics.px(20), gap = frame.metrics.px(4), inset = frame.metrics.px(5);
  float x = 0, y = height;
  for (std::size_t i = 0; i < std::min(names.size(), most_chips) && y < frame.metrics.px(chips_height); ++i) {
    const float chip = std::min(
        width, widgets::text_width(frame.fonts.sans13, widgets::visible_token(names[i])) + 2 * inset);
    if (x + chip > width && x > 0) x = 0, y += height + gap;
    x += chip + gap;
  }
  return std::min(y + frame.metrics.px(12), frame.metrics.px(chips_height));
}

/// The tokens side by side; a click pins the query.
void draw_chips(const Frame& frame, float width) {
  const auto& now = *frame.pending.reading->readings()->now;
  const auto& pinned = frame.displayed.look.tokens.pinned_query;
  const std::size_t marked = pinned.value_or(now.place ? now.place->row : now.names.size() - 1);
  ImFont* font = frame.fonts.sans13;
  const float height = frame.metrics.px(20), gap = frame.metrics.px(4), inset = frame.metrics.px(5);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float x = at.x, y = at.y;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < std::min(now.names.size(), most_chips); ++i) {
    const std::string words =
        widgets::shortened(font, widgets::visible_token(now.names[i]), width - 2 * inset);
    const float chip = widgets::text_width(font, words) + 2 * inset;
    if (x + chip > at.x + width && x > at.x) x = at.x, y += height + gap;
    const ImVec2 far(x + chip, y + height);
    list->AddRectFilled({x, y}, far, packed(frame.palette.control.active), frame.metrics.px(3));
    const bool is_special = now.tokens[i].is_special || now.tokens[i].is_put_in;
    if (i == marked)
      widgets::outline(list, {x - 1, y - 1}, {far.x + 1, far.y + 1}, packed(frame.palette.selection), 2);
    widgets::draw_text(font, {x + inset, y + height / 2}, widgets::Align::left_middle,
                       packed(is_special ? frame.palette.accent : frame.palette.text), words);
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect({x, y}, far)) {
      chip_tooltip(frame, now, i);
      if (ImGui::IsMouseClicked(0)) frame.commands.add(PinQuery{i});
    }
    frame.landmarks.mark("whole/token/" + std::to_string(i), {x, y}, far);
    x += chip + gap;
  }
  if (now.names.size() > most_chips) {
    y += height + gap;
    widgets::draw_text(font, {at.x, y + height / 2}, widgets::Align::left_middle, packed(frame.palette.faint),
                       "and " + std::to_string(now.names.size() - most_chips) + " more");
  }
  ImGui::Dummy({width, y + height - at.y + frame.metrics.px(2)});
}

/// A label over a field.
template <class Draw>
void labeled(const Frame& frame, ImVec2 at, const char* words, bool enabled, Draw draw) {
  widgets::draw_text(frame.fonts.sans13, at, enabled ? frame.palette.dim : frame.palette.faint, words);
  platform::move_to({at.x, at.y + frame.metrics.px(18)});
  ImGui::BeginDisabled(!enabled);
  draw();
  ImGui::EndDisabled();
}

void draw_sampling(const Frame& frame, float width) {
  const LayersLook& look = *frame.pending.layers;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float gap = frame.metrics.px(8), field = std::floor((width - 2 * gap) / 3);
  const auto step = [](std::uint64_t value, int by) { return by > 0 ? value + 1 : value - (value > 0); };
  labeled(frame, at, "temperature", true, [&] {
    const auto t = widgets::real_field(frame, "whole/temperature", "temperature", look.temperature, field);
    widgets::tooltip(
        "Logits are divided by it before a token is sampled. 0 is greedy: the most probable token");
    if (!t) return;
    if (*t >= 0)
      frame.commands.add(set<&LayersLook::temperature>(*t));
    else
      frame.commands.add(ShowMessage{"temperature: expected 0 or a positive number", true});
  });
  const bool samples = look.temperature > 0;
  labeled(frame, {at.x + field + gap, at.y}, "top-k", samples, [&] {
    if (const auto top = widgets::count_field(frame, "whole/top", "top-k", look.top, field, step))
      frame.commands.add(set<&LayersLook::top>(static_cast<std::size_t>(*top)));
    widgets::tooltip("Samples among the k most probable tokens; 0 for all");
  });
  labeled(frame, {at.x + 2 * (field + gap), at.y}, "seed", samples, [&] {
    if (const auto seed = widgets::count_field(frame, "whole/seed", "seed", look.seed, field, step))
      frame.commands.add(set<&LayersLook::seed>(*seed));
    widgets::tooltip("The same seed samples the same tokens");
  });
  platform::move_to(at);
  ImGui::Dummy({width, frame.metrics.px(18) + frame.metrics.frame});
  if (!samples)
    widgets::paragraph(frame.fonts.sans13, frame.palette.faint, width, "Temperature 0 is greedy.");
}

void draw_writing(const Frame& frame, float width) {
  const bool can_write = frame.pending.whole->model->description().causal;
  ImGui::BeginDisabled(!can_write);
  if (widgets::button(frame, "whole/more", "Generate token",
                      can_write ? "Appends the token that the model predicts"
                                : "Not possible: tokens of this model attend to later ones"))
    frame.commands.add(WriteToken{});
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (widgets::button(frame, "whole/back", "Remove last", "Removes the last token"))
    frame.commands.add(WriteToken{true});
  if (can_write) draw_sampling(frame, width);
}

/// Prompts that show what heads do.
struct ExamplePrompt {
  const char *name, *about, *text;
};
constexpr ExamplePrompt example_prompts[]{
    {"Repeated phrase", "Induction heads continue what followed the first time", "egg jam fig and egg jam f"},
    {"Previous token", "Previous-token heads form a diagonal", "one two three four five six seven eight"},
    {"Copied name", "Heads copy one of the names",
     "When Mary and John went to the store, John gave a drink to"},
    {"Sentence", "Several plausible next tokens",
     "It is a truth universally acknowledged, that a single man"}};

/// The heading, how many tokens are read of how many, and the menu of examples.
void draw_heading(const Frame& frame, std::size_t n_tokens, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::section_heading(frame, width, "PROMPT");
  const float bottom = ImGui::GetItemRectMax().y, middle = bottom - frame.metrics.px(12);
  const char* words = "Examples";
  if (widgets::link(frame, "whole/examples", frame.fonts.sans14,
                    {at.x + width - frame.metrics.px(16), middle}, widgets::Align::right_middle,
                    frame.palette.text, words))
    ImGui::OpenPopup("examples");
  widgets::draw_combo_arrow(frame, ImGui::GetWindowDrawList(), at.x + width + frame.metrics.px(6), middle);
  if (n_tokens > 0)
    widgets::draw_text(
        frame.fonts.mono12,
        {at.x + width - frame.metrics.px(30) - widgets::text_width(frame.fonts.sans14, words), middle},
        widgets::Align::right_middle, packed(frame.palette.faint),
        std::to_string(n_tokens) + " of " +
            widgets::grouped(frame.pending.whole->model->description().sizes.n_context));
  if (ImGui::BeginPopup("examples")) {
    platform::push_font(frame.fonts.sans15);
    for (const ExamplePrompt& example : example_prompts) {
      if (ImGui::MenuItem(example.name)) frame.commands.add(ReadText{example.text});
      frame.landmarks.mark_item(std::string("whole/example/") + example.name);
      widgets::tooltip(std::string(example.about) + ": " + example.text);
    }
    ImGui::PopFont();
    ImGui::EndPopup();
  }
  platform::move_to({at.x, bottom});
}

}  // namespace

void draw_prompt(const Frame& frame, float width) {
  const auto* both = frame.pending.reading->readings();
  draw_heading(frame, both ? both->now->names.size() : 0, width);
  draw_field(frame, width);
  if (frame.pending.layers->refused)
    widgets::paragraph(frame.fonts.sans13, frame.palette.status.bad, width,
                       "Not read: " + frame.pending.layers->refused->why);
  if (both) {
    const float room = width - ImGui::GetStyle().ScrollbarSize;
    platform::begin_child("chips", {width, chips_room(frame, room)});
    ImGui::Dummy({1, 1});
    draw_chips(frame, room);
    ImGui::EndChild();
  }
  draw_writing(frame, width);
}

}  // namespace app::panels
