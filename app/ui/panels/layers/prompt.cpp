#include "app/ui/panels/layers/prompt.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>

#include "app/session/whole_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/layers/whole_panel.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"

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

const char* heading(const Frame& frame) {
  return frame.newest.whole->model->description().causal ? "NEXT TOKEN" : "MASKED TOKEN";
}

void draw_heading(const Frame& frame, const Prediction& next, float width) {
  const auto& f = frame;
  const bool chosen = f.newest.layers->token.has_value();
  widgets::section_heading(frame, width, heading(frame), "");
  const ImVec2 end = ImGui::GetItemRectMax();
  widgets::draw_text(f.fonts.sans13, {end.x, end.y - f.metrics.px(12)}, widgets::Align::right_middle,
                     packed(f.palette.faint), chosen ? "selected · Esc releases" : "most probable");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string number = widgets::fixed(next.chosen.now, 4);
  const float number_width = widgets::text_width(f.fonts.mono32, number);
  widgets::draw_text(f.fonts.sans19, {at.x, at.y + f.metrics.px(18)}, widgets::Align::left_middle,
                     packed(f.palette.text),
                     widgets::shortened(f.fonts.sans19, quoted_token(next.chosen.text),
                                        width - number_width - f.metrics.px(12)));
  widgets::draw_text(f.fonts.mono32, {at.x + width, at.y + f.metrics.px(18)}, widgets::Align::right_middle,
                     packed(f.palette.text), number);
  f.landmarks.mark("next/probability", {at.x + width - number_width, at.y},
                   {at.x + width, at.y + f.metrics.px(36)});
  ImGui::Dummy({width, f.metrics.px(38)});
  const ImVec2 below = ImGui::GetCursorScreenPos();
  const std::string logit = "logit " + widgets::fixed(next.logit, 2);
  const float field = f.metrics.px(52), apart = f.metrics.px(8);
  const auto label_width = [&](const char* words) { return widgets::text_width(f.fonts.sans14, words); };
  const bool fits =
      label_width("at temperature") + field + widgets::text_width(f.fonts.mono13, logit) + 3 * apart <= width;
  const char* words = fits ? "at temperature" : "at temp.";
  widgets::draw_text(f.fonts.sans14, below, f.palette.dim, words);
  platform::move_to({below.x + label_width(words) + apart, below.y - f.metrics.px(3)});
  if (const auto t = widgets::real_field(frame, "next/temperature", "temperature",
                                         f.newest.layers->temperature, field)) {
    if (*t > 0)
      f.commands.add(set<&LayersLook::temperature>(*t));
    else
      f.commands.add(
          ShowMessage{"temperature: expected a number above 0, as logits are divided by it", true});
  }
  widgets::draw_text_right(f.fonts.mono13, below.x + width, below.y, f.palette.dim, logit);
  platform::move_to({below.x, below.y + f.metrics.px(24)});
  if (f.newest.whole->experiment.is_edited()) {
    const ImVec2 line = ImGui::GetCursorScreenPos();
    widgets::draw_text_right(f.fonts.mono13, line.x + width, line.y, f.palette.dim,
                             widgets::fixed(next.chosen.before, 4));
    widgets::draw_text(f.fonts.sans14, line, f.palette.dim, "before the edits");
    ImGui::Dummy({width, f.metrics.px(20)});
  }
}

