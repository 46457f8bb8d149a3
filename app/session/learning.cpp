#include "app/session/learning.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/text.hpp"
#include "core/files/session.hpp"
#include "core/graph/gradients.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/system/file.hpp"
#include "core/training/run_files.hpp"
#include "core/training/whole_model.hpp"

namespace app {

namespace training = core::training;

namespace {

constexpr double picture_seconds = 1.0 / 60;  // between two pictures

constexpr std::size_t recovered_every = 50;  // steps while it plays

/// Returns what a change is of, in words.
std::string describe(const training::NetworkChange& change, const training::TrainingSetup& before) {
  if (const auto* toggle = std::get_if<training::HeadToggle>(&change))
    return fmt::format("head {}.{} {}", toggle->layer, toggle->head, toggle->on ? "enabled" : "ablated");
  if (const auto* matrix = std::get_if<training::MatrixChange>(&change)) return matrix->parameter;
  const auto& after = std::get<training::TrainingSetup>(change);
  return after.mistake != before.mistake
             ? after.mistake.empty() ? "fix of " + before.mistake : "bug " + after.mistake
         : after.causal != before.causal       ? std::string("causal mask ") + (after.causal ? "on" : "off")
         : after.dropout != before.dropout     ? "dropout"
         : after.optimizer != before.optimizer ? "optimizer"
         : after.batch != before.batch         ? "batch"
                                               : "learning rate";
}

}  // namespace

LearnedPicture learned_picture(const training::TrainingRun& run, const training::Snapshot& snapshot,
                               std::size_t index) {
  const training::Network network = run.restored(snapshot);
  const auto& letters = run.data().letters();
  const training::Sample& sample = run.fresh_samples()[index % run.fresh_samples().size()];
  training::NetworkPass pass(network, std::span(&sample, 1));
  LearnedPicture picture;
  picture.step = snapshot.step;
  picture.heads_off = snapshot.heads_off;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    auto& heads = picture.weights.emplace_back();
    for (std::size_t h = 0; h < network.setup.n_heads; ++h) heads.push_back(pass.weights(l, h, 0));
  }
  const std::size_t n = sample.tokens.size();
  if (network.setup.causal) picture.visible = arma::trimatl(arma::ones(n, n));
  const arma::mat logits = pass.logits(0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t best = logits.row(i).index_max();
    picture.tokens.push_back(letters[sample.tokens[i]]);
    picture.targets.push_back(sample.targets[i] ? letters[*sample.targets[i]] : "");
    picture.predicted.push_back(letters[best]);
    picture.probabilities.push_back(1 / arma::accu(arma::exp(logits.row(i) - logits(i, best))));
  }
  return picture;
}

std::vector<const core::attention::Model*> models_in(const LearningState& state) {
  std::vector<const core::attention::Model*> models;
  for (const training::NetworkLayer& layer : state.run->network().layers) models.push_back(&layer.attention);
  return models;
}

void Learning::set(const std::string& task, const std::string& text, const training::TrainingSetup& setup) {
  const training::Task* found = training::find_task(task);
  if (!found && !task.empty())
    throw core::Error(task + ": expected " +
                      core::text::joined(training::tasks(), ", ", &training::Task::name));
  if (const auto problem = training::check(setup))
    throw core::Error(std::string(problem->option).substr(2) + ": " + problem->message);
  const bool is_same_task = is_open() && task == task_ && text == text_;
  if (!is_same_task)
    data_ = found ? std::make_shared<const training::TaskData>(*found)
                  : std::make_shared<const training::TaskData>(text, "text");
  const bool goes_on = is_same_task && training::learns_on(setup_, setup);
  training::TrainingSetup same = setup_;
  same.n_steps = setup.n_steps;
  task_ = task, text_ = text, setup_ = setup;
  if (!is_same_task) document_.path.reset();
  if (!goes_on)
    begin_again(is_same_task ? "another network" : "another task");
  else if (setup != same)
    change({setup});
}

void Learning::restart() {
  if (is_open()) begin_again("start again");
}

void Learning::begin_again(const std::string& words) {
  document_.baseline = nullptr;
  begin("", words, [setup = setup_, data = data_](const core::StopToken&) {
    return std::make_shared<const training::TrainingRun>(setup, data);
  });
}

void Learning::go_back_to(std::size_t step) {
  begin("", "steps after " + std::to_string(step), [run = run(), step](const core::StopToken& progress) {
    return training::TrainingRun::learned_again(run->first_setup(), run->shared_data(), run->changes(), step,
                                                progress);
  });
}

