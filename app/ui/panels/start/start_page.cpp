#include "app/ui/panels/start/start_page.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "app/session/learning.hpp"
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
  bool leads = false;                 ///< the foot says what opens, in the color of links
  std::optional<Command> other = {};  ///< that the foot alone does
};

constexpr float low_picture = 170;  // at scale 1; lower ones have fewer words

/// Draws a small matrix as squares of its colors, without numbers.
void draw_thumbnail(const Frame& frame, const arma::mat& weights, ImVec2 a, float side) {
  const auto color = [&](double weight) {
    return packed(render::color_at(render::ColorMap::weights, frame.palette.dark, weight));
  };
  const auto edge = [&](float corner, std::size_t k, std::size_t n) {
    return corner + std::round(side * static_cast<float>(k) / static_cast<float>(n));
  };
  draw_rect(a, {a.x + side, a.y + side}, color(0));
  for (std::size_t i = 0; i < weights.n_rows; ++i)
    for (std::size_t j = 0; j < weights.n_cols; ++j)
      if (weights(i, j) > 0)
        draw_rect({edge(a.x, j, weights.n_cols), edge(a.y, i, weights.n_rows)},
                  {edge(a.x, j + 1, weights.n_cols), edge(a.y, i + 1, weights.n_rows)}, color(weights(i, j)));
}

/// Draws the weights of the open model, initially the six tokens of the example, and one of them in words.
void draw_example(const Frame& frame, const Rect& box) {
  constexpr std::size_t max_named = 16;
  const auto& m = frame.metrics;
  const std::size_t n = frame.displayed.model.n_tokens(), n_keys = frame.displayed.model.n_keys();
  if (!frame.displayed.has(Stage::weights)) return;
  const bool is_named = n <= max_named && n_keys <= max_named, is_low = box.height() < m.px(low_picture);
  const float top = box.min.y + m.px(is_low ? 0 : 18), words = m.px(is_named && !is_low ? 34 : 0);
  Heatmap map;
  map.place = "start/weights";
  map.label_width = is_named ? m.px(is_low ? 28 : 64) : 0;
  map.row_tokens = !is_low;
  map.width = cells_length(box.width() - map.label_width, n_keys, m.px(64));
  const float cell = static_cast<float>(map.width) / static_cast<float>(n_keys);
  map.columns = !is_named         ? ColumnLabels::none
                : cell < m.px(44) ? ColumnLabels::indices
                                  : ColumnLabels::tokens;
  const float header = column_label_height(frame, map);
  map.height = cells_length(box.max.y - top - header - words, n, m.px(48));
  map.show_bar = false, map.show_numbers = is_named;
  map.whole = true;
  if (!is_low) {
    const float title = draw_text(frame.fonts.sans16, {box.min.x, box.min.y + m.px(6)}, Align::left_middle,
                                  frame.palette.text, "Weights");
    draw_text(frame.fonts.sans13, {box.min.x + title + m.px(10), box.min.y + m.px(7)}, Align::left_middle,
              frame.palette.dim, "softmax of each row");
  }
  ImGui::BeginDisabled();  // the card handles the mouse
  draw_heatmap(frame, map, {box.min.x, top});
  ImGui::EndDisabled();
  if (!is_named) return;
  const auto& weights = frame.displayed.trace.at(Stage::weights, 0);
  const std::size_t row = std::min<std::size_t>(3, n - 1);
  std::size_t column = 0;
  for (std::size_t j = 1; j < n_keys; ++j)
    if (weights(row, j) > weights(row, column)) column = j;
  const float high = static_cast<float>(map.height) / static_cast<float>(n);
  const ImVec2 corner{std::round(box.min.x + map.label_width), std::round(top + header)};
  const float x = corner.x + cell * static_cast<float>(column), y = corner.y + high * static_cast<float>(row);
  outline({corner.x - 1, y - 1}, {corner.x + static_cast<float>(map.width) + 1, y + high},
          packed(frame.palette.selection, 0.65f), 1);
  outline({x - 2, y - 2}, {x + cell + 1, y + high + 1}, frame.palette.selection, 2);
  if (is_low) return;
  const float middle = std::min(corner.y + static_cast<float>(map.height) + m.px(22), box.max.y - m.px(6));
  const std::string number = fixed(weights(row, column), 4);
  const float right = corner.x + static_cast<float>(map.width);
  draw_text(frame.fonts.mono14, {right, middle}, Align::right_middle, frame.palette.text, number);
  const auto& sequence = frame.displayed.sequence();
  draw_text(
      frame.fonts.sans14, {box.min.x, middle}, Align::left_middle, frame.palette.dim,
      shortened(frame.fonts.sans14,
                quoted_token(sequence.tokens[row]) + " attends to " + quoted_token(sequence.keys()[column]),
                right - box.min.x - text_width(frame.fonts.mono14, number) - m.px(8)));
}

