#include "core/formats/writers/export.hpp"

#include <algorithm>

#include "core/attention/attend.hpp"
#include "core/error.hpp"
#include "core/formats/files/file.hpp"
#include "core/formats/files/staging.hpp"
#include "core/formats/writers/npz_writer.hpp"
#include "core/text/words.hpp"

namespace core::formats {
namespace {

using attention::Columns;
using attention::Model;
using attention::StageInfo;
using attention::Trace;

std::vector<const StageInfo*> present_stages(const Model& model) {
  std::vector<const StageInfo*> list;
  for (const StageInfo& stage : attention::stages())
    if (stage.present(model)) list.push_back(&stage);
  return list;
}

/// Where the files of a sequence stand; the only one needs no folder.
std::filesystem::path folder_of(const Model& model, std::size_t sequence) {
  return model.sequences.size() > 1 ? "sequence" + std::to_string(sequence) : "";
}

/// The only matrix of an export that names a file.
std::string single_matrix(const Model& model, const std::filesystem::path& path,
                          const ExportOptions& options) {
  const std::vector<const StageInfo*> wanted = wanted_stages(model, options.stages);
  std::size_t matrices = 0;
  for (const StageInfo* stage : wanted)
    matrices += model.sequences.size() * (stage->per_head ? model.n_heads : 1);
  if (matrices != 1)
    throw Error(path.string() + ": expected a directory for " + std::to_string(matrices) + " matrices; a ." +
                options.format->name + " file holds one");
  const Trace trace = attention::attend(model, 0);
  return options.format->bytes(labelled_stage(model, trace, *wanted.front(), 0, 0), options.labels);
}

}  // namespace

std::vector<const StageInfo*> wanted_stages(const Model& model, const std::vector<std::string>& names) {
  const std::vector<const StageInfo*> present = present_stages(model);
  if (names.empty()) return present;
  std::vector<const StageInfo*> wanted;
  for (const std::string& name : names) {
    const StageInfo* stage = attention::find_stage(name);
    if (!stage) throw Error("stage \"" + name + "\": expected one of " + known_stage_names());
    if (!stage->present(model))
      throw Error("stage \"" + name + "\": this model does not have it; it has " +
                  text::joined(present, ", ", &StageInfo::name));
    if (std::find(wanted.begin(), wanted.end(), stage) == wanted.end()) wanted.push_back(stage);
  }
  return wanted;
}

LabelledMatrix labelled_stage(const Model& model, const Trace& trace, const StageInfo& stage,
                              std::size_t head, std::size_t sequence) {
  const arma::mat& numbers = stage.matrix(trace, head);
  const attention::Sequence& of = model.sequences.at(sequence);
  return {numbers, row_tokens(stage, of),
          stage.columns == Columns::tokens ? of.keys() : attention::numbered_tokens(numbers.n_cols)};
}

std::string stage_file_name(const StageInfo& stage, std::size_t head, const MatrixFormat& format) {
  const std::string place = stage.per_head ? ".head" + std::to_string(head) : "";
  return stage.name + place + "." + format.name;
}

std::vector<std::filesystem::path> export_stages(const Model& model, const std::filesystem::path& directory,
                                                 const ExportOptions& options) {
  const std::vector<const StageInfo*> wanted = wanted_stages(model, options.stages);
  Staging staging(directory);
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const Trace trace = attention::attend(model, s);
    const std::filesystem::path folder = folder_of(model, s);
    for (const StageInfo* stage : wanted)
      for (std::size_t head = 0; head < (stage->per_head ? model.n_heads : 1); ++head) {
        const std::string bytes =
            options.format->bytes(labelled_stage(model, trace, *stage, head, s), options.labels);
        if (options.progress) options.progress->add(bytes.size());
        staging.add(folder / stage_file_name(*stage, head, *options.format), bytes);
      }
  }
  return staging.keep();
}

std::vector<std::filesystem::path> export_names(const Model& model, const ExportOptions& options) {
  const std::vector<const StageInfo*> wanted = wanted_stages(model, options.stages);
  std::vector<std::filesystem::path> names;
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    for (const StageInfo* stage : wanted)
      for (std::size_t head = 0; head < (stage->per_head ? model.n_heads : 1); ++head)
        names.push_back(folder_of(model, s) / stage_file_name(*stage, head, *options.format));
  return names;
}

std::vector<std::filesystem::path> export_to(const Model& model, const std::filesystem::path& path,
                                             const ExportOptions& options) {
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  const auto write = [](std::filesystem::path file, const std::string& content) {
    write_atomically(file, content);
    return std::vector{std::move(file)};
  };
  if (options.archive)
    return write(is_directory ? path / "attention.npz" : path,
                 npz_bytes(model, options.stages, options.progress));
  if (!is_directory && path.extension() == std::string(".") + options.format->name)
    return write(path, single_matrix(model, path, options));
  return export_stages(model, path, options);
}

std::string known_stage_names() {
  std::vector<const StageInfo*> list;
  for (const StageInfo& stage : attention::stages()) list.push_back(&stage);
  return text::joined(list, ", ", &StageInfo::name);
}

}  // namespace core::formats
