#include "app/picture_source.hpp"

#include <utility>

#include "app/live_trace.hpp"

namespace app {

void PictureSource::follow(const LiveTrace& live) {
  live_ = &live;
  if (std::exchange(version_, live.version()) == live.version()) return;
  changes_.clear();
  if (!live.change().everything)
    for (const auto& head : live.change().heads) changes_.push_back({head.all, head.rows, head.column, head.first_factor});
  const core::attention::Mask& mask = live.model().mask;
  if (std::exchange(n_tokens_, live.model().n_tokens()) == live.model().n_tokens() && mask == mask_) return;
  mask_ = mask;
  ++mask_version_;
}

render::RowNumbers PictureSource::rows(core::attention::Stage stage, std::size_t head) const {
  if (!live_ || head >= live_->trace().heads.size()) return {};
  const core::attention::fast::RowView view = live_->rows(stage, head);
  return {view.numbers, view.stride, view.n_rows, view.n_cols, view.row_factors};
}

const render::CellChange* PictureSource::change(std::size_t head) const {
  return head < changes_.size() ? &changes_[head] : nullptr;
}

}  // namespace app