/// Returns whether the open model is the example, so that opening it loses nothing.
bool is_example_open(const Frame& frame) {
  return frame.document.is_preset && frame.document.preset == core::editing::default_preset().name;
}

/// Draws the stage that a step of a lesson is about.
void draw_step_map(const Frame& frame, const LessonPicture& picture, const Rect& box) {
  const auto& m = frame.metrics;
  const core::attention::StageInfo& info = core::attention::info(picture.stage);
  double largest = 0;
  for (const double number : picture.numbers)
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  const bool is_signed = info.coloring == core::attention::Coloring::signed_values;
  const OtherNumbers numbers{
      .numbers = &picture.numbers,
      .version = frame.work.progress ? suggested_lesson(frame.work.progress).second : 0,
      .ends = {is_signed ? -largest : 0, is_signed ? largest : 1},
      .coloring = info.coloring,
      .visible = picture.visible.empty() ? nullptr : &picture.visible};
  Heatmap map;
  map.place = "start/lesson/" + suggested_lesson(frame.work.progress).first->name;
  map.stage = picture.stage;
  map.label_width = m.px(24), map.row_tokens = false;
  map.columns = ColumnLabels::indices;
  map.width = cells_length(box.width() - map.label_width, picture.numbers.n_cols, m.px(64));
  map.height = cells_length(box.height() - column_label_height(frame, map), picture.numbers.n_rows, m.px(40));
  map.show_bar = false, map.whole = true;
  map.other = &numbers;
  ImGui::BeginDisabled();  // the card handles the mouse
  draw_heatmap(frame, map, box.min);
  ImGui::EndDisabled();
}

/// Draws the titles of the steps of a lesson from one on, while there is room.
void draw_step_titles(const Frame& frame, const core::lessons::Lesson& lesson, std::size_t step,
                      const Rect& box) {
  const auto& m = frame.metrics;
  float y = box.min.y + m.px(8);
  for (std::size_t k = step; k < lesson.steps.size() && y + m.px(8) < box.max.y; ++k, y += m.px(23)) {
    draw_text(frame.fonts.mono13, {box.min.x, y}, Align::left_middle, frame.palette.faint,
              std::to_string(k + 1));
    draw_text(frame.fonts.sans14, {box.min.x + m.px(28), y}, Align::left_middle,
              k == step ? frame.palette.text : frame.palette.dim,
              shortened(frame.fonts.sans14, lesson.steps[k].title, box.width() - m.px(28)));
  }
}

