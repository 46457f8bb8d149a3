#include "app/session/statistics.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <tuple>

namespace app {

using core::attention::Stage;

namespace {

using core::attention::HeadStatistics;
using core::attention::RowStatistics;
using core::attention::Trace;

constexpr std::uint64_t quick_logarithms = 2'000'000;   // some 30 ms
constexpr std::uint64_t quick_entropy_cells = 400'000;  // some 4 ms of logarithms

StatisticKey key_of(const Trace& trace, std::uint64_t version, std::uint64_t choice = 0) {
  return {version, trace.n_heads(), trace.at(Stage::mask).n_rows(), choice};
}

bool is_quick(const Trace& trace) {
  const std::uint64_t n = trace.at(Stage::mask).n_rows();
  return trace.n_heads() * n * n <= quick_entropy_cells;
}

std::vector<RowStatistics> facts_of_rows(const Trace& trace, core::attention::Stage stage, std::size_t head,
                                         const core::StopToken& token) {
  std::vector<RowStatistics> facts;
  const core::attention::StageMatrix& numbers = trace.at(stage, head);
  for (std::size_t i = 0; i < numbers.n_rows() && token.should_continue(); ++i)
    facts.push_back(core::attention::row_statistics(numbers, i));
  return facts;
}

using core::attention::DropoutStudy;
using core::attention::StageMatrix;

constexpr std::chrono::milliseconds portion_time{25};

arma::vec sums_of_rows(const StageMatrix& stage) {
  return arma::sum(*stage, 1);
}

}  // namespace

/// Returns the value of a key, or nullptr; make(trace, token) computes it for any trace.
template <class Value, class Make>
const Value* Statistics::value_of(AsyncValue<StatisticKey, Value>& slot, const Trace& trace,
                                  const StatisticKey& key, bool is_quick, const Make& make) {
  const bool immediate = is_quick || !runs_in_background(trace);
  const Schedule when = immediate ? Schedule::immediate : Schedule::debounced;
  if (slot.needs(key, when)) {
    if (immediate) {
      slot.begin(key, when, [&](const core::StopToken& token) { return make(trace, token); });
    } else {
      const ReadLock lock = live_->read_lock();
      slot.begin(
          key, when, [trace = lock.trace, make](const core::StopToken& token) { return make(*trace, token); },
          lock.preempted);
    }
  }
  return slot.value() && slot.key()->is_compatible(key) ? slot.value() : nullptr;
}

const std::vector<HeadStatistics>& Statistics::heads(const Trace& trace, std::uint64_t version,
                                                     std::span<const std::string> tokens) {
  const auto make = [names = std::vector<std::string>(tokens.begin(), tokens.end())](
                        const Trace& of, const core::StopToken& token) {
    std::vector<HeadStatistics> facts;
    for (std::size_t h = 0; h < of.n_heads(); ++h)
      facts.push_back(core::attention::head_statistics(of.at(Stage::weights, h), names, token));
    return facts;
  };
  if (const auto* facts = value_of(heads_, trace, key_of(trace, version), is_quick(trace), make))
    return *facts;
  no_facts_.assign(trace.n_heads(), {});
  return no_facts_;
}

const std::vector<RowStatistics>& Statistics::rows(const Trace& trace, std::uint64_t version,
                                                   core::attention::Stage stage, std::size_t head) {
  const RowsKey which{stage, core::attention::info(stage).per_head ? head : 0};
  requested_rows_.insert(which);
  const bool immediate = is_quick(trace) || !runs_in_background(trace);
  if (!wanted_rows_.contains(which) &&
      (immediate || wanted_rows_.empty())) {  // else it waits for the next frame
    wanted_rows_.insert(which);
    ++row_choice_version_;
  }
  const auto make = [wanted = wanted_rows_](const Trace& of, const core::StopToken& token) {
    AllRows facts;
    for (const auto& [s, h] : wanted)
      if (h < of.n_heads()) facts[{s, h}] = facts_of_rows(of, s, h, token);  // else of the last trace
    return facts;
  };
  const AllRows* known =
      value_of(rows_, trace, key_of(trace, version, row_choice_version_), is_quick(trace), make);
  const auto found = known ? known->find(which) : AllRows::const_iterator{};
  return known && found != known->end() ? found->second : no_rows_;
}

const arma::mat& Statistics::similarity(const Trace& trace, std::uint64_t version) {
  const auto make = [](const Trace& of, const core::StopToken& token) {
    return core::attention::head_similarity(of, token);
  };
  const auto* known = value_of(similarity_, trace, key_of(trace, version), similarity_is_quick(trace), make);
  return known ? *known : no_similarity_;
}

const TokenLines& Statistics::lines(const Trace& trace, std::uint64_t version, const LineChoice& choice) {
  if (choice_ != choice) choice_ = choice, ++choices_;
  const auto make = [choice](const Trace& of, const core::StopToken& token) {
    return token_lines(of, choice, token);
  };
  const auto* known = value_of(lines_, trace, key_of(trace, version, choices_), is_quick(trace), make);
  return known ? *known : no_lines_;
}

void Statistics::follow_trace(const LiveTrace& live) {
  live_ = &live;
  std::set<RowsKey> asked = std::exchange(requested_rows_, {});
  if (asked.empty() || asked == wanted_rows_) return;
  wanted_rows_ = std::move(asked);
  ++row_choice_version_;
}

bool similarity_is_quick(const Trace& trace) {
  const std::uint64_t n_heads = trace.n_heads(), n_tokens = trace.at(Stage::mask).n_rows();
  return n_heads * (n_heads - 1) / 2 * n_tokens * n_tokens <= quick_logarithms;
}

/// Masks that one job adds to a study.
struct MaskSampler::Portion {
  std::shared_ptr<DropoutStudy> study;
  std::unique_ptr<Laboratory> start;  ///< of a study that begins with this portion
  std::vector<double> distances;
  std::vector<arma::vec> row_sums;
  arma::mat mean;  ///< empty when unchanged
  arma::mat difference;
  ValueRange mean_range, difference_range;

