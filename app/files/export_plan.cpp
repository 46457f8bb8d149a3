#include "app/files/export_plan.hpp"

#include "core/formats/writers/export.hpp"

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
    ExportKind{ExportForm::session, ".json", "session", "the model, to open it again", {}},
    ExportKind{
        ExportForm::program, ".py", "PyTorch", "a program that builds the model and prints every stage", {}},
};

/// The name of a file that has not been given one.
std::string own_name(const ExportAs& e, ExportWhat what) {
  const auto& stage_info = core::attention::info(e.matrix.stage);
  const ExportKind& kind = export_kind(e.form);
  if (kind.choices.empty() || what == everything) return std::string("attention") + kind.ending;
  const bool of_head = what == matrix && stage_info.per_head;
  return stage_info.name + (of_head ? ".head" + std::to_string(e.matrix.head) : "") + kind.ending;
}

bool is_many_files(const ExportAs& e, ExportWhat what) {
  return (e.form == ExportForm::csv || e.form == ExportForm::npy) && what != matrix;
}

}  // namespace

std::span<const ExportKind> export_kinds() {
  return table;
}

const ExportKind& export_kind(ExportForm form) {
  return table[static_cast<std::size_t>(form)];
}

ExportWhat held_by(ExportForm form, ExportWhat what) {
  const auto& choices = export_kind(form).choices;
  return choices.empty() ? everything : form == ExportForm::npz && what == matrix ? stage : what;
}

std::string words_of(const core::attention::Model& model, const ExportAs& e, ExportWhat choice) {
  const auto& info = core::attention::info(e.matrix.stage);
  const bool figure = e.form == ExportForm::svg || e.form == ExportForm::png;
  if (choice == everything) return figure ? "all stages" : "every stage";
  if (!info.per_head || model.n_heads == 1) return info.title;
  return std::string(info.title) +
         (choice == matrix ? ", head " + std::to_string(e.matrix.head) : ", all heads");
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
  fs::path file = fs::is_directory(e.path, ignored) ? e.path / own_name(e, what) : e.path;
  if (!file.has_extension()) file += export_kind(e.form).ending;
  return {file};
}

}  // namespace app