void draw_row(const Frame& frame, const NextToken& token, bool is_chosen, bool is_edited, float width) {
  const auto& f = frame;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = f.metrics.px(22), middle = at.y + height / 2;
  const bool pressed = widgets::hit_area(("token " + std::to_string(token.id)).c_str(), {width, height});
  f.landmarks.mark_item("next/" + std::to_string(token.id));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float pad = f.metrics.px(6);
  if (is_chosen || ImGui::IsItemHovered())
    list->AddRectFilled({at.x - pad, at.y}, {at.x + width + pad, at.y + height},
                        packed(is_chosen ? f.palette.control.active : f.palette.control.hovered));
  if (pressed)
    f.commands.add(set<&LayersLook::token>(is_chosen && f.newest.layers->token ? std::nullopt
                                                                               : std::optional(token.id)));
  const float change = widgets::text_width(f.fonts.mono13, "−0.000"),
              now = widgets::text_width(f.fonts.mono13, "0.0000");
  float right = at.x + width;
  if (is_edited) {
    const double by = token.now - token.before;
    widgets::draw_text(f.fonts.mono13, {right, middle}, widgets::Align::right_middle, packed(f.palette.dim),
                       signed_text(by, 3));
    right -= change + f.metrics.px(12);
  }
  widgets::draw_text(f.fonts.mono13, {right, middle}, widgets::Align::right_middle, packed(f.palette.text),
                     widgets::fixed(token.now, 4));
  right -= now + f.metrics.px(10);
  const float left = at.x + width * 0.26f, bar = std::max(right - left, 1.0f);
  const float top = middle - f.metrics.px(5), bottom = middle + f.metrics.px(5);
  list->AddRectFilled({left, top}, {right, bottom}, packed(f.palette.control.rest));
  const auto at_share = [&](double share) {
    return left + bar * static_cast<float>(std::clamp(share, 0.0, 1.0));
  };
  list->AddRectFilled(
      {left, top}, {std::max(left + 1, at_share(token.now)), bottom},
      packed(render::color_at(f.shown.look.colors.sequential, f.palette.dark, 0.3 + 0.5 * token.now)));
  if (is_edited && std::abs(token.now - token.before) > 0.005)
    widgets::outline(list, {left, top - 1}, {std::max(left + 3, at_share(token.before)), bottom + 1},
                     packed(f.palette.text), 1);
  widgets::draw_text(
      f.fonts.sans14, {at.x, middle}, widgets::Align::left_middle, packed(f.palette.text),
      widgets::shortened(f.fonts.sans14, visible_token(token.text), left - at.x - f.metrics.px(6)));
}

void draw_table(const Frame& frame, const Prediction& next, float width) {
  const auto& f = frame;
  const bool is_edited = f.newest.whole->experiment.is_edited();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y}, {at.x + width, at.y + 1}, packed(f.palette.line));
  const float y = at.y + f.metrics.px(6);
  widgets::draw_text(f.fonts.sans13, {at.x, y}, f.palette.faint, "token");
  const float change = widgets::text_width(f.fonts.mono13, "−0.000") + f.metrics.px(12);
  if (is_edited) widgets::draw_text_right(f.fonts.sans13, at.x + width, y, f.palette.faint, "change");
  widgets::draw_text_right(f.fonts.sans13, at.x + width - (is_edited ? change : 0), y, f.palette.faint,
                           "now");
  ImGui::Dummy({width, f.metrics.px(24)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  bool is_listed = false;
  for (const NextToken& token : next.table) {
    draw_row(frame, token, token.id == next.chosen.id, is_edited, width);
    is_listed = is_listed || token.id == next.chosen.id;
  }
  if (!is_listed) draw_row(frame, next.chosen, true, is_edited, width);
  ImGui::PopStyleVar();
  const ImVec2 foot = ImGui::GetCursorScreenPos();
  if (is_edited) {
    widgets::outline(ImGui::GetWindowDrawList(), {foot.x, foot.y + f.metrics.px(5)},
                     {foot.x + f.metrics.px(14), foot.y + f.metrics.px(14)}, packed(f.palette.text), 1);
    widgets::draw_text(f.fonts.sans13, {foot.x + f.metrics.px(20), foot.y + f.metrics.px(2)}, f.palette.faint,
                       "before the edits");
  }
  widgets::draw_text_right(
      f.fonts.sans13, foot.x + width, foot.y + f.metrics.px(2), f.palette.faint,
      "the other " + std::to_string(next.n_others) + ": " + widgets::fixed(next.others, 4));
  ImGui::Dummy({width, f.metrics.px(24)});
}

}  // namespace

