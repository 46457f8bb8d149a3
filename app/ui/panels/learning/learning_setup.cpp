#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "app/session/learning.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/learning/learning_panel.hpp"
#include "app/ui/panels/lessons/lesson_panel.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/training/task.hpp"

namespace app::panels {
namespace {

namespace training = core::training;
using training::TrainingSetup;

// In the order of their enumerations.
const std::array position_titles{Option{"none"}, Option{"learned"}, Option{"rotary (RoPE)"}, Option{"ALiBi"}};
const std::array norm_titles{Option{"none"}, Option{"LayerNorm"}, Option{"RMSNorm"}};

constexpr const char* first_text = "the cat sat on the mat. the dog sat on the log. the cat saw the dog. ";

/// Asks for the run with another setup.
void change(const Frame& frame, const TrainingSetup& setup) {
  const Learning& learning = *frame.pending.learning;
  frame.commands.add(SetLearning{learning.task(), learning.text(), setup});
}

/// Asks for it with another value of one member.
template <class Value>
void change(const Frame& frame, Value TrainingSetup::*member, Value value) {
  TrainingSetup setup = frame.pending.learning->setup();
  setup.*member = value;
  change(frame, setup);
}

/// Draws a list of the values of an enumeration, in their order.
template <class Choice>
void choose_word(const FormRows& form, const char* name, std::span<const Option> titles,
                 Choice TrainingSetup::*member) {
  const auto now = static_cast<std::size_t>(form.frame.pending.learning->setup().*member);
  if (const auto chosen = combo(form.frame, name, FormRows::control_width(), titles, now))
    change(form.frame, member, static_cast<Choice>(*chosen));
}

/// Draws a row of numbers to choose from.
template <std::size_t n>
void choose_number(const FormRows& form, const char* name, const std::array<std::size_t, n>& numbers,
                   std::size_t TrainingSetup::*member) {
  std::vector<std::string> words;
  for (const std::size_t number : numbers) words.push_back(std::to_string(number));
  TrainingSetup setup = form.frame.pending.learning->setup();
  const auto now = static_cast<std::size_t>(std::ranges::find(numbers, setup.*member) - numbers.begin());
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding,
                      {form.frame.metrics.px(n > 3 ? 6 : 8), ImGui::GetStyle().FramePadding.y});
  const auto chosen = segmented(form.frame, name, words, now);
  ImGui::PopStyleVar();
  if (!chosen) return;
  if (member == &TrainingSetup::d_model && setup.d_mlp > 0)
    setup.d_mlp = setup.d_mlp / setup.d_model * numbers[*chosen];  // stays as many times as wide
  setup.*member = numbers[*chosen];
  if (setup.n_heads % setup.kv_heads() != 0) setup.n_kv_heads = 0;
  change(form.frame, setup);
}

void whole_number(const Frame& frame, const char* name, const char* words, std::size_t TrainingSetup::*member,
                  float width) {
  if (const auto number = count_field(frame, name, words, frame.pending.learning->setup().*member, width))
    change(frame, member, static_cast<std::size_t>(*number));
}

void choose_kv_heads(const FormRows& form) {
  const TrainingSetup& setup = form.frame.pending.learning->setup();
  std::vector<std::size_t> numbers;
  std::vector<std::string> words;
  for (std::size_t n = 1; n <= setup.n_heads; ++n)
    if (setup.n_heads % n == 0) numbers.push_back(n), words.push_back(std::to_string(n));
  const auto now = static_cast<std::size_t>(std::ranges::find(numbers, setup.kv_heads()) - numbers.begin());
  if (const auto chosen = segmented(form.frame, "learn/kv_heads", words, now))
    change(form.frame, &TrainingSetup::n_kv_heads, numbers[*chosen] % setup.n_heads);
}

/// Draws the bugs that concern the network, in every layer of which one can be injected.
void choose_bug(const FormRows& form) {
  const Learning& learning = *form.frame.pending.learning;
  const std::string& mistake = learning.setup().mistake;
  std::vector<Option> options{{"none", "The network computes attention as it should", false, "none"}};
  std::vector<const core::bugs::Bug*> bugs{nullptr};
  std::size_t now = 0;
  for (const core::bugs::Bug* bug : core::bugs::offered_bugs()) {
    if (learning.run() && !core::bugs::is_relevant(*bug, learning.run()->network().layers[0].attention))
      continue;
    if (mistake == bug->name) now = bugs.size();
    options.push_back({core::bugs::title_of(*bug), bug->texts.about, bugs.size() == 1, bug->name});
    bugs.push_back(bug);
  }
  if (const auto chosen = combo(form.frame, "learn/bug", FormRows::control_width(), options, now))
    change(form.frame, &TrainingSetup::mistake, std::string(bugs[*chosen] ? bugs[*chosen]->name : ""));
}

void draw_task(const Frame& frame, float width) {
  const Learning& learning = *frame.pending.learning;
  section_heading(frame, width, "TASK");
  const auto tasks = training::tasks();
  std::vector<Option> options;
  std::size_t now = tasks.size();
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    options.push_back({tasks[k].name, tasks[k].about});
    options.back().name = tasks[k].name;
    if (learning.task() == tasks[k].name) now = k;
  }
  options.push_back({"your own text", training::text_task().about, true, "text"});
  if (const auto chosen = combo(frame, "learn/task", width, options, now); chosen && *chosen != now) {
    if (*chosen < tasks.size())
      frame.commands.add(SetLearning{tasks[*chosen].name, "", tasks[*chosen].setup});
    else
      frame.commands.add(SetLearning{"", first_text, training::text_task().setup});
  }
  const training::Task& task = now < tasks.size() ? tasks[now] : training::text_task();
  if (now == tasks.size()) {
    const auto answer = text_field(
        frame, "learn/text", learning.text(),
        {.width = width, .font = frame.fonts.sans15, .alignment = Alignment::left, .shows_error = false});
    if (answer.text) frame.commands.add(SetLearning{"", *answer.text, learning.setup()});
  }
  paragraph(frame.fonts.sans14, frame.palette.dim, width, std::string(task.about) + ".");
}

