// The part of opening that takes whole models.
#include <algorithm>
#include <array>
#include <system_error>
#include <thread>

#include "app/session/journal.hpp"
#include "app/session/opening.hpp"
#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/model/transformer.hpp"

namespace app {
namespace {

namespace experiment = core::experiment;
namespace transformer = core::transformer;

/// A text in which something comes again, so that heads that look for it have something to find.
std::string first_text(const transformer::WholeModel& model) {
  if (const auto& mask = model.description().mask_token; mask && !model.description().causal)
    return "The cat sat on the mat, and the " + model.token(*mask).piece + " sat on the cat.";
  return "egg jam fig and egg jam f";
}

/// Calls a function; errors name the file that was opened.
template <class Function>
auto named_errors(const std::filesystem::path& path, Function function) {
  try {
    return function();
  } catch (const core::Stopped&) {
    throw;
  } catch (const core::Error& error) {
    const std::string words = error.what(), place = path.string() + ": ";
    throw core::Error(words.starts_with(place) ? words : place + words);
  }
}

std::shared_ptr<const experiment::Reading> read_at(const std::filesystem::path& path,
                                                   const transformer::WholeModel& model,
                                                   const experiment::Experiment& wanted,
                                                   const experiment::Reading* before,
                                                   const transformer::Means& means) {
  return named_errors(path, [&] {
    return std::make_shared<const experiment::Reading>(experiment::read(model, wanted, before, means));
  });
}

}  // namespace

std::optional<std::filesystem::path> whole_model_at(const std::filesystem::path& path) {
  if (transformer::is_transformer(path)) return path;
  constexpr std::array names{"config.json", "model.safetensors.index.json", "pytorch_model.bin",
                             "pytorch_model.bin.index.json", "tokenizer.json"};
  const std::string name = path.filename().string();
  const bool is_of_model = std::ranges::find(names, name) != names.end() ||
                           (name.starts_with("model") && name.ends_with(".safetensors"));
  const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
  if (is_of_model && transformer::is_transformer(folder)) return folder;
  return std::nullopt;
}

OpenedWhole open_whole(const std::filesystem::path& path, const std::string& text, std::size_t layer,
                       std::uint64_t keep_at_most, const core::Token& progress) {
  const transformer::ModelRef model = transformer::open_transformer(path, keep_at_most);
  experiment::Experiment wanted;
  wanted.text = text.empty() ? first_text(*model) : text;
  wanted.layer = layer;
  return read_whole(model, wanted, path, progress);
}

OpenedWhole read_whole(const transformer::ModelRef& model, const experiment::Experiment& wanted,
                       const std::filesystem::path& path, const core::Token& progress) {
  transformer::require_layer(*model, wanted.layer);
  OpenedWhole opened;
  opened.model = model;
  core::ThreadPool pool(std::max(1u, std::thread::hardware_concurrency()));
  opened.reading = opened.before = read_at(path, *model, wanted, nullptr, {pool, progress});
  opened.of_pass = opened.layer = experiment::layer_of(*model, *opened.reading, wanted.layer);
  return opened;
}

OpenedWhole open_saved_whole(const std::string& text, const std::filesystem::path& session,
                             core::Elsewhere elsewhere, std::uint64_t keep_at_most,
                             const core::Token& progress) {
  OpenedWhole opened;
  opened.stamp = file_stamp(session);
  const experiment::SavedExperiment saved = experiment::parse_experiment(text, session, elsewhere);
  opened.view = saved.view;
  try {
    opened.model = transformer::open_transformer(saved.model, keep_at_most);
  } catch (const core::Error&) {
    core::formats::throw_without_contents(session.string() + ": whole_model.model: the model ", saved.named,
                                          session.parent_path());
  }
  const transformer::WholeModel& model = *opened.model;
  experiment::require_mark(saved, model, session);
  core::ThreadPool pool(std::max(1u, std::thread::hardware_concurrency()));
  const transformer::Means means{pool, progress};
  experiment::Experiment plain = saved.experiment;
  plain.heads_off.clear();
  opened.reading = opened.before = read_at(session, model, plain, nullptr, means);
  const experiment::Experiment edited =
      named_errors(session, [&] { return experiment::with_saved_edits(saved, model); });
  if (edited.is_edited()) opened.reading = read_at(session, model, edited, opened.reading.get(), means);
  opened.of_pass = opened.layer = experiment::layer_of(model, *opened.reading, edited.layer);
  if (const auto edit = edited.layers.find(edited.layer); edit != edited.layers.end())
    opened.layer = experiment::edited(opened.of_pass, edit->second);
  return opened;
}

}  // namespace app