void Learning::begin(const std::string& target, const std::string& words, const RunMaker& make) {
  stop();
  queue_.start(
      [this, target, words, make](const core::StopToken& progress) -> Jobs::Delivery {
        return [this, target, words, run = make(progress)] {
          delivered_.clear();
          if (document_.run) document_.history.record({document_.run}, target, words);
          take(run);
          adopt_setup();
        };
      },
      [this](const Failure& failure) {
        adopt_setup();
        jobs_.report_failure(failure);
      });
}

void Learning::stop() {
  queue_.cancel();
  pending_.clear();
  n_requested_ = 0;
  is_training_ = false;
}

void Learning::change(std::vector<training::NetworkChange> whats) {
  if (is_training_) queue_.cancel(), is_training_ = false;
  for (training::NetworkChange& what : whats) {
    const bool replaces = !pending_.empty() && std::holds_alternative<training::TrainingSetup>(what) &&
                          std::holds_alternative<training::TrainingSetup>(pending_.back());
    if (replaces) pending_.pop_back();
    pending_.push_back(std::move(what));
  }
}

void Learning::begin_changes() {
  const std::string words = describe(pending_.front(), run()->network().setup);
  const bool is_setup = std::holds_alternative<training::TrainingSetup>(pending_.front());
  const std::size_t n_requested = n_requested_;
  begin(is_setup ? words : "", words, [before = run(), whats = pending_](const core::StopToken&) {
    const auto run = std::make_shared<training::TrainingRun>(*before);
    for (const training::NetworkChange& what : whats) run->change(what);
    return run;
  });
  n_requested_ = n_requested;
}

void Learning::open(std::shared_ptr<const training::TrainingRun> run,
                    const std::optional<std::filesystem::path>& path, const std::string& stamp) {
  stop();
  if (document_.run) document_.history.record({document_.run}, "", "another run");
  document_.path = path, document_.stamp = stamp, document_.baseline = nullptr;
  if (path) document_.saved = run;
  take(std::move(run));
  adopt_setup();
}

LearningDocument Learning::exchange(LearningDocument document) {
  stop();
  picture_.clear(), baseline_picture_.clear();
  LearningDocument before = std::exchange(document_, std::move(document));
  if (document_.run)
    take(document_.run), adopt_setup();
  else
    data_ = nullptr, snapshots_.clear();
  return before;
}

void Learning::mark_saved(std::shared_ptr<const training::TrainingRun> run,
                          const std::filesystem::path& path) {
  document_.saved = std::move(run);
  document_.path = path;
  document_.stamp = core::system::file_stamp(path);
}

void Learning::restore(const LearningState& state) {
  stop();
  take(state.run);
  adopt_setup();
}

void Learning::adopt_setup() {
  if (!run()) return;
  const std::size_t n_steps = setup_.n_steps;
  const bool is_same_run = data_ == run()->shared_data();
  data_ = run()->shared_data(), setup_ = run()->network().setup;
  task_ = data_->is_text() ? "" : data_->task().name, text_ = data_->text();
  if (is_same_run) setup_.n_steps = n_steps;
}

DocumentState Learning::state(const std::vector<std::filesystem::path>& recent) const {
  const auto& history = document_.history;
  return {.title = document_.path ? document_.path->filename().string()
                                  : std::string("Watch it learn: ") + run()->data().task().name,
          .path = document_.path,
          .preset = {},
          .modified = is_modified(),
          .steps = {.can_undo = history.can_undo(),
                    .can_redo = history.can_redo(),
                    .undo_words = history.undo_description(),
                    .redo_words = history.redo_description(),
                    .n_forgotten = history.n_forgotten()},
          .recent = recent,
          .layers = {}};
}

bool Learning::is_modified() const {
  return run() && !document_.is_lesson && run() != document_.saved &&
         (run()->n_steps() > 0 || !run()->changes().empty());
}

void Learning::add_steps(std::size_t n) {
  requested_at_ = Clock::now();
  n_requested_ += n;
}

void Learning::begin_steps() {
  is_training_ = true;
  queue_.start([this, before = run(), n = std::exchange(n_requested_, 0),
                end = setup_.n_steps](const core::StopToken& token) -> Jobs::Delivery {
    const auto trained = std::make_shared<training::TrainingRun>(*before);
    const auto start = Clock::now();
    std::size_t n_left = n;
    while (n_left > 0 && token.should_continue() && !trained->diverged_at()) {
      trained->step();
      n_left = trained->n_steps() == end ? 0 : n_left - 1;  // it pauses where its setup ends
      if (token.is_due()) break;
    }
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return [this, trained, ms, n_left] {
      n_requested_ += n_left;
      const std::size_t n_trained = trained->n_steps() - run()->n_steps();
      if (n_trained > 0) ms_per_step_ = ms / static_cast<double>(n_trained);
      delivered_.emplace_back(Clock::now(), n_trained);
      while (Clock::now() - delivered_.front().first > std::chrono::seconds(1)) delivered_.pop_front();
      if (trained->n_steps() == setup_.n_steps || trained->diverged_at()) n_requested_ = 0;
      take(trained);
    };
  });
}

