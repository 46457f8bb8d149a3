#include "app/session/opening.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "app/session/navigation.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/session_files.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/model/remote_model.hpp"
#include "core/model/transformer.hpp"
#include "core/system/file.hpp"
#include "core/system/process.hpp"
#include "core/system/socket.hpp"

namespace app {

namespace {

namespace formats = core::formats;
namespace checkpoints = formats::checkpoints;

constexpr std::size_t shown_tensors = 4;
constexpr std::uint64_t quickly_measured = std::uint64_t{1} << 22;  // numbers

std::string short_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

/// Whether only one model can be made from a file: several layers of a checkpoint leave a choice, and so do
/// stages, unless all of them are used.
bool is_unambiguous(const OpenedTensors& tensors) {
  if (!tensors.layers.empty()) return tensors.layers.size() == 1;
  std::size_t used = 0;
  for (const auto& layer : tensors.stages)
    if (const auto usual = core::importing::default_stages(layer); !usual.empty())
      used += core::importing::expected_of_stages(*tensors.file, usual, layer.name).used.size();
  const auto& all = tensors.file->tensors();
  const auto n = static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [](const auto& info) { return info.dtype != formats::Dtype::text; }));
  return used == 0 ? core::importing::guess_embeddings(*tensors.file) != nullptr : used == n;
}

}  // namespace

std::optional<std::filesystem::path> absolute_path(const std::filesystem::path& path) {
  if (core::system::descriptor_from_path(path)) return std::nullopt;
  std::error_code nowhere;
  const std::filesystem::path absolute = std::filesystem::absolute(path, nowhere);
  return nowhere ? path : absolute;
}

Opened open_file(const std::filesystem::path& path, const core::StopToken& progress,
                 core::UntrustedPaths untrusted_paths, formats::DecimalMark mark) {
  Opened found{path};
  if (core::importing::is_session(path)) {
    found.stamp = core::system::file_stamp(path);
    core::importing::Choices choices;
    choices.untrusted_paths = untrusted_paths;
    found.imported = core::importing::import_file(path, choices, progress);
    return found;
  }
  auto file = std::make_shared<const formats::TensorFile>(formats::open_tensors(path, progress, mark));
  OpenedTensors tensors = inspect_tensors(std::move(file), progress);
  if (!tensors.index.any() && is_unambiguous(tensors)) {
    try {
      Opened made = make_model(tensors, {}, progress);
      made.path = path;
      return made;
    } catch (const core::Stopped&) {
      throw;
    } catch (const core::Error& error) {
      found.problem = error.what();
    }
  }
  found.tensors = std::move(tensors);
  return found;
}

OpenedTensors inspect_tensors(std::shared_ptr<const formats::TensorFile> file,
                              const core::StopToken& progress) {
  OpenedTensors tensors{checkpoints::read_checkpoint(file), {}, {}, {}, "", {}};
  for (const checkpoints::Layer& layer : tensors.layers) {
    try {
      tensors.expected.push_back(core::importing::expected_of_layer(tensors, layer));
    } catch (const core::Error& error) {
      tensors.expected.push_back({{{}, {}, {error.what()}, {}}, {}});  // shown when it is chosen
    }
  }
  if (const auto* info = core::importing::guess_embeddings(*file)) tensors.embeddings = info->name;
  tensors.index = core::formats::find_index(*file, progress);
  if (tensors.layers.empty()) tensors.stages = core::importing::find_stages(*file, progress);
  return tensors;
}

Opened make_model(const OpenedTensors& tensors, const core::importing::Choices& choices,
                  const core::StopToken& progress) {
  Opened made{tensors.file->path()};
  made.imported = core::importing::import_tensors(tensors, choices, progress);
  const auto& left_out = tensors.file->notes();
  made.imported->notes.insert(made.imported->notes.begin(), left_out.begin(), left_out.end());
  made.source = TensorSource{tensors, choices, core::importing::layer_names(tensors, choices, progress)};
  for (std::size_t k = 0; k < made.source->layers.size(); ++k)
    if (choices.layer == std::to_string(k)) made.source->layer = k;
  return made;
}

