#include "app/session/laboratory.hpp"

#include <chrono>
#include <iterator>
#include <utility>

#include "app/session/live_trace.hpp"

namespace app {
namespace {

using core::attention::DropoutStudy;
using core::attention::StageMatrix;

constexpr std::chrono::milliseconds portion_time{25};

arma::vec sums_of_rows(const StageMatrix& stage) {
  return arma::sum(*stage, 1);
}

}  // namespace

/// What one job adds.
struct MaskDrawing::Portion {
  std::shared_ptr<DropoutStudy> study;
  std::unique_ptr<Laboratory> start;  ///< of a study that this portion began
  std::vector<double> distances;
  std::vector<arma::vec> row_sums;
  arma::mat mean;  ///< empty when it is what it was
  arma::mat difference;
  Extent mean_extent, difference_extent;

  void advance(std::size_t n_masks, const core::Token& token) {
    const auto end = std::chrono::steady_clock::now() + portion_time;
    const std::size_t before = study->count();
    do {
      study->advance(1);
      if (study->count() == n_masks) mean = study->mean();
    } while (study->count() < Laboratory::most_masks && token.goes_on() &&
             std::chrono::steady_clock::now() < end);
    if (study->count() < n_masks) mean = study->mean();
    const auto first = static_cast<std::ptrdiff_t>(before);
    distances.assign(study->distances().begin() + first, study->distances().end());
    row_sums.assign(study->row_sums().begin() + first, study->row_sums().end());
    if (mean.empty()) return;
    difference = mean - study->weights();
    mean_extent = extent_of(mean), difference_extent = extent_of(difference);
  }
};

void MaskDrawing::follow(const LiveTrace& live, std::size_t head, std::size_t n_masks) {
  const Of now{live.version(), head, n_masks};
  if (of_ != now) {
    lane_.cancel();
    of_ = now;
    study_.reset();
    const bool same_place = shown_ && shown_->head == head && shown_->sequence == live.sequence() &&
                            shown_->n_rows() == live.model().n_tokens();
    if (!same_place) shown_.reset();
    begin(live);
  } else if (study_ && !shown_->is_complete() && !lane_.is_busy()) {
    begin(live);
  }
}

void MaskDrawing::stop() {
  lane_.cancel();
  of_.reset();
  shown_.reset();
  study_.reset();
}

void MaskDrawing::begin(const LiveTrace& live) {
  if (study_) {
    lane_.start(
        [this, study = study_, n_masks = of_->n_masks](const core::Token& token) -> Jobs::Delivery {
          const auto portion = lane_.jobs().leave(std::make_unique<Portion>());
          portion->study = study;
          portion->advance(n_masks, token);
          return [this, portion] { take(std::move(*portion)); };
        },
        [this](const Failure& failure) { give_up(failure); });
    return;
  }
  const Lease lease = live.lease();
  const auto begin = [this, of = *of_, model = live.model(), sequence = live.sequence(),
                      trace = lease.trace](const core::Token& token) -> Jobs::Delivery {
    const auto& head = trace->heads[of.head];
    const auto portion = lane_.jobs().leave(std::make_unique<Portion>());
    portion->study =
        lane_.jobs().leave(std::make_unique<DropoutStudy>(model, sequence, of.head, *head.weights));
    portion->start = std::make_unique<Laboratory>();
    Laboratory& lab = *portion->start;
    lab.n_masks = of.n_masks;
    lab.sums_before = sums_of_rows(head.weights), lab.sums_after = sums_of_rows(head.dropped_weights);
    lab.ones = core::attention::dropped_ones(model.dropout, 10);
    lab.version = of.version, lab.head = of.head, lab.sequence = sequence;
    portion->advance(of.n_masks, token);
    return [this, portion] { take(std::move(*portion)); };
  };
  lane_.start(
      begin, [this](const Failure& failure) { give_up(failure); }, lease.recalled);
}

void MaskDrawing::give_up(const Failure& failure) {
  study_.reset();
  if (failure.is_stopped) return of_.reset();  // it is begun anew
  lane_.jobs().tell(failure);                  // once: it is not tried again
}

void MaskDrawing::take(Portion portion) {
  study_ = std::move(portion.study);
  if (portion.start) shown_ = lane_.jobs().leave(std::move(portion.start));
  Laboratory& lab = *shown_;
  lab.revision = ++revision_;
  std::ranges::move(portion.distances, std::back_inserter(lab.distances));
  std::ranges::move(portion.row_sums, std::back_inserter(lab.row_sums));
  if (portion.mean.empty()) return;
  lane_.jobs().let_go(std::exchange(lab.mean, std::move(portion.mean)));
  lane_.jobs().let_go(std::exchange(lab.difference, std::move(portion.difference)));
  lab.mean_extent = portion.mean_extent, lab.difference_extent = portion.difference_extent;
}

}  // namespace app
