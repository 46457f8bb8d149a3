#include "app/session/opening.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/session/journal.hpp"
#include "core/base/error.hpp"
#include "core/files/layers.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/importing/import.hpp"

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

/// Whether there is but one thing to be made of a file: of a checkpoint of several layers one is to be
/// chosen, and of stages those that are to be given, unless all of them are.
bool leaves_no_choice(const OpenedTensors& tensors) {
  if (!tensors.layers.empty()) return tensors.layers.size() == 1;
  std::size_t used = 0;
  for (const auto& layer : tensors.stages)
    if (const auto usual = core::importing::usual_stages(layer); !usual.empty())
      used += core::importing::expected_of_stages(*tensors.file, usual, layer.name).used.size();
  const auto& all = tensors.file->tensors();
  const auto n = static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [](const auto& info) { return info.dtype != formats::Dtype::text; }));
  return used == 0 ? core::importing::usual_embeddings(*tensors.file) != nullptr : used == n;
}

}  // namespace

FoundInFile find_in_file(const std::filesystem::path& path, const core::Token& progress,
                         core::Elsewhere elsewhere) {
  FoundInFile found;
  if (core::importing::is_session(path)) {
    found.stamp = file_stamp(path);
    core::importing::Choices choices;
    choices.elsewhere = elsewhere;
    found.imported = core::importing::import_file(path, choices, progress);
    return found;
  }
  auto file = std::make_shared<const formats::TensorFile>(formats::open_tensors(path, progress));
  OpenedTensors tensors = look_into(std::move(file), progress);
  if (!tensors.has_counting_line && leaves_no_choice(tensors)) {
    try {
      MadeOfTensors made = make_of(tensors, {}, progress);
      found.imported = std::move(made.imported);
      found.source = std::move(made.source);
      return found;
    } catch (const core::Stopped&) {
      throw;
    } catch (const core::Error& error) {
      found.problem = error.what();
    }
  }
  found.tensors = std::move(tensors);
  return found;
}

OpenedTensors look_into(std::shared_ptr<const formats::TensorFile> file, const core::Token& progress) {
  OpenedTensors tensors;
  tensors.layers = checkpoints::find_layers(file->tensors());
  const checkpoints::Config config = checkpoints::config_beside(file->path());
  checkpoints::refuse_quantized(*file, config.quantization);
  for (const checkpoints::Layer& layer : tensors.layers) {
    try {
      tensors.expected.push_back(core::importing::expected_of_layer(*file, layer, config));
    } catch (const core::Error& error) {
      tensors.expected.push_back({{{}, {}, {error.what()}, {}}, {}});  // which is said when it is chosen
    }
  }
  if (const auto* info = core::importing::usual_embeddings(*file)) tensors.embeddings = info->name;
  tensors.has_counting_line = core::formats::has_counting_line(*file, progress);
  if (tensors.layers.empty()) tensors.stages = core::importing::find_stages(*file, progress);
  tensors.file = std::move(file);
  return tensors;
}

MadeOfTensors make_of(const OpenedTensors& tensors, const core::importing::Choices& choices,
                      const core::Token& progress) {
  MadeOfTensors made{core::importing::import_tensors(*tensors.file, choices, progress),
                     {tensors, choices, {}}};
  const auto& left_out = tensors.file->notes();
  made.imported.notes.insert(made.imported.notes.begin(), left_out.begin(), left_out.end());
  made.source.layers = core::importing::layers_in(*tensors.file, choices, progress);
  for (std::size_t k = 0; k < made.source.layers.size(); ++k)
    if (choices.layer == std::to_string(k)) made.source.layer = k;
  return made;
}

TensorRange measure(const formats::TensorFile& file, const std::string& name, const core::Token& progress) {
  const formats::TensorInfo* info = file.find(name);
  std::vector<std::size_t> leading;
  while (
      info && leading.size() < info->shape.size() && info->shape[leading.size()] > 0 &&
      formats::count_of(std::span(info->shape).subspan(leading.size())).value_or(formats::most_numbers + 1) >
          formats::most_numbers)
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
  if (range.n_infinite > 0) text += ", " + std::to_string(range.n_infinite) + " infinite";
  if (range.n_nan > 0) text += ", " + std::to_string(range.n_nan) + " NaN";
  return text;
}

std::string preview_text(const std::filesystem::path& path, const core::Token& progress) {
  if (core::importing::is_session(path)) return "";
  const formats::TensorFile file = formats::open_tensors(path, progress);
  const auto& tensors = file.tensors();
  const auto layers = checkpoints::find_layers(tensors);
  std::string text = std::string(whole_model_at(path) ? "opens as a whole model: " : "") +
                     std::string(file.format()) + " of " + std::to_string(tensors.size()) +
                     (tensors.size() == 1 ? " tensor" : " tensors");
  if (!layers.empty())
    text += ", " + std::to_string(layers.size()) + (layers.size() == 1 ? " layer" : " layers") +
            " of attention (" + layers.front().naming->name + ")";
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

}  // namespace app
