#include "app/picture_source.hpp"

#include <utility>

#include "app/live_trace.hpp"

namespace app {
namespace {

constexpr std::uint64_t quick_cells = 100'000;

}  // namespace

void PictureSource::follow(const LiveTrace& live) {
  live_ = &live;
  worker_.deliver();
  if (std::exchange(version_, live.version()) == live.version()) return make_wanted();
  stop();
  changes_.clear();
  if (!live.change().everything)
    for (const auto& head : live.change().heads) changes_.push_back({head.all, head.rows, head.column, head.first_sum});
  const core::attention::Mask& mask = live.model().mask;
  if (std::exchange(n_tokens_, live.model().n_tokens()) == live.model().n_tokens() && mask == mask_) return;
  mask_ = mask;
  visible_.reset();
  ++mask_version_;
}

render::RowNumbers PictureSource::rows(core::attention::Stage stage, std::size_t head) const {
  if (!live_ || head >= live_->trace().heads.size()) return {};
  const core::attention::fast::RowView view = live_->rows(stage, head);
  return {view.numbers, view.stride, view.n_rows, view.n_cols, view.largest, view.sums, view.exponentials};
}

const arma::mat& PictureSource::visible() const {
  if (!visible_) visible_ = *live_->trace().mask;
  return *visible_;
}

bool PictureSource::is_ready(core::attention::Stage stage, std::size_t head) const {
  if (!live_) return true;
  const core::attention::StageInfo& info = core::attention::info(stage);
  const core::attention::StageMatrix& numbers = info.matrix(live_->trace(), head);
  if (numbers.is_made() || numbers.n_rows() * numbers.n_cols() <= quick_cells) return true;
  wanted_.insert({stage, info.per_head ? head : 0});
  return false;
}

bool PictureSource::stop() {
  wanted_.clear();
  worker_.cancel();
  return !worker_.is_running();
}

void PictureSource::make_wanted() {
  if (wanted_.empty() || worker_.is_busy()) return;
  worker_.start([trace = live_->shared_trace(), wanted = std::exchange(wanted_, {})](const std::stop_token& stop) {
    for (const auto& [stage, head] : wanted) {
      if (stop.stop_requested()) break;
      static_cast<void>(*core::attention::info(stage).matrix(*trace, head));
    }
    return Worker::Delivery([] {});
  });
}

const render::CellChange* PictureSource::change(std::size_t head) const {
  return head < changes_.size() ? &changes_[head] : nullptr;
}

}  // namespace app
