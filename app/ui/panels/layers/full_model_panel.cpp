#include "app/ui/panels/layers/layers_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>

#include "app/session/full_model_reading.hpp"
#include "app/session/model_title.hpp"
#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/text.hpp"

namespace app::panels {

std::string wrap_lines(const std::string& plain, const std::function<bool(const std::string&)>& fits) {
  std::string lines;
  std::size_t begin = 0, last_space = std::string::npos;  // of the last line; its last space
  const auto wrap = [&] {
    if (last_space == std::string::npos || fits(lines.substr(begin))) return;
    lines[last_space] = '\n';
    begin = last_space + 1, last_space = std::string::npos;
  };
  for (const char c : plain) {
    if (c == ' ' || c == '\n') wrap();
    if (c == '\n') {
      lines += "\r\n";
      begin = lines.size(), last_space = std::string::npos;
      continue;
    }
    if (c == ' ') last_space = lines.size();
    lines += c;
  }
  wrap();
  return lines;
}

std::string unwrap_lines(const std::string& lines) {
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

std::size_t wrapped_position(const std::string& lines, std::size_t text_position) {
  std::size_t k = 0;
  for (; k < lines.size() && text_position > 0; --text_position)
    k += lines[k] == '\r' && k + 1 < lines.size() && lines[k + 1] == '\n' ? 2 : 1;
  return k;
}

namespace {

constexpr std::size_t max_chips = 400;
constexpr std::ptrdiff_t min_lines = 3, max_lines = 7;  // of the field
constexpr float chips_height = 132;

/// Wrapped lines of a field, and whether a line fits.
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
    if (data->EventChar == '\n') data->EventChar = '\r';  // a line of the text ends: see wrap_lines()
  } else if (data->EventFlag == ImGuiInputTextFlags_CallbackEdit) {
    const std::string before(data->Buf, static_cast<std::size_t>(data->BufTextLen));
    const std::string after = wrap_lines(unwrap_lines(before), lines.fits);
    if (after == before) return 0;
    const std::size_t place =
        unwrap_lines(before.substr(0, static_cast<std::size_t>(data->CursorPos))).size();
    data->DeleteChars(0, data->BufTextLen);
    data->InsertChars(0, after.data(), after.data() + after.size());
    data->CursorPos = static_cast<int>(wrapped_position(after, place));
    data->SelectionStart = data->SelectionEnd = data->CursorPos;
  }
  return 0;
}

/// Returns the prompt, or the typed text that could not be read.
std::string text_of_prompt(const Frame& frame) {
  const FullModelState& full_model = *frame.pending.full_model;
  const auto& refused = frame.pending.layers->refused;
  return refused ? refused->text : core::experiment::whole_text(*full_model.model, full_model.experiment);
}

void draw_field(const Frame& frame, float width) {
  ImFont* font = frame.fonts.sans15;
  const float room = width - 2 * ImGui::GetStyle().FramePadding.x - ImGui::GetStyle().ScrollbarSize;
  FieldLines lines{"", [&](const std::string& line) { return text_width(font, line) <= room; }};
  const std::string before = text_of_prompt(frame);
  lines.text = wrap_lines(before, lines.fits);
  const auto n = static_cast<float>(
      std::clamp<std::ptrdiff_t>(1 + std::ranges::count(lines.text, '\n'), min_lines, max_lines));
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
    outline(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), frame.palette.accent, 2);
  if (ImGui::IsItemDeactivated() && platform::key_pressed(ImGuiKey_Escape)) return;  // Esc keeps the text
  const std::string text = unwrap_lines(lines.text.c_str());
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

void chip_tooltip(const Frame& frame, const core::experiment::TextReading& now, std::size_t i) {
  const auto& token = now.tokens[i];
  const auto of = frame.pending.full_model->model->token(token.id);
  std::string words = fmt::format("token {}, id {}", i, token.id);
  if (token.is_inserted)
    words += "\nadded by the tokenizer: " + of.piece;
  else
    words += "\nbytes " + hex_of(of.bytes) + "\nin the vocabulary: " + of.piece;
  if (token.is_special) words += "\na special token of the model";
  if (i + now.experiment.made.size() >= now.tokens.size()) words += "\ngenerated by the model";
  words += "\nClick to mark its query in every map";
  ImGui::SetTooltip("%s", words.c_str());
}

/// Chips of tokens in lines of a width.
struct ChipFlow {
  const Frame& frame;
  Flow flow;