void Learning::take(std::shared_ptr<const training::TrainingRun> run) {
  document_.run = std::move(run);
  snapshots_ = document_.run->snapshots();
}

void Learning::follow(const LearningLook& look) {
  if (!run()) return;
  if (!queue_.is_busy()) {
    is_training_ = false;
    if (!pending_.empty())
      begin_changes();
    else if (n_requested_ > 0)
      begin_steps();
  }
  const auto follow_picture = [&](auto& picture, const training::SnapshotRef& snapshot) {
    const PictureKey key{snapshot, look.sample};
    if (picture.needs(key))
      picture.begin(key, Schedule::background, [run = run(), key](const core::StopToken&) {
        return learned_picture(*run, *key.snapshot, key.sample);
      });
    return picture.key() ? std::optional(*picture.key()) : std::nullopt;
  };
  std::pair<std::optional<PictureKey>, std::optional<PictureKey>> newest{
      follow_picture(picture_, snapshots_[shown(look)]), {}};
  if (document_.baseline) newest.second = follow_picture(baseline_picture_, document_.baseline);
  if (seen_ != newest) seen_ = newest, ++picture_version_;
  follow_recovery(look.plays);
}

/// Describes the run anew when it has changed, or has learned for a while.
void Learning::follow_recovery(bool plays) {
  if (document_.is_lesson) return;  // the text stays that of the run that is set aside
  if (!is_modified()) return recovery_text_.clear(), recovered_.reset();
  const bool is_recent = recovered_ && recovered_->changes() == run()->changes() &&
                         recovered_->shared_data() == data_ && recovered_->n_steps() <= run()->n_steps() &&
                         run()->n_steps() < recovered_->n_steps() + recovered_every;
  if (recovered_ == run() || (plays && is_recent)) return;
  recovered_ = run();
  recovery_text_ = training::run_session(training::saved_run(*recovered_));
}

std::size_t Learning::shown(const LearningLook& look) const {
  if (!look.shown) return snapshots_.size() - 1;
  const auto after = std::ranges::upper_bound(snapshots_, *look.shown, {}, &training::Snapshot::step);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - snapshots_.begin(), 1)) - 1;
}

double Learning::steps_per_second() const {
  if (delivered_.size() < 2 || Clock::now() - delivered_.back().first > std::chrono::milliseconds(1500))
    return 0;
  std::size_t n = 0;
  for (std::size_t k = 1; k < delivered_.size(); ++k) n += delivered_[k].second;
  const std::chrono::duration<double> seconds = delivered_.back().first - delivered_.front().first;
  return seconds.count() > 0 ? static_cast<double>(n) / seconds.count() : 0;
}

double Learning::seconds_since_request() const {
  return std::chrono::duration<double>(Clock::now() - requested_at_).count();
}

LearningPace Learning::pace(const LearningLook& look, bool reduces_motion) const {
  const double period = reduces_motion ? 1 : picture_seconds;
  const double fastest = ms_per_step_ > 0 ? 1000 / ms_per_step_ : 1;  // steps a second
  const double wanted = look.speed == LearningSpeed::one     ? 1
                        : look.speed == LearningSpeed::ten   ? 10
                        : look.speed == LearningSpeed::sixty ? 60
                                                             : fastest;
  const double n = std::max(1.0, std::floor(std::min(wanted, std::max(fastest, 1.0)) * period + 1e-9));
  return {std::max(period, 1 / wanted * n), static_cast<std::size_t>(n)};
}

