#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/check/recipe.hpp"

/// The table of deviations: what people get wrong in attention, each with its parameters, its sentence, the
/// stages that it changes first and how it is applied to a recipe.
///
/// Small discrete parameters are rows of their own; what can be read off the given tensors becomes a row with
/// that value; other numbers are fitted by the search, which judges all of them and decides nothing here.
namespace core::check::inference {

using Numbers = std::vector<double>;

struct Deviation {
  const char* name;
  StageSet acts;      ///< the stages that change first
  std::string words;  ///< what is done, as a part of a sentence
  std::function<void(Recipe&, const Numbers&)> apply;
  Numbers start = {};  ///< where the fit of its numbers begins; empty where nothing is fitted
  /// The sentence and the rank of fitted numbers.
  std::function<std::string(const Numbers&)> says = {};
  std::function<int(const Numbers&)> ranks = {};
  /// 0 a rule with a name, 1 a rule with a number, 2 a bare number, 3 a list of numbers, 4 only a table of
  /// what is there, which is no cause.
  int rank = 0;
  std::string sides = {};  ///< "qk": of projections or queries and keys that it names
  std::string key = {};    ///< of starts of which the nearest are enough
  bool by_rows = true;     ///< each row of queries can be computed without the others
  bool in_pairs = true;    ///< it may be looked for in pairs where little is given

  std::string words_of(const Numbers& x) const { return says ? says(x) : words; }
  int rank_of(const Numbers& x) const { return ranks ? ranks(x) : rank; }
  // For the table.
  Deviation& ranked(int r) { return rank = r, *this; }
  Deviation& of(std::string who) { return sides = std::move(who), *this; }
  Deviation& whole() { return by_rows = false, *this; }
  Deviation& alone() { return in_pairs = false, *this; }
  Deviation& nearest_of(std::string starts) { return key = std::move(starts), *this; }
};

/// What the rows of the table may look at: the recipe with the causes so far, somebody's numbers, and the
/// first stage that differs.
struct Context {
  const Recipe& m;
  Stage target;
  std::array<Shared, attention::n_stages> given;  ///< somebody's stages
  Run& run;                                       ///< of the recipe, with what was given before the target
  StageSet visited;                               ///< stages that lie between what is given and the target
  double tolerance, loose;  ///< how far numbers of the target may be apart; and relative, of what is read off
  Precision precision;      ///< that the tensors are kept in
  bool is_large;
  std::vector<std::size_t> differing_rows;

  bool visits(std::initializer_list<Stage> stages) const {
    return std::ranges::any_of(stages, [&](Stage s) { return visited[index(s)]; });
  }
  const Block* theirs(Stage stage) const { return given[index(stage)].get(); }
  bool has(Stage stage) const { return m.has(stage); }
};

/// All deviations that could change the target, in the order in which they are told.
std::vector<Deviation> deviations(const Context& context);

/// Stages, as rows of the table list them.
struct Stages : StageSet {
  Stages(std::initializer_list<Stage> stages) : StageSet(set_of(stages)) {}
  Stages(StageSet stages) : StageSet(stages) {}
};

/// Rows of the table while it is written.
struct Table {
  const Context& c;
  std::vector<Deviation> rows = {};
  template <class... Arguments>
  using Change = std::function<void(Recipe&, Arguments...)>;

  Deviation& add(const char* name, Stages acts, std::string words, Change<> change);
  /// A row of what is done to a stage where it is computed.
  Deviation& add_then(const char* name, Stage stage, std::string words, Recipe::Then change);
  /// A row of what is done to each of some sides.
  Deviation& add_sides(const char* name, const std::string& sides, std::string words, Change<Side> change,
                       const std::array<Stage, 4>& stages = side_stage);
  /// A row whose numbers are fitted from there on; and one whose only number is that of each of some sides.
  Deviation& fit(const char* name, Stages acts, Numbers start,
                 std::function<std::string(const Numbers&)> says, Change<const Numbers&> change);
  Deviation& fit_sides(const char* name, const std::string& sides, double start,
                       std::function<std::string(double)> says, Change<Side, double> change,
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

// Numbers in the field's words.

/// "0.353553 = 1/√d_head"; with is_plain a number of two digits goes without a name.
std::string number(double f, const Recipe& m, bool is_plain = true);
/// 1 for a factor that somebody writes: one with a name in the field's terms, a whole one or one of two
/// digits; 2 for others.
int rank_of_factor(double f, const Recipe& m);
/// "[0.5, 0.25, …]".
std::string listed(const Numbers& numbers, const Recipe& m, std::size_t most = 12);
std::string listed(const std::vector<std::size_t>& numbers, std::size_t most = 16);
/// "the bias is missing", "… is added twice", "… counts 1.5 times".
std::string times(double f, const std::string& what, const Recipe& m);
/// "4 behind", "2 ahead".
std::string behind(double n);
/// "6 digits at most"
std::string digits(double f, int n = 6);
std::string name_of(Stage stage);  ///< "rotated queries"
/// "queries and keys" of "qk".
std::string names_of(std::string_view sides);
Side side_of(char letter);
/// The stages of sides: of projections, or of what was normed or rotated.
StageSet stages_of(std::string_view sides, const std::array<Stage, 4>& stages = side_stage);
inline constexpr std::array query_key_sides{"qk", "q", "k"};
/// A list of sources as a rule where it is one: "every head is head +1 (cyclic)".
std::string order_words(const std::vector<std::size_t>& order, const std::string& what);
/// All shifts, the reverse, the interleavings and the exchange of neighbors of n things.
std::vector<std::vector<std::size_t>> usual_orders(std::size_t n);

}  // namespace core::check::inference