/// Draws the next step of a lesson: its title, the progress in the lesson, its stage or the steps that
/// follow, and its task.
void draw_lesson_picture(const Frame& frame, const Rect& box) {
  const auto& m = frame.metrics;
  const auto [lesson, step] = suggested_lesson(frame.work.progress);
  const core::lessons::LessonStep& shown = lesson->steps[step];
  const auto n = static_cast<float>(lesson->steps.size());
  draw_text(frame.fonts.sans16, {box.min.x, box.min.y + m.px(6)}, Align::left_middle, frame.palette.text,
            shortened(frame.fonts.sans16, shown.title, box.width()));
  const float pitch = box.width() / n, bars = box.min.y + m.px(23);
  const LessonProgress* known = progress_of(frame.work.progress, lesson->name);
  for (std::size_t k = 0; k < lesson->steps.size(); ++k) {
    const float x = std::round(box.min.x + pitch * static_cast<float>(k));
    draw_rect({x, bars}, {std::round(x + pitch - m.px(3)), bars + m.px(4)},
              known && known->done.contains(k) ? frame.palette.accent : frame.palette.control.active);
  }
  const bool is_low = box.height() < m.px(low_picture);
  const Rect task{{box.min.x, box.max.y - m.px(30)}, box.max};
  const Rect middle{{box.min.x, bars + m.px(14)}, {box.max.x, is_low ? box.max.y : task.min.y - m.px(10)}};
  if (frame.work.start_pictures && frame.work.start_pictures->lesson)
    draw_step_map(frame, *frame.work.start_pictures->lesson, middle);
  else
    draw_step_titles(frame, *lesson, step, middle);
  if (is_low) return;
  draw_rect(task.min, task.max, frame.palette.background.raised, m.px(3));
  const float left = task.min.x + m.px(10), center = task.center().y;
  const float label = draw_text(frame.fonts.sans14, {left, center}, Align::left_middle, frame.palette.accent,
                                shown.predict ? "Guess" : "Try it") +
                      m.px(12);
  draw_text(frame.fonts.sans14, {left + label, center}, Align::left_middle, frame.palette.text,
            shortened(frame.fonts.sans14, shown.predict ? "the cell that changes most" : shown.try_it,
                      task.max.x - m.px(8) - left - label));
}

/// Draws up to 4 heads of each of the first 4 layers of the bundled model on its first text, which, with the
/// next token, is below them or, where that is low, at their right; their places until it is read.
void draw_model_picture(const Frame& frame, const Rect& box) {
  if (frame.forms.models.empty()) return;
  constexpr std::size_t side = 4;
  const auto& m = frame.metrics;
  const StartModel* start = frame.work.start_model;
  const bool is_low = box.height() < m.px(low_picture);
  const float gap = m.px(5), names = m.px(is_low ? 8 : 62), below = m.px(is_low ? 0 : 54);
  const float each = std::floor(
      (std::min(box.width() - names - m.px(is_low ? 54 : 0), box.height() - below) - 3 * gap) / side);
  if (each < 1) return;
  float bottom = box.min.y, right = box.min.x;
  for (std::size_t layer = 0; layer < (start ? std::min(side, start->reading->layers.size()) : side);
       ++layer) {
    const float y = box.min.y + (each + gap) * static_cast<float>(layer);
    const auto* heads = start ? &start->reading->layers[layer]->heads : nullptr;
    for (std::size_t head = 0; head < (heads ? std::min(side, heads->size()) : side); ++head) {
      const float x = box.min.x + (each + gap) * static_cast<float>(head);
      draw_thumbnail(frame, heads ? (*heads)[head].map : arma::mat(), {x, y}, each);
      right = std::max(right, x + each);
    }
    bottom = y + each;
    if (!is_low)
      draw_text(frame.fonts.sans13, {right + m.px(12), y + each / 2}, Align::left_middle, frame.palette.faint,
                fmt::format("layer {}", layer));
  }
  if (!start && !is_low && frame.forms.in_browser)
    draw_text(frame.fonts.sans14, {box.min.x, bottom + m.px(20)}, Align::left_middle, frame.palette.dim,
              shortened(frame.fonts.sans14, "Its weights are fetched when you open it.", box.width()));
  if (!start) return;
  const auto line = [&](std::size_t k, ImVec2 at, float width) {
    const auto& [token, probability] = start->next[k];
    const Rgb ink = k == 0 ? frame.palette.text : frame.palette.dim;
    const std::string number = is_low ? "" : fixed(probability, 4);
    const float token_width =
        draw_text(frame.fonts.sans15, at, Align::left_middle, ink, visible_token(token)) + m.px(12);
    const float bar_top = at.y + m.px(is_low ? 10 : -4);
    const float bar = is_low ? at.x : at.x + token_width,
                end = at.x + width - (is_low ? 0 : text_width(frame.fonts.mono14, number) + m.px(10));
    draw_fraction_bar(frame, {bar, bar_top}, {end, bar_top + m.px(is_low ? 4 : 8)}, probability,
                      render::color_at(render::ColorMap::weights, frame.palette.dark, probability));
    draw_text(frame.fonts.mono14, {at.x + width, at.y}, Align::right_middle, ink, number);
  };
  if (is_low) {
    for (std::size_t k = 0; k < start->next.size(); ++k)
      line(k, {right + m.px(12), box.min.y + m.px(8) + m.px(34) * static_cast<float>(k)},
           box.max.x - right - m.px(12));
    return;
  }
  draw_text(frame.fonts.sans14, {box.min.x, bottom + m.px(20)}, Align::left_middle, frame.palette.dim,
            shortened(frame.fonts.sans14, start->reading->experiment.text, box.width()));
  if (!start->next.empty()) line(0, {box.min.x, bottom + m.px(44)}, std::min(box.width(), m.px(320)));
}

