#include "app/session/export_plan.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/out/export.hpp"

namespace app {
namespace {

namespace fs = std::filesystem;
using enum ExportWhat;

constexpr std::array any{matrix, stage, everything};
constexpr std::array arrays{stage, everything};

constexpr std::array table{
    ExportKind{ExportForm::csv, ".csv", "CSV", "for spreadsheets, NumPy and pandas, with tokens", any},
    ExportKind{ExportForm::npy, ".npy", "npy", "numpy.load gives one array of float64 a file", any},
    ExportKind{ExportForm::npz, ".npz", "npz", "numpy.load gives every array by the name of its stage",
               arrays},
    ExportKind{ExportForm::svg, ".svg", "SVG", "a figure that stays sharp, with words that can be selected",
               any},
    ExportKind{ExportForm::png, ".png", "PNG", "the same figure in pixels", any},
    ExportKind{ExportForm::pdf, ".pdf", "PDF",
               "the same figure for printing and for slides, sharp at any size", any},
    ExportKind{ExportForm::session, ".json", "session", "the model, to open it again", {}},
    ExportKind{
        ExportForm::program, ".py", "PyTorch", "a program that builds the model and prints every stage", {}},
};

bool is_many_files(const ExportAs& e, ExportWhat what) {
  return (e.form == ExportForm::csv || e.form == ExportForm::npy) && what != matrix;
}

/// Whether a file has the ending of a form, "" being none.
bool has_ending_of_a_form(const fs::path& file) {
  return std::ranges::any_of(table, [&](const ExportKind& kind) { return file.extension() == kind.ending; });
}

/// A character that may stand in a name on every file system, and in a shell without quotes.
bool is_plain(char c) {
  const char l = core::text::lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

std::span<const ExportKind> export_kinds() {
  return table;
}

const ExportKind& export_kind(ExportForm form) {
  return table[static_cast<std::size_t>(form)];
}

bool is_figure(ExportForm form) {
  return form == ExportForm::svg || form == ExportForm::png || form == ExportForm::pdf;
}

ExportWhat held_by(ExportForm form, ExportWhat what) {
  const auto& choices = export_kind(form).choices;
  return choices.empty() ? everything : form == ExportForm::npz && what == matrix ? stage : what;
}

std::string words_of(const core::attention::Model& model, const ExportAs& e, ExportWhat choice) {
  const auto& info = core::attention::info(e.matrix.stage);
  const bool figure = is_figure(e.form);
  if (choice == everything) return figure ? "all stages" : "every stage";
  if (!info.per_head || model.n_heads == 1) return info.title;
  return std::string(info.title) +
         (choice == matrix ? ", head " + std::to_string(e.matrix.head) : ", all heads");
}

std::string stem_of(const std::string& title) {
  std::string stem;
  for (const char c : fs::path(title).stem().string())
    if (is_plain(c))
      stem += c;
    else if (!stem.empty() && stem.back() != '-')
      stem += '-';
  while (stem.ends_with('-') || stem.ends_with('.')) stem.pop_back();
  while (stem.starts_with('.')) stem.erase(0, 1);
  return stem.empty() ? "attention" : stem;
}

std::string proposed_name(const ExportAs& e) {
  const ExportWhat what = held_by(e.form, e.what);
  const auto& stage_info = core::attention::info(e.matrix.stage);
  const ExportKind& kind = export_kind(e.form);
  std::string name = stem_of(e.document);
  if (!kind.choices.empty() && what != everything) {
    name += std::string(".") + stage_info.name;
    if (what == matrix && stage_info.per_head) name += ".head" + std::to_string(e.matrix.head);
  }
  return name + (is_many_files(e, what) ? "" : kind.ending);
}

std::vector<fs::path> planned_files(const core::attention::Model& model, const ExportAs& e) {
  const ExportWhat what = held_by(e.form, e.what);
  if (is_many_files(e, what)) {
    core::formats::ExportOptions options;
    options.format = core::formats::find_matrix_format(e.form == ExportForm::npy ? "npy" : "csv");
    if (what == stage) options.stages = {core::attention::info(e.matrix.stage).name};
    std::vector<fs::path> files = core::formats::export_names(model, options);
    for (fs::path& file : files) file = e.path / file;
    return files;
  }
  std::error_code ignored;
  fs::path file = fs::is_directory(e.path, ignored) ? e.path / proposed_name(e) : e.path;
  const char* ending = export_kind(e.form).ending;
  if (file.extension() != ending && has_ending_of_a_form(file)) file.replace_extension();
  if (!file.has_extension()) file += ending;
  return {file};
}

}  // namespace app
