#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/graph/bug_case.hpp"
#include "core/graph/editing.hpp"
#include "core/graph/lazy_stages.hpp"

/// Bugs in attention: one table for the window, the command line, sessions and the check.
///
/// A bug edits the graph of a model, or its mask: the model stays as intended and lists the bug, and removing
/// it from the list undoes it. A bug in an option (a scale, a mask, a precision) sets this option of the
/// model. A bug may have several sides (projections), numbers and forms. The check tries the cases that a bug
/// lists for what it observes, and fits numbers.
///
/// A row with a title can be injected. Such bugs are injected in the order of the table, each into the result
/// of those before it. So a view without the transpose wins over interleaved columns, the last block dropped
/// over blocks that are not rescaled, the softmax over queries over one in blocks, and offsets of positions
/// add up. An edit that finds nothing to change leaves the graph as it is: then the bug has no effect.
/// Rows without a title are only found; a case of theirs may be a bug that has one.
namespace core::bugs {

using attention::Model;
using attention::Precision;
using attention::ProjectionName;
using attention::SharedMatrix;
using attention::Stage;
using graph::Editing;

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
  /// Adds a case, unless numbers that were read off are not finite.
  void add(Numbers numbers = {}, std::string form = {}, std::string sides = {}) {
    if (!std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); })) return;
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

/// Fill {0} and {1} of a text with the digits of numbers; of a case also {number} with what its model calls
/// the first of them, {list} with all, {stages} with those of its sides, and {form}.
std::string filled(const char* text, const Numbers& numbers);
std::string filled(const char* text, const Editing& before, const BugCase& of);
inline std::string filled(const char* text, double x) {
  return filled(text, Numbers{x});
}
template <class Context, class Of>
std::string filled(const char* text, const Context&, const Of& numbers) {
  return filled(text, numbers);
}

/// A part of a sentence: a text that is filled(), or a function that writes it.
template <class... Args>
class Words {
 public:
  constexpr Words() = default;
  constexpr Words(const char* text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  template <std::convertible_to<std::string (*)(Args...)> Function>
  constexpr Words(Function write) : write_(write) {}  // NOLINT(google-explicit-constructor)

  constexpr explicit operator bool() const { return text_ || write_; }
  std::string operator()(Args... args) const { return write_ ? write_(args...) : filled(text_, args...); }

 private:
  const char* text_ = nullptr;
  std::string (*write_)(Args...) = nullptr;
};

/// What menus and the command line tell of a bug.
struct BugTexts {
  const char* title = nullptr;      ///< in a menu: "no scale"
  const char* about = "";           ///< one sentence: what the code does
  const char* fix = "";             ///< one sentence: what to do instead; see fix_in()
  Stage first = Stage::embeddings;  ///< no earlier stage can change
  /// Returns whether a model has the feature concerned; if not set, every model has.
  bool (*has_feature)(const Model&) = nullptr;
};

/// How a bug in options of a model is made, seen and mended.
struct BugOption {
  void (*set)(Model&) = nullptr;  ///< does nothing if there is nothing to change
  /// Returns whether the options have the bug; if not set, they never do.
  bool (*is_set)(const Model&) = nullptr;
  /// Corrects the options; if not set, the numbers needed for that are lost.
  void (*mend)(Model&) = nullptr;
};

/// Case of a row that is only found.
struct FoundCase {
  const char* bug = nullptr;
  const char *form = "", *sides = "";
  bool (*fits)(const Editing& before, const Numbers&) = nullptr;  ///< if set, else all numbers fit

  bool is(const BugCase& found, const Editing& before) const;
};

/// A row of the table.
struct Bug {
  const char* name;  ///< "kv_heads:tiled": unique
  /// A form of another row that no menu offers; the check finds it, and sessions store it.
  bool is_form = false;
  BugTexts texts = {};    ///< if it can be injected
  BugOption option = {};  ///< if it is an option of the model
  /// Changes the mask that the graph is built with; in a search, edit does.
  void (*change_mask)(attention::Mask&, const Model&, const Numbers&) = nullptr;
  /// Edits one side of the graph; called once, with ProjectionName::query, if there are no sides.
  void (*edit)(Editing&, const BugCase&, ProjectionName) = nullptr;
  const char* default_sides = "";  ///< of a case that names none
  const char* cause = nullptr;     ///< as the check names it, if not what precedes the colon of the name
  bool has_size = false;           ///< its number is called its size in sessions
  std::array<FoundCase, 3> is_also = {};             ///< the same bug, found as a case of other rows
  Words<const Editing&, const BugCase&> words = {};  ///< describes the bug in a graph without it
  /// Returns whether a graph can have the only case to try, which has no sides, form and numbers; if not set,
  /// it can if words describe it.
  bool (*fits)(const Editing&) = nullptr;
  /// Lists the cases to try instead.
  void (*cases)(const BugContext&, BugCases&) = nullptr;
  /// 0 a rule with a name, 1 a rule with a number, 2 a bare number, 3 a list of numbers, 4 a table of
  /// observations, which is no cause.
  int rank = 0;
  int (*rank_of)(const BugContext&, const BugCase&) = nullptr;  ///< instead of rank, if set
  bool in_pairs = true;                                         ///< tried in pairs when few stages are given
  bool is_last = false;                                         ///< of equal causes the others are reported
  /// Returns whether fitted numbers can be meant; if not set, all can.
  bool (*is_plausible)(const BugContext&, const BugCase&) = nullptr;