/// Returns the card of the example or, if something else is open, of that. Commands that open a document
/// close the page themselves, after they asked about unsaved work.
StartCard example_card(const Frame& frame) {
  const auto close = set<&Forms::start_page>(false);
  if (!is_example_open(frame))
    return {"start/example",
            "Your open model",
            std::string("Go on where you were. ") + (frame.forms.in_browser ? "Alt" : "Ctrl") +
                "+N opens the small example instead.",
            frame.document.title + (frame.document.modified ? " •" : ""),
            {close},
            draw_example};
  std::vector<Command> opens{close, set<&Look::tab>(Tab::stages)};
  if (!frame.settings.has_seen_tour) opens.emplace_back(StartTour{});
  return {"start/example",
          "A small example",
          "Six tokens, two heads. Drag a number: scores, weights and output follow.",
          "‘Your journey starts with one step’",
          std::move(opens),
          draw_example};
}

StartCard lessons_card(const Frame& frame) {
  const auto [lesson, step] = suggested_lesson(frame.work.progress);
  const auto& all = core::lessons::lessons();
  const auto [shortest, longest] = std::ranges::minmax(all, {}, &core::lessons::Lesson::minutes);
  const auto n_done = std::ranges::count_if(all, [&](const core::lessons::Lesson& each) {
    const LessonProgress* known = progress_of(frame.work.progress, each.name);
    return known && known->done.size() == each.steps.size();
  });
  return {
      "start/lessons",
      "Lessons",
      fmt::format("Predict a number, then see it worked out. {} lessons of {} to {} minutes{}", all.size(),
                  shortest.minutes, longest.minutes, n_done > 0 ? fmt::format(", {} done.", n_done) : "."),
      step > 0 ? fmt::format("Resume: {}, step {}", lesson->title, step + 1) : "Start: " + lesson->title,
      {set<&Forms::start_page>(false), StartLesson{lesson->name}},
      draw_lesson_picture,
      true};
}

StartCard model_card(const Frame& frame) {
  const auto& models = frame.forms.models;
  const Command open = ShowDialog{Dialog::open};
  if (models.empty())
    return {"start/model",
            "A whole model",
            "A folder with a config.json, weights and a tokenizer, or a GGUF file.",
            "Open a model…",
            {open},
            draw_model_picture,
            true};
  return {"start/model",
          "A whole model",
          "A tiny GPT. Type a prompt, ablate a head, watch the next token change.",
          "Open another model…",
          {OpenPath{.path = models.front()}},
          draw_model_picture,
          true,
          open};
}