  ChipFlow(const Frame& f, ImVec2 start, float width)
      : frame(f), flow{start, width, f.metrics.px(4), height() + f.metrics.px(4)} {}
  float height() const { return frame.metrics.px(20); }
  float inset() const { return frame.metrics.px(5); }
  /// Returns the token as it fits, and where.
  std::pair<std::string, Rect> place(const std::string& name) {
    const std::string words = shortened(frame.fonts.sans13, visible_token(name), flow.width - 2 * inset());
    const float width = text_width(frame.fonts.sans13, words) + 2 * inset();
    const ImVec2 at = flow.place(width);
    return {words, {at, {at.x + width, at.y + height()}}};
  }
};

/// Returns the height of the lines that the tokens need, up to chips_height, in pixels.
float chips_area_height(const Frame& frame, float width) {
  const auto& names = frame.pending.reading->readings()->now->names;
  const float most = frame.metrics.px(chips_height);
  ChipFlow chips(frame, {0, 0}, width);
  for (std::size_t i = 0; i < std::min(names.size(), max_chips) && chips.flow.next.y < most; ++i)
    chips.place(names[i]);
  return std::min(chips.flow.next.y + chips.height() + frame.metrics.px(12), most);
}

/// Draws the tokens side by side; a click pins the query.
void draw_chips(const Frame& frame, float width) {
  const auto& now = *frame.pending.reading->readings()->now;
  const std::size_t marked = marked_token(frame.displayed.look, now);
  ImFont* font = frame.fonts.sans13;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ChipFlow chips(frame, at, width);
  for (std::size_t i = 0; i < std::min(now.names.size(), max_chips); ++i) {
    const auto [words, chip] = chips.place(now.names[i]);
    const auto& [min, max] = chip;
    draw_rect(min, max, frame.palette.control.active, frame.metrics.px(3));
    const bool is_special = now.tokens[i].is_special || now.tokens[i].is_inserted;
    if (i == marked) outline({min.x - 1, min.y - 1}, {max.x + 1, max.y + 1}, frame.palette.selection, 2);
    draw_text(font, {min.x + chips.inset(), chip.center().y}, Align::left_middle,
              is_special ? frame.palette.accent : frame.palette.text, words);
    if (hovers(min, max)) {
      chip_tooltip(frame, now, i);
      if (ImGui::IsMouseClicked(0)) frame.commands.add(PinQuery{i});
    }
    frame.landmarks.mark("whole/token/" + std::to_string(i), min, max);
  }
  float y = chips.flow.next.y;
  if (now.names.size() > max_chips) {
    y += chips.flow.pitch;
    draw_text(font, {at.x, y + chips.height() / 2}, Align::left_middle, frame.palette.faint,
              fmt::format("and {} more", now.names.size() - max_chips));
  }
  ImGui::Dummy({width, y + chips.height() - at.y + frame.metrics.px(2)});
}

/// Draws a label above a field.
template <class Draw>
void draw_labeled(const Frame& frame, ImVec2 at, const char* words, bool enabled, Draw draw) {
  draw_text(frame.fonts.sans13, at, enabled ? frame.palette.dim : frame.palette.faint, words);
  platform::move_to({at.x, at.y + frame.metrics.px(18)});
  ImGui::BeginDisabled(!enabled);
  draw();
  ImGui::EndDisabled();
}

void draw_sampling(const Frame& frame, float width) {
  const LayersLook& look = *frame.pending.layers;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float gap = frame.metrics.px(8), field = std::floor((width - 2 * gap) / 3);
  draw_labeled(frame, at, "temperature", true, [&] {
    const auto t = real_field(frame, "whole/temperature", "temperature", look.temperature, field);
    tooltip("Logits are divided by it before a token is sampled. 0 is greedy: the most probable token");
    if (!t) return;
    if (*t >= 0)
      frame.commands.add(set<&LayersLook::temperature>(*t));
    else
      frame.commands.add(ShowMessage{"temperature: expected 0 or a positive number", true});
  });
  const bool samples = look.temperature > 0;
  draw_labeled(frame, {at.x + field + gap, at.y}, "top-k", samples, [&] {
    if (const auto top = count_field(frame, "whole/top", "top-k", look.top, field))
      frame.commands.add(set<&LayersLook::top>(static_cast<std::size_t>(*top)));
    tooltip("Samples among the k most probable tokens; 0 for all");
  });
  draw_labeled(frame, {at.x + 2 * (field + gap), at.y}, "seed", samples, [&] {
    if (const auto seed = count_field(frame, "whole/seed", "seed", look.seed, field))
      frame.commands.add(set<&LayersLook::seed>(*seed));
    tooltip("The same seed samples the same tokens");
  });
  reserve_room(at, {width, frame.metrics.px(18) + frame.metrics.frame});
  if (!samples) paragraph(frame.fonts.sans13, frame.palette.faint, width, "Temperature 0 is greedy.");
}

void draw_generation(const Frame& frame, float width) {
  const bool can_generate = frame.pending.full_model->model->description().causal;
  ImGui::BeginDisabled(!can_generate);
  if (button(frame, "whole/more", "Generate token",
             can_generate ? "Appends the token that the model predicts"
                          : "Not possible: tokens of this model attend to later ones"))
    frame.commands.add(StepGeneration{});
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (button(frame, "whole/back", "Remove last", "Removes the last token"))
    frame.commands.add(StepGeneration{true});
  if (can_generate) draw_sampling(frame, width);
}

/// Prompt that shows a typical behavior of heads.
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

/// Draws the heading, the number of tokens of the context length, and the menu of examples.
void draw_heading(const Frame& frame, std::size_t n_tokens, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  section_heading(frame, width, "PROMPT");
  const float bottom = ImGui::GetItemRectMax().y, middle = bottom - frame.metrics.px(12);
  const char* words = "Examples";
  if (link(frame, "whole/examples", frame.fonts.sans14, {at.x + width - frame.metrics.px(16), middle},
           Align::right_middle, frame.palette.text, words))
    ImGui::OpenPopup("examples");
  draw_combo_arrow(frame, ImGui::GetWindowDrawList(), at.x + width + frame.metrics.px(6), middle);
  if (n_tokens > 0)
    draw_text(frame.fonts.mono12,
              {at.x + width - frame.metrics.px(30) - text_width(frame.fonts.sans14, words), middle},
              Align::right_middle, frame.palette.faint,
              fmt::format("{} of {}", n_tokens,
                          count_text(frame.pending.full_model->model->description().sizes.n_context)));
  if (ImGui::BeginPopup("examples")) {
    platform::push_font(frame.fonts.sans15);
    for (const ExamplePrompt& example : example_prompts) {
      if (ImGui::MenuItem(example.name)) frame.commands.add(ReadText{example.text});
      frame.landmarks.mark_item(std::string("whole/example/") + example.name);
      tooltip(std::string(example.about) + ": " + example.text);
    }
    ImGui::PopFont();
    ImGui::EndPopup();
  }
  platform::move_to({at.x, bottom});
}

/// Draws the prompt, which is read as it is typed, its tokens, and the controls of generation.
void draw_prompt(const Frame& frame, float width) {
  const auto* both = frame.pending.reading->readings();
  draw_heading(frame, both ? both->now->names.size() : 0, width);
  draw_field(frame, width);
  if (frame.pending.layers->refused)
    paragraph(frame.fonts.sans13, frame.palette.status.bad, width,
              "Not read: " + frame.pending.layers->refused->why);
  else if (const auto missing =
               frame.pending.full_model->model->characters_without_token(text_of_prompt(frame));
           !missing.empty())
    paragraph(frame.fonts.sans13, frame.palette.status.bad, width,
              "Not in its vocabulary, so not read: " +
                  core::text::joined(missing, " ", [](const std::string& c) { return quoted_token(c); }));
  if (both) {
    const float room = width - ImGui::GetStyle().ScrollbarSize;
    platform::begin_child("chips", {width, chips_area_height(frame, room)});
    ImGui::Dummy({1, 1});
    draw_chips(frame, room);
    ImGui::EndChild();
  }
  draw_generation(frame, width);
}

using core::experiment::TextReading;
using core::transformer::HeadRoles;

constexpr std::size_t n_listed = 3;

struct LineWriter {
  const Frame& frame;
  float width;

