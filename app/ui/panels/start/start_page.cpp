#include "app/ui/panels/start/start_page.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/session/model_title.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "core/editing/presets.hpp"
#include "core/lessons/lessons.hpp"

namespace app::panels {
namespace {

/// One entry to the program: a card that is a button as a whole.
struct StartCard {
  const char *name, *title;
  std::string words, foot;
  std::vector<Command> opens;
  void (*picture)(const Frame&, const Rect&);
};

/// Draws the weights of the open model, initially the six tokens of the example.
void draw_example(const Frame& frame, const Rect& box) {
  const auto& m = frame.metrics;
  const std::size_t n = frame.displayed.model.n_tokens(), n_keys = frame.displayed.model.n_keys();
  if (!frame.displayed.has(Stage::weights) || n > 16 || n_keys > 16) return;
  const float labels = m.px(72), top = m.px(18);
  const auto cell = [](float room, std::size_t count) {
    return std::floor(room / static_cast<float>(count));
  };
  Heatmap map;
  map.place = "start/weights";
  map.head = 0;
  map.label_width = labels;
  map.width =
      static_cast<int>(std::min(cell(box.width() - labels, n_keys), m.px(64)) * static_cast<float>(n_keys));
  map.height =
      static_cast<int>(std::min(cell(box.height() - top - m.px(50), n), m.px(26)) * static_cast<float>(n));
  if (map.width <= 0 || map.height <= 0) return;
  map.show_bar = false;
  map.whole = true;
  draw_text(frame.fonts.sans16, {box.min.x, box.min.y + m.px(6)}, Align::left_middle, frame.palette.text,
            "Weights");
  ImGui::BeginDisabled();  // the card handles the mouse
  draw_heatmap(frame, map, {box.min.x, box.min.y + top});
  ImGui::EndDisabled();
}

bool is_done(const Frame& frame, const core::lessons::Lesson& lesson) {
  const LessonProgress* known = progress_of(frame.work.progress, lesson.name);
  return known && known->done.size() == lesson.steps.size();
}

/// Returns the interrupted lesson, else the first one that is not done, else the first one; and its step.
std::pair<const core::lessons::Lesson*, std::size_t> suggested_lesson(const Frame& frame) {
  if (const auto* left = unfinished_lesson(frame.work.progress))
    return {left, progress_of(frame.work.progress, left->name)->step};
  const auto& all = core::lessons::lessons();
  const auto next = std::ranges::find_if(all, [&](const auto& lesson) { return !is_done(frame, lesson); });
  return {next == all.end() ? &all.front() : &*next, 0};
}

/// Returns whether the open model is the example, so that opening it loses nothing.
bool is_example_open(const Frame& frame) {
  return frame.document.is_preset && frame.document.preset == core::editing::default_preset().name;
}

void draw_lesson_picture(const Frame& frame, const Rect& box) {
  const auto& m = frame.metrics;
  const auto [lesson, step] = suggested_lesson(frame);
  const auto n = static_cast<float>(lesson->steps.size());
  draw_text(frame.fonts.sans16, {box.min.x, box.min.y + m.px(8)}, Align::left_middle, frame.palette.text,
            shortened(frame.fonts.sans16, lesson->title, box.width()));
  const float pitch = box.width() / n, bars = box.min.y + m.px(28);
  const LessonProgress* known = progress_of(frame.work.progress, lesson->name);
  for (std::size_t k = 0; k < lesson->steps.size(); ++k) {
    const float x = box.min.x + pitch * static_cast<float>(k);
    draw_rect({x, bars}, {x + pitch - m.px(3), bars + m.px(4)},
              known && known->done.contains(k) ? frame.palette.accent : frame.palette.control.active);
  }
  float y = bars + m.px(22);
  const auto n_below = static_cast<float>(lesson->steps.size() - step - 1);
  const float line = std::clamp((box.max.y - m.px(8) - y) / std::max(n_below, 1.0f), m.px(19), m.px(23));
  for (std::size_t k = step; k < lesson->steps.size(); ++k) {
    draw_text(frame.fonts.mono13, {box.min.x, y}, Align::left_middle, frame.palette.faint,
              std::to_string(k + 1));
    draw_text(frame.fonts.sans14, {box.min.x + m.px(28), y}, Align::left_middle,
              k == step ? frame.palette.text : frame.palette.dim,
              shortened(frame.fonts.sans14, lesson->steps[k].title, box.width() - m.px(28)));
    y += line;
    if (y > box.max.y - m.px(7)) break;
  }
}

/// Draws up to 4 heads of each of the first 4 layers of the bundled model, on its first text.
void draw_model_picture(const Frame& frame, const Rect& box) {
  if (!frame.work.start_model) return;
  constexpr std::size_t side = 4;
  const auto& layers = frame.work.start_model->reading->layers;
  const float gap = frame.metrics.px(10),
              each = std::floor((std::min(box.width(), box.height() - frame.metrics.px(8)) -
                                 static_cast<float>(side - 1) * gap) /
                                static_cast<float>(side));
  if (each < 1) return;
  const float left =
      box.min.x + std::floor((box.width() - (each + gap) * static_cast<float>(side) + gap) / 2);
  const auto color = [&](double weight) {
    return packed(render::color_at(render::ColorMap::weights, frame.palette.dark, weight));
  };
  for (std::size_t layer = 0; layer < std::min(side, layers.size()); ++layer)
    for (std::size_t head = 0; head < std::min(side, layers[layer]->heads.size()); ++head) {
      const ImVec2 a{left + (each + gap) * static_cast<float>(head),
                     box.min.y + (each + gap) * static_cast<float>(layer)};
      const arma::mat& map = layers[layer]->heads[head].map;
      const auto edge = [&](float corner, std::size_t k, std::size_t n) {
        return corner + std::round(each * static_cast<float>(k) / static_cast<float>(n));
      };
      draw_rect(a, {a.x + each, a.y + each}, color(0));
      for (std::size_t i = 0; i < map.n_rows; ++i)
        for (std::size_t j = 0; j < map.n_cols; ++j)
          if (map(i, j) > 0)
            draw_rect({edge(a.x, j, map.n_cols), edge(a.y, i, map.n_rows)},
                      {edge(a.x, j + 1, map.n_cols), edge(a.y, i + 1, map.n_rows)}, color(map(i, j)));
    }
}

/// Returns "957,184 parameters, 4 layers of 4 heads", once the model has been read.
std::string model_words(const Frame& frame) {
  if (frame.forms.models.empty()) return "No example model is installed.";
  if (!frame.work.start_model) return model_title(frame.forms.models.front());
  const auto& model = frame.work.start_model->model->description();
  return fmt::format("{} parameters, {} layers of {} heads",
                     count_text(static_cast<std::size_t>(model.n_parameters)), model.sizes.n_layers,
                     model.sizes.n_heads);
}

/// Returns the card of the example or, if something else is open, of that. Commands that open a document
/// close the page themselves, after they asked about unsaved work.
StartCard example_card(const Frame& frame) {
  const auto close = set<&Forms::start_page>(false);
  if (!is_example_open(frame))
    return {"start/example",
            "Your open model",
            "Go on where you were. Ctrl+N opens the small example instead.",
            frame.document.title + (frame.document.modified ? " •" : ""),
            {close},
            draw_example};
  std::vector<Command> opens{close, set<&Look::tab>(Tab::stages)};
  if (!frame.settings.has_seen_tour) opens.emplace_back(StartTour{});
  return {"start/example",
          "A small example",
          "Six tokens, two heads. Drag a number and watch scores, weights and output follow.",
          "‘Your journey starts with one step’",
          std::move(opens),
          draw_example};
}

std::vector<StartCard> start_cards(const Frame& frame) {
  const auto [lesson, step] = suggested_lesson(frame);
  const auto& all = core::lessons::lessons();
  const auto n_done = std::ranges::count_if(all, [&](const auto& of) { return is_done(frame, of); });
  const auto& models = frame.forms.models;
  return {example_card(frame),
          {"start/lessons",
           "Lessons",
           std::to_string(all.size()) + " lessons: predict a number, then see it worked out." +
               (n_done > 0 ? fmt::format(" {} done.", n_done) : ""),
           (step > 0 ? "Resume: " : "Start: ") + std::string(lesson->title) +
               (step > 0 ? ", step " + std::to_string(step + 1) : ""),
           {set<&Forms::start_page>(false), StartLesson{lesson->name}},
           draw_lesson_picture},
          {"start/model",
           "A whole model",
           models.empty() ? "A folder with a config.json, weights and a tokenizer."
                          : "A tiny GPT. Type a prompt, ablate a head, watch the next token.",
           model_words(frame),
           {models.empty() ? Command(ShowDialog{Dialog::open}) : Command(OpenPath{.path = models.front()})},
           draw_model_picture}};
}

/// Draws a card that opens on a click, Enter or its key; returns whether it has the keyboard focus.
bool draw_card(const Frame& frame, const StartCard& card, std::size_t index, const Rect& box, bool is_tall) {
  const auto& m = frame.metrics;
  const auto& p = frame.palette;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float pad = m.px(20);
  Rect picture{box.min, {box.max.x, box.max.y - m.px(146)}};
  Rect text{{box.min.x, picture.max.y}, box.max};
  if (!is_tall) {
    picture = {box.min, {box.min.x + std::round(box.width() * 0.4f), box.max.y}};
    text = {{picture.max.x, box.min.y}, box.max};
  }
  platform::move_to(box.min);
  const bool pressed = hit_area(card.name, {box.width(), box.height()});
  frame.landmarks.mark_item(card.name);
  const bool is_focused = ImGui::IsItemFocused(), lit = ImGui::IsItemHovered() || is_focused;
  draw_rect(box.min, box.max, p.background.back, m.px(3));
  draw_rect(text.min, text.max, lit ? p.background.raised : p.background.panel, m.px(3));
  list->AddRect(box.min, box.max, packed(p.line), m.px(3));
  if (is_focused) outline({box.min.x - 3, box.min.y - 3}, {box.max.x + 3, box.max.y + 3}, p.accent, 2);
  const std::string key = std::to_string(index + 1);
  const bool typed = frame.forms.dialog == Dialog::none && typed_characters() == key;
  if (pressed || typed)
    for (const Command& command : card.opens) frame.commands.add(command);
  list->PushClipRect(picture.min, picture.max, true);
  card.picture(frame,
               {{picture.min.x + pad, picture.min.y + pad}, {picture.max.x - pad, picture.max.y - pad / 2}});
  list->PopClipRect();
  const float left = text.min.x + pad, width = text.width() - 2 * pad;
  const float middle = text.min.y + m.px(26);
  draw_text(frame.fonts.sans19, {left, middle}, Align::left_middle, p.text, card.title);
  float right = text.max.x - pad;
  for (const char* cap : {key.c_str(), is_focused ? "Enter" : ""}) {
    if (!*cap) continue;
    right -= key_cap_width(frame, frame.fonts.sans13, cap);
    draw_key_cap(frame, frame.fonts.sans13, {right, middle}, cap, p.control.rest);
    right -= m.px(6);
  }
  draw_two_lines(frame.fonts.sans15, {left, text.min.y + m.px(48)}, width, m.px(20), p.dim, card.words);
  draw_text(frame.fonts.sans14, {left, text.max.y - m.px(24)}, Align::left_middle, p.faint,
            shortened(frame.fonts.sans14, card.foot, width));
  return is_focused;
}

/// Returns the card that Tab focuses in this frame, or nothing; Dear ImGui's own Tab knows text fields only.
std::optional<std::size_t> card_to_focus(const Frame& frame, std::optional<std::size_t> focused,
                                         std::size_t n) {
  if (frame.forms.dialog != Dialog::none || !platform::key_pressed(ImGuiKey_Tab)) return std::nullopt;
  if (!focused) return 0;
  return (*focused + (ImGui::GetIO().KeyShift ? n - 1 : 1)) % n;
}

/// Draws the files that were opened last as links.
void draw_recent(const Frame& frame, ImVec2 at, float width) {
  constexpr std::size_t max_files = 5;
  const auto& recent = frame.document.recent;
  if (recent.empty()) return;
  const auto& m = frame.metrics;
  draw_text(frame.fonts.sans13, {at.x, at.y}, Align::left_middle, frame.palette.dim, "RECENT");
  const float pitch = width / static_cast<float>(max_files);
  for (std::size_t k = 0; k < std::min(max_files, recent.size()); ++k) {
    const float x = at.x + pitch * static_cast<float>(k), room = pitch - m.px(16);
    const std::string name = recent[k].filename().string();
    if (link(frame, "start/recent/" + std::to_string(k), frame.fonts.sans15, {x, at.y + m.px(26)},
             Align::left_middle, frame.palette.text, shortened(frame.fonts.sans15, name, room),
             recent[k].string()))
      frame.commands.add(OpenPath{recent[k]});
    draw_text(frame.fonts.sans13, {x, at.y + m.px(46)}, Align::left_middle, frame.palette.dim,
              shortened(frame.fonts.sans13, recent[k].parent_path().string(), room));
  }
}

}  // namespace

bool shows_start_page(const Frame& frame) {
  return frame.forms.start_page && !frame.lesson && !frame.pending.selection.tour &&
         !frame.displayed.selection.presentation.on;
}

void draw_start_page(const Frame& frame) {
  const auto& m = frame.metrics;
  const auto [window, far] = window_rect();
  const ImVec2 size{far.x - window.x, far.y - window.y};
  ImGui::PushClipRect(window, far, false);
  draw_rect(window, far, frame.palette.background.back);
  ImGui::PopClipRect();
  const bool is_wide = size.x >= 1500 * m.scale, is_tall = size.x >= 1100 * m.scale;
  const float margin = m.px(is_wide ? 96 : is_tall ? 56 : 24), gap = m.px(is_wide ? 32 : 24);
  const float left = window.x + margin, width = size.x - 2 * margin;
  float y = window.y + m.px(is_tall ? 44 : 24);
  draw_text(frame.fonts.sans19, {left, y}, Align::left_middle, frame.palette.text,
            "Take attention apart, number by number");
  y += m.px(30);
  draw_text(frame.fonts.sans15, {left, y}, Align::left_middle, frame.palette.dim,
            shortened(frame.fonts.sans15,
                      "Every number of the layer is on the screen. Change one, and everything "
                      "that depends on it updates at once.",
                      width));
  y += m.px(28);
  const std::vector<StartCard> all = start_cards(frame);
  const auto n = static_cast<float>(all.size());
  const float foot = m.px(frame.document.recent.empty() ? 76 : 156),
              room = std::max(m.px(300), window.y + size.y - y - foot);
  const ImVec2 card =
      is_tall ? ImVec2{std::floor((width - gap * (n - 1)) / n), std::min(room, m.px(is_wide ? 492 : 422))}
              : ImVec2{width, std::floor((room - gap * (n - 1)) / n)};
  if (ImGui::IsWindowAppearing()) ImGui::SetWindowFocus(nullptr);  // also after a card was opened
  int& focused = *ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("focused card"), -1);
  const auto to_focus = card_to_focus(
      frame, focused < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(focused)), all.size());
  focused = -1;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto i = static_cast<float>(k);
    if (to_focus == k) platform::focus_next_item();
    const ImVec2 at = is_tall ? ImVec2{left + (card.x + gap) * i, y} : ImVec2{left, y + (card.y + gap) * i};
    if (draw_card(frame, all[k], k, {at, {at.x + card.x, at.y + card.y}}, is_tall))
      focused = static_cast<int>(k);
  }
  y += is_tall ? card.y : (card.y + gap) * n - gap;
  draw_recent(frame, {left, y + m.px(30)}, width);
  const float line = window.y + size.y - m.px(44), middle = line + m.px(20);
  draw_rect({left, line}, {left + width, line + 1}, frame.palette.line);
  const std::string words = "or drop a file here, or ";
  draw_text(frame.fonts.sans14, {left, middle}, Align::left_middle, frame.palette.dim, words);
  if (link(frame, "start/open", frame.fonts.sans14, {left + text_width(frame.fonts.sans14, words), middle},
           Align::left_middle, frame.palette.accent, "open one…"))
    frame.commands.add(ShowDialog{Dialog::open});
  const float box = m.px(24) + text_width(frame.fonts.sans15, "show at start");
  platform::move_to({left + width - box, middle - m.frame / 2});
  if (const auto on = checkbox(frame, "start/show", "show at start", frame.settings.start_page))
    frame.commands.add(set<&Settings::start_page>(*on));
}

}  // namespace app::panels
