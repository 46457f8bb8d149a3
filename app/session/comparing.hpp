#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/session/jobs.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/picture_source.hpp"
#include "core/check/check.hpp"
#include "core/graph/compare.hpp"
#include "core/graph/difference.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/statistics.hpp"
#include "core/graph/trace.hpp"

namespace core::formats {
class TensorFile;
}

namespace app {

struct TensorCheck;

/// A kept model, or tensors, to compare with the live model.
struct Reference {
  std::string name;   ///< "A2"
  std::string title;  ///< "mask off · Your journey"
  core::attention::Model model;
  std::uint64_t id = 0;  ///< unique
  /// Index in core::compare::switches() of the switch that made it, if one did.
  std::optional<std::size_t> experiment = std::nullopt;
  /// Observed tensors, which are B while the live model is A; else nullptr.
  std::shared_ptr<const core::formats::TensorFile> tensors = nullptr;
  std::map<std::string, std::string> by_hand = {};  ///< stages of tensors, as set by the user
  std::string layout = {}, layer = {};  ///< the same: names, or "" for whichever fits and the first
  std::size_t mapping_version = 0;      ///< how often the user has changed these
};

/// One stage of A against the same stage of B.
struct ComparedStage {
  core::compare::StageDifference all;  ///< over all heads
  std::string formula;                 ///< in the live model, else in the reference
  core::compare::MaxDifference shown;  ///< in the displayed head
  /// In the displayed head: the numbers of both and their difference of the chosen kind; empty where nothing
  /// differs or the shapes do.
  arma::mat numbers_a, numbers_b, difference;
  bool within = false;                ///< it does not differ; for tensors: it agrees within the tolerance
  ValueRange a, b, difference_range;  ///< of these matrices
};

/// Inputs of a comparison.
struct ComparisonKey {
  std::uint64_t reference = 0, trace = 0;  ///< of A: which one, and the version of its trace or of its check
  std::uint64_t version = 0;               ///< of the live trace
  std::size_t sequence = 0, head = 0;
  core::compare::DifferenceKind kind{};
  /// Whether both compare the same numbers, whatever is displayed of them.
  bool same_numbers(const ComparisonKey& other) const;
  bool is_compatible(const ComparisonKey& other) const { return reference == other.reference; }
  friend bool operator==(const ComparisonKey&, const ComparisonKey&) = default;
};

/// The chosen reference A against the live model B, for the displayed sequence; tensors are B and the live
/// model is A.
struct ReferenceComparison {
  ComparisonKey key;
  std::uint64_t revision = 0;    ///< changes with the numbers
  core::attention::Model model;  ///< of the reference; for tensors the live one
  core::attention::Model live;   ///< the live model that it was compared with
  std::size_t sequence = 0;      ///< of the reference: the displayed one, or its last when it has fewer
  std::shared_ptr<const core::attention::Trace>
      trace;  ///< of the reference; for tensors only the stages that they have
  std::shared_ptr<const TensorCheck> tensors;  ///< when the reference is of tensors
  bool is_exact = true;                        ///< equal means equal to the bit; else to rounding
  std::vector<ComparedStage> stages;
  const ComparedStage* first = nullptr;  ///< the first of them that differs
  /// n_tokens × n_keys, 0 where masked: in the reference, in the live model, in both (empty for two shapes).
  arma::mat visible_reference, visible_live, visible;
  arma::mat dropout_mask_reference,
      dropout_mask_live;  ///< the displayed head's dropout masks, where dropout differs
};

/// Returns the sequence for which the live model was compared.
const core::attention::Sequence& live_sequence(const ReferenceComparison& comparison);

/// State of the work on a pending comparison, for panels.
struct ComparisonProgress {
  bool is_updating = false;   ///< the comparison is of an earlier state, or missing
  double seconds = 0;         ///< for how long
  bool is_searching = false;  ///< for causes of the difference of tensors
  double seconds_searched = 0;
  std::size_t n_tried = 0;  ///< bugs, alone or in pairs
};

/// Returns why A cannot replace B in the views, "A is 4×3 to 2 with 1 head, B 6×3 to 2 with 2 heads", or "".
std::string replacement_problem(const core::attention::Model& a, const core::attention::Model& b);

/// One side of a comparison.
struct ComparedState {
  core::attention::Model model;
  std::shared_ptr<const core::attention::Trace> trace;
  std::size_t sequence = 0;
  bool is_exact = true;  ///< the trace equals attend()'s
};

/// Compares a kept state with the live one; reuses the differences over all heads of an older comparison, or
/// nullptr, of the same numbers. The result is incomplete once token.goes_on() is false.
std::shared_ptr<const ReferenceComparison> compare_states(const ComparisonKey& key, std::uint64_t revision,
                                                          const ComparedState& kept,
                                                          const ComparedState& live,
                                                          const ReferenceComparison* older,
                                                          const core::StopToken& token);

/// Compares the live trace, A, with tensors that were checked against it, B.
std::shared_ptr<const ReferenceComparison> compare_tensors(const ComparisonKey& key, std::uint64_t revision,
                                                           std::shared_ptr<const TensorCheck> check,
                                                           const ComparedState& live,
                                                           const core::StopToken& token);

/// Result of checking tensors against the live model.
struct TensorCheck {
  core::check::MatchResult matched;
  core::check::Report report;                  ///< points into matched
  bool searched = false;                       ///< whether all causes were tried
  std::string problem;                         ///< why nothing can be compared, or ""
  std::vector<core::attention::Stage> stages;  ///< those that the tensors have
  core::attention::Trace observed;             ///< has only these stages
};

/// Inputs of a check.
struct CheckKey {
  std::uint64_t reference = 0, version = 0;  ///< of the tensors and of the live trace
  std::size_t sequence = 0, mapping_version = 0;
  bool searches = false;  ///< for causes of their difference
  bool is_compatible(const CheckKey& other) const {
    return reference == other.reference && !searches && !other.searches;
  }
  friend bool operator==(const CheckKey&, const CheckKey&) = default;
};

/// Reads a reference's tensors as stages of the live model and checks them; the token counts the causes that
/// were tried. The search ends early once token.goes_on() is false.
std::shared_ptr<const TensorCheck> check_tensors(const CheckKey& key, const Reference& reference,
                                                 const core::attention::Model& live,
                                                 const core::StopToken& token);

/// Keeps the comparison of the chosen reference with the live model up to date, in the background where that
/// takes longer than a frame: the reference's trace or the check of its tensors, then the differences, then
/// their causes.
class LiveComparison {
 public:
  explicit LiveComparison(Jobs& jobs)
      : jobs_(jobs), snapshot_(jobs), checks_(jobs), searches_(jobs), comparisons_(jobs) {}

