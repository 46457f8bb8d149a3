#pragma once

#include <cstdint>
#include <vector>

#include "app/render/pool.hpp"
#include "core/attention/model.hpp"
#include "core/attention/stages.hpp"

namespace app {

class LiveTrace;

/// Where pictures of the live trace find the numbers of a stage as they are kept, and what of them has changed.
class PictureSource {
 public:
  /// Before every frame; the live trace must stay until the next.
  void follow(const LiveTrace& live);

  /// The numbers of a stage, or nothing when they are not kept row after row.
  render::RowNumbers rows(core::attention::Stage stage, std::size_t head) const;
  /// What differs from the version before, in the stages that rows() knows; nullptr for everything.
  const render::CellChange* change(std::size_t head) const;
  /// Another number: another mask.
  std::uint64_t mask_version() const { return mask_version_; }

 private:
  const LiveTrace* live_ = nullptr;
  std::uint64_t version_ = 0, mask_version_ = 0;
  std::size_t n_tokens_ = 0;
  core::attention::Mask mask_;
  std::vector<render::CellChange> changes_;  // [head]; empty for everything
};

}  // namespace app
