#include "core/lessons/lessons.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/editing/draw.hpp"
#include "core/editing/presets.hpp"
#include "core/files/json.hpp"
#include "core/files/session.hpp"
#include "core/files/session_files.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/validation.hpp"
#include "core/lessons/expression.hpp"
#include "core/training/run_files.hpp"
#include "embedded_lessons.hpp"

namespace core::lessons {
namespace {

using formats::Json;
using formats::Word;

constexpr std::string_view glossary_file = "glossary.json";

constexpr std::array exhibit_words{
    Word{"library", Exhibit::library},           Word{"single_query", Exhibit::single_query},
    Word{"double_loop", Exhibit::double_loop},   Word{"next_token", Exhibit::next_token},
    Word{"moved_rows", Exhibit::moved_rows},     Word{"versions", Exhibit::versions},
    Word{"mask_methods", Exhibit::mask_methods}, Word{"entropy", Exhibit::entropy},
};

Start read_start(const Json& json) {
  json.expect_keys({"preset", "change", "sentence", "seed", "session", "text", "first", "answer", "against",
                    "layer", "task", "setup", "steps"});
  Start start;
  if (const auto task = json.member("task")) {
    const training::Task* found = training::find_task(start.task = task->text());
    if (!found) task->fail("the name of a task");
    start.setup = found->setup;
    if (const auto setup = json.member("setup")) start.setup = training::changed_setup(start.setup, *setup);
    if (const auto steps = json.member("steps")) start.n_steps = steps->whole(0);
  }
  if (const auto preset = json.member("preset")) start.preset = preset->text();
  if (const auto change = json.member("change")) start.change = json_text(*change);
  if (const auto sentence = json.member("sentence")) start.sentence = sentence->text();
  if (const auto seed = json.member("seed")) start.seed = seed->whole(0);
  if (const auto session = json.member("session")) start.session = json_text(*session);
  if (const auto text = json.member("text")) start.text = text->text();
  if (const auto first = json.member("first"))
    start.first = experiment::FirstPrompt{first->text(), json.required("answer").text(),
                                          json.required("against").text()};
  if (const auto layer = json.member("layer")) start.layer = layer->whole(0);
  return start;
}

std::vector<std::string> texts_or_none(const std::optional<Json>& json) {
  return json ? json->texts("a list of texts") : std::vector<std::string>();
}

LessonStep read_step(const Json& json) {
  json.expect_keys({"title", "text", "focus", "words", "exhibit", "predict", "start", "try", "done", "seen",
                    "pins_token"});
  LessonStep step{.title = json.required("title").text(),
                  .text = json.required("text").text(),
                  .focus = texts_or_none(json.member("focus")),
                  .words = texts_or_none(json.member("words")),
                  .try_it = json.required("try").text(),
                  .start = {},
                  .done = json.required("done").text(),
                  .seen = json.required("seen").text(),
                  .predict = {}};
  if (const auto start = json.member("start")) step.start = read_start(*start);
  if (const auto exhibit = json.member("exhibit")) step.exhibit = exhibit->word(exhibit_words);
  if (const auto pins = json.member("pins_token")) step.pins_token = pins->boolean();
  if (const auto predict = json.member("predict")) {
    const attention::StageInfo* stage = attention::find_stage(predict->text());
    if (!stage) predict->fail("expected the name of a stage");
    step.predict = stage->stage;
  }
  return step;
}

Lesson read_lesson(const Json& json, std::string name) {
  json.expect_keys({"attnscope_lesson", "title", "about", "group", "minutes", "model", "steps"});
  const auto text_of = [&](const char* key) {
    const auto text = json.member(key);
    return text ? text->text() : std::string();
  };
  Lesson lesson{.name = std::move(name),
                .title = json.required("title").text(),
                .about = text_of("about"),
                .group = text_of("group"),
                .steps = {},
                .model = {}};
  if (const auto minutes = json.member("minutes")) lesson.minutes = static_cast<int>(minutes->whole(1));
  if (const auto model = json.member("model")) lesson.model = model->text();
  for (const Json& step : json.required("steps").items("a list of steps"))
    lesson.steps.push_back(read_step(step));
  return lesson;
}

attention::Model session_model(const std::string& text, const std::string& title) {
  return formats::parse_session(text, title).model;
}

constexpr double rounding = 1e-12;

std::string place(const CellChange& cell) {
  return fmt::format("row {}, column {}", cell.row, cell.column);
}

std::string amount(double by) {
  return std::isfinite(by) ? "by " + number(by) : "from or to −∞";
}

}  // namespace

const std::vector<Lesson>& lessons() {
  static const std::vector<Lesson> all = [] {
    std::vector<Lesson> read;
    for (const auto& [file, text] : embedded::lessons)
      if (file != glossary_file)
        read.push_back(read_lesson(formats::parse_json(text, std::string(file)),
                                   std::string(file.substr(0, file.rfind('.')))));
    return read;
  }();
  return all;
}

const Lesson* find_lesson(std::string_view name) {
  return find_by(lessons(), name, &Lesson::name);
}

bool is_lesson_text(std::string_view beginning) {
  return beginning.find("\"attnscope_lesson\"") != beginning.npos;
}

namespace {

/// Replaces the name of a session next to the lesson by its text, and takes the text of a whole model's.
void read_session_of(LessonStep& step, const Json& start, const Lesson& lesson,
                     const std::filesystem::path& folder) {
  const auto session = start.member("session");
  if (!session) return;
  const bool is_file = session->is_text(), is_whole = !lesson.model.empty();
  if (is_file && (folder.empty() || !formats::is_within(session->text(), folder)))
    session->fail("a session, or the name of one in the folder of the lesson");
  const std::filesystem::path path = is_file ? folder / session->text() : "";
  if (is_whole) {
    std::string place = session->place();
    place.resize(place.size() - std::string_view(": ").size());
    step.start.saved = is_file
                           ? experiment::load_experiment(path)
                           : experiment::parse_experiment(step.start.session, place, UntrustedPaths::allowed);
    step.start.text = step.start.saved->experiment.text;
  } else if (is_file) {
    step.start.session = formats::session_text(formats::load_session(path, UntrustedPaths::refused));
  }
}

/// Throws core::Error unless a step of a single attention can be begun, tried and described.
void try_step(const LessonStep& step, const Json& json) {
  const auto named = [&](const char* key, const auto& run) {
    try {
      return run();
    } catch (const Error& error) {
      const auto value = json.member(key);
      throw Error((value ? value->place() : json.place()) + error.what());
    }
  };
  const attention::Model model = named("start", [&] {
    attention::Model start = model_at_start(step);
    attention::require(start);
    return start;
  });
  const attention::Trace trace = attention::attend(model);
  const StepState state{model, trace, model, trace};
  if (named("done", [&] { return is_done(step, state); }))
    json.required("done").fail("a condition that does not hold before the task was tried");
  named("seen", [&] { return seen(step, state); });
}

}  // namespace

Lesson parse_lesson(std::string text, const std::string& file, const std::filesystem::path& folder) {
  const Json json = formats::parse_json(text, file);  // which names the line of damaged JSON
  try {
    if (const Json version = json.required("attnscope_lesson"); version.whole(1) != 1)
      version.fail("1", std::to_string(version.whole(1)));
    Lesson lesson = read_lesson(json, file);
    const std::vector<Json> steps = json.required("steps").items("a list of steps");
    for (std::size_t k = 0; k < steps.size(); ++k) {
      LessonStep& step = lesson.steps[k];
      if (const auto start = steps[k].member("start"))
        read_session_of(step, *start, lesson, folder);
      else if (k > 0)
        step.start = lesson.steps[k - 1].start;
      else
        steps[k].required("start");
      if (lesson.model.empty())
        try_step(step, steps[k]);
      else if (step.start.text.empty())
        steps[k].fail("a start with a text for the model");
    }
    lesson.source = std::move(text), lesson.folder = folder;
    return lesson;
  } catch (const Error& error) {
    const std::string words = error.what(), place = file + ": ";
    if (!words.starts_with(place)) throw;
    const std::string rest = words.substr(place.size());
    throw Error(fmt::format("{}line {}: {}", place,
                            formats::line_of_path(text, rest.substr(0, rest.find(": "))), rest));
  }
}

std::string lesson_draft(const std::string& title, const std::string& model, const std::string& session,
                         const std::string& focus) {
  using formats::json_quoted;
  const bool is_whole = !model.empty();
  return "{\n  \"attnscope_lesson\": 1,\n  \"title\": " + json_quoted(title) +
         ",\n  \"about\": \"what it is about, in one line\",\n  \"minutes\": 5,\n" +
         (is_whole ? "  \"model\": " + json_quoted(model) + ",\n" : "") +
         "  \"steps\": [\n    {\n      \"title\": \"First step\",\n"
         "      \"text\": \"One to three sentences about what is shown.\",\n"
         "      \"focus\": [" +
         json_quoted(focus) + "],\n      \"words\": [],\n      \"try\": " +
         (is_whole ? "\"Ablate a head: click it and press X.\",\n"
                     "      \"done\": \"n_heads_off > before.n_heads_off\",\n      \"seen\": \"{followed}.\""
                   : "\"Change any number.\",\n      \"done\": \"changed(output)\",\n"
                     "      \"seen\": \"The output moved by at most {moved(output)}.\"") +
         ",\n      \"start\": {\"session\": " + session + "}\n    }\n  ]\n}\n";
}

attention::Model model_at_start(const LessonStep& step) {
  const Start& start = step.start;
  if (!start.session.empty()) return session_model(start.session, step.title);
  const editing::Preset* preset =
      start.task.empty() ? editing::find_preset(start.preset) : &editing::default_preset();
  if (!preset) throw Error("preset " + start.preset + ": there is no such preset");
  const attention::Model model = preset->make();
  if (!start.sentence.empty()) return text::with_sentence(model, text::words(start.sentence), start.seed);
  if (start.change.empty()) return model;
  return session_model(formats::apply_merge_patch(formats::session_text({model, ""}), start.change),
                       step.title);
}

experiment::Experiment experiment_at_start(const LessonStep& step, const transformer::FullModel* model) {
  if (step.start.text.empty()) throw Error(step.title + ": this step begins without a text");
  if (!step.start.session.empty() && model) {
    const auto saved = experiment::parse_experiment(step.start.session, step.title, UntrustedPaths::allowed);
    experiment::require_same_model(saved, *model, step.title);
    return experiment::with_saved_edits(saved, *model);
  }
  return {.text = step.start.text, .layer = step.start.layer, .first = step.start.first};
}

std::vector<CellChange> changed_cells(const StepState& state, attention::Stage stage, std::size_t head) {
  const attention::StageInfo& info = attention::info(stage);
  if (!info.present(state.start) || !info.present(state.model)) return {};
  if (info.per_head && (head >= state.before.n_heads() || head >= state.trace.n_heads())) return {};
  const arma::mat &before = state.before.at(info.stage, head), &now = state.trace.at(info.stage, head);
  std::vector<CellChange> moved;
  if (arma::size(before) != arma::size(now)) return moved;
  for (std::size_t i = 0; i < now.n_rows; ++i)
    for (std::size_t j = 0; j < now.n_cols; ++j)
      if (const double by = abs_difference(before(i, j), now(i, j)); by > rounding)
        moved.push_back({i, j, by});
  std::ranges::stable_sort(moved, std::greater(), &CellChange::by);
  return moved;
}

std::string question(const LessonStep& step) {
  return std::string("Which cell of ") + attention::info(*step.predict).title +
         " will change most? Click it; then: " + step.try_it;
}

std::string verdict(const std::vector<CellChange>& moved, std::size_t row, std::size_t column) {
  if (moved.empty()) return "";
  const auto mine = std::ranges::find_if(
      moved, [&](const CellChange& cell) { return cell.row == row && cell.column == column; });
  if (mine == moved.end())
    return "Your cell did not change; " + place(moved.front()) + " changed most, " +
           amount(moved.front().by) + ".";
  const bool most =
      !std::isfinite(moved.front().by) ? !std::isfinite(mine->by) : mine->by >= moved.front().by * (1 - 1e-9);
  if (most) return "You guessed it: no cell changed more than yours, " + amount(mine->by) + ".";
  return "Your cell changed " + amount(mine->by) + "; " + place(moved.front()) + " changed most, " +
         amount(moved.front().by) + ".";
}

const std::vector<Term>& glossary() {
  static const std::vector<Term> all = [] {
    const auto file = std::ranges::find(embedded::lessons, glossary_file, &embedded::File::name);
    std::vector<Term> terms;
    for (const auto& [word, meaning] : formats::parse_json(file->text, std::string(glossary_file)).members())
      terms.push_back({word, meaning.text()});
    return terms;
  }();
  return all;
}

const Term* find_term(std::string_view word) {
  return find_by(glossary(), text::lower(word), [](const Term& t) { return text::lower(t.word); });
}

}  // namespace core::lessons