/// Draws the head of a short run at some of its steps, and its loss and accuracy over them.
void draw_learning_picture(const Frame& frame, const Rect& box) {
  const StartRun* start = frame.work.start_run;
  if (!start || start->heads.empty()) return;
  const auto& m = frame.metrics;
  const bool is_low = box.height() < m.px(low_picture);
  float y = box.min.y;
  if (!is_low) {
    const float title = draw_text(frame.fonts.sans16, {box.min.x, y + m.px(6)}, Align::left_middle,
                                  frame.palette.text, "Head 0.0");
    draw_text(frame.fonts.sans13, {box.min.x + title + m.px(10), y + m.px(7)}, Align::left_middle,
              frame.palette.dim, "while it learns");
    y += m.px(25);
  }
  const auto n = static_cast<float>(start->heads.size());
  const float gap = m.px(9), below = m.px(is_low ? 18 : 30),
              side = std::floor(std::min((box.width() - (n - 1) * gap) / n, (box.max.y - y - below) * 0.6f));
  if (side < 1) return;
  for (std::size_t k = 0; k < start->heads.size(); ++k) {
    const float x = box.min.x + (side + gap) * static_cast<float>(k);
    draw_thumbnail(frame, start->heads[k].weights[0][0], {x, y}, side);
    draw_text(frame.fonts.sans12, {x, y + side + m.px(9)}, Align::left_middle, frame.palette.dim,
              fmt::format("step {}", start->heads[k].step));
  }
  const Rect plot{{box.min.x, y + side + m.px(is_low ? 20 : 28)}, box.max};
  if (plot.height() < m.px(16)) return;
  draw_rect(plot.min, plot.max, frame.palette.background.panel);
  const auto& all = start->run->measurements();
  const float pad = m.px(6);
  for (const bool is_accuracy : {false, true}) {
    std::vector<ImVec2> points;
    for (const core::training::Measurement& measured : all) {
      const double share = is_accuracy ? measured.accuracy : measured.fresh_loss / all.front().fresh_loss;
      points.emplace_back(
          plot.min.x + pad +
              (plot.width() - 2 * pad) * static_cast<float>(measured.step) /
                  static_cast<float>(std::max<std::size_t>(all.back().step, 1)),
          plot.max.y - pad - (plot.height() - 2 * pad) * static_cast<float>(std::min(share, 1.0)));
    }
    ImGui::GetWindowDrawList()->AddPolyline(points.data(), static_cast<int>(points.size()),
                                            packed(is_accuracy ? frame.palette.text : frame.palette.dim), 0,
                                            is_accuracy ? m.px(2) : 1.0f);
  }
  if (plot.height() < m.px(50)) return;
  draw_text(frame.fonts.sans12, {plot.min.x + m.px(10), plot.min.y + m.px(22)}, Align::left_middle,
            frame.palette.dim, "loss");
  draw_text(frame.fonts.sans12, {plot.max.x - m.px(8), plot.min.y + m.px(22)}, Align::right_middle,
            frame.palette.text, "accuracy");
}

/// Returns the card of the run that is open, or of one that begins.
StartCard learning_card(const Frame& frame) {
  const Learning* learning = frame.pending.learning;
  const auto to_run = std::pair{set<&Forms::start_page>(false), set<&Look::tab>(Tab::learn)};
  const core::training::Task& task = *core::training::find_task("induction");
  const std::string words =
      fmt::format("Train two layers from noise. In {} steps an induction head forms.", task.setup.n_steps);
  if (learning && learning->run())
    return {
        "start/learn",
        "Watch it learn",
        words,
        fmt::format("Resume: {}, step {}", learning->run()->data().task().name, learning->run()->n_steps()),
        {to_run.first, to_run.second},
        draw_learning_picture,
        true};
  return {"start/learn",
          "Watch it learn",
          words,
          fmt::format("{} tasks, or your own text", core::training::tasks().size()),
          {SetLearning{task.name, "", task.setup}},
          draw_learning_picture};
}

/// The doors in their order; each is opened by its number, too.
constexpr std::array doors{example_card, lessons_card, model_card, learning_card};

