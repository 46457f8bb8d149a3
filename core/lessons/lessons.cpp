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
#include "core/lessons/expression.hpp"
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

std::vector<std::string> texts(const Json& json) {
  std::vector<std::string> all;
  for (const Json& item : json.items("a list of texts")) all.push_back(item.text());
  return all;
}

Start read_start(const Json& json) {
  json.expect_keys({"preset", "change", "sentence", "seed", "session", "text", "layer"});
  Start start;
  if (const auto preset = json.member("preset")) start.preset = preset->text();
  if (const auto change = json.member("change")) start.change = json_text(*change);
  if (const auto sentence = json.member("sentence")) start.sentence = sentence->text();
  if (const auto seed = json.member("seed")) start.seed = seed->whole(0);
  if (const auto session = json.member("session")) start.session = json_text(*session);
  if (const auto text = json.member("text")) start.text = text->text();
  if (const auto layer = json.member("layer")) start.layer = layer->whole(0);
  return start;
}

LessonStep read_step(const Json& json) {
  json.expect_keys({"title", "text", "focus", "words", "exhibit", "predict", "start", "try", "done", "seen",
                    "pins_token"});
  LessonStep step{.title = json.required("title").text(),
                  .text = json.required("text").text(),
                  .focus = texts(json.required("focus")),
                  .words = texts(json.required("words")),
                  .try_it = json.required("try").text(),
                  .start = read_start(json.required("start")),
                  .done = json.required("done").text(),
                  .seen = json.required("seen").text(),
                  .predict = {}};
  if (const auto exhibit = json.member("exhibit")) step.exhibit = exhibit->word(exhibit_words);
  if (const auto pins = json.member("pins_token")) step.pins_token = pins->boolean();
  if (const auto predict = json.member("predict")) {
    const attention::StageInfo* stage = attention::find_stage(predict->text());
    if (!stage) predict->fail("expected the name of a stage");
    step.predict = stage->stage;
  }
  return step;
}

Lesson read_lesson(std::string_view file, std::string_view text) {
  const Json json = formats::parse_json(text, std::string(file));
  json.expect_keys({"title", "about", "group", "minutes", "model", "steps"});
  Lesson lesson{.name = std::string(file.substr(0, file.rfind('.'))),
                .title = json.required("title").text(),
                .about = json.required("about").text(),
                .group = json.required("group").text(),
                .minutes = static_cast<int>(json.required("minutes").whole(1)),
                .steps = {},
                .model = {}};
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
      if (file != glossary_file) read.push_back(read_lesson(file, text));
    return read;
  }();
  return all;
}

const Lesson* find_lesson(std::string_view name) {
  return find_by(lessons(), name, &Lesson::name);
}

attention::Model model_at_start(const LessonStep& step) {
  const Start& start = step.start;
  if (!start.session.empty()) return session_model(start.session, step.title);
  const editing::Preset* preset = editing::find_preset(start.preset);
  if (!preset) throw Error("preset " + start.preset + ": there is no such preset");
  const attention::Model model = preset->make();
  if (!start.sentence.empty()) return text::with_sentence(model, text::words(start.sentence), start.seed);
  if (start.change.empty()) return model;
  return session_model(formats::apply_merge_patch(formats::session_text({model, ""}), start.change),
                       step.title);
}

experiment::Experiment experiment_at_start(const LessonStep& step) {
  if (step.start.text.empty()) throw Error(step.title + ": this step begins without a text");
  return {.text = step.start.text, .layer = step.start.layer};
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
