#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/bug_scene.hpp"

namespace core::check {

/// A bug in a graph.
struct BugHit {
  bugs::BugCase bug;
  std::string words;
  int rank = 0;
  std::shared_ptr<const Editing> edited;  ///< with it and those before
  double score = 0;                       ///< distance of the target
  double worst = 0;  ///< largest distance of an observed stage, if the numbers are not exact
  std::vector<bugs::BugCase> equivalent = {};  ///< other cases with the same numbers
};
using BugHits = std::vector<BugHit>;

/// Work of a search. Deadlines are amounts of it, so that results do not depend on the machine.
struct SearchBudget {
  const core::StopToken& token;
  graph::Work& work;

  double spent() const { return work.cells; }
  bool should_continue(double deadline) const { return token.should_continue() && spent() < deadline; }
  /// Returns the deadline after a part of what is left until another one.
  double part_of(double part, double deadline) const { return spent() + part * (deadline - spent()); }
};

/// Hypotheses about a scene: lists cases of bugs, fits their numbers, judges them.
class BugTrials {
 public:
  BugTrials(const Observation& of, std::shared_ptr<const Editing> now, Stage target, SearchBudget budget)
      : scene(of, std::move(now), target, budget.work), context(scene.context()), o_(of), budget_(budget) {}

  const BugScene scene;
  const bugs::BugContext context;

  /// Returns the cases to try; of many places where a fit may begin, only the closest. Lists them once.
  const std::vector<bugs::BugCase>& cases(double deadline);
  /// Returns the cases that make the target agree, by rank.
  BugHits hits(const std::vector<bugs::BugCase>& cases, double deadline, double slack);
  /// Returns bugs that make some rows of the target agree: half of a pair at one stage.
  BugHits partial_hits(double deadline);

  /// Returns the graph with a bug, or with two one after the other.
  Editing edited(const bugs::BugCase& bug) const;
  Editing edited(const bugs::BugCase& first, const bugs::BugCase& second) const;
  bool reaches_target(const Editing& now) const;
  /// Returns the distance of the target after an edit, ∞ as soon as it is more than `slack`.
  double judge(const Editing& now, double slack) const;
  BugHit hit_of(const bugs::BugCase& bug, Editing now, double score) const;

  /// Bugs with fitted numbers, and the sum of the squares that remain.
  struct FittedBugs {
    std::vector<bugs::BugCase> bugs;
    double squares = graph::infinity;
  };
  /// Fits the numbers of bugs by Levenberg–Marquardt.
  std::optional<FittedBugs> fit(std::vector<bugs::BugCase> bugs, std::size_t n_steps = 24) const;
  /// Whether numbers can be meant: none too large, and no list fitted to another stage than the target, which
  /// coarse rounding leaves too uncertain.
  bool is_plausible(const bugs::BugCase& bug) const;

 private:
  std::optional<arma::vec> residual(const Editing& now, bool of_probe) const;
  std::vector<bugs::BugCase> with_closest_starts(std::vector<bugs::BugCase> all, double deadline) const;

  const Observation& o_;
  SearchBudget budget_;
  std::optional<std::vector<bugs::BugCase>> cases_;
};

}  // namespace core::check