/// Draws a card that opens on a click, Enter or its key; returns whether it has the keyboard focus.
bool draw_card(const Frame& frame, const StartCard& card, std::size_t index, const Rect& box, bool is_tall,
               bool takes_focus) {
  const auto& m = frame.metrics;
  const auto& p = frame.palette;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float pad = m.px(is_tall ? 20 : 15);
  Rect picture{box.min, {box.max.x, box.max.y - m.px(146)}};
  Rect text{{box.min.x, picture.max.y}, box.max};
  if (!is_tall) {
    picture = {box.min, {box.min.x + std::min(m.px(232), std::round(box.width() * 0.45f)), box.max.y}};
    text = {{picture.max.x, box.min.y}, box.max};
  }
  const float left = text.min.x + pad, width = text.width() - 2 * pad, foot = text.max.y - m.px(22);
  const std::string foot_words = shortened(frame.fonts.sans14, card.foot, width),
                    link = card.name + std::string("/other");
  bool is_linked = false;
  if (card.other) {  // before the card, which lies under it
    platform::move_to({left, foot - m.px(10)});
    if (hit_area(link.c_str(), {text_width(frame.fonts.sans14, foot_words), m.px(20)}))
      frame.commands.add(*card.other);
    frame.landmarks.mark_item(link);
    is_linked = ImGui::IsItemHovered() || has_keyboard_focus();
  }
  platform::move_to(box.min);
  if (takes_focus) platform::focus_next_item();
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
               {{picture.min.x + pad, picture.min.y + pad}, {picture.max.x - pad, picture.max.y - pad}});
  list->PopClipRect();
  const float middle = text.min.y + m.px(25);
  draw_text(frame.fonts.sans19, {left, middle}, Align::left_middle, p.text, card.title);
  float right = text.max.x - pad;
  for (const char* cap : {key.c_str(), is_focused && is_tall ? "Enter" : ""}) {
    if (!*cap) continue;
    right -= key_cap_width(frame, frame.fonts.sans13, cap);
    draw_key_cap(frame, frame.fonts.sans13, {right, middle}, cap, p.control.rest);
    right -= m.px(6);
  }
  draw_lines(frame.fonts.sans15, {left, text.min.y + m.px(45)}, width, m.px(20), p.dim, card.words, 3);
  draw_text(frame.fonts.sans14, {left, foot}, Align::left_middle, card.leads ? p.accent : p.faint,
            foot_words);
  if (is_linked)
    draw_rect({left, foot + m.px(8)}, {left + text_width(frame.fonts.sans14, foot_words), foot + m.px(8) + 1},
              p.accent);
  return is_focused;
}

/// Returns which of n cards and files Tab or, before any is focused, an arrow focuses in this frame, or
/// nothing; Dear ImGui's own Tab knows text fields only, and its arrows begin at a focused item.
std::optional<std::size_t> card_to_focus(const Frame& frame, std::optional<std::size_t> focused,
                                         std::size_t n) {
  const bool tab = platform::key_pressed(ImGuiKey_Tab);
  const auto is_pressed = [](ImGuiKey key) { return platform::key_pressed(key); };
  const bool arrow = !focused && std::ranges::any_of(std::array{ImGuiKey_LeftArrow, ImGuiKey_RightArrow,
                                                                ImGuiKey_UpArrow, ImGuiKey_DownArrow},
                                                     is_pressed);
  if (frame.forms.dialog != Dialog::none || !(tab || arrow)) return std::nullopt;
  if (!focused) return 0;
  return (*focused + (ImGui::GetIO().KeyShift ? n - 1 : 1)) % n;
}

/// Returns how many files have room in a row.
std::size_t n_recent_in(const Frame& frame, float width) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(width / frame.metrics.px(230)), 1, max_start_files);
}

