#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "app/render/pool.hpp"
#include "app/worker.hpp"
#include "core/attention/model.hpp"
#include "core/attention/stages.hpp"

namespace app {

class LiveTrace;

/// Where pictures of the live trace find the numbers of a stage, as they are kept or made whole beside the window, and
/// what of them has changed.
class PictureSource {
 public:
  /// Before every frame; the live trace must stay until the next.
  void follow(const LiveTrace& live);

  /// The numbers of a stage, or nothing when they are not kept row after row.
  render::RowNumbers rows(core::attention::Stage stage, std::size_t head) const;
  /// What differs from the version before, in the stages that rows() knows; nullptr for everything.
  const render::CellChange* change(std::size_t head) const;
  /// n_tokens × n_keys, 0 = hidden; made anew only for another mask.
  const arma::mat& visible() const;
  /// Another number: another mask.
  std::uint64_t mask_version() const { return mask_version_; }

  /// Whether all numbers of a stage can be read at once. If that would take too long they are made beside the window, once
  /// the trace has stayed the same for a frame.
  bool is_ready(core::attention::Stage stage, std::size_t head) const;
  /// Whether stages are being made, or will be in the next frame.
  bool is_making() const { return !wanted_.empty() || worker_.is_busy(); }
  /// Makes no more, as the trace is going to change; whether nobody reads it any longer.
  bool stop();
  /// Is called from another thread when there is something new.
  void when_done(std::function<void()> call) { worker_.when_done(std::move(call)); }

 private:
  using StageOf = std::pair<core::attention::Stage, std::size_t>;
  void make_wanted();

  const LiveTrace* live_ = nullptr;
  std::uint64_t version_ = 0, mask_version_ = 0;
  std::size_t n_tokens_ = 0;
  core::attention::Mask mask_;
  std::vector<render::CellChange> changes_;  // [head]; empty for everything
  mutable std::optional<arma::mat> visible_;
  mutable std::set<StageOf> wanted_;
  Worker worker_;
};

}  // namespace app
