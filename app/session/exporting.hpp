#pragma once

#include <array>
#include <cstdint>
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

/// One row of the table of what the window can export.
struct ExportKind {
  ExportForm form;
  const char* ending;                   ///< of the file: ".csv"
  const char* words;                    ///< on its button: "CSV"
  const char* about;                    ///< one line: who reads it
  std::span<const ExportWhat> choices;  ///< how much of the model it can hold; none when always all
};

/// All forms, in the order of ExportForm.
std::span<const ExportKind> export_kinds();
const ExportKind& export_kind(ExportForm form);

/// Whether it is a picture and no numbers.
bool is_figure(ExportForm form);

/// The bytes of a figure in the form of a picture; the scale is that of a PNG.
std::string figure_bytes(ExportForm form, const core::figures::DisplayList& figure, double scale);

/// What is really exported when a form cannot hold what was chosen.
ExportWhat held_by(ExportForm form, ExportWhat what);

/// "Weights, head 0", "Weights, all heads", "every stage": a choice in words.
std::string words_of(const core::attention::Model& model, const ExportAs& what, ExportWhat choice);

/// The name that is proposed for an export: after the document, the stage, the head and the form; of many
/// files that of their folder.
std::string proposed_name(const ExportAs& what);

/// A file's name as it stands in others: without its ending and without signs that file systems refuse.
std::string stem_of(const std::string& title);

/// The files that an export writes; when its path is a directory that exists, those that are one file go into
/// it under a name of their own. A file without an ending gets that of its form, as does one that has the
/// ending of another form.
std::vector<std::filesystem::path> planned_files(const core::attention::Model& model, const ExportAs& what);

/// A matrix of which something is to be copied, and the cell that is meant.
struct CopySource {
  core::formats::LabelledMatrix matrix;
  std::string words;  ///< "Weights, head 0"
  std::size_t row = 0, column = 0;
  bool has_cell = false;  ///< else only the whole matrix can be meant
};

/// The matrix under the edit cursor, else that of the given, the pinned or the hovered cell, else the weights
/// of the shown head.
CopySource copy_source(const Situation& situation, const std::optional<CellRef>& cell = {});

/// What that is in words, "Weights, head 0", without a look at its numbers; and whether a cell is meant.
std::string copied_words(const Situation& situation, const std::optional<CellRef>& cell = {});
bool names_a_cell(const Situation& situation, const std::optional<CellRef>& cell = {});

/// The number under the edit cursor, else that of the pinned or the hovered cell, to the last bit.
std::optional<std::string> copied_number(const Situation& situation);

/// What of it is copied in a form, with the decimals of the view.
std::string copied_as(const Situation& situation, const CopySource& source, CopyChoice choice);

/// The whole model as a PyTorch program; the seed of the view's form of draws is tried as well.
std::string program_of(const core::attention::Model& model, const Forms& forms, const std::string& title);

/// What an export is made of.
struct Exported {
  const core::attention::Model& model;
  const core::attention::Trace* trace;  ///< of the shown sequence; nullptr where it is still to be computed
  const View& view;
  std::string title;                       ///< of the document
  std::vector<std::string> left_out = {};  ///< what its file does and it does not, in words
};

/// Writes what is asked for, all of it or nothing, and gives the files.
///
/// Throws core::Error, "PATH: cannot be written: why", and core::Stopped; then everything is as it was.
std::vector<std::filesystem::path> export_as(const Exported& exported, const ExportAs& what,
                                             const core::Token& progress);

}  // namespace app
