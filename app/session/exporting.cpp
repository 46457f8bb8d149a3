#include "app/session/exporting.hpp"

#include <optional>

#include "app/session/color_ends.hpp"
#include "app/session/copying.hpp"
#include "app/session/export_plan.hpp"
#include "app/session/view_text.hpp"
#include "core/engine/engine.hpp"
#include "core/files/file.hpp"
#include "core/files/session.hpp"
#include "core/out/drawing.hpp"
#include "core/out/export.hpp"
#include "core/out/numpy.hpp"

namespace app {
namespace {

namespace formats = core::formats;

core::figures::DisplayList figure(const Exported& x, const ExportAs& e) {
  core::figures::FigureOptions options;
  const bool everything = e.what == ExportWhat::everything;
  options.stage = everything ? std::nullopt : std::optional(e.matrix.stage);
  options.head = e.what == ExportWhat::stage ? std::nullopt : std::optional(e.matrix.head);
  if (everything) options.head = x.view.look.head;
  options.sequence = x.view.look.sequence;
  options.dark = x.view.settings.export_dark, options.numbers = x.view.settings.export_numbers;
  return colored_figure(x.model, *x.trace, options, x.view.look.colors);
}

/// The bytes of an export that is one file.
std::string bytes_of(const Exported& x, const ExportAs& e, const core::Token& progress) {
  const core::attention::StageInfo& stage = core::attention::info(e.matrix.stage);
  switch (e.form) {
    case ExportForm::csv:
    case ExportForm::npy: {
      const auto* format = formats::find_matrix_format(e.form == ExportForm::npy ? "npy" : "csv");
      return format->bytes(
          formats::labelled_stage(x.model, *x.trace, stage, e.matrix.head, x.view.look.sequence), true);
    }
    case ExportForm::npz:
      return formats::npz_bytes(x.model,
                                e.what == ExportWhat::everything ? std::vector<std::string>{}
                                                                 : std::vector<std::string>{stage.name},
                                &progress);
    case ExportForm::svg:
      return core::figures::svg_text(figure(x, e));
    case ExportForm::png:
      return core::figures::png_of(figure(x, e), x.view.settings.export_scale);
    case ExportForm::pdf:
      return core::figures::pdf_of(figure(x, e));
    case ExportForm::session:
      return formats::session_text({x.model, view_text(x.view), x.left_out});
    case ExportForm::program:
      break;
  }
  return program_of(x.model, x.view.forms, x.title);
}

/// The other forms compute every sequence, or nothing.
bool needs_trace(const ExportAs& e) {
  return e.form == ExportForm::csv || e.form == ExportForm::npy || is_figure(e.form);
}

}  // namespace

std::vector<std::filesystem::path> export_as(const Exported& exported, const ExportAs& what,
                                             const core::Token& progress) {
  Exported x = exported;
  ExportAs e = what;
  e.what = held_by(e.form, e.what);
  const bool many = (e.form == ExportForm::csv || e.form == ExportForm::npy) && e.what != ExportWhat::matrix;
  if (!many) {
    const std::vector<std::filesystem::path> files = planned_files(x.model, e);
    std::optional<core::attention::fast::Engine> engine;  // which has threads of its own
    if (!x.trace && needs_trace(e)) {
      engine.emplace().compute(x.model, x.view.look.sequence);
      x.trace = &engine->trace();
    }
    progress.add(0);
    const std::string bytes = bytes_of(x, e, progress);
    progress.add(0);  // from here on it is too late to stop
    formats::write_atomically(files.front(), bytes);
    return files;
  }
  formats::ExportOptions options;
  options.progress = &progress;
  options.format = formats::find_matrix_format(e.form == ExportForm::npy ? "npy" : "csv");
  if (e.what == ExportWhat::stage) options.stages = {core::attention::info(e.matrix.stage).name};
  return formats::export_stages(x.model, e.path, options);
}

}  // namespace app
