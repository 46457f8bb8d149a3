#include "app/session/learning.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <span>

#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/training/run_files.hpp"
#include "core/training/whole_model.hpp"

namespace app {

namespace training = core::training;

namespace {

constexpr double picture_seconds = 1.0 / 60;  // between two pictures

/// Returns a setup with the options of another one that a run can change while it learns.
training::TrainingSetup with_pace_of(training::TrainingSetup setup, const training::TrainingSetup& other) {
  setup.batch = other.batch, setup.rate = other.rate, setup.n_steps = other.n_steps;
  return setup;
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
  const bool goes_on = is_same_task && with_pace_of(setup_, setup) == setup;
  task_ = task, text_ = text, setup_ = setup;
  if (!goes_on) begin();
}

void Learning::restart() {
  if (is_open()) begin();
}

void Learning::begin() {
  queue_.cancel();
  n_requested_ = 0;
  queue_.start(
      [this, setup = setup_, data = data_](const core::StopToken&) -> Jobs::Delivery {
        return [this, run = std::make_shared<const training::TrainingRun>(setup, data)] {
          delivered_.clear();
          take(run);
        };
      },
      [this](const Failure& failure) {
        if (run_) setup_ = run_->network().setup;
        jobs_.report_failure(failure);
      });
}

void Learning::add_steps(std::size_t n) {
  requested_at_ = Clock::now();
  n_requested_ += n;
}

void Learning::begin_steps() {
  queue_.start([this, before = run_, n = std::exchange(n_requested_, 0),
                setup = setup_](const core::StopToken& token) -> Jobs::Delivery {
    const auto run = std::make_shared<training::TrainingRun>(*before);
    run->edit().setup = with_pace_of(run->network().setup, setup);
    const auto start = Clock::now();
    std::size_t n_left = n;
    while (n_left > 0 && token.should_continue() && !run->diverged_at()) {
      run->step();
      n_left = run->n_steps() == setup.n_steps ? 0 : n_left - 1;  // it pauses where its setup ends
      if (token.is_due()) break;
    }
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return [this, run, ms, n_left] {
      n_requested_ += n_left;
      const std::size_t n_trained = run->n_steps() - run_->n_steps();
      if (n_trained > 0) ms_per_step_ = ms / static_cast<double>(n_trained);
      delivered_.emplace_back(Clock::now(), n_trained);
      while (Clock::now() - delivered_.front().first > std::chrono::seconds(1)) delivered_.pop_front();
      if (run->n_steps() == setup_.n_steps || run->diverged_at()) n_requested_ = 0;
      take(run);
    };
  });
}

void Learning::take(std::shared_ptr<const training::TrainingRun> run) {
  run_ = std::move(run);
  snapshots_ = run_->snapshots();
}

void Learning::follow(const LearningLook& look) {
  if (!run_) return;
  if (n_requested_ > 0 && !queue_.is_busy()) begin_steps();
  const PictureKey key{snapshots_[shown(look)], look.sample};
  if (picture_.needs(key))
    picture_.begin(key, Schedule::background, [run = run_, key](const core::StopToken&) {
      return learned_picture(*run, *key.snapshot, key.sample);
    });
  if (const PictureKey* newest = picture_.key(); newest && seen_ != *newest)
    seen_ = *newest, ++picture_version_;
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

void Store::follow_learning() {
  const auto before = learning_seen_;
  learning_.follow(view_.learning);
  learning_seen_ = learning_.run();
  if (!before || before == learning_seen_ || !view_.learning.plays) return;
  if (const auto step = learning_seen_->diverged_at()) {
    view_.learning.plays = false;
    say(fmt::format("The loss or a gradient of step {} is not a number: the network from before is kept.",
                    *step),
        true);
  } else if (const std::size_t end = learning_.setup().n_steps;
             learning_seen_->n_steps() == end && before->n_steps() < end) {
    view_.learning.plays = false;
    say(fmt::format("Paused at step {}, the end of this setup; Space goes on.", end));
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
        const training::Network network = run->restored(*snapshot);
        const auto model = training::whole_model(network, run->data(), name);
        core::experiment::Experiment wanted;
        wanted.text = text.empty() ? run->data().example() : text;
        for (std::size_t l = 0; l < snapshot->heads_off.size(); ++l)
          for (const std::size_t head : snapshot->heads_off[l]) wanted.heads_off.insert({l, head});
        const auto opened = std::make_shared<Opened>(Opened{name});
        opened->full_model =
            std::make_shared<const OpenedModel>(read_full_model(model, wanted, name, progress));
        opened->is_learned = true;
        return [this, opened] { take(std::move(*opened)); };
      });
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