  float column() const { return frame.metrics.px(52); }

  /// Draws a heading, and the headings of the two columns of numbers.
  void heading(const std::string& words, const char* first, const char* second) const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float y = at.y + frame.metrics.px(8);
    draw_text(frame.fonts.sans15, {at.x, y}, frame.palette.text, words);
    draw_text_right(frame.fonts.sans13, at.x + width, y + 1, frame.palette.faint, second);
    draw_text_right(frame.fonts.sans13, at.x + width - column(), y + 1, frame.palette.faint, first);
    ImGui::Dummy({width, frame.metrics.px(30)});
  }

  /// Draws words, a bar of a share 0 … 1, and one number or two.
  void share(const std::string& words, std::optional<double> value, const std::string& first,
             const std::string& second, float words_width) const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + frame.metrics.px(10), left = at.x + words_width,
                right = at.x + width - column() - (first.empty() ? 0 : column()) - frame.metrics.px(4);
    draw_text(frame.fonts.sans14, {at.x, middle}, Align::left_middle, frame.palette.dim,
              shortened(frame.fonts.sans14, words, words_width - frame.metrics.px(8)));
    const float top = middle - frame.metrics.px(4), bottom = middle + frame.metrics.px(4);
    draw_rect({left, top}, {right, bottom}, frame.palette.control.rest);
    if (value)
      draw_rect(
          {left, top}, {left + (right - left) * static_cast<float>(std::clamp(*value, 0.0, 1.0)), bottom},
          render::color_at(frame.displayed.look.colors.sequential, frame.palette.dark, 0.25 + 0.7 * *value));
    if (!first.empty())
      draw_text(frame.fonts.mono13, {at.x + width - column(), middle}, Align::right_middle,
                frame.palette.text, first);
    draw_text(frame.fonts.mono13, {at.x + width, middle}, Align::right_middle,
              first.empty() ? frame.palette.text : frame.palette.dim, second);
    ImGui::Dummy({width, frame.metrics.px(21)});
  }

  /// Draws words, a bar from the middle, a number with its sign.
  void change(const std::string& words, std::optional<double> value, double end, float words_width) const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + frame.metrics.px(10), half = frame.metrics.px(4);
    draw_text(frame.fonts.sans14, {at.x, middle}, Align::left_middle, frame.palette.dim, words);
    draw_signed_bar(frame, {at.x + words_width, middle - half},
                    {at.x + width - column() - frame.metrics.px(8), middle + half},
                    value && end > 0 ? *value / end : 0);
    draw_text(frame.fonts.mono13, {at.x + width, middle}, Align::right_middle, frame.palette.text,
              value ? signed_text(*value, 2) : "–");
    ImGui::Dummy({width, frame.metrics.px(21)});
  }
};