TensorRange measure(const formats::TensorFile& file, const std::string& name,
                    const core::StopToken& progress) {
  const formats::TensorInfo* info = file.find(name);
  std::vector<std::size_t> leading;
  while (
      info && leading.size() < info->shape.size() && info->shape[leading.size()] > 0 &&
      formats::count_of(std::span(info->shape).subspan(leading.size())).value_or(formats::max_numbers + 1) >
          formats::max_numbers)
    leading.push_back(0);
  const formats::Tensor tensor = file.read(name, leading, progress);
  TensorRange range{INFINITY, -INFINITY, 0, 0};
  for (const double number : tensor.numbers) {
    range.n_nan += std::isnan(number);
    range.n_infinite += std::isinf(number);
    if (!std::isfinite(number)) continue;
    range.least = std::min(range.least, number);
    range.greatest = std::max(range.greatest, number);
  }
  return range;
}

std::string range_text(const TensorRange& range) {
  std::string text = range.least > range.greatest
                         ? "no finite number"
                         : short_number(range.least) + " … " + short_number(range.greatest);
  if (range.n_infinite > 0) text += fmt::format(", {} infinite", range.n_infinite);
  if (range.n_nan > 0) text += fmt::format(", {} NaN", range.n_nan);
  return text;
}

std::string preview_text(const std::filesystem::path& path, formats::DecimalMark mark,
                         const core::StopToken& progress) {
  if (core::importing::is_session(path)) return "";
  const formats::TensorFile file = formats::open_tensors(path, progress, mark);
  const auto& tensors = file.tensors();
  const auto layers = checkpoints::find_layers(file);
  std::string text = fmt::format("{}{} of {}{}", full_model_at(path) ? "opens as a whole model: " : "",
                                 file.format(), tensors.size(), tensors.size() == 1 ? " tensor" : " tensors");
  if (!layers.empty())
    text += fmt::format(", {}{} of attention ({})", layers.size(), layers.size() == 1 ? " layer" : " layers",
                        layers.front().naming->name);
  for (std::size_t k = 0; k < std::min(tensors.size(), shown_tensors); ++k)
    text += std::string(k == 0 ? ": " : ", ") + tensors[k].name + " " +
            formats::dtype_name(tensors[k].dtype) + " " + formats::shape_text(tensors[k].shape);
  if (tensors.size() > shown_tensors) text += " …";
  const bool is_quick =
      tensors.size() == 1 && tensors[0].dtype != formats::Dtype::text &&
      formats::count_of(tensors[0].shape).value_or(quickly_measured + 1) <= quickly_measured;
  if (is_quick) text += ", " + range_text(measure(file, tensors[0].name, progress));
  for (const std::string& note : file.notes()) text += (text.ends_with('.') ? " " : ". ") + note;
  return text;
}