/// Draws the files that were opened last: a picture, what they hold, and when they were changed. Returns
/// which has the keyboard focus.
std::optional<std::size_t> draw_recent(const Frame& frame, ImVec2 at, float width,
                                       std::optional<std::size_t> to_focus) {
  const auto& m = frame.metrics;
  const auto& recent = frame.document.recent;
  const float side = m.px(64), top = at.y + m.px(18);
  std::optional<std::size_t> focused;
  const std::size_t n = n_recent_in(frame, width);
  const float pitch = std::floor(width / static_cast<float>(n));
  draw_text(frame.fonts.sans13, at, Align::left_middle, frame.palette.dim, "RECENT");
  for (std::size_t k = 0; k < std::min(n, recent.size()); ++k) {
    const float x = at.x + pitch * static_cast<float>(k), left = x + side + m.px(12),
                room = pitch - side - m.px(24);
    const std::string name = "start/recent/" + std::to_string(k);
    platform::move_to({x, top});
    if (to_focus == k) platform::focus_next_item();
    if (hit_area(name.c_str(), {pitch - m.px(12), side})) frame.commands.add(OpenPath{recent[k]});
    frame.landmarks.mark_item(name);
    const ImVec2 min{x - m.px(4), top - m.px(4)}, max{x + pitch - m.px(8), top + side + m.px(4)};
    if (ImGui::IsItemHovered()) draw_rect(min, max, frame.palette.background.raised, m.px(3));
    draw_focus(frame, min, max);
    if (ImGui::IsItemFocused()) focused = k;
    tooltip(recent[k].string());
    const StartPictures* read = frame.work.start_pictures;
    const RecentFile* file =
        read && k < read->recent.size() && read->recent[k].path == recent[k] ? &read->recent[k] : nullptr;
    draw_rect({x, top}, {x + side, top + side}, frame.palette.background.panel);
    if (file && !file->weights.empty()) draw_thumbnail(frame, file->weights, {x, top}, side);
    const auto line = [&](ImFont* font, float y, Rgb color, const std::string& words) {
      draw_text(font, {left, top + m.px(y)}, Align::left_middle, color, shortened(font, words, room));
    };
    line(frame.fonts.sans15, 11, frame.palette.text, recent[k].filename().string());
    if (!file) continue;
    line(frame.fonts.sans13, 30, frame.palette.dim,
         file->words.empty() ? recent[k].parent_path().string() : file->words);
    line(frame.fonts.sans13, 49, frame.palette.faint,
         file->modified_at == 0 ? "not found" : date_text(file->modified_at));
  }
  return focused;
}

/// Places of the parts of the page, in pixels from its top.
struct PageLayout {
  std::size_t columns = doors.size();
  float margin = 0, gap = 0;
  bool is_tall = true;  ///< pictures are above the words of their cards, else left of them
  float title = 0, cards = 0, card_height = 0, recent = 0, line = 0;
  bool has_recent = false;
};

/// Lays the page out: cards side by side or, in narrow windows, in two columns or one. Recent files give way
/// before cards.
PageLayout lay_out(const Metrics& m, ImVec2 size, bool has_recent) {
  constexpr float max_picture = 420, recent_height = 130, foot = 44;
  PageLayout l;
  const bool is_wide = size.x >= 1500 * m.scale;
  l.is_tall = size.x >= 1100 * m.scale;
  if (!l.is_tall) l.columns = size.x < 760 * m.scale ? 1 : 2;
  l.margin = m.px(is_wide ? 96 : l.is_tall ? 56 : 40), l.gap = m.px(is_wide ? 32 : 20);
  const auto n_lines = static_cast<float>((doors.size() + l.columns - 1) / l.columns);
  const float natural = m.px(l.is_tall ? (is_wide ? 340 : 276) + 146 : 168);
  const auto end = [&](float card) { return n_lines * card + (n_lines - 1) * l.gap; };
  l.title = m.px(l.is_tall ? 45 : 30), l.cards = l.title + m.px(l.is_tall ? 62 : 58);
  l.has_recent = has_recent && l.cards + end(natural) + m.px(recent_height + foot) <= size.y;
  const float below = m.px((l.has_recent ? recent_height : 20) + foot), room = size.y - l.cards - below;
  const float most = l.is_tall ? m.px(max_picture + 146) : natural;
  l.card_height = std::clamp(std::floor((room - (n_lines - 1) * l.gap) / n_lines), m.px(96), most);
  const float over = std::max(0.0f, room - end(l.card_height));  // a high window has more above than below
  l.title += std::round(over * 0.4f), l.cards += std::round(over * 0.4f);
  l.recent = l.cards + end(l.card_height) + m.px(30);
  l.line = l.has_recent ? l.recent + m.px(recent_height - 30) : l.recent - m.px(10);
  return l;
}

}  // namespace

