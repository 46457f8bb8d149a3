#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/editing.hpp"
#include "core/graph/lazy_stages.hpp"

/// Bugs in attention: one table for the window, the command line, sessions and the check.
///
/// A bug edits the graph of a model. It may have several sides (projections), numbers and forms; a name,
/// sides, a form and numbers are all that a session stores. The check tries the cases that a bug lists for
/// what it observes, and fits numbers.
namespace core::bugs {

using attention::Model;
using attention::Precision;
using attention::ProjectionName;
using attention::SharedMatrix;
using attention::Stage;
using graph::Editing;
using Numbers = std::vector<double>;

struct Bug;

/// A bug with everything that an edit needs.
struct BugCase {
  const Bug* bug = nullptr;
  std::string sides = {};  ///< "qk": projections, or queries and keys, that are edited one after the other
  std::string form = {};
  Numbers numbers = {};
  /// Observed numbers that the edit writes, [sequence · n + k]; such a case is found but cannot be stored.
  std::shared_ptr<const std::vector<SharedMatrix>> observed = {};
  bool is_fitted = false;  ///< its numbers are where a fit begins

  void edit(Editing& editing) const;
  std::string words(const Editing& before) const;
};

/// What the check sees when it lists cases.
struct BugContext {
  const Editing& now;         ///< with the bugs found so far
  graph::LazyStages& stages;  ///< of it; those given before the target are as given
  Stage target;               ///< the first stage that differs
  std::array<const std::vector<SharedMatrix>*, attention::n_stages> given{};  ///< [sequence · n + k]
  double tolerance;           ///< largest difference of the target's numbers that counts as equal
  double estimate_tolerance;  ///< relative difference of numbers that are read off
  Precision precision;        ///< of the given numbers
  bool is_large;              ///< reading off all numbers takes too long
  std::vector<std::size_t> differing_rows;

  const Model& model() const { return now.model(); }
  const std::vector<SharedMatrix>* observed(Stage stage) const { return given[graph::index(stage)]; }
  /// Returns whether a change of a stage can reach the target: it has not been observed before that.
  bool reaches(Stage stage) const;
};

/// List of cases of one bug.
class BugCases {
 public:
  explicit BugCases(const Bug& bug) : bug_(bug) {}
  void add(Numbers numbers = {}, std::string form = {}, std::string sides = {}) {
    all.push_back({&bug_, std::move(sides), std::move(form), std::move(numbers)});
  }
  /// Adds numbers where a fit begins.
  void fit(Numbers start, std::string form = {}, std::string sides = {}) {
    add(std::move(start), std::move(form), std::move(sides));
    all.back().is_fitted = true;
  }
  std::vector<BugCase> all;

 private:
  const Bug& bug_;
};

/// A row of the table.
struct Bug {
  const char* name;  ///< "kv_heads:tiled": unique; what precedes the colon is the cause that the check names
  /// Edits one side of the graph; called once, with ProjectionName::query, if the case has no sides.
  void (*edit)(Editing&, const BugCase&, ProjectionName);
  /// Describes the bug in a graph without it, as a part of a sentence.
  std::string (*words)(const Editing& before, const BugCase&);
  /// Lists the cases to try; if not set, the only one has no sides, form and numbers.
  void (*cases)(const BugContext&, BugCases&) = nullptr;
  /// 0 a rule with a name, 1 a rule with a number, 2 a bare number, 3 a list of numbers, 4 a table of
  /// observations, which is no cause.
  int rank = 0;
  int (*rank_of)(const BugContext&, const BugCase&) = nullptr;  ///< instead of rank, if set
  bool in_pairs = true;                                         ///< tried in pairs when few stages are given
  bool is_last = false;                                         ///< of equal causes the others are reported
  /// Returns whether fitted numbers can be meant; if not set, all can.
  bool (*is_plausible)(const BugContext&, const BugCase&) = nullptr;

  int rank_in(const BugContext& context, const BugCase& of) const {
    return rank_of ? rank_of(context, of) : rank;
  }
};

/// Usual sides of bugs of queries and keys.
inline constexpr std::array query_key_sides{"qk", "q", "k"};

/// Returns all bugs, in the order of reporting.
std::span<const Bug* const> all_bugs();
/// Returns the bug of that name, or nullptr.
const Bug* find_bug(std::string_view name);
/// Returns the cause that a bug is reported as: its name up to the colon.
std::string_view cause_of(const Bug& bug);

/// Returns the stage of that name, which there must be.
Stage stage_named(std::string_view name);
/// Returns whether a model drops weights.
bool has_dropout(const Model& model);
/// Returns whether all fitted numbers of a list are equal; another row has that case with one number.
bool are_all_equal(const Numbers& numbers);
/// Returns the cases of all bugs, in the order of reporting.
std::vector<BugCase> bug_cases(const BugContext& context);

// Rows by what they edit, in the order of reporting.
std::span<const Bug> projection_bugs();
std::span<const Bug> norm_bugs();
std::span<const Bug> rotary_bugs();
std::span<const Bug> position_bugs();
std::span<const Bug> score_bugs();
std::span<const Bug> bias_bugs();
std::span<const Bug> mask_bugs();
std::span<const Bug> masking_bugs();
std::span<const Bug> softmax_bugs();
std::span<const Bug> output_bugs();
std::span<const Bug> report_bugs();

}  // namespace core::bugs
