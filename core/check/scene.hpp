#pragma once

#include "core/check/deviations.hpp"
#include "core/check/infer.hpp"

/// Observed stages compared with a recipe: where they differ, and the effect of a change there.
namespace core::check::inference {

/// Scores below this count as masked, for any large negative number used as −∞.
inline constexpr double as_hidden = -5000;
/// Numbers of a stage above which a few rows are judged first.
inline constexpr std::size_t many_numbers = 100000;
using SharedRecipe = std::shared_ptr<const Recipe>;

/// Returns the largest relative rounding error of a precision.
double unit_of(Precision precision);
/// Returns the recipe with `close` and `digits` set for numbers of a precision.
SharedRecipe known_in(Precision precision, Recipe recipe);
/// Replaces masked scores by −∞, except in fully masked rows.
Block canonical(Stage stage, Block block);

/// Largest allowed difference of a stage's numbers, and its largest root mean square.
struct Allowed {
  double most = 0, mean = infinity;
};

/// The right recipe and the observed stages.
struct Case {
  SharedRecipe m;
  std::vector<Stage> order;  ///< stages that are given
  std::array<Shared, attention::n_stages> theirs;
  /// `theirs` with every float32 number moved by half its rounding error, to measure how storing them affects
  /// later stages.
  std::array<Shared, attention::n_stages> moved;
  std::array<Precision, attention::n_stages> held{};
  Precision precision = Precision::float64;

  std::shared_ptr<Run> base;                        ///< run of the right recipe
  std::array<Shape, attention::n_stages> shapes{};  ///< shapes of its given stages
  bool is_large = false;
  mutable std::array<std::optional<Allowed>, attention::n_stages> noise;  ///< of float32 on large stages

  Case(const Recipe& model, const Given& given);
  const Block& given(Stage stage) const { return *theirs[index(stage)]; }
  bool is_exact() const { return precision == Precision::float64; }
  Allowed allowed(Stage stage, Run& exact, Run& rounded) const;
  /// Returns the recipe with the precisions of the tensors.
  Recipe coarse(const Recipe& recipe) const;
  /// Returns the distance in units of `allowed`; ∞ if the shapes or the positions of −∞ and NaN differ.
  double distance(Stage stage, const Block& ours, const Allowed& allowed, const Block& other) const;
  /// Returns the distance of a run's stage; if score steps are reordered, of its closest score step.
  double far(Run& run, Stage stage, const Allowed& allowed) const;
};

/// Some query rows and the first n_keys keys; n_keys 0 keeps all keys.
struct Cut {
  std::vector<std::size_t> rows;
  std::size_t n_keys = 0;
};
Shared cut(Stage stage, const Shared& block, const Cut& to);
/// Returns the recipe for some queries and, if they attend to no others, its first keys.
Recipe thinned(Recipe m, const Cut& to);

/// A recipe at its first stage that differs, with the given stages before it.
class Scene {
 public:
  Scene(const Case& c, SharedRecipe recipe, Stage at, bool is_early = true);

  const Case& of;
  const SharedRecipe m;
  const Stage target;
  std::array<Shared, attention::n_stages> known;  ///< given before the target: agreeing, or accepted
  Run run;
  Allowed allowed;
  std::optional<Cut> few;
  Shared value;
  std::vector<Deviation> rows() const;
  /// Returns the indices of an axis of the target with differing numbers; empty if the shapes differ.
  std::vector<std::size_t> differing(std::size_t axis) const;

  const Block& theirs(bool by_rows) const { return by_rows && few ? *theirs_few_ : of.given(target); }
  double distance(const Block& ours, bool by_rows) const {
    return of.distance(target, ours, allowed, theirs(by_rows));
  }
  /// Computes the target of a changed recipe; for large stages only some rows.
  Shared computed(const Recipe& changed, StageSet acts, bool by_rows) const;
  bool is_large() const { return few.has_value(); }
  /// Returns the number of agreeing rows; a row of weights with the same zeros adds one half.
  double agreeing_rows(const Block& ours) const;

 private:
  StageSet visited() const;

  Shared theirs_few_;
  std::array<Shared, attention::n_stages> made_few_;
};

/// Computes the target with a deviation.
Shared changed_value(const Scene& scene, const Deviation& row, const Numbers& x);

/// Fitted numbers of several deviations, in order, and the remaining sum of squares.
struct Fit {
  std::vector<Numbers> numbers;
  double left = infinity;
};
/// Fits numbers by Levenberg–Marquardt, beginning at `starts`; nullopt if nothing can be fitted.
std::optional<Fit> fitted(const Scene& scene, const std::vector<const Deviation*>& rows,
                          const std::vector<Numbers>& starts, std::size_t n_steps = 24);

}  // namespace core::check::inference
