#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/session/command.hpp"
#include "core/graph/model.hpp"

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

}  // namespace app
