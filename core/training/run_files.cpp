#include "core/training/run_files.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <functional>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/system/file.hpp"
#include "core/training/whole_model.hpp"

namespace core::training {
namespace {

using formats::json_quoted;
using formats::Tensor;

/// Returns a JSON list.
template <class Items, class Words>
std::string list(const Items& items, Words words, const char* between = ", ") {
  return "[" + text::joined(items, between, words) + "]";
}

std::string heads_json(const PatternScores& scores, const Task& task) {
  std::string json;
  for (std::size_t p = 0; p < scores.size(); ++p)
    json += (p > 0 ? ", " : "") + json_quoted(task.patterns[p]) + ": " +
            list(scores[p], [](const auto& layer) { return list(layer, text::number_text); });
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
        run.measurements().end()) {
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
    json += fmt::format(",\n \"{}\": ", name) + list(run.measurements(), words, between);
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
      ",\n \"milestones\": " + list(run.milestones(), [](const Milestone& milestone) {
        return fmt::format("{{\"step\": {}, \"words\": {}}}", milestone.step, json_quoted(milestone.words));
      });
  return json + ",\n \"diverged\": " + (run.diverged_at() ? std::to_string(*run.diverged_at()) : "null") +
         "}\n";
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