namespace {

namespace experiment = core::experiment;
namespace transformer = core::transformer;

/// Returns a text with repeated tokens, so that induction heads have something to attend to.
std::string first_text(const transformer::FullModel& model) {
  if (const auto& mask = model.description().mask_token; mask && !model.description().causal)
    return "The cat sat on the mat, and the " + model.token(*mask).piece + " sat on the cat.";
  if (!model.description().reads_text) {
    std::string ids;
    for (const std::size_t id : {5, 6, 7, 8, 5, 6, 7})
      ids += (ids.empty() ? "" : " ") + std::to_string(id % model.description().sizes.n_vocabulary);
    return ids;
  }
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

ReadingRef read_at(const std::filesystem::path& path, const transformer::FullModel& model,
                   const experiment::Experiment& wanted, const experiment::TextReading* before,
                   const transformer::CallContext& context) {
  return named_errors(path, [&] {
    const auto only_layer =
        model.description().is_attached ? std::optional(wanted.layer) : std::optional<std::size_t>();
    return std::make_shared<const experiment::TextReading>(
        experiment::read(model, wanted, before, context, only_layer));
  });
}

OpenedModel read_first(const transformer::ModelRef& model, const std::filesystem::path& path,
                       const std::string& text, std::size_t layer, const core::StopToken& progress) {
  experiment::Experiment wanted;
  wanted.text = text.empty() ? first_text(*model) : text;
  wanted.layer = layer;
  return read_full_model(model, wanted, path, progress);
}

namespace editing = core::editing;
using core::attention::Model;
using core::text::shape_text;

/// Returns the edit that sets the only sequence to a file's embeddings, one token for each row.
editing::Edit other_tokens(const Model& model, const MatrixFile& file) {
  Model next = editing::apply(model, editing::SetTokenCount{file.numbers.n_rows});
  if (!file.row_names.empty()) next.sequences.front().tokens = file.row_names;
  next.sequences.front().embeddings = file.numbers;
  return editing::ReplaceModel{std::move(next), "embeddings from " + file.path.filename().string()};
}

}  // namespace

std::optional<std::filesystem::path> full_model_at(const std::filesystem::path& path) {
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

transformer::ModelRef open_or_attach(const std::filesystem::path& model, const std::string& token) {
  if (core::system::is_socket_address(model.string()))
    return transformer::attach_model(model.string(), token);
  return transformer::open_transformer(model, core::system::available_memory() / 2);
}

OpenedModel open_full_model(const std::filesystem::path& path, const std::string& text, std::size_t layer,
                            std::uint64_t max_cached_bytes, const core::StopToken& progress) {
  return read_first(transformer::open_transformer(path, max_cached_bytes), path, text, layer, progress);
}

OpenedModel open_attached(const std::string& address, const std::string& token, const std::string& text,
                          std::size_t layer, const core::StopToken& progress) {
  return read_first(transformer::attach_model(address, token), address, text, layer, progress);
}

OpenedModel read_full_model(const transformer::ModelRef& model, const experiment::Experiment& wanted,
                            const std::filesystem::path& path, const core::StopToken& progress) {
  transformer::require_layer(*model, wanted.layer);
  OpenedModel opened;
  opened.model = model;
  core::ThreadPool pool;
  opened.reading = opened.before = read_at(path, *model, wanted.unedited(), nullptr, {pool, progress});
  read_edited(opened, wanted, path, progress);
  return opened;
}

OpenedModel open_saved_full_model(const std::string& text, const std::filesystem::path& session,
                                  core::UntrustedPaths untrusted_paths, std::uint64_t max_cached_bytes,
                                  const core::StopToken& progress) {
  const std::string stamp = core::system::file_stamp(session);
  const experiment::SavedExperiment saved = experiment::parse_experiment(text, session, untrusted_paths);
  transformer::ModelRef model;
  try {
    model = transformer::open_transformer(saved.model, max_cached_bytes);
  } catch (const core::Error&) {
    core::formats::rethrow_redacted(session.string() + ": whole_model.model: the model ", saved.written_path,
                                    session.parent_path());
  }
  experiment::require_same_model(saved, *model, session);
  OpenedModel opened = read_full_model(
      model, named_errors(session, [&] { return experiment::with_saved_edits(saved, *model); }), session,
      progress);
  opened.view = saved.view, opened.stamp = stamp;
  return opened;
}

void read_edited(OpenedModel& opened, const experiment::Experiment& edited, const std::filesystem::path& path,
                 const core::StopToken& progress) {
  core::ThreadPool pool;
  if (edited != edited.unedited())
    opened.reading = read_at(path, *opened.model, edited, opened.reading.get(), {pool, progress});
  opened.unedited = opened.layer = experiment::unedited_layer(*opened.model, *opened.reading, edited.layer);
  if (const auto edit = edited.layers.find(edited.layer); edit != edited.layers.end())
    opened.layer = experiment::edited(opened.unedited, edit->second);
}

namespace fs = std::filesystem;

std::int64_t modified_at(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::file_clock::to_sys(time).time_since_epoch())
      .count();
}

Browser browse(const fs::path& directory, const core::StopToken& progress) {
  std::error_code error;
  Browser browser;
  const fs::path wanted = directory.empty() ? fs::current_path(error) : directory;
  browser.directory = fs::weakly_canonical(wanted, error);
  if (error) browser.directory = wanted;
  if (browser.directory.empty()) browser.directory = "/";
  const core::system::Listing listing = core::system::list_folder(browser.directory);
  for (const fs::path& path : listing.paths) {
    progress.add(1);
    std::error_code sizeless;
    BrowserEntry entry{path.filename().string(), core::system::is_folder(path), 0};
    if (const auto size = fs::file_size(path, sizeless); !entry.is_directory && !sizeless) entry.size = size;
    entry.modified_at = modified_at(path);
    browser.entries.push_back(std::move(entry));
  }
  if (listing.error != 0)
    browser.error = browser.directory.string() + ": " + std::generic_category().message(listing.error);
  std::sort(browser.entries.begin(), browser.entries.end(), [](const BrowserEntry& a, const BrowserEntry& b) {
    return a.is_directory != b.is_directory ? a.is_directory : a.name < b.name;
  });
  return browser;
}

MatrixFile read_matrix_file(const std::filesystem::path& path, const core::StopToken& progress) {
  const core::formats::TensorFile file = core::formats::open_tensors(path, progress);
  if (file.tensors().size() != 1)
    throw core::Error(
        fmt::format("{}: expected one matrix, got {} tensors", path.string(), file.tensors().size()));
  const core::formats::Tensor tensor = file.read(file.tensors().front().name, {}, progress);
  return {path, core::formats::matrix(tensor), tensor.row_labels};
}

editing::Edit edit_from_file(const MatrixFile& file, const Model& model, editing::MatrixRef place) {
  const core::attention::SharedMatrix* old = editing::find_matrix(model, place);
  if (!old) throw core::Error(file.path.string() + ": the model has no matrix that it could fill");
  const bool takes_tokens = place.name == editing::MatrixName::embeddings && model.sequences.size() == 1;
  if (file.numbers.n_cols == old->n_cols()) {
    if (takes_tokens) return other_tokens(model, file);
    if (file.numbers.n_rows == old->n_rows()) return editing::SetBlock{place, 0, 0, file.numbers};
  }
  const std::string expected =
      takes_tokens ? std::to_string(old->n_cols()) + " columns" : shape_text(old->n_rows(), old->n_cols());
  throw core::Error(file.path.string() + ": expected " + expected + " for this matrix, got " +
                    shape_text(file.numbers.n_rows, file.numbers.n_cols));
}

void SideTasks::list(Browser& browser, const std::filesystem::path& directory) {
  browser.directory = directory;
  browser.entries.clear();
  browser.error.clear();
  browser.confirms_overwrite = false;
  browser.is_listing = true;
  listing_.cancel();
  listing_.start([&browser, directory, list = list_](const core::StopToken& progress) -> Jobs::Delivery {
    const auto listed = std::make_shared<Browser>(list(directory, progress));
    return [&browser, listed] {
      browser.directory = std::move(listed->directory);
      browser.entries = std::move(listed->entries);
      browser.error = std::move(listed->error);
      browser.is_listing = false;
    };
  });
}

void SideTasks::preview(const std::filesystem::path& path, formats::DecimalMark mark) {
  stop_preview();
  previewed_ = path;
  preview_.clear();
  previewing_.start([this, path, mark](const core::StopToken& progress) -> Jobs::Delivery {
    std::string text;
    try {
      text = preview_text(path, mark, progress);
    } catch (const core::Stopped&) {
      throw;
    } catch (const core::Error& error) {
      text = error.what();
    }
    return [this, text] { preview_ = text; };
  });
}

void SideTasks::stop_preview() {
  if (previewing_.is_busy()) previewed_.clear();
  previewing_.cancel();
}

void SideTasks::measure(const std::shared_ptr<const core::formats::TensorFile>& file, const std::string& name,
                        const std::function<void(const TensorRange&)>& deliver) {
  measuring_.cancel();
  measuring_.start([file, name, deliver](const core::StopToken& progress) -> Jobs::Delivery {
    return [deliver, range = app::measure(*file, name, progress)] { deliver(range); };
  });
}

Document document_of(const OpenedModel& opened, Origin origin) {
  const core::experiment::Experiment& first = opened.reading->experiment;
  Document document = document_of(opened.layer, std::move(origin));
  document.full_model = std::make_shared<const FullModelState>(FullModelState{
      opened.model, first, first.layer, opened.unedited, opened.reading->pass->computation_id(first.layer)});
  document.saved_experiment = first;
  return document;
}

void show_layers_view(View& view) {
  view.layers.token.reset();
  view.layers.refused.reset();
  view.layers.shows_effects = false;
  view.look.tab = Tab::layers;
  view.look.head = 0;
}

Command command_for_dropped_file(const std::filesystem::path& path, const View& view,
                                 const core::attention::Model& model, bool over_editor) {
  if (view.forms.dialog == Dialog::override_stage || view.forms.dialog == Dialog::open_override)
    return OverrideStageFromFile{view.forms.overridden_stage, path};
  if (view.forms.dialog == Dialog::open_reference) return LoadReference{path};
  if (view.forms.dialog == Dialog::open_tensors) return CheckTensors{path};
  const bool tensors = core::formats::has_tensor_ending(path) || core::system::is_folder(path);
  if (over_editor && tensors && view.forms.dialog == Dialog::none)
    return FillFromFile{edited_place(view.look, model), path};
  if (view.look.tab == Tab::compare && tensors) return CheckTensors{path};
  return OpenPath{path};
}

}  // namespace app