namespace {

/// Returns the changes with which a network has the edits of a layer of a whole model that was made from it.
///
/// Throws core::Error for edits of anything but learned matrices and ablated heads.
std::vector<training::NetworkChange> matrix_changes(const training::Network& network, std::size_t layer,
                                                    core::attention::Model before,
                                                    const core::attention::Model& after) {
  namespace attention = core::attention;
  if (const auto* bug = core::bugs::find_offered_bug(network.setup.mistake))
    before = core::bugs::injected(*bug, before);
  std::vector<training::NetworkChange> changes;
  training::Network of_network = network;
  const auto parameters = of_network.parameters();
  for (const attention::MatrixRef& place : core::graph::learned_matrices(before)) {
    const auto name = fmt::format("layers.{}.{}", layer, core::graph::gradient_name(place.name));
    const auto* parameter = core::find_by(parameters, name, &training::NetworkParameter::name);
    auto* was = attention::find_matrix(before, place);
    const auto* now = attention::find_matrix(after, place);
    if (!parameter || !now || *was == *now || arma::size(**was) != arma::size(**now)) continue;
    arma::mat changed = *parameter->numbers;
    for (std::size_t k = 0; k < changed.n_elem; ++k)
      if ((**was)[k] != (**now)[k]) changed[k] = (**now)[k];
    changes.push_back(training::MatrixChange{name, std::move(changed)});
    *was = *now;
  }
  before.heads_off = after.heads_off;
  if (before != after)
    throw core::Error(fmt::format(
        "A run learns on with edited matrices and ablated heads; layer {} has other edits. Mask, dropout and bugs are set in Learn.",
        layer));
  return changes;
}

}  // namespace

void Store::handle(const SetLearning& command) {
  learning_.set(command.task, command.text, command.setup);
  view_.learning.shown.reset();
  view_.forms.start_page = false;
  view_.look.tab = Tab::learn;
  message_ = {};
}

void Store::handle(const RestartLearning&) {
  view_.learning.shown.reset();
  learning_.restart();
}

void Store::handle(const StepLearning& command) {
  if (!learning_.run()) return;
  if (const auto step = learning_.run()->diverged_at())
    throw core::Error(fmt::format("The loss or a gradient of step {} is not a number; start again.", *step));
  view_.learning.shown.reset();
  learning_.add_steps(command.n);
}

void Store::handle(const ToggleLearnedHead& command) {
  if (!learning_.run()) return;
  const auto& layers = learning_.run()->network().layers;
  const bool is_off = command.layer < layers.size() &&
                      std::ranges::count(layers[command.layer].attention.heads_off, command.head) > 0;
  view_.learning.shown.reset();
  learning_.change({training::HeadToggle{command.layer, command.head, is_off}});
}

void Store::handle(const LearnOnFrom& command) {
  if (!learning_.run()) return;
  if (command.step > learning_.run()->n_steps())
    throw core::Error(fmt::format("step {} has not been learned", command.step));
  view_.learning.plays = false;
  view_.learning.shown.reset();
  learning_.go_back_to(command.step);
}

void Store::handle(const KeepLearned& command) {
  if (!learning_.run()) return;
  learning_.keep(command.on ? learning_.snapshots()[learning_.shown(view_.learning)] : nullptr);
}

void Store::handle(const LearnWithEdits&) {
  if (!learning_.run() || !document_.origin.is_learned)
    throw core::Error("Open a step of the run as a model first, and edit it there.");
  const FullModelState& full_model = *document_.full_model;
  const training::Network& network = learning_.run()->network();
  const auto& edits = full_model.experiment;
  std::vector<training::NetworkChange> changes;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const auto& off = network.layers[l].attention.heads_off;
    for (std::size_t h = 0; h < network.setup.n_heads; ++h)
      if (const bool is_off = edits.heads_off.contains({l, h}); is_off != (std::ranges::count(off, h) > 0))
        changes.push_back(training::HeadToggle{l, h, !is_off});
    const auto edit = edits.layers.find(l);
    if (edit == edits.layers.end()) continue;
    const auto before = core::experiment::unedited_layer(*full_model.model, *readings().before, l);
    std::ranges::move(matrix_changes(network, l, before, core::experiment::edited(before, edit->second)),
                      std::back_inserter(changes));
  }
  if (changes.empty()) throw core::Error("The opened step has no edits.");
  document_.saved_experiment = edits;  // the run keeps them
  document_.n_steps_saved = document_.history.n_applied();
  view_.look.tab = Tab::learn;
  view_.learning.shown.reset();
  say("The run learns on with " + core::text::counted(changes.size(), "edit") + " of the opened step.");
  learning_.change(std::move(changes));
}