void draw_network(const Frame& frame, float width) {
  const TrainingSetup& now = frame.pending.learning->setup();
  section_heading(frame, width, "NETWORK", "a change starts again");
  const FormRows form(frame, "learn network", width);
  form.row("layers");
  choose_number(form, "learn/layers", std::array<std::size_t, 3>{1, 2, 3}, &TrainingSetup::n_layers);
  form.row("heads");
  choose_number(form, "learn/heads", std::array<std::size_t, 4>{1, 2, 3, 4}, &TrainingSetup::n_heads);
  form.row("KV heads");
  choose_kv_heads(form);
  form.row("width");
  choose_number(form, "learn/width", std::array<std::size_t, 4>{16, 32, 48, 64}, &TrainingSetup::d_model);
  form.row("positions");
  choose_word(form, "learn/positions", position_titles, &TrainingSetup::positions);
  form.row("norm");
  choose_word(form, "learn/norm", norm_titles, &TrainingSetup::norm);
  form.row("MLP");
  constexpr std::array<std::size_t, 3> times{0, 2, 4};
  const std::array<std::string, 3> words{"none", "2×", "4×"};
  const auto current =
      static_cast<std::size_t>(std::ranges::find(times, now.d_mlp / now.d_model) - times.begin());
  if (const auto chosen = segmented(frame, "learn/mlp", words, current))
    change(frame, &TrainingSetup::d_mlp, times[*chosen] * now.d_model);
  tooltip("Hidden units, as many times as the width");
  form.row("seed");
  whole_number(frame, "learn/seed", "seed", &TrainingSetup::seed, frame.metrics.px(72));
}

void draw_training(const Frame& frame, float width) {
  constexpr double least_power = -4, powers = 3;  // of the slider: 1e-4 to 1e-1
  const TrainingSetup& now = frame.pending.learning->setup();
  section_heading(frame, width, "TRAINING", "takes effect at once");
  const FormRows form(frame, "learn training", width);
  form.row("optimizer");
  const std::array<std::string, 2> optimizers{"Adam", "SGD"};
  if (const auto chosen =
          segmented(frame, "learn/optimizer", optimizers, static_cast<std::size_t>(now.optimizer)))
    change(frame, &TrainingSetup::optimizer, static_cast<training::OptimizerChoice>(*chosen));
  form.row("rate");
  if (const auto share = slider(frame, "learn/rate", FormRows::control_width(),
                                (std::log10(now.rate) - least_power) / powers,
                                now.rate < 1e-3 ? fixed(now.rate, 5) : fixed(now.rate, 4)))
    if (const double rate = std::pow(10, least_power + powers * *share); rate != now.rate)
      change(frame, &TrainingSetup::rate, rate);
  tooltip("The learning rate, from 0.0001 to 0.1 on a logarithmic scale");
  form.row("batch");
  whole_number(frame, "learn/batch", "batch", &TrainingSetup::batch, frame.metrics.px(72));
  tooltip("Sequences of a step");
  form.row("dropout");
  constexpr double most = 0.9, step = 0.05;
  if (const auto share = slider(frame, "learn/dropout", FormRows::control_width(), now.dropout / most,
                                fixed(now.dropout, 2)))
    if (const double rate = std::round(*share * most / step) * step; rate != now.dropout)
      change(frame, &TrainingSetup::dropout, rate);
  form.row("mask");
  if (const auto on = checkbox(frame, "learn/mask", "causal", now.causal))
    change(frame, &TrainingSetup::causal, *on);
  form.row("bug");
  choose_bug(form);
  form.row("steps");
  whole_number(frame, "learn/steps", "steps", &TrainingSetup::n_steps, frame.metrics.px(72));
  tooltip("The run pauses there; Space goes on");
}

}  // namespace

void draw_learning_setup(const Frame& frame) {
  if (!frame.pending.learning) return;
  const float width = ImGui::GetContentRegionAvail().x, gap = frame.metrics.px(8);
  if (frame.metrics.narrow && lesson_is_in_inspector(frame)) draw_lesson_in_inspector(frame);
  draw_task(frame, width);
  ImGui::Dummy({width, gap});
  draw_network(frame, width);
  ImGui::Dummy({width, gap});
  draw_training(frame, width);
  if (!frame.metrics.narrow) return;
  ImGui::Dummy({width, gap});
  draw_learning_results(frame);
}

}  // namespace app::panels
