#include "core/training/training_run.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/find.hpp"

namespace core::training {
namespace {

constexpr const char* taken_over = "another head takes over from an ablated one";
constexpr std::size_t measured_every = 10, n_fresh = 32;
constexpr std::uint64_t fresh_seed = 4242, seeds_of_run = 1'000'003;

std::shared_ptr<const std::vector<Sample>> samples(const TaskData& data, std::size_t n, bool is_fresh,
                                                   random::Generator& generator) {
  auto all = std::make_shared<std::vector<Sample>>();
  for (std::size_t k = 0; k < n; ++k) all->push_back(data.sample(generator, is_fresh));
  return all;
}

SnapshotRef snapshot_of(Network& network, std::size_t step) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->step = step;
  for (const NetworkParameter& parameter : network.parameters())
    snapshot->parameters.push_back({parameter.name, arma::conv_to<arma::fmat>::from(**parameter.numbers)});
  for (const NetworkLayer& layer : network.layers) snapshot->heads_off.push_back(layer.attention.heads_off);
  snapshot->setup = network.setup;
  return snapshot;
}

}  // namespace

std::vector<std::string> milestone_words(const Task& task, std::size_t n_heads) {
  std::vector<std::string> words;
  for (std::size_t p = 0; p < task.n_patterns(); ++p) {
    const std::string name = task.patterns[p];
    words.push_back((name.front() == 'i' ? "an " : "a ") + name + " head has formed");
  }
  words.emplace_back("99 % of fresh answers are right");
  if (!words.front().starts_with('9') && n_heads > 1) words.emplace_back(taken_over);
  return words;
}

std::size_t Snapshot::n_bytes() const {
  std::size_t n = sizeof *this;
  for (const auto& [name, matrix] : parameters)
    n += sizeof(NamedNumbers) + name.size() + matrix.n_elem * sizeof(float);
  return n;
}

TrainingRun::TrainingRun(const TrainingSetup& setup, std::shared_ptr<const TaskData> data,
                         std::size_t max_bytes)
    : data_(std::move(data)),
      first_setup_(setup),
      network_(setup, data_->letters().size(), data_->n_tokens()),
      before_(network_),
      generator_(setup.seed * seeds_of_run + 1),
      max_bytes_(max_bytes) {
  training_ = samples(*data_, data_->task().n_training, false, generator_);
  random::Generator of_fresh(fresh_seed);
  fresh_ = samples(*data_, n_fresh, true, of_fresh);
  keep_snapshot();
  measure();
}

std::vector<Sample> TrainingRun::next_batch(random::Generator& generator) const {
  std::vector<Sample> batch;
  for (std::size_t k = 0; k < network_.setup.batch; ++k)
    batch.push_back(training_->empty() ? data_->sample(generator, false)
                                       : (*training_)[generator.next_u64() % training_->size()]);
  return batch;
}

std::uint64_t TrainingRun::dropout_seed() const {
  return (network_.setup.seed * seeds_of_run + n_steps_) * network_.layers.size();
}

void TrainingRun::step() {
  if (diverged_at_) return;
  const std::vector<Sample> batch = next_batch(generator_);
  NetworkPass pass(network_, batch, dropout_seed());
  if (!std::isfinite(pass.loss())) return diverge(before_);
  const Network good = network_;
  if (!std::isfinite(optimizer_.step(network_, pass.gradients()))) return diverge(good);
  losses_.push_back(pass.loss());
  before_ = good;
  ++n_steps_;
  keep_snapshot();
  if (n_steps_ % measured_every == 0) measure();
}

void TrainingRun::change(const NetworkChange& what) {
  Network next = network_;
  if (const auto* setup = std::get_if<TrainingSetup>(&what)) {
    if (!learns_on(network_.setup, *setup)) throw Error("a run cannot go on with another network");
    next = network_.with_options(*setup);
    if (setup->optimizer != network_.setup.optimizer) optimizer_ = Optimizer();
  } else if (const auto* toggle = std::get_if<HeadToggle>(&what)) {
    if (toggle->layer >= next.layers.size() || toggle->head >= next.setup.n_heads)
      throw Error(fmt::format("there is no head {}.{}", toggle->layer, toggle->head));
    auto& off = next.layers[toggle->layer].attention.heads_off;
    std::erase(off, toggle->head);
    if (!toggle->on) off.insert(std::ranges::upper_bound(off, toggle->head), toggle->head);
  } else {
    const auto& [name, numbers] = std::get<MatrixChange>(what);
    const auto all = next.parameters();
    const auto* found = find_by(all, name, &NetworkParameter::name);
    if (!found || arma::size(*numbers) != arma::size(**found->numbers))
      throw Error(fmt::format("there is no matrix {} of {} × {}", name, numbers.n_rows(), numbers.n_cols()));
    if (!numbers.is_finite()) throw Error(name + ": expected finite numbers");
    *found->numbers = numbers;
  }
  Network same = network_;
  same.setup = next.setup;
  const bool differs = next != same;
  network_ = before_ = std::move(next);
  changes_.push_back({what, n_steps_, diverged_at_.has_value()});
  diverged_at_.reset();
  if (!snapshots_.empty() && snapshots_.back()->step == n_steps_) snapshots_.pop_back();
  keep_snapshot();
  if (!differs) return;
  if (!measurements_.empty() && measurements_.back().step == n_steps_) measurements_.pop_back();
  measure();
}

