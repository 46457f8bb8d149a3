#include "app/batch.hpp"

#include <exception>
#include <new>
#include <ostream>

#include "app/memory.hpp"
#include "core/attention/attend.hpp"
#include "core/error.hpp"
#include "core/figures/png.hpp"
#include "core/figures/svg.hpp"
#include "core/formats/file.hpp"
#include "core/formats/session.hpp"
#include "core/formats/writers/program.hpp"
#include "core/random/draw_op.hpp"

namespace app {
namespace {

constexpr int done = 0, failed = 1, wrong_usage = 2;

/// The model of a preset or of a file; what must be known about it goes to err, a line each.
core::importing::Imported model_from(const Source& source, const core::importing::Choices& choices, std::ostream& err) {
  if (const auto* preset = std::get_if<const core::editing::Preset*>(&source)) return {(*preset)->make(), {}, {}};
  core::formats::Progress progress;
  auto imported = core::importing::import_file(std::get<std::filesystem::path>(source), choices, progress);
  for (const std::string& note : imported.notes) print_error(err, "note: " + note);
  return imported;
}

/// Nobody can be asked here: a model that is too large for this machine is refused, any other computed.
void require_memory(const core::attention::Model& model) {
  const MemoryNeed need = memory_need(model, free_memory());
  if (need.is_too_much()) throw core::Error(need.words());
}

std::string title_of(const Source& source) {
  if (const auto* preset = std::get_if<const core::editing::Preset*>(&source)) return (*preset)->title;
  return std::get<std::filesystem::path>(source).filename().string();
}

struct Runner {
  std::ostream& out;
  std::ostream& err;

  int operator()(const ListPresets&) const {
    for (const core::editing::Preset& preset : core::editing::presets())
      out << preset.name << '\t' << preset.about << '\n';
    return done;
  }
  int operator()(const Export& command) const {
    const core::attention::Model model = model_from(command.source, command.choices, err).model;
    require_memory(model);
    core::formats::export_to(model, command.out, command.options);
    return done;
  }
  int operator()(const WriteProgram& command) const {
    const std::string text = core::formats::program_text(model_from(command.source, command.choices, err).model, title_of(command.source));
    if (command.file)
      core::formats::write_atomically(*command.file, text);
    else
      out << text;
    return done;
  }
  int operator()(const WriteSession& command) const {
    auto imported = model_from(command.source, command.choices, err);
    core::formats::save_session(command.file, {std::move(imported.model), std::move(imported.view)});
    return done;
  }
  int operator()(const DrawFigure& command) const {
    const core::attention::Model model = model_from(command.source, command.choices, err).model;
    require_memory(model);
    const auto figure = core::figures::figure(model, core::attention::attend(model), command.options);
    core::formats::write_atomically(command.file, command.format == FigureFormat::svg
                                                      ? core::figures::svg_text(figure)
                                                      : core::figures::png_of(figure, command.scale));
    return done;
  }
  int operator()(const Draw& command) const {
    core::random::draw(command.seed, command.ops, out);
    return done;
  }
  int operator()(const ShowText& command) const {
    out << command.text;
    return done;
  }
  int operator()(const WrongUsage& command) const {
    print_error(err, command.message);
    return wrong_usage;
  }
  int operator()(const OpenWindow&) const { throw core::Error("a window cannot be opened here"); }
};

}  // namespace

int run_batch(const Arguments& arguments, std::ostream& out, std::ostream& err) {
  try {
    const int status = std::visit(Runner{out, err}, arguments);
    if (!out.flush()) throw core::Error("standard output: cannot be written");
    return status;
  } catch (const std::bad_alloc&) {
    print_error(err, "not enough memory");
  } catch (const std::exception& error) {
    print_error(err, error.what());
  }
  return failed;
}

void print_error(std::ostream& err, std::string_view message) {
  err << "attnscope: ";
  for (const char c : message) err << (static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c);
  err << std::endl;
}

}  // namespace app