bool shows_start_page(const Frame& frame) {
  return frame.forms.start_page && !frame.lesson && !frame.pending.selection.tour &&
         !frame.displayed.selection.presentation.on;
}

void draw_start_page(const Frame& frame) {
  const auto& m = frame.metrics;
  const auto [window, far] = window_rect();
  ImGui::PushClipRect(window, far, false);
  draw_rect(window, far, frame.palette.background.back);
  ImGui::PopClipRect();
  const PageLayout l = lay_out(m, {far.x - window.x, far.y - window.y}, !frame.document.recent.empty());
  const float left = window.x + l.margin, width = far.x - window.x - 2 * l.margin;
  draw_text(frame.fonts.sans24, {left, window.y + l.title}, Align::left_middle, frame.palette.text,
            "Take attention apart, number by number");
  draw_text(frame.fonts.sans15, {left, window.y + l.title + m.px(31)}, Align::left_middle, frame.palette.dim,
            shortened(frame.fonts.sans15,
                      "Every number of the layer is on the screen. Change one, and everything "
                      "that depends on it updates at once.",
                      width));
  int& focused = *ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("focused card"), -1);
  if (ImGui::IsWindowAppearing()) {  // also after a card was opened
    ImGui::SetWindowFocus(nullptr);
    focused = -1;
  }
  const std::size_t n_recent =
      l.has_recent ? std::min(n_recent_in(frame, width), frame.document.recent.size()) : 0;
  const auto to_focus =
      card_to_focus(frame, focused < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(focused)),
                    doors.size() + n_recent);
  focused = -1;
  for (std::size_t k = 0; k < doors.size(); ++k) {
    const std::size_t line = k / l.columns, n = std::min(l.columns, doors.size() - line * l.columns);
    const float card = std::floor((width - l.gap * static_cast<float>(n - 1)) / static_cast<float>(n));
    const ImVec2 at{left + (card + l.gap) * static_cast<float>(k % l.columns),
                    window.y + l.cards + (l.card_height + l.gap) * static_cast<float>(line)};
    if (draw_card(frame, doors[k](frame), k, {at, {at.x + card, at.y + l.card_height}}, l.is_tall,
                  to_focus == k))
      focused = static_cast<int>(k);
  }
  if (n_recent > 0) {
    const auto next =
        to_focus && *to_focus >= doors.size() ? std::optional(*to_focus - doors.size()) : std::nullopt;
    if (const auto k = draw_recent(frame, {left, window.y + l.recent}, width, next))
      focused = static_cast<int>(doors.size() + *k);
  }
  const float line = window.y + l.line, middle = line + m.px(18);
  draw_rect({left, line}, {left + width, line + 1}, frame.palette.line);
  const std::string words = "or drop a file here, or ", open = "open one…";
  float x =
      left + draw_text(frame.fonts.sans14, {left, middle}, Align::left_middle, frame.palette.dim, words);
  if (link(frame, "start/open", frame.fonts.sans14, {x, middle}, Align::left_middle, frame.palette.accent,
           open))
    frame.commands.add(ShowDialog{Dialog::open});
  x += text_width(frame.fonts.sans14, open) + m.px(14);
  const float box = m.px(24) + text_width(frame.fonts.sans15, "show at start");
  draw_text(frame.fonts.sans14, {x, middle}, Align::left_middle, frame.palette.faint,
            shortened(frame.fonts.sans14, "sessions, .safetensors, .npz, .pt, .gguf, model folders",
                      left + width - box - m.px(20) - x));
  platform::move_to({left + width - box, middle - m.frame / 2});
  if (const auto on = checkbox(frame, "start/show", "show at start", frame.settings.start_page))
    frame.commands.add(set<&Settings::start_page>(*on));
}

}  // namespace app::panels