std::shared_ptr<TrainingRun> TrainingRun::learned_again(const TrainingSetup& first,
                                                        std::shared_ptr<const TaskData> data,
                                                        std::span<const RunChange> changes,
                                                        std::size_t n_steps, const StopToken& progress) {
  const auto run = std::make_shared<TrainingRun>(first, std::move(data));
  for (auto next = changes.begin();;) {
    for (; next != changes.end() && next->step <= run->n_steps_; ++next) {
      if (next->diverged) run->step();
      run->change(next->what);
    }
    if (run->n_steps_ >= n_steps || run->diverged_at_) return run;
    run->step();
    progress.report(static_cast<double>(run->n_steps_) / static_cast<double>(n_steps));
    progress.add(1);
  }
}

void TrainingRun::diverge(const Network& good) {
  diverged_at_ = n_steps_;
  network_ = good;
}

void TrainingRun::measure() {
  if (!measurements_.empty() && measurements_.back().step == n_steps_) return;
  Measurement measured{n_steps_, 0, 0, 0, 0, {}};
  random::Generator peek = generator_;
  const std::vector<Sample> batch = next_batch(peek);
  const NetworkPass next(network_, batch, dropout_seed());
  NetworkPass fresh(network_, *fresh_);
  measured.loss = next.loss(), measured.training_accuracy = next.accuracy();
  measured.fresh_loss = fresh.loss(), measured.accuracy = fresh.accuracy();
  if (!std::isfinite(measured.loss) || !std::isfinite(measured.fresh_loss)) return;  // the next step diverges
  measured.patterns = pattern_scores(fresh, network_, *fresh_, data_->task().n_patterns());
  add_milestones(measured);
  measurements_.push_back(std::move(measured));
}

void TrainingRun::add_milestones(const Measurement& measured) {
  const auto add = [&](bool is_there, const std::string& words) {
    if (is_there && std::ranges::find(milestones_, words, &Milestone::words) == milestones_.end())
      milestones_.push_back({measured.step, words});
  };
  const std::vector<std::string> words = milestone_words(data_->task(), 1);
  for (std::size_t p = 0; p < measured.patterns.size(); ++p) {
    bool is_formed = false;
    for (const auto& layer : measured.patterns[p]) is_formed = is_formed || std::ranges::max(layer) > formed;
    add(is_formed, words[p]);
  }
  add(measured.accuracy > solved, words.back());
  add_takeover(measured);
}

/// A head takes over from one that was ablated last: answers were right before, were wrong without it, and
/// are right again, while it has the pattern.
void TrainingRun::add_takeover(const Measurement& measured) {
  if (measured.accuracy <= solved || find_by(milestones_, taken_over, &Milestone::words)) return;
  const auto last = std::ranges::find_if(changes_.rbegin(), changes_.rend(), [](const RunChange& change) {
    return std::holds_alternative<HeadToggle>(change.what);
  });
  if (last == changes_.rend() || std::get<HeadToggle>(last->what).on) return;
  const auto& [layer, ablated, on] = std::get<HeadToggle>(last->what);
  const auto after = std::ranges::lower_bound(measurements_, last->step, {}, &Measurement::step);
  if (after == measurements_.begin() || (after - 1)->accuracy <= solved) return;
  if (std::all_of(after, measurements_.end(), [](const Measurement& m) { return m.accuracy > solved; }))
    return;
  for (std::size_t p = 0; p < measured.patterns.size(); ++p) {
    if ((after - 1)->patterns[p][layer][ablated] <= formed) continue;
    for (std::size_t l = 0; l < network_.layers.size(); ++l)
      for (std::size_t h = 0; h < network_.setup.n_heads; ++h)
        if (measured.patterns[p][l][h] > formed &&
            std::ranges::count(network_.layers[l].attention.heads_off, h) == 0) {
          milestones_.push_back(
              {measured.step, taken_over,
               fmt::format("head {}.{}, {} steps later", l, h, measured.step - last->step)});
          return;
        }
  }
}

void TrainingRun::keep_snapshot() {
  last_ = snapshot_of(network_, n_steps_);
  if (n_steps_ % interval_ == 0) snapshots_.push_back(last_);
  while (snapshots_.size() > 1 && (snapshots_.size() + 1) * last_->n_bytes() > max_bytes_) {
    interval_ *= 2;
    std::erase_if(snapshots_, [&](const SnapshotRef& kept) { return kept->step % interval_ != 0; });
  }
}

std::vector<SnapshotRef> TrainingRun::snapshots() const {
  std::vector<SnapshotRef> all = snapshots_;
  if (all.back() != last_) all.push_back(last_);
  return all;
}

std::size_t TrainingRun::snapshot_bytes() const {
  std::size_t n = 0;
  for (const SnapshotRef& kept : snapshots()) n += kept->n_bytes();
  return n;
}

Network TrainingRun::restored(const Snapshot& snapshot) const {
  Network network = snapshot.setup == network_.setup ? network_ : network_.with_options(snapshot.setup);
  for (const NetworkParameter& parameter : network.parameters())
    if (const auto* found = find_by(snapshot.parameters, parameter.name, &Snapshot::NamedNumbers::name))
      *parameter.numbers = arma::conv_to<mat>::from(found->numbers);
  for (std::size_t l = 0; l < network.layers.size(); ++l)
    network.layers[l].attention.heads_off = snapshot.heads_off[l];
  return network;
}

}  // namespace core::training
