#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "app/session/jobs.hpp"
#include "core/base/thread_pool.hpp"
#include "core/model/experiment_reading.hpp"

namespace app {

/// What becomes of a token when a head is switched off.
struct HeadEffect {
  double logit_change = 0, probability = 0;
};

/// What they are of: a reading, and the token that comes next.
struct EffectsKey {
  std::shared_ptr<const core::experiment::Reading> reading;
  std::size_t token = 0;
  double temperature = 1;
  friend bool operator==(const EffectsKey&, const EffectsKey&) = default;
};

/// Switches heads off, one after the other, beside the window.
class HeadEffects {
 public:
  using Head = std::pair<std::size_t, std::size_t>;  ///< layer and number

  explicit HeadEffects(Jobs& jobs) : lane_(jobs) {}

  /// Goes after the effect of one head, and after those of all heads while it sweeps; effects of another key
  /// are let go of. Once a frame.
  void follow(const core::transformer::Transformer& model, const EffectsKey& key, Head wanted,
              const std::shared_ptr<core::ThreadPool>& pool);
  /// Begins to switch every head off in its turn; ends when all are, or when one cannot be.
  void sweep() { found_.sweeps = true; }
  /// Lets go of all that was found.
  void clear();

  std::optional<HeadEffect> of(Head head) const;
  std::size_t n_known() const { return found_.effects.size(); }
  double largest() const { return found_.largest; }  ///< on the logit
  bool is_sweeping() const { return found_.sweeps; }
  bool is_busy() const { return lane_.is_busy() || found_.sweeps; }

 private:
  /// What was found of one key.
  struct Found {
    std::optional<EffectsKey> of;
    std::map<Head, HeadEffect> effects;
    double largest = 0;
    bool sweeps = false, has_failed = false;
  };
  std::vector<Head> missing(Head wanted) const;

  Found found_;
  Lane lane_;
};

}  // namespace app
