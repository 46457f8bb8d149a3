#include "core/training/run_files.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/system/file.hpp"
#include "core/training/whole_model.hpp"

namespace core::training {
namespace {

using formats::json_list;
using formats::json_quoted;
using formats::Tensor;

std::string heads_json(const PatternScores& scores, const Task& task) {
  std::string json;
  for (std::size_t p = 0; p < scores.size(); ++p)
    json += (p > 0 ? ", " : "") + json_quoted(task.patterns[p]) + ": " +
            json_list(scores[p], [](const auto& layer) { return json_list(layer, text::number_text); });
  return "{" + json + "}";
}

std::string setup_json(const TrainingSetup& s) {
  return fmt::format(
      "{{\"layers\": {}, \"heads\": {}, \"width\": {}, \"positions\": \"{}\", \"kv_heads\": {}, \"mlp\": {}, \"norm\": \"{}\", "
      "\"mask\": {}, \"dropout\": {}, \"optimizer\": \"{}\", \"rate\": {}, \"batch\": {}, \"mistake\": {}, \"steps\": {}, "
      "\"seed\": {}}}",
      s.n_layers, s.n_heads, s.d_model, word_of(position_words, s.positions), s.kv_heads(), s.d_mlp,
      word_of(norm_words, s.norm), s.causal, text::number_text(s.dropout),
      word_of(optimizer_words, s.optimizer), text::number_text(s.rate), s.batch,
      s.mistake.empty() ? "null" : json_quoted(s.mistake), s.n_steps, s.seed);
}

/// Returns the tensors of models at steps as one tensor for each name.
std::vector<Tensor> stacked(const std::vector<std::vector<Tensor>>& models,
                            const std::vector<double>& steps) {
  std::vector<Tensor> all = models.front();
  for (std::size_t k = 0; k < all.size(); ++k) {
    all[k].shape.insert(all[k].shape.begin(), models.size());
    for (std::size_t m = 1; m < models.size(); ++m)
      all[k].numbers.insert(all[k].numbers.end(), models[m][k].numbers.begin(), models[m][k].numbers.end());
  }
  Tensor of_steps;
  of_steps.name = "steps", of_steps.dtype = formats::Dtype::f32, of_steps.shape = {steps.size()},
  of_steps.numbers = steps;
  all.push_back(std::move(of_steps));
  return all;
}

std::string snapshots_bytes(const TrainingRun& run) {
  std::vector<std::vector<Tensor>> models;
  std::vector<double> steps;
  for (const SnapshotRef& snapshot : run.snapshots())
    if (std::ranges::find(run.measurements(), snapshot->step, &Measurement::step) !=
            run.measurements().end() &&
        no_export_reason(snapshot->setup).empty()) {
      models.push_back(model_files(run.restored(*snapshot), run.data()).tensors);
      steps.push_back(static_cast<double>(snapshot->step));
    }
  return models.empty() ? "" : safetensors_bytes(stacked(models, steps));
}

}  // namespace

std::string run_json(const TrainingRun& run) {
  std::string json = "{\"task\": " + json_quoted(run.data().task().name) +
                     ",\n \"setup\": " + setup_json(run.network().setup) +
                     ",\n \"example\": " + json_quoted(run.data().example());
  const auto add = [&](const char* name, const auto& words, const char* between = ", ") {
    json += fmt::format(",\n \"{}\": ", name) + json_list(run.measurements(), words, between);
  };
  const auto add_numbers = [&](const char* name, double Measurement::*number) {
    add(name, [number](const Measurement& m) { return text::number_text(m.*number); });
  };
  add("step", [](const Measurement& m) { return std::to_string(m.step); });
  add_numbers("loss", &Measurement::loss);
  add_numbers("training_accuracy", &Measurement::training_accuracy);
  add_numbers("fresh_loss", &Measurement::fresh_loss);
  add_numbers("accuracy", &Measurement::accuracy);
  add(
      "heads", [&](const Measurement& m) { return heads_json(m.patterns, run.data().task()); }, ",\n  ");
  json +=
      ",\n \"milestones\": " + json_list(run.milestones(), [](const Milestone& milestone) {
        return fmt::format("{{\"step\": {}, \"words\": {}}}", milestone.step, json_quoted(milestone.words));
      });
  return json + ",\n \"diverged\": " + (run.diverged_at() ? std::to_string(*run.diverged_at()) : "null") +
         "}\n";
}

TrainingSetup changed_setup(TrainingSetup s, const formats::Json& json) {
  json.expect_keys({"layers", "heads", "width", "positions", "kv_heads", "mlp", "norm", "mask", "dropout",
                    "optimizer", "rate", "batch", "mistake", "steps", "seed"});
  const auto set = [&](const char* key, auto& member, const auto& read) {
    if (const auto given = json.given(key)) member = read(*given);
  };
  const auto whole = [](const formats::Json& of) { return of.whole(0); };
  const auto number = [](const formats::Json& of) { return of.number(); };
  set("layers", s.n_layers, whole), set("heads", s.n_heads, whole), set("width", s.d_model, whole);
  set("mlp", s.d_mlp, whole), set("batch", s.batch, whole), set("steps", s.n_steps, whole);
  set("seed", s.seed, whole), set("kv_heads", s.n_kv_heads, whole);
  if (s.n_kv_heads == s.n_heads) s.n_kv_heads = 0;
  set("positions", s.positions, [](const formats::Json& of) { return of.word(position_words); });
  set("norm", s.norm, [](const formats::Json& of) { return of.word(norm_words); });
  set("optimizer", s.optimizer, [](const formats::Json& of) { return of.word(optimizer_words); });
  set("mask", s.causal, [](const formats::Json& of) { return of.boolean(); });
  set("dropout", s.dropout, number), set("rate", s.rate, number);
  set("mistake", s.mistake, [](const formats::Json& of) { return of.text(); });
  if (const auto problem = check(s)) throw Error(json.place() + problem->option + ": " + problem->message);
  return s;
}

namespace {

constexpr std::string_view session_key = "training_run";
constexpr std::size_t session_version = 1, sniffed_bytes = 64;

TrainingSetup read_setup(const formats::Json& json) {
  for (const char* key : {"layers", "heads", "width", "positions", "norm", "mask", "rate", "seed"})
    (void)json.required(key);
  return changed_setup({}, json);
}

std::string change_json(const RunChange& change) {
  std::string json = fmt::format("{{\"step\": {}, \"diverged\": {}, ", change.step, change.diverged);
  if (const auto* setup = std::get_if<TrainingSetup>(&change.what))
    return json + "\"setup\": " + setup_json(*setup) + "}";
  if (const auto* toggle = std::get_if<HeadToggle>(&change.what))
    return json + fmt::format("\"head\": [{}, {}], \"on\": {}}}", toggle->layer, toggle->head, toggle->on);
  const auto& [parameter, numbers] = std::get<MatrixChange>(change.what);
  std::string rows;
  for (std::size_t i = 0; i < numbers.n_rows(); ++i)
    rows += (i > 0 ? ",\n    " : "") + json_list(numbers.row(i), text::number_text);
  return json + fmt::format("\"matrix\": {}, \"numbers\": [{}]}}", json_quoted(parameter), rows);
}

RunChange read_change(const formats::Json& json) {
  json.expect_keys({"step", "diverged", "setup", "head", "on", "matrix", "numbers"});
  const std::size_t step = json.required("step").whole(0);
  const bool diverged = json.required("diverged").boolean();
  if (const auto setup = json.member("setup")) return {read_setup(*setup), step, diverged};
  if (const auto head = json.member("head")) {
    const auto place = head->items("a layer and a head", 2);
    const std::size_t layer = place[0].whole(0), number = place[1].whole(0);
    return {HeadToggle{layer, number, json.required("on").boolean()}, step, diverged};
  }
  return {MatrixChange{json.required("matrix").text(), json.required("numbers").matrix()}, step, diverged};
}

std::shared_ptr<const TaskData> read_task(const formats::Json& top, const std::string& file) {
  if (const auto text = top.given("text")) return std::make_shared<const TaskData>(text->text(), file);
  const formats::Json name = top.required("task");
  const Task* task = find_task(name.text());
  if (!task) name.fail(text::joined(tasks(), ", ", &Task::name));
  return std::make_shared<const TaskData>(*task);
}

}  // namespace

SavedRun saved_run(const TrainingRun& run) {
  SavedRun saved{run.first_setup(), run.shared_data(), run.changes(), run.n_steps(), {}};
  if (!run.losses().empty() && std::isfinite(run.losses().back())) saved.loss = run.losses().back();
  return saved;
}

std::string run_session(const SavedRun& run) {
  return fmt::format(
      "{{\"{}\": {},\n \"task\": {},\n \"text\": {},\n \"setup\": {},\n \"changes\": {},\n \"step\": {},\n \"loss\": {}}}\n",
      session_key, session_version, json_quoted(run.data->task().name),
      run.data->is_text() ? json_quoted(run.data->text()) : "null", setup_json(run.setup),
      json_list(run.changes, change_json, ",\n  "), run.n_steps,
      run.loss ? text::number_text(*run.loss) : "null");
}

bool is_run_session(std::string_view text) {
  text = text::without_byte_order_mark(text).substr(0, sniffed_bytes);
  const std::size_t key = text.find(session_key);
  return key != text.npos && text.find_first_not_of("{\" \t\r\n") == key;
}

bool is_run_session_file(const std::filesystem::path& path) {
  return system::is_file(path) && is_run_session(system::read_prefix(path, sniffed_bytes));
}

SavedRun parse_run(std::string_view text, const std::string& file) {
  const formats::Json top = formats::parse_json(text, file);
  top.expect_keys({session_key, "task", "text", "setup", "changes", "step", "loss"});
  const formats::Json version = top.required(session_key);
  if (version.whole(1) != session_version) version.fail("version 1");
  const std::size_t last_step = top.required("step").whole(0);
  SavedRun run{read_setup(top.required("setup")), read_task(top, file), {}, last_step, {}};
  std::size_t step = 0;
  for (const formats::Json& item : top.required("changes").items_or_empty("a list of changes")) {
    run.changes.push_back(read_change(item));
    if (run.changes.back().step < step || run.changes.back().step > run.n_steps)
      item.fail("a step from that of the change before it to the last one");
    step = run.changes.back().step;
  }
  if (const auto loss = top.given("loss")) run.loss = loss->number();
  return run;
}

ReopenedRun reopen_run(std::string_view text, const std::string& file, const StopToken& progress) {
  const SavedRun saved = parse_run(text, file);
  ReopenedRun reopened;
  try {
    reopened.run =
        TrainingRun::learned_again(saved.setup, saved.data, saved.changes, saved.n_steps, progress);
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    throw Error(file + ": " + error.what());
  }
  const TrainingRun* run = reopened.run.get();
  constexpr double rounding = 1e-9;
  const double loss = run->losses().empty() ? 0 : run->losses().back();
  if (run->n_steps() != saved.n_steps ||
      (saved.loss && !(std::abs(loss - *saved.loss) <= rounding * (1 + loss))))
    reopened.note = fmt::format(
        "This processor rounds otherwise than the one that saved the run: at step {} the loss is {}, there it was {}.",
        run->n_steps(), text::number_text(loss),
        saved.loss ? text::number_text(*saved.loss) : "not a number");
  return reopened;
}

void save_run(const TrainingRun& run, const std::filesystem::path& folder) {
  const ModelFiles files = model_files(run.network(), run.data());
  require_new_folder(folder);
  system::Staging staging(folder);
  staging.add("config.json", files.config);
  staging.add("tokenizer.json", files.tokenizer);
  staging.add("tokenizer_config.json", files.tokenizer_config);
  staging.add("model.safetensors", safetensors_bytes(files.tensors));
  if (const std::string bytes = snapshots_bytes(run); !bytes.empty())
    staging.add("snapshots.safetensors", bytes);
  staging.add("run.json", run_json(run));
  staging.commit();
}

void require_new_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored)))
    throw Error(path.string() + ": expected a new folder, but it exists");
  const std::filesystem::path named = path.has_filename() ? path : path.parent_path(),  // "OUT/" is OUT
      parent = std::filesystem::absolute(named, ignored).parent_path();
  if (!system::is_folder(parent)) throw Error(parent.string() + ": expected a folder, to make one in it");
}

}  // namespace core::training