std::string share_or_dash(const std::optional<double>& value) {
  return value ? fixed(*value, 2) : "–";
}

/// Draws the roles on the prompt and, if there are others, those over the texts that `where` names.
void draw_roles(const LineWriter& lines, const HeadRoles& prompt_roles, const HeadRoles* others,
                const char* heading, const std::string& where) {
  lines.heading("Attends to", others ? "prompt" : "", others ? heading : "prompt");
  const float words = lines.width * 0.44f;
  const auto row = [&](const char* name, const std::optional<double>& now,
                       const std::optional<double>& then) {
    lines.share(name, now, others ? share_or_dash(now) : "", share_or_dash(others ? then : now), words);
  };
  const HeadRoles& then = others ? *others : prompt_roles;
  row("previous token", prompt_roles.previous, then.previous);
  row("first token", prompt_roles.first, then.first);
  row("earlier same token", prompt_roles.same_token, then.same_token);
  row("induction", prompt_roles.induction, then.induction);
  if (others) tooltip("Mean weights on this prompt, and " + where);
}

/// Draws the map of the head with all token names, where the grid has too many maps for names.
void draw_named_map(const LineWriter& lines, const TextReading& now, std::size_t layer, std::size_t head) {
  constexpr std::size_t max_named = 6, max_tokens = 48;
  const auto& maps = *now.layers[layer];
  if (now.layers.size() <= max_named && maps.heads.size() <= max_named) return;
  if (now.block != 1 || now.names.size() > max_tokens) return;
  const std::string bits = "entropy " + fixed(maps.heads[head].roles.entropy_bits, 2) + " bits";
  lines.heading("Weights of this prompt", "", bits.c_str());
  const float height = draw_named_head(lines.frame, layer, head, ImGui::GetCursorScreenPos(), lines.width);
  ImGui::Dummy({lines.width, height + lines.frame.metrics.px(8)});
}

