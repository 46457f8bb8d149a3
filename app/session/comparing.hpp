#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "app/session/comparison.hpp"
#include "app/session/jobs.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/tensor_check.hpp"

namespace app {

/// Keeps the comparison of the chosen reference with the live model up to date, beside the window where that
/// takes longer than a frame: the reference's trace or the check of its tensors, then what differs, then what
/// explains it.
class Comparing {
 public:
  explicit Comparing(Jobs& jobs)
      : jobs_(jobs), kept_(jobs), checks_(jobs), searches_(jobs), comparisons_(jobs) {}

  /// Before every frame in which a reference is shown: goes after its trace and, if asked, after what differs
  /// from the live one. The comparison stays that of the last complete state meanwhile. Throws core::Error.
  void follow(const Reference& reference, const LiveTrace& live, std::size_t head,
              core::compare::DifferenceKind kind, bool compares);
  /// Lets go of everything, as no reference is shown.
  void stop();

  /// Looks for what explains the tensors that follow() is told of next, as they are then.
  void search() { wants_search_ = true; }
  void stop_search();

  /// The last complete comparison with the followed reference, or nullptr.
  const Comparison* comparison() const;
  /// The trace of the followed reference, or nullptr as long as it is not there and for tensors.
  const LiveTrace* kept() const;
  ComparisonWork work() const;

  /// Whether anything is under way beside the window.
  bool is_busy() const;

 private:
  using Check = std::shared_ptr<const TensorCheck>;

  void follow_kept(const Reference& reference, const LiveTrace& live, const ComparisonKey& key,
                   bool compares);
  void follow_tensors(const Reference& reference, const LiveTrace& live, const ComparisonKey& key,
                      bool compares);
  void begin_check(Slot<CheckKey, Check>& where, const CheckKey& key, const Reference& reference,
                   const LiveTrace& live);

  Jobs& jobs_;
  std::optional<std::uint64_t> reference_;  // that is followed
  bool is_of_tensors_ = false;
  core::attention::Model kept_model_;  // whose trace is wanted
  LiveTrace kept_;
  Slot<CheckKey, Check> checks_,
      searches_;  // without and with a search, so that the first difference is there at once
  bool wants_search_ = false;
  std::optional<CheckKey> search_for_;
  std::optional<ComparisonKey> wanted_;  // that is shown, or is to be
  std::uint64_t revision_ = 0;
  Slot<ComparisonKey, std::shared_ptr<const Comparison>> comparisons_;
};

}  // namespace app