void draw_next_token(const Frame& frame) {
  if (!frame.newest.whole || !frame.newest.reading->readings()) return;
  const float width = ImGui::GetContentRegionAvail().x;
  const Prediction* next = frame.newest.reading->prediction();
  const std::string& why_not = frame.newest.reading->readings()->now->why_no_prediction;
  if (!why_not.empty()) {
    widgets::section_heading(frame, width, heading(frame), "");
    widgets::paragraph(frame.fonts.sans14, frame.palette.dim, width, why_not);
  } else if (next && !next->table.empty()) {
    draw_heading(frame, *next, width);
    draw_table(frame, *next, width);
  }
  draw_selected_head(frame, width);
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
  const WholeModel& whole = *frame.newest.whole;
  const auto& refused = frame.newest.layers->refused;
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
  const auto of = frame.newest.whole->model->token(token.id);
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
  const auto& names = frame.newest.reading->readings()->now->names;
  const float height = frame.metrics.px(20), gap = frame.metrics.px(4), inset = frame.metrics.px(5);
  float x = 0, y = height;
  for (std::size_t i = 0; i < std::min(names.size(), most_chips) && y < frame.metrics.px(chips_height); ++i) {
    const float chip =
        std::min(width, widgets::text_width(frame.fonts.sans13, visible_token(names[i])) + 2 * inset);
    if (x + chip > width && x > 0) x = 0, y += height + gap;
    x += chip + gap;
  }
  return std::min(y + frame.metrics.px(12), frame.metrics.px(chips_height));
}

/// The tokens side by side; a click pins the query.
void draw_chips(const Frame& frame, float width) {
  const auto& now = *frame.newest.reading->readings()->now;
  const auto& pinned = frame.shown.look.tokens.pinned_query;
  const std::size_t marked = pinned.value_or(now.place ? now.place->row : now.names.size() - 1);
  ImFont* font = frame.fonts.sans13;
  const float height = frame.metrics.px(20), gap = frame.metrics.px(4), inset = frame.metrics.px(5);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float x = at.x, y = at.y;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < std::min(now.names.size(), most_chips); ++i) {
    const std::string words = widgets::shortened(font, visible_token(now.names[i]), width - 2 * inset);
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

void draw_writing(const Frame& frame, float width) {
  const LayersLook& look = *frame.newest.layers;
  const bool can_write = frame.newest.whole->model->description().causal;
  ImGui::BeginDisabled(!can_write);
  if (widgets::button(frame, "whole/more", "next token", "Appends the most probable token, or a sampled one"))
    frame.commands.add(WriteToken{});
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (widgets::button(frame, "whole/back", "Remove last", "Removes the last token"))
    frame.commands.add(WriteToken{true});
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (const auto samples =
          widgets::checkbox(frame, "whole/samples", "sampled", look.samples,
                            "Samples by probability with a seed; else takes the most probable token"))
    frame.commands.add(set<&LayersLook::samples>(*samples));
  const auto field = [&](float x, const char* words, const auto& draw) {
    const float label = widgets::text_width(frame.fonts.sans14, words);
    widgets::draw_text(frame.fonts.sans14, {at.x + x, at.y + frame.metrics.frame / 2},
                       widgets::Align::left_middle,
                       packed(look.samples ? frame.palette.dim : frame.palette.faint), words);
    platform::move_to({at.x + x + label + frame.metrics.px(6), at.y});
    draw();
  };
  const auto step = [](std::uint64_t value, int by) { return by > 0 ? value + 1 : value - (value > 0); };
  ImGui::BeginDisabled(!look.samples);
  field(width * 0.33f, "top-k", [&] {
    if (const auto top =
            widgets::count_field(frame, "whole/top", "top-k", look.top, frame.metrics.px(44), step))
      frame.commands.add(set<&LayersLook::top>(static_cast<std::size_t>(*top)));
  });
  field(width * 0.66f, "seed", [&] {
    if (const auto seed =
            widgets::count_field(frame, "whole/seed", "seed", look.seed, frame.metrics.px(48), step))
      frame.commands.add(set<&LayersLook::seed>(*seed));
  });
  ImGui::EndDisabled();
  platform::move_to(at);
  ImGui::Dummy({width, frame.metrics.frame});
}

}  // namespace

void draw_prompt(const Frame& frame, float width) {
  const auto* both = frame.newest.reading->readings();
  const std::size_t n_context = frame.newest.whole->model->description().sizes.n_context;
  widgets::section_heading(
      frame, width, "PROMPT",
      both ? std::to_string(both->now->names.size()) + " of " + std::to_string(n_context) : "");
  draw_field(frame, width);
  if (frame.newest.layers->refused)
    widgets::paragraph(frame.fonts.sans13, frame.palette.status.bad, width,
                       "Not read: " + frame.newest.layers->refused->why);
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
