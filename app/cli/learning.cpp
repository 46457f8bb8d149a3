#include "app/cli/learning.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <csignal>
#include <ostream>

#include "app/cli/batch.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/session.hpp"
#include "core/system/file.hpp"
#include "core/system/process.hpp"
#include "core/training/run_files.hpp"
#include "core/training/whole_model.hpp"

namespace app {
namespace {

namespace training = core::training;

constexpr std::size_t reported_every = 50, max_text_bytes = std::size_t{4} << 20;

std::shared_ptr<const training::TaskData> task_data(const std::string& task) {
  if (const training::Task* found = training::find_task(task))
    return std::make_shared<training::TaskData>(*found);
  if (!core::system::is_file(task))
    throw core::Error(task + ": expected " +
                      core::text::joined(training::tasks(), ", ", &training::Task::name) +
                      ", or a text file");
  return std::make_shared<training::TaskData>(core::system::read_file(task, max_text_bytes), task);
}

std::string measurement_text(const training::Measurement& measured, const training::Task& task) {
  std::string text =
      fmt::format("step {}: loss {:.4f}, accuracy {:.3f}", measured.step, measured.loss, measured.accuracy);
  for (std::size_t p = 0; p < measured.patterns.size(); ++p) {
    double best = 0;
    for (const auto& layer : measured.patterns[p]) best = std::max(best, std::ranges::max(layer));
    text += fmt::format(", {} {:.2f}", task.patterns[p], best);
  }
  return text;
}

std::string milestone_text(const training::Milestone& milestone) {
  return fmt::format("step {}: {}", milestone.step, milestone.words);
}

/// Trains until the run is done or Ctrl+C is pressed.
void train(training::TrainingRun& run, std::ostream& err) {
  const core::system::SignalBlocker blocker({SIGINT});
  std::size_t n_milestones = 0;
  while (!run.is_done()) {
    if (blocker.take() == SIGINT) {
      print_error(err, fmt::format("note: stopped after {}", core::text::counted(run.n_steps(), "step")));
      break;
    }
    run.step();
    for (; n_milestones < run.milestones().size(); ++n_milestones)
      err << milestone_text(run.milestones()[n_milestones]) << std::endl;
    const auto& measured = run.measurements();
    if (run.n_steps() % reported_every == 0 && !run.diverged_at() && !measured.empty() &&
        measured.back().step == run.n_steps())
      err << measurement_text(measured.back(), run.data().task()) << std::endl;
  }
  run.measure();
}

/// Returns the run that a command begins, or goes on with.
training::TrainingRun begun_run(const Learn& command, std::ostream& err) {
  if (!training::is_run_session_file(command.task))
    return training::TrainingRun(command.setup, task_data(command.task));
  const auto again = training::reopen_run(
      core::system::read_file(command.task, core::formats::max_session_bytes), command.task, {});
  if (!again.note.empty()) print_error(err, "note: " + again.note);
  training::TrainingRun run = *again.run;
  training::TrainingSetup setup = run.network().setup;
  for (const auto& change : command.changes) change(setup);
  if (setup != run.network().setup) run.change(setup);
  return run;
}

}  // namespace

bool learn(const Learn& command, std::ostream& out, std::ostream& err) {
  if (!command.out.empty()) training::require_new_folder(command.out);
  training::TrainingRun run = begun_run(command, err);
  if (const std::string reason = training::no_export_reason(run.network().setup);
      !command.out.empty() && !reason.empty())
    throw core::Error("learn: --out: " + reason);
  train(run, err);
  if (!command.session.empty())
    core::system::write_atomically(command.session, training::run_session(training::saved_run(run)));
  if (!command.out.empty()) training::save_run(run, command.out);
  if (command.json) {
    out << training::run_json(run);
  } else {
    for (const training::Milestone& milestone : run.milestones()) out << milestone_text(milestone) << '\n';
    if (!run.measurements().empty())
      out << measurement_text(run.measurements().back(), run.data().task()) << '\n';
  }
  if (const auto step = run.diverged_at())
    print_error(
        err, fmt::format("learn: the loss or a gradient of step {} is not a number; the network from before "
                         "is kept",
                         *step));
  return !run.diverged_at();
}

}  // namespace app
