#include "app/session/picture_source.hpp"

#include <algorithm>
#include <utility>

#include "app/session/live_trace.hpp"
#include "core/graph/visible.hpp"

namespace app {
namespace {

using core::attention::Stage;

constexpr std::uint64_t quick_picture_cells = 100'000;

/// Where what is known of a stage stands.
std::pair<Stage, std::size_t> place_of(Stage stage, std::size_t head) {
  return {stage, core::attention::info(stage).per_head ? head : 0};
}

}  // namespace

void PictureSource::follow(const LiveTrace& live) {
  live_ = &live;
  if (std::exchange(version_, live.version()) == live.version()) {
    if (wish_ && !lane_.is_busy()) begin(*wish_);
    wish_.reset();
    return;
  }
  stop();
  extents_.clear();
  failed_.clear();
  changes_.clear();
  if (!live.change().everything) changes_ = live.change().heads;
  const core::attention::Model& model = live.model();
  const Mask mask{model.mask, live.trace().sequence, model.n_tokens(), model.n_keys(),
                  core::attention::info(Stage::mask).present(model)};
  if (std::exchange(mask_, mask) != mask) renew_visible();
}

core::attention::fast::RowView PictureSource::rows(core::attention::Stage stage, std::size_t head) const {
  if (!live_ || head >= live_->trace().heads.size()) return {};
  return live_->rows(stage, head);
}

void PictureSource::renew_visible() {
  const core::attention::Model& model = live_->model();
  const auto cells = [is_known = mask_->is_known,
                      sequence = mask_->sequence](const core::attention::Model& of) {
    return is_known ? core::attention::visible_cells(of, sequence)
                    : arma::mat(of.n_tokens(), of.n_keys(), arma::fill::ones);
  };
  masks_.cancel();
  visible_.reset();
  ++mask_version_;
  if (mask_->n_tokens * mask_->n_keys <= quick_picture_cells) {
    visible_ = std::make_shared<const arma::mat>(cells(model));
    return;
  }
  masks_.start([this, model, cells](const core::Token&) -> Jobs::Delivery {
    const auto visible = std::make_shared<const arma::mat>(cells(model));
    return [this, visible] { visible_ = visible; };
  });
}

bool PictureSource::is_small(Stage stage, std::size_t head) const {
  if (!live_) return true;
  const core::attention::StageMatrix& numbers = core::attention::info(stage).matrix(live_->trace(), head);
  return numbers.n_rows() * numbers.n_cols() <= quick_picture_cells;
}

bool PictureSource::is_ready(Stage stage, std::size_t head) const {
  if (is_small(stage, head) || extents_.contains(place_of(stage, head))) return true;
  const Wish wish{place_of(stage, head), {}};
  if ((!wish_ || wish_->outside) && !has_failed(wish)) wish_ = wish;
  return false;
}

bool PictureSource::has_failed(const Wish& wish) const {
  return std::ranges::find(failed_, wish) != failed_.end();
}

const Extent* PictureSource::extent(Stage stage, std::size_t head) const {
  const auto found = extents_.find(place_of(stage, head));
  return found == extents_.end() ? nullptr : &found->second;
}

const Beyond* PictureSource::outside(Stage stage, std::size_t head, const Range& range) const {
  const StageOf place = place_of(stage, head);
  const auto found = counted_.find(place);
  const bool is_known = found != counted_.end() && found->second.range == range;
  const Wish wish{place, range};
  if ((!is_known || found->second.version != version_) && !wish_ && !has_failed(wish)) wish_ = wish;
  return is_known ? &found->second.cells : nullptr;
}

void PictureSource::stop() {
  wish_.reset();
  lane_.cancel();
}

void PictureSource::begin(const Wish& wish) {
  const Lease lease = live_->lease();
  const auto make = [this, trace = lease.trace, wish,
                     version = version_](const core::Token&) -> Jobs::Delivery {
    const auto& [stage, head] = wish.what;
    const arma::mat& numbers = core::attention::info(stage).matrix(*trace, head);
    if (!wish.outside) return [this, wish, extent = extent_of(numbers)] { extents_[wish.what] = extent; };
    const Beyond cells = beyond(numbers, *wish.outside);
    return [this, wish, counted = Counted{*wish.outside, version, cells}] { counted_[wish.what] = counted; };
  };
  const auto failed = [this, wish, version = version_](const Failure& failure) {
    if (failure.is_stopped) return;  // the panels wish again
    if (version == version_) failed_.push_back(wish);
    lane_.jobs().tell(failure);
  };
  lane_.start(make, failed, lease.recalled);
}

const core::attention::fast::HeadChange* PictureSource::change(std::size_t head) const {
  return head < changes_.size() ? &changes_[head] : nullptr;
}

}  // namespace app
