#pragma once

#include "core/check/deviations.hpp"
#include "core/check/infer.hpp"

/// What somebody's program gave, beside a recipe: where they differ, and what a change would give there.
namespace core::check::inference {

/// Scores below this are hidden, whatever large negative number stands for −∞.
inline constexpr double as_hidden = -5000;
/// Numbers of a stage from which on a few rows are judged first.
inline constexpr std::size_t many_numbers = 100000;
using SharedRecipe = std::shared_ptr<const Recipe>;

/// How far rounding may take 1.
double unit_of(Precision precision);
/// The recipe with as many digits as numbers of a precision tell.
SharedRecipe known_in(Precision precision, Recipe recipe);
/// Hidden scores as −∞, unless nothing else is in their row.
Block canonical(Stage stage, Block block);

/// How far numbers of a stage may be apart: at most, and in the root mean square.
struct Allowed {
  double most = 0, mean = infinity;
};

/// The right recipe and what somebody's program gave.
struct Case {
  SharedRecipe m;
  std::vector<Stage> order;  ///< stages that are given
  std::array<Shared, attention::n_stages> theirs;
  /// The same where storing float32 may have moved every number by half a digit: what was computed from them
  /// in more digits is off by what that does.
  std::array<Shared, attention::n_stages> moved;
  std::array<Precision, attention::n_stages> held{};
  Precision precision = Precision::float64;

  std::shared_ptr<Run> base;                        ///< of the right recipe
  std::array<Shape, attention::n_stages> shapes{};  ///< of its stages that are given
  bool is_large = false;
  mutable std::array<std::optional<Allowed>, attention::n_stages> noise;  ///< of float32 in large stages

  Case(const Recipe& model, const Given& given);
  const Block& given(Stage stage) const { return *theirs[index(stage)]; }
  bool is_exact() const { return precision == Precision::float64; }
  Allowed allowed(Stage stage, Run& exact, Run& rounded) const;
  /// A recipe in the precision of the tensors.
  Recipe coarse(const Recipe& recipe) const;
  /// How far ours is from theirs, in what is allowed; ∞ where the shape or the places of −∞ and NaN differ.
  double distance(Stage stage, const Block& ours, const Allowed& allowed, const Block& other) const;
  /// The same of a run; where steps come in another order, names of steps mean any of them.
  double far(Run& run, Stage stage, const Allowed& allowed) const;
};

/// Some of the rows of queries, and the first keys; all where there are none.
struct Cut {
  std::vector<std::size_t> rows;
  std::size_t n_keys = 0;
};
Shared cut(Stage stage, const Shared& block, const Cut& to);
/// The same recipe for some of its queries and, where these see no others, its first keys.
Recipe thinned(Recipe m, const Cut& to);

/// A recipe at the first stage that differs, with what is given before it.
class Scene {
 public:
  Scene(const Case& c, SharedRecipe recipe, Stage at, bool is_early = true);

  const Case& of;
  const SharedRecipe m;
  const Stage target;
  std::array<Shared, attention::n_stages> known;  ///< given before: it agrees, or is taken as given
  Run run;
  Allowed allowed;
  std::optional<Cut> few;
  Shared value;
  std::vector<Deviation> rows() const;
  /// Which places of an axis of the target have a number that differs; none where its shape does.
  std::vector<std::size_t> differing(std::size_t axis) const;

  const Block& theirs(bool by_rows) const { return by_rows && few ? *theirs_few_ : of.given(target); }
  double distance(const Block& ours, bool by_rows) const {
    return of.distance(target, ours, allowed, theirs(by_rows));
  }
  /// The target of a changed recipe; of large stages some rows alone.
  Shared computed(const Recipe& changed, StageSet acts, bool by_rows) const;
  bool is_large() const { return few.has_value(); }
  /// How many rows agree; of weights, whether the same cells are zero counts too.
  double agreeing_rows(const Block& ours) const;

 private:
  StageSet visited() const;

  Shared theirs_few_;
  std::array<Shared, attention::n_stages> made_few_;
};

/// The target with a deviation.
Shared changed_value(const Scene& scene, const Deviation& row, const Numbers& x);

/// A fit of the numbers of some deviations, one after the other, and the sum of squares that it leaves.
struct Fit {
  std::vector<Numbers> numbers;
  double left = infinity;
};
/// By the steps of Levenberg and Marquardt, from where the rows begin; nothing where nothing can be fitted.
std::optional<Fit> fitted(const Scene& scene, const std::vector<const Deviation*>& rows,
                          const std::vector<Numbers>& starts, std::size_t n_steps = 24);

}  // namespace core::check::inference