  /// Updates the reference's trace and, if `compares`, the comparison; must be called before every frame that
  /// shows a reference. Meanwhile comparison() is of the last complete state. Throws core::Error.
  void follow(const Reference& reference, const LiveTrace& live, std::size_t head,
              core::compare::DifferenceKind kind, bool compares);
  /// Drops everything, as no reference is shown.
  void stop();

  /// Searches for causes of the difference of the tensors that follow() gets next.
  void search() { wants_search_ = true; }
  void stop_search();

  /// Returns the last complete comparison with the followed reference, or nullptr.
  const ReferenceComparison* comparison() const;
  /// Returns the trace of the followed reference, or nullptr while it is pending and for tensors.
  const LiveTrace* snapshot() const;
  ComparisonProgress work() const;

  /// Whether anything runs in the background.
  bool is_busy() const;

 private:
  using TensorCheckRef = std::shared_ptr<const TensorCheck>;

  void follow_kept(const Reference& reference, const LiveTrace& live, const ComparisonKey& key,
                   bool compares);
  void follow_tensors(const Reference& reference, const LiveTrace& live, const ComparisonKey& key,
                      bool compares);
  void begin_check(AsyncValue<CheckKey, TensorCheckRef>& where, const CheckKey& key,
                   const Reference& reference, const LiveTrace& live);

  Jobs& jobs_;
  std::optional<std::uint64_t> reference_;  // the followed one
  bool is_of_tensors_ = false;
  core::attention::Model snapshot_model_;  // whose trace is wanted
  LiveTrace snapshot_;
  AsyncValue<CheckKey, TensorCheckRef> checks_,
      searches_;  // without and with a search, so that the first difference is known early
  bool wants_search_ = false;
  std::optional<CheckKey> search_for_;
  std::optional<ComparisonKey> wanted_;  // displayed or pending
  std::uint64_t revision_ = 0;
  AsyncValue<ComparisonKey, std::shared_ptr<const ReferenceComparison>> comparisons_;
};

}  // namespace app