/// Draws the largest weights of the pinned query, or of the one predicted from; a click asks for the sources.
void draw_query(const LineWriter& lines, const TextReading& now, std::size_t layer, std::size_t selected) {
  if (now.block != 1) return;
  const Frame& frame = lines.frame;
  const core::transformer::HeadMap& head = now.layers[layer]->heads[selected];
  const std::size_t n = now.names.size(), row = marked_token(frame.displayed.look, now);
  lines.heading(fmt::format("Row of {} {}", quoted_token(now.names[row]), row), "", "weight");
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t count = std::min(n_listed, n);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) { return head.map(row, a) > head.map(row, b); });
  const float pad = frame.metrics.px(8);
  for (std::size_t k = 0; k < count; ++k) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const std::string name = fmt::format("head/row/{}", k);
    if (hit_area(name.c_str(), {lines.width, frame.metrics.px(21)}))
      ask_sources(frame, layer, {Stage::weights, selected, row, order[k]});
    frame.landmarks.mark_item(name);
    const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
    draw_focus(frame, min, max);
    if (ImGui::IsItemHovered())
      draw_rect({min.x - pad, min.y}, {max.x + pad, max.y}, frame.palette.control.hovered,
                frame.metrics.px(3));
    tooltip("Why does it look there? Pins this weight and shows its sources (S)");
    platform::move_to(at);
    lines.share(fmt::format("{}  {}", order[k], visible_token(now.names[order[k]])), head.map(row, order[k]),
                "", fixed(head.map(row, order[k]), 2), lines.width * 0.44f);
  }
}

void draw_effects(const LineWriter& lines, std::size_t layer, std::size_t head, bool is_ablated) {
  const Frame& frame = lines.frame;
  const FullModelReading& reading = *frame.pending.reading;
  const Prediction* next = reading.prediction();
  if (!next || next->candidates.empty()) return;
  lines.heading("Effect", "", ("logit of " + quoted_token(next->chosen.text)).c_str());
  std::optional<double> attribution;
  if (next->attribution && head < next->attribution->heads[layer].size())
    attribution = next->attribution->heads[layer][head];
  const auto effect = reading.effects().of({layer, head});
  const double end = std::max({next->max_attribution, attribution ? std::abs(*attribution) : 0.0,
                               effect ? std::abs(effect->logit_change) : 0.0});
  const float words = lines.width * 0.42f;
  lines.change("direct attribution", attribution, end, words);
  if (!next->attribution)
    tooltip(frame.pending.full_model->model->description().is_attached
                ? "Not available for an attached model: PyTorch does not tell the parts of a logit."
                : "Not defined here: the logits of this model are not sums of what its heads add.");
  lines.change("ablation effect", effect ? std::optional(effect->logit_change) : std::nullopt, end, words);
  if (effect && !is_ablated)
    paragraph(frame.fonts.sans14, frame.palette.dim, lines.width,
              "Ablating it: P(" + visible_token(next->chosen.text) + ") " + fixed(next->chosen.now * 100, 1) +
                  " % → " + fixed(effect->probability * 100, 1) + " %");
}

/// Draws a line and a title below it; returns the right end of the title's line, at its middle.
ImVec2 draw_part_title(const Frame& frame, float width, const std::string& title) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = at.y + frame.metrics.px(4), middle = at.y + frame.metrics.px(26);
  draw_rect({at.x, line}, {at.x + width, line + 1}, frame.palette.line);
  draw_text(frame.fonts.sans19, {at.x, middle}, Align::left_middle, frame.palette.text, title);
  ImGui::Dummy({width, frame.metrics.px(40)});
  return {at.x + width, middle};
}

/// Draws an addition to the residual stream as the sum of its parts.
void draw_addition(const LineWriter& lines, const StreamAddition& addition, double sum) {
  const Frame& frame = lines.frame;
  const Prediction& next = *frame.pending.reading->prediction();
  const auto& of = *next.attribution;
  const ImVec2 end = draw_part_title(
      frame, lines.width, fmt::format("{} of layer {}", addition.of_mlp ? "MLP" : "Heads", addition.layer));
  draw_text(frame.fonts.mono14, end, Align::right_middle, frame.palette.text, signed_text(sum, 2));
  paragraph(frame.fonts.sans14, frame.palette.dim, lines.width,
            fmt::format("{} to the logit of {}", addition.of_mlp ? "What it adds" : "What they add",
                        quoted_token(next.chosen.text)));
  if (addition.of_mlp) return;
  const std::vector<double>& heads = of.heads[addition.layer];
  std::vector<std::size_t> order(heads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, std::ranges::greater(), [&](std::size_t h) { return std::abs(heads[h]); });
  const float words = frame.metrics.px(88);
  for (const std::size_t h : order)
    lines.change(fmt::format("head {}.{}", addition.layer, h), heads[h], next.max_attribution, words);
  lines.change("output bias", of.output_biases[addition.layer], next.max_attribution, words);
}