  bool is_option() const { return option.set; }
  bool is_offered() const { return texts.title && !is_form; }
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
/// Returns the place in the order of injection.
std::size_t order_of(const Bug& bug);
/// Returns the cause that a bug is reported as: usually its name up to the colon.
std::string_view cause_of(const Bug& bug);
/// Returns the bugs that a case found in a graph is: those with a title that include it, or else its own;
/// several if it is one of them on each side.
std::vector<const Bug*> names_of(const BugCase& found, const Editing& before);
/// Returns all bugs with a title that include a case found in a graph: which of them it is, its numbers
/// cannot tell.
std::vector<const Bug*> titles_of(const BugCase& found, const Editing& before);

/// Returns the bugs that menus and the command line offer, in the order of the stages that they change.
std::span<const Bug* const> offered_bugs();
/// Returns the offered bug of that name, or nullptr.
const Bug* find_offered_bug(std::string_view name);

/// Returns the row of a form, or nullptr.
template <class Rows>
const auto* find_form(const Rows& rows, std::string_view form) {
  const auto found =
      std::ranges::find(rows, form, [](const auto& row) { return std::string_view(row.form); });
  return found == std::end(rows) ? nullptr : &*found;
}
/// Returns the row of a form, which there must be.
template <class Rows>
const auto& of_form(const Rows& rows, std::string_view form) {
  return *find_form(rows, form);
}
/// Describes a case by the row of its form.
template <const auto& rows>
std::string form_words(const Editing& before, const BugCase& c) {
  const auto& words = of_form(rows, c.form).words;
  if constexpr (std::is_same_v<decltype(words), const char* const&>)
    return words;
  else if constexpr (std::is_invocable_v<decltype(words), double>)
    return words(c.number());
  else
    return words(before, c);
}
/// Returns the stage of that name, which there must be.
Stage stage_named(std::string_view name);
/// Returns what stands before the colon of a form, as a stage, and what stands behind it.
std::pair<Stage, std::string> stage_and_form(const BugCase& of);
/// Returns the projection of a side, which must be q, k, v or o.
ProjectionName part_of(char side);

// What several rows ask of a graph: whether queries and keys are rotated, it has several heads, as many keys
// as queries, values as wide as queries and keys.
bool rotates(const Editing& edited);
bool has_several_heads(const Editing& edited);
bool are_scores_square(const Editing& edited);
bool have_one_width(const Editing& edited);
/// Returns the rules of its mask, which must have some.
const attention::Mask& mask_of(const Editing& edited);
/// Returns the width of a side of a window, −1 if it has no end.
double width_or_none(const std::optional<std::size_t>& side);
/// Masked scores or weights as observed, from which the mask can be read off.
struct ObservedMask {
  const std::vector<SharedMatrix>* matrices = nullptr;  ///< [sequence · n_heads + head]; none if neither is
  double masked = 0;                                    ///< the number of masked cells
  bool is_masked(std::size_t k, std::size_t query, std::size_t key) const {
    return (*matrices)[k]->at(query, key) == masked;
  }
};
ObservedMask observed_mask(const BugContext& context);
/// Lets each head have a mask of its own.
void mask_by_head(Editing& edited);
/// Returns whether a model drops weights.
bool has_dropout(const Model& model);

/// Returns whether the first number of a case is n.
template <int n>
bool is_number(const Editing&, const Numbers& x) {
  return x[0] == n;
}
/// Returns whether all fitted numbers of a list are equal; another row has that case with one number.
bool are_all_equal(const Numbers& numbers);
/// Returns the sum of an input's matrices of all heads.
arma::mat sum_of_heads(const graph::OperationInputs& in, std::size_t k = 0);
/// Returns weights divided by the sums of their rows.
arma::mat normalized(arma::mat weights);
/// Returns the cases of all bugs, in the order of reporting.
std::vector<BugCase> bug_cases(const BugContext& context);

// Rows by what they edit, in the order of reporting.
std::span<const Bug> offered_projection_bugs();
std::span<const Bug> offered_score_bugs();
std::span<const Bug> projection_bugs();
std::span<const Bug> norm_bugs();
std::span<const Bug> rotary_bugs();
std::span<const Bug> position_bugs();
std::span<const Bug> score_bugs();
std::span<const Bug> bias_bugs();
std::span<const Bug> mask_bugs();
std::span<const Bug> masking_bugs();
std::span<const Bug> cache_bugs();
std::span<const Bug> softmax_bugs();
std::span<const Bug> dropout_bugs();
std::span<const Bug> output_bugs();
std::span<const Bug> report_bugs();

}  // namespace core::bugs