void Store::follow_learning() {
  const auto before = learning_seen_;
  learning_.follow(view_.learning);
  learning_seen_ = learning_.run();
  if (!learning_seen_ || !view_.learning.plays) return;
  constexpr std::string_view paused = "Paused at step ";
  if (message_.text.starts_with(paused)) message_ = {};
  if (view_.look.tab != Tab::learn) {
    view_.learning.plays = false;
    return say(fmt::format("{}{}: the run learns only while Learn is displayed.", paused,
                           learning_seen_->n_steps()));
  }
  if (!before || before == learning_seen_) return;
  if (const auto step = learning_seen_->diverged_at()) {
    view_.learning.plays = false;
    say(fmt::format("The loss or a gradient of step {} is not a number: the network from before is kept.",
                    *step),
        true);
  } else if (const std::size_t end = learning_.setup().n_steps;
             learning_seen_->n_steps() == end && before->n_steps() < end) {
    view_.learning.plays = false;
    say(fmt::format("{}{}, the end of this setup; Space goes on.", paused, end));
  }
}

void Store::handle(const OpenLearned&) {
  if (!learning_.run()) return;
  view_.learning.plays = false;
  const std::size_t index = learning_.shown(view_.learning);
  const auto snapshot = learning_.snapshots()[index];
  const std::string name = fmt::format("{}, step {}", learning_.run()->data().task().name, snapshot->step);
  std::string text;
  if (const LearnedPicture* picture = learning_.picture())
    for (const std::string& token : picture->tokens) text += token;
  read_in_background(
      name,
      [this, run = learning_.run(), snapshot, name, text](const core::StopToken& progress) -> Jobs::Delivery {
        training::TrainingSetup setup = snapshot->setup;
        const auto* bug = core::bugs::find_offered_bug(std::exchange(setup.mistake, ""));
        const training::Network network = run->restored(*snapshot).with_options(setup);
        const auto model = training::whole_model(network, run->data(), name);
        core::experiment::Experiment wanted;
        wanted.text = text.empty() ? run->data().example() : text;
        OpenedModel whole = read_full_model(model, wanted, name, progress);
        for (std::size_t l = 0; l < snapshot->heads_off.size(); ++l) {
          for (const std::size_t head : snapshot->heads_off[l]) wanted.heads_off.insert({l, head});
          if (!bug) continue;
          auto layer = core::experiment::unedited_layer(*model, *whole.reading, l);
          layer.heads_off = snapshot->heads_off[l];
          wanted =
              core::experiment::with_layer(std::move(wanted), l, layer, core::bugs::injected(*bug, layer),
                                           std::string("bug: ") + core::bugs::title_of(*bug));
        }
        read_edited(whole, wanted, name, progress);
        const auto opened = std::make_shared<Opened>(Opened{name});
        opened->full_model = std::make_shared<const OpenedModel>(std::move(whole));
        opened->is_learned = true;
        return [this, opened] { take(std::move(*opened)); };
      });
}

void Store::save_run_to(const std::filesystem::path& path) {
  writer_.save_path = path;
  writer_.saving.start(
      [this, path, run = learning_.run(), writes = writes_files_](const core::StopToken&) -> Jobs::Delivery {
        if (writes) core::system::write_atomically(path, training::run_session(training::saved_run(*run)));
        return [this, path, run] {
          learning_.mark_saved(run, path);
          close(Dialog::save_as);
          remember(path);
          say("Saved " + path.string());
        };
      },
      [this, path](const Failure& failure) { fail_to_write(path, failure, true); });
}

void Store::open_run(const std::filesystem::path& path) {
  say("The run in " + path.filename().string() + " is learned again …");
  read_in_background(path, [this, path](const core::StopToken& progress) -> Jobs::Delivery {
    const std::string stamp = core::system::file_stamp(path);
    const auto again = training::reopen_run(core::system::read_file(path, core::formats::max_session_bytes),
                                            path.string(), progress);
    return [this, path, stamp, again] {
      leave_lesson();
      learning_.open(again.run, absolute_path(path), stamp);
      remember(path);
      show_run(again.note.empty() ? "Opened " + path.string() : again.note, !again.note.empty());
    };
  });
}

void Store::show_run(const std::string& words, bool is_error) {
  view_.forms.start_page = false;
  view_.forms.dialog = Dialog::none;
  view_.learning.plays = false;
  view_.learning.shown.reset();
  view_.look.tab = Tab::learn;
  say(words, is_error);
}

void Store::handle(const ExportLearned& command) {
  if (!learning_.run()) return;
  writer_.export_path = command.path;
  writer_.exporting.start(
      [this, run = learning_.run(), path = command.path,
       writes = writes_files_](const core::StopToken&) -> Jobs::Delivery {
        if (writes) training::save_run(*run, path);
        return [this, path, step = run->n_steps()] {
          close(Dialog::export_run);
          written_.push_back(path);
          say(fmt::format("Exported the model of step {} to {}", step, path.string()));
        };
      },
      [this, path = command.path](const Failure& failure) { fail_to_write(path, failure, false); });
}

}  // namespace app