/// Draws how the logit of the chosen token builds up along the residual stream: every bar begins where the
/// last one ended.
void draw_stream(const LineWriter& lines, const std::vector<StreamPart>& parts) {
  const Frame& frame = lines.frame;
  const Metrics& m = frame.metrics;
  const Palette& p = frame.palette;
  const std::string logit_of = "logit of " + quoted_token(frame.pending.reading->prediction()->chosen.text);
  ImGui::Dummy({lines.width, m.px(8)});
  section_heading(frame, lines.width, "RESIDUAL STREAM", logit_of);
  double sum = 0, low = 0, high = 0, largest = 0;
  for (const StreamPart& part : parts) {
    sum += part.value, low = std::min(low, sum), high = std::max(high, sum);
    largest = std::max(largest, std::abs(part.value));
  }
  const float left = ImGui::GetCursorScreenPos().x, right = left + lines.width, bars = left + m.px(80),
              bars_right = right - m.px(60), half = m.px(4.5f), pitch = m.px(17);
  const auto x = [&](double value) {
    return std::round(bars + (bars_right - bars) *
                                 static_cast<float>(high > low ? (value - low) / (high - low) : 0));
  };
  const auto row = [&](const std::string& words, double from, double to, Rgb color, bool is_total) {
    const float middle = std::round(ImGui::GetCursorScreenPos().y + pitch / 2);
    draw_text(frame.fonts.sans13, {left, middle}, Align::left_middle, is_total ? p.text : p.dim, words);
    const float begin = std::min(x(from), x(to)), end = std::max(x(from), x(to));
    draw_rect({begin, middle - half}, {std::max(end, begin + m.px(2)), middle + half}, color);
    draw_text(frame.fonts.mono12, {right, middle}, Align::right_middle, p.text,
              is_total ? fixed(to, 2) : signed_text(to - from, 2));
    return middle;
  };
  sum = 0;
  for (const StreamPart& part : parts) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const std::string name = "stream/" + part.name;
    const bool pressed = hit_area(name.c_str(), {lines.width, pitch});
    const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
    frame.landmarks.mark(name, min, max);
    if (pressed && part.addition) select(frame, *part.addition);
    const bool selected = part.addition && is_selected(frame, *part.addition);
    if (selected || (part.addition && ImGui::IsItemHovered()))
      draw_rect({min.x - m.px(8), min.y}, {max.x + m.px(8), max.y},
                selected ? p.control.active : p.control.rest, m.px(3));
    draw_focus(frame, min, max);
    platform::move_to(at);
    const double share = largest > 0 ? part.value / largest : 0;
    const float middle =
        row(part.name, sum, sum + part.value,
            render::color_at(frame.displayed.look.colors.diverging, p.dark, 0.5 + share / 2), false);
    sum += part.value;
    draw_rect({x(sum), middle + half}, {x(sum) + 1, middle + pitch - half}, p.faint);
    platform::move_to({at.x, at.y + pitch});
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_rect({left, at.y}, {right, at.y + 1}, p.line);
  row("logit", 0, sum, p.control.active, true);
  reserve_room(at, {lines.width, pitch + m.px(8)});
}

}  // namespace

