#include "app/session/exporting.hpp"

#include <algorithm>

#include "app/session/navigation.hpp"
#include "app/session/picture_source.hpp"
#include "app/session/remembered.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/editing/edit.hpp"
#include "core/engine/engine.hpp"
#include "core/files/session.hpp"
#include "core/out/experiment_program.hpp"
#include "core/out/export.hpp"
#include "core/out/numpy.hpp"
#include "core/out/program.hpp"
#include "core/system/file.hpp"

namespace app {

namespace {

namespace fs = std::filesystem;
using enum ExportScope;

constexpr std::array any{matrix, stage, everything};
constexpr std::array arrays{stage, everything};

constexpr std::array table{
    ExportFormatInfo{ExportFormat::csv, ".csv", "CSV", "for spreadsheets, NumPy and pandas, with tokens",
                     any},
    ExportFormatInfo{ExportFormat::npy, ".npy", "npy", "numpy.load gives one array of float64 a file", any},
    ExportFormatInfo{ExportFormat::npz, ".npz", "npz",
                     "numpy.load gives every array by the name of its stage", arrays},
    ExportFormatInfo{ExportFormat::svg, ".svg", "SVG",
                     "a figure that stays sharp, with words that can be selected", any},
    ExportFormatInfo{ExportFormat::png, ".png", "PNG", "the same figure in pixels", any},
    ExportFormatInfo{ExportFormat::pdf, ".pdf", "PDF",
                     "the same figure for printing and for slides, sharp at any size", any},
    ExportFormatInfo{ExportFormat::session, ".json", "session", "the model, to open it again", {}},
    ExportFormatInfo{ExportFormat::program,
                     ".py",
                     "PyTorch",
                     "a program that builds the model and prints every stage",
                     {}},
    ExportFormatInfo{ExportFormat::experiment,
                     ".py",
                     "experiment",
                     "a Python program that repeats the edits of the whole model and prints the next tokens",
                     {}},
};

/// Returns the format of a table, which holds one matrix; nullptr for other forms.
const core::formats::MatrixFormat* table_format(ExportFormat form) {
  return core::formats::find_matrix_format(export_format_info(form).ending + 1);
}

/// Returns the options of an export to a folder of tables; nothing for a single file.
std::optional<core::formats::ExportOptions> folder_options(const ExportAs& e) {
  const ExportScope what = supported_scope(e.form, e.what);
  if (!table_format(e.form) || what == matrix) return std::nullopt;
  core::formats::ExportOptions options;
  options.format = table_format(e.form);
  if (what == stage) options.stages = {core::attention::info(e.matrix.stage).name};
  return options;
}

/// Whether a file has the ending of any format; "" is none.
bool has_known_extension(const fs::path& file) {
  return std::ranges::any_of(table,
                             [&](const ExportFormatInfo& kind) { return file.extension() == kind.ending; });
}

/// Whether a character is allowed in names on every file system, and in a shell without quotes.
bool is_plain(char c) {
  const char l = core::text::lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

std::span<const ExportFormatInfo> export_formats() {
  return table;
}

const ExportFormatInfo& export_format_info(ExportFormat form) {
  return table[static_cast<std::size_t>(form)];
}

bool is_figure(ExportFormat form) {
  return form == ExportFormat::svg || form == ExportFormat::png || form == ExportFormat::pdf;
}

std::string figure_bytes(ExportFormat form, const core::figures::DisplayList& figure, double scale,
                         const core::StopToken& progress) {
  if (form == ExportFormat::svg) return core::figures::render_svg(figure);
  return form == ExportFormat::pdf ? core::figures::render_pdf(figure)
                                   : core::figures::render_png(figure, scale, progress);
}

std::string map_bytes(const fs::path& path, const core::formats::LabeledMatrix& matrix,
                      const std::string& title) {
  const std::string ending = path.extension().string();
  if (ending == ".npz")
    return core::formats::zip_bytes(
        {{"values.npy", [&] { return core::formats::npy_bytes(matrix.numbers); }},
         {"rows.npy",
          [&] { return core::formats::npy_strings(matrix.row_labels, {matrix.row_labels.size()}); }},
         {"columns.npy",
          [&] { return core::formats::npy_strings(matrix.column_labels, {matrix.column_labels.size()}); }}});
  if (const auto* format = core::formats::find_matrix_format(ending.substr(ending.empty() ? 0 : 1)))
    return format->bytes(matrix, true);
  for (const ExportFormatInfo& kind : table)
    if (ending == kind.ending && is_figure(kind.form))
      return figure_bytes(kind.form, core::figures::figure(matrix, title), 2);
  throw core::Error(path.string() + ": expected a name that ends with .csv, .npy, .npz, .svg, .pdf or .png");
}

ExportScope supported_scope(ExportFormat form, ExportScope what) {
  const auto& choices = export_format_info(form).choices;
  return choices.empty() ? everything : form == ExportFormat::npz && what == matrix ? stage : what;
}

std::string export_title(const core::attention::Model& model, const ExportAs& e, ExportScope choice) {
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
  const ExportScope what = supported_scope(e.form, e.what);
  const auto& stage_info = core::attention::info(e.matrix.stage);
  const ExportFormatInfo& kind = export_format_info(e.form);
  std::string name = stem_of(e.document) + (e.form == ExportFormat::experiment ? "-experiment" : "");
  if (!kind.choices.empty() && what != everything) {
    name += std::string(".") + stage_info.name;
    if (what == matrix && stage_info.per_head) name += ".head" + std::to_string(e.matrix.head);
  }
  return name + (folder_options(e) ? "" : kind.ending);
}

std::vector<fs::path> output_paths(const core::attention::Model& model, const ExportAs& e) {
  if (const auto options = folder_options(e)) {
    std::vector<fs::path> files = core::formats::export_paths(model, *options);
    for (fs::path& file : files) file = e.path / file;
    return files;
  }
  fs::path file = core::system::is_folder(e.path) ? e.path / proposed_name(e) : e.path;
  const char* ending = export_format_info(e.form).ending;
  if (file.extension() != ending && has_known_extension(file)) file.replace_extension();
  if (!file.has_extension()) file += ending;
  return {file};
}

namespace {

using core::formats::CopyScope;

constexpr const char* edited_words = "the edited matrix";

CopySource edited_matrix(const ActionContext& s, const core::attention::SharedMatrix& edited) {
  const core::attention::Model& model = s.pending.model;
  const Look& look = s.pending.look;
  const Selection& selection = s.pending.selection;
  using core::editing::MatrixName;
  const auto& sequence = model.sequences[look.sequence];
  const auto rows = look.edited.name == MatrixName::embeddings ? sequence.tokens
                    : look.edited.name == MatrixName::key_embeddings
                        ? sequence.keys()
                        : core::attention::numbered_tokens(edited->n_rows);
  return {{*edited, rows, core::attention::numbered_tokens(edited->n_cols)},
          edited_words,
          selection.cursor->row,
          selection.cursor->column,
          true};
}

/// Returns the matrix under the edit cursor, unless a cell is given; or nullptr.
const core::attention::SharedMatrix* matrix_at_cursor(const ActionContext& s,
                                                      const std::optional<CellRef>& cell) {
  const core::attention::Model& model = s.pending.model;
  const Look& look = s.pending.look;
  const Selection& selection = s.pending.selection;
  if (!selection.cursor || cell) return nullptr;
  return core::editing::find_matrix(model, edited_place(look, model));
}

/// Whether the cell exists, as a menu may be open while the model changes.
bool is_there(const ActionContext& s, const CellRef& cell) {
  const auto& stage = core::attention::info(cell.stage);
  if (!s.displayed.has(stage.stage) || (stage.per_head && cell.head >= s.displayed.trace.n_heads()))
    return false;
  const core::attention::StageMatrix& numbers = s.displayed.trace.at(stage.stage, cell.head);
  return cell.row < numbers.n_rows() && cell.column < numbers.n_cols();
}

/// Returns the given, the pinned or the hovered cell, if it exists.
std::optional<CellRef> meant_cell(const ActionContext& s, const std::optional<CellRef>& cell) {
  const std::optional<CellRef> meant = cell                           ? cell
                                       : s.displayed.selection.pinned ? s.displayed.selection.pinned
                                                                      : s.displayed.selection.hovered;
  return meant && is_there(s, *meant) ? meant : std::nullopt;
}

std::string stage_words(const CellRef& from) {
  const auto& stage = core::attention::info(from.stage);
  return stage.title + (stage.per_head ? ", head " + std::to_string(from.head) : "");
}

CellRef source_cell(const ActionContext& s, const std::optional<CellRef>& meant) {
  return meant.value_or(CellRef{Stage::weights, s.displayed.look.head, 0, 0});
}

}  // namespace

std::string copy_title(const ActionContext& s, const std::optional<CellRef>& cell) {
  return matrix_at_cursor(s, cell) ? edited_words : stage_words(source_cell(s, meant_cell(s, cell)));
}

bool has_selected_cell(const ActionContext& s, const std::optional<CellRef>& cell) {
  return matrix_at_cursor(s, cell) || meant_cell(s, cell);
}

CopySource copy_source(const ActionContext& s, const std::optional<CellRef>& cell) {
  if (const auto* edited = matrix_at_cursor(s, cell)) return edited_matrix(s, *edited);
  const auto meant = meant_cell(s, cell);
  const CellRef from = source_cell(s, meant);
  return {
      core::formats::labeled_stage(s.displayed.model, s.displayed.trace, core::attention::info(from.stage),
                                   from.head, s.displayed.look.sequence),
      stage_words(from), from.row, from.column, meant.has_value()};
}

std::optional<std::string> number_to_copy(const ActionContext& s) {
  if (const auto* edited = matrix_at_cursor(s, {})) {
    const auto& cursor = *s.pending.selection.cursor;
    if (cursor.row < (*edited)->n_rows && cursor.column < (*edited)->n_cols)
      return core::text::number_text((**edited)(cursor.row, cursor.column));
  }
  const auto cell = meant_cell(s, {});
  if (!cell) return std::nullopt;
  const auto& numbers = s.displayed.trace.at(cell->stage, cell->head);
  return core::text::number_text(numbers(cell->row, cell->column));
}

std::string copy_text(const ActionContext& s, const CopySource& source, CopyChoice choice) {
  const CopyScope scope = source.has_cell ? choice.scope : CopyScope::matrix;
  return core::formats::copy_formats()
      .at(choice.form)
      .text(source.matrix, {scope, source.row, source.column}, s.settings.copy_decimals);
}

std::string program_of(const core::attention::Model& model, const Forms& forms, const std::string& title) {
  std::vector<std::uint64_t> seeds = core::editing::usual_seeds();
  seeds.push_back(forms.draw.draw.seed);
  return core::formats::program_text(model, title, seeds);
}

namespace {

namespace formats = core::formats;

core::figures::DisplayList figure(const ExportInput& x, const ExportAs& e) {
  core::figures::FigureOptions options;
  const bool everything = e.what == ExportScope::everything;
  options.stage = everything ? std::nullopt : std::optional(e.matrix.stage);
  options.head = e.what == ExportScope::stage ? std::nullopt : std::optional(e.matrix.head);
  if (everything) options.head = x.view.look.head;
  options.sequence = x.view.look.sequence;
  options.dark = x.view.settings.export_dark, options.numbers = x.view.settings.export_numbers;
  const GradientLook& look = x.view.look.gradient;
  if (look.of && look.maps != GradientMaps::values)
    options.gradient =
        core::graph::gradients(core::graph::attention(x.model), x.model, options.sequence, *look.of).stages;
  return colored_figure(x.model, *x.trace, options, x.view.look.colors);
}

/// Returns the bytes of an export that is one file.
std::string bytes_of(const ExportInput& x, const ExportAs& e, const core::StopToken& progress) {
  const core::attention::StageInfo& stage = core::attention::info(e.matrix.stage);
  switch (e.form) {
    case ExportFormat::csv:
    case ExportFormat::npy:
      return table_format(e.form)->bytes(
          formats::labeled_stage(x.model, *x.trace, stage, e.matrix.head, x.view.look.sequence), true);
    case ExportFormat::npz:
      return formats::npz_bytes(x.model,
                                e.what == ExportScope::everything ? std::vector<std::string>{}
                                                                  : std::vector<std::string>{stage.name},
                                &progress);
    case ExportFormat::svg:
    case ExportFormat::png:
    case ExportFormat::pdf:
      return figure_bytes(e.form, figure(x, e), x.view.settings.export_scale, progress);
    case ExportFormat::session:
      return formats::session_text({x.model, view_text(x.view), x.left_out});
    case ExportFormat::experiment:
      if (!x.full_model) throw core::Error("An experiment is of a whole model, and none is open.");
      return formats::experiment_program_text(
          *x.full_model->model, x.full_model->experiment,
          {e.transformer_lens ? formats::HookLibrary::transformer_lens : formats::HookLibrary::transformers,
           x.title},
          x.pass.get());
    case ExportFormat::program:
      break;
  }
  return program_of(x.model, x.view.forms, x.title);
}

/// Whether an export reads the trace; the other formats compute every sequence, or nothing.
bool needs_trace(const ExportAs& e) {
  return table_format(e.form) || is_figure(e.form);
}

}  // namespace

std::vector<std::filesystem::path> export_as(const ExportInput& exported, const ExportAs& what,
                                             const core::StopToken& progress) {
  if (auto options = folder_options(what)) {
    options->progress = &progress;
    return formats::export_stages(exported.model, what.path, *options);
  }
  ExportInput x = exported;
  ExportAs e = what;
  e.what = supported_scope(e.form, e.what);
  const std::vector<std::filesystem::path> files = output_paths(x.model, e);
  std::optional<core::attention::fast::Engine> engine;  // only if needed, as it starts threads
  if (!x.trace && needs_trace(e)) {
    engine.emplace().compute(x.model, x.view.look.sequence);
    x.trace = &engine->trace();
  }
  progress.add(0);
  const std::string bytes = bytes_of(x, e, progress);
  progress.add(0);  // from here on it is too late to stop
  core::system::write_atomically(files.front(), bytes);
  return files;
}

OfferedFile offered_file(const fs::path& path) {
  constexpr std::size_t max_bytes = std::size_t{1} << 30;
  const std::string name = path.filename().string();
  if (!core::system::is_folder(path)) return {name, core::system::read_file(path, max_bytes)};
  std::vector<formats::ZipEntry> entries;
  for (const fs::path& file : core::system::list_folder(path).paths)
    entries.push_back(
        {name + "/" + file.filename().string(), [file] { return core::system::read_file(file, max_bytes); }});
  return {name + ".zip", formats::zip_bytes(entries)};
}

}  // namespace app