  void advance(std::size_t n_masks, const core::StopToken& token) {
    const auto end = std::chrono::steady_clock::now() + portion_time;
    const std::size_t before = study->count();
    do {
      study->advance(1);
      if (study->count() == n_masks) mean = study->mean();
    } while (study->count() < Laboratory::max_masks && token.should_continue() &&
             std::chrono::steady_clock::now() < end);
    if (study->count() < n_masks) mean = study->mean();
    const auto first = static_cast<std::ptrdiff_t>(before);
    distances.assign(study->distances().begin() + first, study->distances().end());
    row_sums.assign(study->row_sums().begin() + first, study->row_sums().end());
    if (mean.empty()) return;
    difference = mean - study->weights();
    mean_range = value_range(mean), difference_range = value_range(difference);
  }
};

void MaskSampler::follow(const LiveTrace& live, std::size_t head, std::size_t n_masks) {
  StudyKey of{live.version(), head, n_masks};
  if (study_key_ != of) {
    study_key_ = of;
    study_.reset();
    portions_.clear();
    const bool same_place = shown_ && shown_->head == head && shown_->sequence == live.sequence() &&
                            shown_->n_rows() == live.model().n_tokens();
    if (!same_place) shown_.reset();
  }
  if (const auto portion = portions_.take()) take(**portion);
  if (study_ && shown_->is_complete()) return;
  if (study_) of.n_before = shown_->count();
  if (portions_.needs(of)) begin(live, of);
}

void MaskSampler::stop() {
  portions_.clear();
  study_key_.reset();
  shown_.reset();
  study_.reset();
}

void MaskSampler::begin(const LiveTrace& live, const StudyKey& of) {
  if (study_) {
    portions_.begin(of, Schedule::background,
                    [&jobs = jobs_, study = study_, n_masks = of.n_masks](const core::StopToken& token) {
                      const PortionPtr portion = jobs.with_async_deleter(std::make_unique<Portion>());
                      portion->study = study;
                      portion->advance(n_masks, token);
                      return portion;
                    });
    return;
  }
  const ReadLock lock = live.read_lock();
  portions_.begin(
      of, Schedule::background,
      [&jobs = jobs_, of, model = live.model(), sequence = live.sequence(),
       trace = lock.trace](const core::StopToken& token) {
        const auto& weights = trace->at(Stage::weights, of.head);
        const PortionPtr portion = jobs.with_async_deleter(std::make_unique<Portion>());
        portion->study =
            jobs.with_async_deleter(std::make_unique<DropoutStudy>(model, sequence, of.head, *weights));
        portion->start = std::make_unique<Laboratory>();
        Laboratory& lab = *portion->start;
        lab.n_masks = of.n_masks;
        lab.sums_before = sums_of_rows(weights),
        lab.sums_after = sums_of_rows(trace->at(Stage::dropped_weights, of.head));
        lab.ones = core::attention::dropped_ones(model.dropout, 10);
        lab.version = of.version, lab.head = of.head, lab.sequence = sequence;
        portion->advance(of.n_masks, token);
        return portion;
      },
      lock.preempted);
}

void MaskSampler::take(Portion& portion) {
  study_ = std::move(portion.study);
  if (portion.start) shown_ = jobs_.with_async_deleter(std::move(portion.start));
  Laboratory& lab = *shown_;
  lab.revision = ++revision_;
  std::ranges::move(portion.distances, std::back_inserter(lab.distances));
  std::ranges::move(portion.row_sums, std::back_inserter(lab.row_sums));
  if (portion.mean.empty()) return;
  jobs_.destroy_async(std::exchange(lab.mean, std::move(portion.mean)));
  jobs_.destroy_async(std::exchange(lab.difference, std::move(portion.difference)));
  lab.mean_range = portion.mean_range, lab.difference_range = portion.difference_range;
}

TokenLines token_lines(const core::attention::Trace& trace, const LineChoice& choice,
                       const core::StopToken& token) {
  TokenLines found;
  const auto matters_more = [&](const TokenLine& a, const TokenLine& b) {
    const auto rank = [&](const TokenLine& l) {
      return std::tuple(choice.query == l.query, l.weight, l.query, l.key, l.head);
    };
    return rank(a) > rank(b);
  };
  const auto keep_the_most = [&] {
    if (found.lines.size() <= choice.max_lines) return;
    std::nth_element(found.lines.begin(), found.lines.begin() + static_cast<std::ptrdiff_t>(choice.max_lines),
                     found.lines.end(), matters_more);
    found.lines.resize(choice.max_lines);
  };
  const std::size_t many = 16 * choice.max_lines + 1000;  // all lines of a large model would fill the memory
  for (std::size_t i = 0; i < trace.at(Stage::mask).n_rows() && token.should_continue(); ++i) {
    const arma::rowvec mask = trace.at(Stage::mask).row(i);
    for (const std::size_t h : choice.heads) {
      const arma::rowvec weights = trace.at(Stage::weights, h).row(i);
      for (std::size_t j = 0; j < mask.n_elem; ++j) {
        if (mask[j] == 0) continue;
        ++found.n_unmasked;
        const double weight = weights[j];
        if (!(weight > 0)) continue;  // nor NaN
        found.total += weight;
        if (!(weight >= choice.hide_below)) continue;
        ++found.n_above;
        found.lines.push_back({i, j, h, weight});
        if (found.lines.size() > many) keep_the_most();
      }
    }
  }
  keep_the_most();
  std::sort(found.lines.begin(), found.lines.end(),
            [&](const auto& a, const auto& b) { return matters_more(b, a); });
  for (const TokenLine& line : found.lines) found.line_weight += line.weight;
  return found;
}

}  // namespace app
