#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/check/recipe.hpp"

/// Table of deviations: common errors in attention, each with its parameters, its sentence, the stages that
/// it changes first, and its effect on a recipe.
///
/// Small discrete parameters have a row each; values that can be read off the given tensors become a row;
/// other numbers are fitted by the search, which judges all rows.
namespace core::check::inference {

using Numbers = std::vector<double>;

struct Deviation {
  const char* name;
  StageSet affected_stages;  ///< first stages that change
  std::string words;         ///< description, as a part of a sentence
  std::function<void(Recipe&, const Numbers&)> apply;
  Numbers start = {};  ///< initial values of the fit; empty if nothing is fitted
  /// Description and rank for fitted numbers.
  std::function<std::string(const Numbers&)> describe_fit = {};
  std::function<int(const Numbers&)> rank_fit = {};
  /// 0 named rule, 1 rule with a number, 2 bare number, 3 list of numbers, 4 a table of observations, which
  /// is no cause.
  int rank = 0;
  std::string sides = {};  ///< "qk": projections, or queries and keys, that it affects
  std::string key = {};    ///< groups starts, of which only the closest are fitted
  bool by_rows = true;     ///< query rows can be computed separately
  bool in_pairs = true;    ///< it is tried in pairs when few stages are given

  std::string words_of(const Numbers& x) const { return describe_fit ? describe_fit(x) : words; }
  int rank_of(const Numbers& x) const { return rank_fit ? rank_fit(x) : rank; }
  // Setters for the rows of the table.
  Deviation& ranked(int r) { return rank = r, *this; }
  Deviation& of(std::string who) { return sides = std::move(who), *this; }
  Deviation& needs_all_rows() { return by_rows = false, *this; }
  Deviation& alone() { return in_pairs = false, *this; }
  Deviation& group_starts(std::string starts) { return key = std::move(starts), *this; }
};

/// Input of the table: the recipe with the causes so far, the observed stages, and the first stage that
/// differs.
struct Context {
  const Recipe& m;
  Stage target;
  std::array<SharedBlock, attention::n_stages> given;  ///< observed stages
  Run& run;          ///< of the recipe, with the stages given before the target
  StageSet visited;  ///< stages between the given ones and the target
  double tolerance,
      estimate_tolerance;  ///< largest allowed difference of the target; relative one of values read off
  Precision precision;     ///< of the tensors
  bool is_large;
  std::vector<std::size_t> differing_rows;

  bool visits(std::initializer_list<Stage> stages) const {
    return std::ranges::any_of(stages, [&](Stage s) { return visited[index(s)]; });
  }
  const Block* observed(Stage stage) const { return given[index(stage)].get(); }
  bool has(Stage stage) const { return m.has(stage); }
};

/// Returns all deviations that could change the target, in the order of reporting.
std::vector<Deviation> deviations(const Context& context);

/// Stages listed in a row of the table.
struct Stages : StageSet {
  Stages(std::initializer_list<Stage> stages) : StageSet(set_of(stages)) {}
  Stages(StageSet stages) : StageSet(stages) {}
};

/// Builder of the table.
struct Table {
  const Context& c;
  std::vector<Deviation> rows = {};
  template <class... Arguments>
  using Change = std::function<void(Recipe&, Arguments...)>;

  Deviation& add(const char* name, Stages affected_stages, std::string words, Change<> change);
  /// Adds a change that is applied after a stage is computed.
  Deviation& add_transform(const char* name, Stage stage, std::string words, Recipe::Transform change);
  /// Adds a change that is applied to each of some sides.
  Deviation& add_sides(const char* name, const std::string& sides, std::string words, Change<Side> change,
                       const std::array<Stage, 4>& stages = side_stage);
  /// Add a row with fitted numbers; and one with a single fitted number for each of some sides.
  Deviation& fit(const char* name, Stages affected_stages, Numbers start,
                 std::function<std::string(const Numbers&)> describe_fit, Change<const Numbers&> change);
  Deviation& fit_sides(const char* name, const std::string& sides, double start,
                       std::function<std::string(double)> describe_fit, Change<Side, double> change,
                       const std::array<Stage, 4>& stages = side_stage);
};
void add_projections(Table& table);
void add_norms(Table& table);
void add_rotations(Table& table);
void add_scores(Table& table);
void add_biases(Table& table);
void add_masks(Table& table);
void add_softmax(Table& table);
void add_outputs(Table& table);
void add_reports(Table& table);

// Numbers in words.

/// Returns "0.353553 = 1/√d_head"; if is_plain, a number of two digits has no name.
std::string number(double f, const Recipe& m, bool is_plain = true);
/// Returns 1 for a factor that people write (with a known name, whole, or of two digits), 2 for others.
int rank_of_factor(double f, const Recipe& m);
/// Returns "[0.5, 0.25, …]".
std::string listed(const Numbers& numbers, const Recipe& m, std::size_t maximum = 12);
std::string listed(const std::vector<std::size_t>& numbers, std::size_t maximum = 16);
/// Returns "the bias is missing", "… is added twice", "… counts 1.5 times".
std::string factor_words(double f, const std::string& what, const Recipe& m);
/// Returns "4 behind", "2 ahead".
std::string shift_words(double n);
/// Returns a number with at most n significant digits.
std::string digits(double f, int n = 6);
std::string name_of(Stage stage);  ///< "rotated queries"
/// Returns "queries and keys" for "qk".
std::string names_of(std::string_view sides);
Side side_of(char letter);
/// Returns the stages of sides: of their projections, norms or rotations.
StageSet stages_of(std::string_view sides, const std::array<Stage, 4>& stages = side_stage);
inline constexpr std::array query_key_sides{"qk", "q", "k"};
/// Describes a list of source indices, as a rule if possible: "every head is head +1 (cyclic)".
std::string order_words(const std::vector<std::size_t>& order, const std::string& what);
/// Returns all shifts, the reverse, the interleavings and the swap of neighbors of n items.
std::vector<std::vector<std::size_t>> usual_orders(std::size_t n);

}  // namespace core::check::inference