void draw_selected_head(const Frame& frame) {
  if (!has_next_token(frame)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  if (frame.pending.full_model->experiment.first)
    draw_patch_maps(frame, width);
  else
    draw_token_table(frame, width);
  const TextReading& now = *frame.pending.reading->readings()->now;
  const std::size_t layer = std::min(frame.pending.full_model->experiment.layer, now.layers.size() - 1),
                    head = frame.pending.look.head;
  if (head >= now.layers[layer]->heads.size()) return;
  const std::vector<StreamPart> parts = stream_parts(frame);
  const LineWriter lines{frame, width};
  for (const StreamPart& part : parts) {
    if (!part.addition || !is_selected(frame, *part.addition)) continue;
    draw_addition(lines, *part.addition, part.value);
    return draw_stream(lines, parts);
  }
  const auto& maps = now.layers[layer]->heads[head];
  const bool is_ablated = frame.pending.full_model->experiment.heads_off.contains({layer, head});
  const ImVec2 end = draw_part_title(frame, width, fmt::format("Head {}.{}", layer, head));
  draw_role(frame, role_of(frame, layer, head), frame.fonts.sans14, end.x, false, end.y, width / 2);
  const auto* random_token_roles = frame.pending.reading->random_roles();
  const bool has_random_roles =
      random_token_roles && layer < random_token_roles->size() && head < (*random_token_roles)[layer].size();
  draw_named_map(lines, now, layer, head);
  const LiveScan& scan = frame.pending.reading->scan();
  if (const auto roles = scan.roles(*frame.pending.full_model, layer, head))
    draw_roles(lines, maps.roles, &*roles, "texts", "over " + texts_words(*scan.table()));
  else
    draw_roles(lines, maps.roles, has_random_roles ? &(*random_token_roles)[layer][head] : nullptr, "random",
               "on random tokens that repeat, where induction heads show");
  draw_query(lines, now, layer, head);
  draw_effects(lines, layer, head, is_ablated);
  ImGui::Dummy({width, frame.metrics.px(4)});
  if (button(frame, "head/stages", "Open in Stages", "Shows every stage of this head, number by number"))
    frame.commands.add(OpenInStages{Stage::weights});
  ImGui::SameLine();
  if (button(frame, "head/switch", is_ablated ? "Enable" : "Ablate",
             is_ablated ? "Restores the head (X)" : "Sets the output of this head to zero (X)"))
    frame.commands.add(ToggleLayerHead{layer, head});
  draw_circuits(frame, width);
}

namespace {

constexpr std::size_t max_layer_buttons = 8;

/// Returns the family and sizes of the model, in a sentence.
std::string description(const Frame& frame) {
  const auto& model = frame.pending.full_model->model->description();
  const std::string sizes = "A " + model.family + " with " +
                            count_text(static_cast<std::size_t>(model.n_parameters)) + " parameters and " +
                            count_text(model.sizes.n_vocabulary) + " tokens";
  const bool is_own = std::ranges::find(frame.forms.models, model.path) != frame.forms.models.end();
  return sizes + (is_own ? ", trained on Jane Austen’s six novels." : ".");
}

void draw_sizes(const Frame& frame, float width) {
  const auto& model = frame.pending.full_model->model->description();
  const auto& sizes = model.sizes;
  section_heading(frame, width, "MODEL", model.family);
  const std::string name = model_title(model.path);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text_within(frame.fonts.sans16, at, width, frame.palette.text, name);
  ImGui::Dummy({width, frame.metrics.px(22)});
  paragraph(frame.fonts.sans13, frame.palette.faint, width, description(frame));
  const ImVec2 below = ImGui::GetCursorScreenPos();
  const float pitch = frame.metrics.px(22), half = width / 2;
  float y = below.y + frame.metrics.px(2);
  const auto pair = [&](float x, const char* words, const std::string& number) {
    draw_text(frame.fonts.sans14, {x, y}, frame.palette.dim, words);
    draw_text_right(frame.fonts.mono13, x + half - frame.metrics.px(12), y, frame.palette.text, number);
  };
  const std::string heads = std::to_string(sizes.n_heads) +
                            (sizes.kv_heads == sizes.n_heads ? "" : " : " + std::to_string(sizes.kv_heads));
  pair(at.x, "layers", std::to_string(sizes.n_layers));
  pair(at.x + half, "heads", heads);
  y += pitch;
  pair(at.x, "d_model", std::to_string(sizes.d_model));
  pair(at.x + half, "context", count_text(sizes.n_context));
  reserve_room(below, {width, y + pitch - below.y});
}

void draw_layers_chooser(const Frame& frame, float width) {
  const std::size_t n = frame.pending.full_model->model->description().sizes.n_layers,
                    now = frame.pending.full_model->experiment.layer;
  section_heading(frame, width, "LAYER", "");
  const ImVec2 heading = ImGui::GetItemRectMax();
  draw_text(frame.fonts.sans13, {heading.x, heading.y - frame.metrics.px(12)}, Align::right_middle,
            frame.palette.faint, "Page Up · Page Down");
  if (n <= max_layer_buttons) {
    std::vector<std::string> words;
    for (std::size_t l = 0; l < n; ++l) words.push_back(std::to_string(l));
    if (const auto chosen = segmented(frame, "whole/layer", words, now))
      frame.commands.add(ShowLayer{*chosen});
  } else {
    std::vector<Option> options;
    for (std::size_t l = 0; l < n; ++l) options.push_back({std::to_string(l)});
    if (const auto chosen =
            combo(frame, "whole/layer", frame.metrics.px(96), options, now, fmt::format("{} of {}", now, n)))
      frame.commands.add(ShowLayer{*chosen});
  }
}

/// Draws a line with a cross; returns true when the cross was pressed.
bool draw_edit_line(const Frame& frame, const std::string& name, const std::string& words, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.frame, cross = height;
  draw_rect(at, {at.x + width, at.y + height}, frame.palette.control.rest, frame.metrics.px(3));
  const float middle = at.y + height / 2, square = frame.metrics.px(3);
  draw_rect({at.x + frame.metrics.px(8), middle - square},
            {at.x + frame.metrics.px(8) + 2 * square, middle + square}, frame.palette.accent);
  draw_text_within(frame.fonts.sans14,
                   {at.x + frame.metrics.px(22), centered_y(frame.fonts.sans14, at.y, height)},
                   width - cross - frame.metrics.px(26), frame.palette.text, words);
  platform::move_to({at.x + width - cross, at.y});
  const bool pressed = hit_area(name.c_str(), {cross, height});
  frame.landmarks.mark_item(name);
  tooltip("Undoes this edit alone");
  const Rgb ink = ImGui::IsItemHovered() || ImGui::IsItemFocused() ? frame.palette.text : frame.palette.dim;
  draw_cross({at.x + width - cross / 2, middle}, frame.metrics.px(4), ink, 1.5f);
  reserve_room(at, {width, height + frame.metrics.px(2)});
  return pressed;
}

void draw_edits(const Frame& frame, float width) {
  const auto& experiment = frame.pending.full_model->experiment;
  const std::size_t count =
      experiment.heads_off.size() + experiment.layers.size() + experiment.patches.size();
  section_heading(frame, width, "EDITS", std::to_string(count));
  if (count == 0) {
    paragraph(
        frame.fonts.sans14, frame.palette.faint, width,
        experiment.first
            ? "None. P patches the selected head from A into B; so does a click in the maps of what patches recover."
            : "None: the model is as it was opened. X ablates the selected head; every number of a layer can be edited "
              "in Stages.");
    return;
  }
  for (const auto& [layer, head] : experiment.heads_off) {
    const std::string name = fmt::format("{}.{}", layer, head);
    if (draw_edit_line(frame, "whole/edit/" + name, "Head " + name + " ablated", width))
      frame.commands.add(ToggleLayerHead{layer, head});
  }
  for (const core::transformer::Patch& patch : experiment.patches) {
    const std::string name = core::transformer::patch_name(patch);
    if (draw_edit_line(frame, "whole/edit/" + name, name + " from A", width))
      frame.commands.add(TogglePatch{patch});
  }
  for (const auto& [layer, edit] : experiment.layers) {
    std::string words = "Layer " + std::to_string(layer);
    for (const std::string& done : edit.words) words += (&done == &edit.words.front() ? ": " : ", ") + done;
    if (draw_edit_line(frame, "whole/edit/" + std::to_string(layer), words, width))
      frame.commands.add(DiscardEdits{layer});
  }
  if (button(frame, "whole/undo_all", "Undo all", "Restores the model as it was opened; the prompt stays"))
    frame.commands.add(DiscardEdits{});
  ImGui::SameLine();
  if (button(frame, "whole/compare", "Compare with original",
             "Compares this layer, stage by stage, with what it was before the edits"))
    frame.commands.add(CompareEdits{});
}

}  // namespace

void draw_separator(const Frame& frame, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float y = std::round(at.y + frame.metrics.px(6));
  draw_rect({at.x, y}, {at.x + width, y + 1}, frame.palette.line);
  ImGui::Dummy({width, frame.metrics.px(12)});
}

void draw_full_model(const Frame& frame) {
  if (!frame.pending.full_model) return;
  const float width = ImGui::GetContentRegionAvail().x;
  if (frame.pending.full_model->experiment.first) {
    draw_two_prompts(frame, width);
    return draw_edits(frame, width);
  }
  draw_sizes(frame, width);
  draw_separator(frame, width);
  draw_prompt(frame, width);
  draw_separator(frame, width);
  draw_layers_chooser(frame, width);
  draw_separator(frame, width);
  draw_edits(frame, width);
}

}  // namespace app::panels
