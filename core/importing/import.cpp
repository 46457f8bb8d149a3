#include "core/importing/import.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/files/quantised.hpp"
#include "core/files/session.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/limits.hpp"
#include "core/importing/import_parts.hpp"
#include "core/importing/stages_in.hpp"

namespace core::importing {
namespace {

using formats::TensorFile;
namespace checkpoints = formats::checkpoints;

}  // namespace

bool is_session(const std::filesystem::path& path) {
  if (formats::is_index_of_tensors(path)) return false;
  const std::string begin = formats::read_begin(path, 4096);
  const std::size_t first = begin.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  // A binary file may begin so by chance, as its length is written, but no text has a zero.
  if (begin.find('\0') != begin.npos) return false;
  const char character = first == begin.npos ? '\0' : begin[first];
  // One that is called JSON and is none is a session gone wrong, not a table.
  return character == '{' || (path.extension() == ".json" && character != '[');
}

Imported import_tensors(const TensorFile& file, const Choices& choices, const core::Token& progress) {
  if (choices.first_line_is_names == true) {
    Choices rest = choices;
    rest.first_line_is_names = false;
    return import_tensors(with_first_line_as_names(file, progress), rest, progress);
  }
  checkpoints::refuse_quantised(file, checkpoints::config_beside(file.path()));
  const auto layers = checkpoints::find_layers(file.tensors());
  if (choices.mapping || (!layers.empty() && choices.stages.empty()))
    return import_checkpoint(file, layers, choices, progress);
  if (!choices.embeddings_tensor.empty()) return import_embeddings(file, choices, progress);
  const auto found = find_stages(file, progress);
  const bool has_stages = !choices.stages.empty() || std::ranges::any_of(found, [](const StageLayer& layer) {
    return !usual_stages(layer).empty();
  });
  if (!has_stages) return import_embeddings(file, choices, progress);
  Imported result = import_stages(file, found, choices, progress);
  attention::require_within_limits(result.model, file.place());
  return result;
}

std::vector<std::string> layers_in(const TensorFile& file, const Choices& choices,
                                   const core::Token& progress) {
  std::vector<std::string> names;
  if (choices.mapping) return names;
  const auto layers = checkpoints::find_layers(file.tensors());
  if (!layers.empty() && choices.stages.empty()) {
    for (const auto& layer : layers) names.push_back(layer.prefix);
    return names;
  }
  if (!choices.embeddings_tensor.empty()) return names;
  const auto found = choices.stages.empty() ? find_stages(file, progress) : std::vector<StageLayer>();
  if (found.size() > 1) {
    for (const StageLayer& layer : found) names.push_back(layer.name);
    return names;
  }
  const auto stages = found.empty() ? choices.stages : usual_stages(found.front());
  const bool is_batch = counts_sequences(file, stages, found.empty() ? "" : found.front().name, choices);
  const std::size_t n = layers_within(file, stages, is_batch);
  for (std::size_t k = 0; k < n; ++k) names.push_back("");
  return names;
}

Imported import_file(const std::filesystem::path& path, const Choices& choices, const core::Token& progress) {
  if (is_session(path)) {
    if (choices.says_something())
      throw Error(path.string() + ": it is a session, of which nothing is to be chosen");
    formats::Session session = formats::load_session(path, choices.elsewhere);
    Imported imported{std::move(session.model), {}, std::move(session.view), {}};
    for (std::string& words : session.left_out) imported.account.left_out.push_back({"", std::move(words)});
    return imported;
  }
  const TensorFile file = formats::open_tensors(path, progress);
  Imported result = import_tensors(file, choices, progress);
  result.notes.insert(result.notes.begin(), file.notes().begin(), file.notes().end());
  return result;
}

}  // namespace core::importing
