#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/out/tables.hpp"

namespace core::formats {

struct ExportOptions {
  std::vector<std::string> stages = {};  ///< stage names; empty means all stages of the model
  const MatrixFormat* format = &matrix_formats().front();
  bool labels = true;  ///< token and column names, in formats that have them
  const StopToken* progress =
      nullptr;           ///< counts bytes; if canceled, core::Stopped is thrown and nothing is written
  bool archive = false;  ///< all matrices in one .npz file, regardless of format
};

/// Returns the stages with these names, each once; without names, all stages of the model.
///
/// Throws core::Error when a name is unknown or the model lacks the stage.
std::vector<const attention::StageInfo*> select_stages(const attention::Model& model,
                                                       const std::vector<std::string>& names);

/// Returns one stage of a trace with labels: tokens for the rows, tokens or indices from 0 for the columns.
///
/// head is used for per-head stages only; sequence is the one that the trace was computed from.
LabeledMatrix labeled_stage(const attention::Model& model, const attention::Trace& trace,
                            const attention::StageInfo& stage, std::size_t head, std::size_t sequence);

/// Returns "embeddings.csv", or "weights.head0.csv" for a per-head stage.
std::string stage_file_name(const attention::StageInfo& stage, std::size_t head, const MatrixFormat& format);

/// Computes every sequence of a model and writes its stages to DIR/<stage>.csv and DIR/<stage>.head<h>.csv,
/// with more than one sequence to DIR/sequence<s>/. Returns the written files.
///
/// Creates the directory if there is none. Throws core::Error when the model cannot be computed, a stage name
/// is unknown, the model lacks the stage, or a file cannot be written; the directory is then unchanged.
std::vector<std::filesystem::path> export_stages(const attention::Model& model,
                                                 const std::filesystem::path& directory,
                                                 const ExportOptions& options = {});

/// Returns the files that export_stages() writes, relative to its directory, in the order of writing.
std::vector<std::filesystem::path> export_paths(const attention::Model& model, const ExportOptions& options);

/// Writes stages to a file or a directory, and returns the files: an archive to the file `path`, or to
/// attention.npz in the directory; a single matrix to the file, if the path has the format's extension and is
/// no directory, or is open in this process, like /dev/stdout; everything else as export_stages() does.
///
/// Throws core::Error as export_stages() does, or when a single file is given for more than one matrix.
std::vector<std::filesystem::path> export_to(const attention::Model& model, const std::filesystem::path& path,
                                             const ExportOptions& options = {});

/// A matrix of an export, made when it is written, and its file in a directory.
struct ExportFile {
  std::filesystem::path name;
  std::function<LabeledMatrix()> matrix;
};
/// Writes matrices as export_to() does, but no archive.
std::vector<std::filesystem::path> write_files(const std::vector<ExportFile>& files,
                                               const std::filesystem::path& path,
                                               const ExportOptions& options);
/// Writes an archive to the file `path`, or to the file of that name in the directory `path`.
std::vector<std::filesystem::path> write_archive(const std::string& bytes, const std::filesystem::path& path,
                                                 const char* name);

/// Returns all stage names: "embeddings, queries, …".
std::string known_stage_names();

}  // namespace core::formats
