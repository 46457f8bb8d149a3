#pragma once

#include <memory>
#include <optional>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "core/base/thread_pool.hpp"
#include "core/circuits/composition.hpp"
#include "core/circuits/sources.hpp"

namespace app {

/// Circuits of the heads of a whole model, in the background while they are shown: how heads compose, the
/// pairs of tokens of the selected head, and the logit of the selected token by source token.
class LiveCircuits {
 public:
  explicit LiveCircuits(Jobs& jobs) : composition_(jobs), pairs_(jobs), logit_(jobs) {}

  /// Requests what is shown, or stops. Once a frame.
  void follow(const FullModelState& full_model, const ReadingRef& reading,
              const std::optional<std::size_t>& token, std::size_t head, bool is_shown,
              const std::shared_ptr<core::ThreadPool>& pool);
  void clear() { composition_.clear(), pairs_.clear(), logit_.clear(); }

  /// Return the last results, or nullptr.
  const core::circuits::Composition* composition() const { return composition_.value(); }
  const core::circuits::HeadCircuits* pairs() const { return pairs_.value(); }
  const core::circuits::WrittenSum* logit() const { return logit_.value(); }
  bool is_busy() const { return composition_.is_busy() || pairs_.is_busy() || logit_.is_busy(); }

 private:
  struct HeadKey {
    core::transformer::ModelRef model;
    std::size_t layer = 0, head = 0;
    friend bool operator==(const HeadKey&, const HeadKey&) = default;
  };
  struct LogitKey {
    core::transformer::PassRef pass;
    std::size_t token = 0;
    friend bool operator==(const LogitKey&, const LogitKey&) = default;
  };
  AsyncValue<core::transformer::ModelRef, core::circuits::Composition> composition_;
  AsyncValue<HeadKey, core::circuits::HeadCircuits> pairs_;
  AsyncValue<LogitKey, core::circuits::WrittenSum> logit_;
};

}  // namespace app
