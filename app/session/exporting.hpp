#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/session/command.hpp"
#include "app/session/document.hpp"
#include "core/base/token.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"
#include "core/out/drawing.hpp"
#include "core/out/tables.hpp"

namespace app {

/// A file format that the window can export.
struct ExportFormatInfo {
  ExportFormat form;
  const char* ending;                    ///< of the file: ".csv"
  const char* words;                     ///< on its button: "CSV"
  const char* about;                     ///< its purpose, in one line
  std::span<const ExportScope> choices;  ///< how much of the model it can hold; none when always all
};

/// Returns all formats, in the order of ExportFormat.
std::span<const ExportFormatInfo> export_formats();
const ExportFormatInfo& export_format_info(ExportFormat form);

/// Whether the format is a picture.
bool is_figure(ExportFormat form);

/// Returns the bytes of a figure in a picture format; only a PNG is scaled.
std::string figure_bytes(ExportFormat form, const core::figures::DisplayList& figure, double scale,
                         const core::StopToken& progress = core::StopToken());

/// Returns a matrix as a file with the ending of a path: .csv, .npy, .npz (values, rows, columns), or, as a
/// map of shares from −1 to 1, .svg, .pdf or .png. Throws core::Error, "PATH: expected …", for another
/// ending.
std::string map_bytes(const std::filesystem::path& path, const core::formats::LabeledMatrix& matrix,
                      const std::string& title);

/// Returns the choice, or the one that a format exports instead when it cannot hold it.
ExportScope supported_scope(ExportFormat form, ExportScope what);

/// Returns a choice in words: "Weights, head 0", "Weights, all heads", "every stage".
std::string export_title(const core::attention::Model& model, const ExportAs& what, ExportScope choice);

/// Returns the proposed name of an export, from the document, the stage, the head and the format; for several
/// files that of their folder.
std::string proposed_name(const ExportAs& what);

/// Returns a file name as a part of others: without its ending and characters that file systems refuse.
std::string stem_of(const std::string& title);

/// Returns the files that an export writes. In an existing directory a single file gets its proposed name. A
/// file without an ending gets that of its format, as does one with the ending of another format.
std::vector<std::filesystem::path> output_paths(const core::attention::Model& model, const ExportAs& what);

/// A matrix to copy from, and the selected cell.
struct CopySource {
  core::formats::LabeledMatrix matrix;
  std::string words;  ///< "Weights, head 0"
  std::size_t row = 0, column = 0;
  bool has_cell = false;  ///< else only the whole matrix can be copied
};

/// Returns the matrix of the given cell, else the one under the edit cursor, else that of the pinned or the
/// hovered cell, else the weights of the displayed head.
CopySource copy_source(const ActionContext& context, const std::optional<CellRef>& cell = {});

/// Returns its title, "Weights, head 0", without reading its numbers; and whether it has a selected cell.
std::string copy_title(const ActionContext& context, const std::optional<CellRef>& cell = {});
bool has_selected_cell(const ActionContext& context, const std::optional<CellRef>& cell = {});

/// Returns the number under the edit cursor, else that of the pinned or the hovered cell, to the last bit.
std::optional<std::string> number_to_copy(const ActionContext& context);

/// Returns the text that is copied, with the decimals of the settings.
std::string copy_text(const ActionContext& context, const CopySource& source, CopyChoice choice);

/// Returns the model as a PyTorch program; tries the seed of the initialization dialog as well.
std::string program_of(const core::attention::Model& model, const Forms& forms, const std::string& title);

/// A file to download.
struct OfferedFile {
  std::string name, bytes;
};

/// Returns a file, or the files of a folder as one zip archive. Throws core::Error.
OfferedFile offered_file(const std::filesystem::path& path);

/// Input of an export.
struct ExportInput {
  const core::attention::Model& model;
  const core::attention::Trace* trace;  ///< of the displayed sequence; nullptr if not computed yet
  const View& view;
  std::string title;                                           ///< of the document
  std::vector<std::string> left_out = {};                      ///< unsupported features of its file, in words
  std::shared_ptr<const FullModelState> full_model = nullptr;  ///< that the model is a layer of
  core::transformer::PassRef pass = nullptr;                   ///< over its text, of an attached model
};

/// Writes an export, all of it or nothing, and returns the files.
///
/// Throws core::Error, "PATH: cannot be written: why", and core::Stopped; then nothing has changed.
std::vector<std::filesystem::path> export_as(const ExportInput& exported, const ExportAs& what,
                                             const core::StopToken& progress);

}  // namespace app
