#include "core/out/export.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <memory>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/attend.hpp"
#include "core/out/numpy.hpp"
#include "core/system/file.hpp"

namespace core::formats {
namespace {

using attention::Columns;
using attention::Model;
using attention::StageInfo;
using attention::Trace;

/// Returns the matrices of an export; traces are computed one after the other.
std::vector<ExportFile> files_of(const Model& model, const ExportOptions& options) {
  const std::vector<const StageInfo*> wanted = select_stages(model, options.stages);
  const auto trace = std::make_shared<std::optional<Trace>>();
  std::vector<ExportFile> files;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const std::filesystem::path folder = model.sequences.size() > 1 ? "sequence" + std::to_string(s) : "";
    for (const StageInfo* stage : wanted)
      for (std::size_t head = 0; head < stage->count(model.n_heads); ++head)
        files.push_back({folder / stage_file_name(*stage, head, *options.format), [=, &model] {
                           if (!*trace || (*trace)->sequence != s) *trace = attention::attend(model, s);
                           return labeled_stage(model, **trace, *stage, head, s);
                         }});
  }
  return files;
}

std::vector<std::filesystem::path> write_file(std::filesystem::path file, const std::string& content) {
  std::vector files{std::move(file)};  // first: nothing may throw after the file is written
  system::write_atomically(files.front(), content);
  return files;
}

std::vector<std::filesystem::path> write_to_directory(const std::vector<ExportFile>& files,
                                                      const std::filesystem::path& directory,
                                                      const ExportOptions& options) {
  system::Staging staging(directory);
  for (const auto& [name, matrix] : files) {
    const std::string bytes = options.format->bytes(matrix(), options.labels);
    if (options.progress) options.progress->add(bytes.size());
    staging.add(name, bytes);
  }
  return staging.commit();
}

}  // namespace

std::vector<const StageInfo*> select_stages(const Model& model, const std::vector<std::string>& names) {
  const attention::StageSet existing = existing_stages(model);
  std::vector<const StageInfo*> present;
  for (const StageInfo& stage : attention::stages())
    if (contains(existing, stage.stage)) present.push_back(&stage);
  if (names.empty()) return present;
  std::vector<const StageInfo*> wanted;
  for (const std::string& name : names) {
    const StageInfo* stage = attention::find_stage(name);
    if (!stage) throw Error("stage \"" + name + "\": expected one of " + known_stage_names());
    if (!contains(existing, stage->stage))
      throw Error("stage \"" + name + "\": this model does not have it; it has " +
                  text::joined(present, ", ", &StageInfo::name));
    if (std::find(wanted.begin(), wanted.end(), stage) == wanted.end()) wanted.push_back(stage);
  }
  return wanted;
}

LabeledMatrix labeled_stage(const Model& model, const Trace& trace, const StageInfo& stage, std::size_t head,
                            std::size_t sequence) {
  const arma::mat& numbers = trace.at(stage.stage, head);
  const attention::Sequence& of = model.sequences.at(sequence);
  return {numbers, row_tokens(stage, of),
          stage.columns == Columns::tokens ? of.keys() : attention::numbered_tokens(numbers.n_cols)};
}

std::string stage_file_name(const StageInfo& stage, std::size_t head, const MatrixFormat& format) {
  const std::string place = stage.per_head ? ".head" + std::to_string(head) : "";
  return stage.name + place + "." + format.name;
}

std::vector<std::filesystem::path> write_files(const std::vector<ExportFile>& files,
                                               const std::filesystem::path& path,
                                               const ExportOptions& options) {
  const bool is_file =
      !system::is_folder(path) &&
      (system::descriptor_from_path(path) || path.extension() == std::string(".") + options.format->name);
  if (!is_file) return write_to_directory(files, path, options);
  if (files.size() != 1)
    throw Error(fmt::format("{}: expected a directory for {} matrices; a .{} file holds one", path.string(),
                            files.size(), options.format->name));
  return write_file(path, options.format->bytes(files.front().matrix(), options.labels));
}

std::vector<std::filesystem::path> write_archive(const std::string& bytes, const std::filesystem::path& path,
                                                 const char* name) {
  return write_file(system::is_folder(path) ? path / name : path, bytes);
}

std::vector<std::filesystem::path> export_stages(const Model& model, const std::filesystem::path& directory,
                                                 const ExportOptions& options) {
  return write_to_directory(files_of(model, options), directory, options);
}

std::vector<std::filesystem::path> export_paths(const Model& model, const ExportOptions& options) {
  std::vector<std::filesystem::path> names;
  for (const ExportFile& file : files_of(model, options)) names.push_back(file.name);
  return names;
}

std::vector<std::filesystem::path> export_to(const Model& model, const std::filesystem::path& path,
                                             const ExportOptions& options) {
  return options.archive
             ? write_archive(npz_bytes(model, options.stages, options.progress), path, "attention.npz")
             : write_files(files_of(model, options), path, options);
}

std::string known_stage_names() {
  return text::joined(attention::stages(), ", ", &StageInfo::name);
}

}  // namespace core::formats
