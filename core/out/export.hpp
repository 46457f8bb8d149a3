#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/out/tables.hpp"

namespace core::formats {

struct ExportOptions {
  std::vector<std::string> stages = {};  ///< names of the table of stages; none means all that the model has
  const MatrixFormat* format = &matrix_formats().front();
  bool labels = true;  ///< token and column names, in formats that have them
  const Token* progress =
      nullptr;           ///< counts the bytes; once cancelled, core::Stopped is thrown and nothing is written
  bool archive = false;  ///< all matrices in one .npz file, whatever the format is
};

/// The rows of the table of stages that the names ask for, each once; all that the model has when there are
/// none.
///
/// Throws core::Error when a name is not that of a stage or the model lacks the stage.
std::vector<const attention::StageInfo*> wanted_stages(const attention::Model& model,
                                                       const std::vector<std::string>& names);

/// One stage of a trace with its labels: tokens for the rows, tokens or indices from 0 for the columns.
///
/// head counts only for a stage a head; sequence is the one that the trace was computed from.
LabelledMatrix labelled_stage(const attention::Model& model, const attention::Trace& trace,
                              const attention::StageInfo& stage, std::size_t head, std::size_t sequence);

/// "embeddings.csv", or "weights.head0.csv" for a stage a head.
std::string stage_file_name(const attention::StageInfo& stage, std::size_t head, const MatrixFormat& format);

/// Computes every sequence of a model and writes its stages to DIR/<stage>.csv and DIR/<stage>.head<h>.csv,
/// with more than one sequence to DIR/sequence<s>/. Gives the files that it wrote.
///
/// The directory is made when there is none. Throws core::Error when the model cannot be computed, a name is
/// not that of a stage, the model lacks the stage, or something cannot be written; then the directory is as
/// it was.
std::vector<std::filesystem::path> export_stages(const attention::Model& model,
                                                 const std::filesystem::path& directory,
                                                 const ExportOptions& options = {});

/// The files that export_stages() writes, relative to its directory, in the order in which it writes them.
std::vector<std::filesystem::path> export_names(const attention::Model& model, const ExportOptions& options);

/// Writes what is wanted to where it suits, and gives the files: an archive to the file of that path, or to
/// attention.npz in the directory; a single matrix to the file, when the path ends in the format's name and
/// is no directory, or is what this process has open, as /dev/stdout; everything else as export_stages()
/// does.
///
/// Throws core::Error as export_stages() does, or when a file is named for more than one matrix.
std::vector<std::filesystem::path> export_to(const attention::Model& model, const std::filesystem::path& path,
                                             const ExportOptions& options = {});

/// "embeddings, queries, …": the names that a stage can be asked for by.
std::string known_stage_names();

}  // namespace core::formats
