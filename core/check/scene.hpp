#pragma once

#include "core/check/deviations.hpp"
#include "core/check/infer.hpp"

/// Observed stages compared with a recipe: where they differ, and the effect of a change there.
namespace core::check::inference {

/// Scores below this count as masked, for any large negative number used as −∞.
inline constexpr double masked_threshold = -5000;
/// Numbers of a stage above which a few rows are judged first.
inline constexpr std::size_t many_numbers = 100000;
using SharedRecipe = std::shared_ptr<const Recipe>;

/// Returns the largest relative rounding error of a precision.
double unit_roundoff(Precision precision);
/// Returns the recipe with `close` and `digits` set for numbers of a precision.
SharedRecipe with_known_digits(Precision precision, Recipe recipe);
/// Replaces masked scores by −∞, except in fully masked rows.
Block canonical(Stage stage, Block block);

/// Largest allowed difference of a stage's numbers, and its largest root mean square.
struct DifferenceLimits {
  double maximum = 0, max_rms = infinity;
};

/// The right recipe and the observed stages.
struct Case {
  SharedRecipe m;
  std::vector<Stage> order;  ///< stages that are given
  std::array<SharedBlock, attention::n_stages> observed;
  /// `observed` with every float32 number moved by half its rounding error, to measure how storing them
  /// affects later stages.
  std::array<SharedBlock, attention::n_stages> perturbed;
  std::array<Precision, attention::n_stages> precisions{};
  Precision precision = Precision::float64;

  std::shared_ptr<Run> base;                        ///< run of the right recipe
  std::array<Shape, attention::n_stages> shapes{};  ///< shapes of its given stages
  bool is_large = false;
  mutable std::array<std::optional<DifferenceLimits>, attention::n_stages>
      noise;  ///< of float32 on large stages

  Case(const Recipe& model, const Given& given);
  const Block& given(Stage stage) const { return *observed[index(stage)]; }
  bool is_exact() const { return precision == Precision::float64; }
  DifferenceLimits allowed(Stage stage, Run& exact, Run& rounded) const;
  /// Returns the recipe with the precisions of the tensors.
  Recipe coarse(const Recipe& recipe) const;
  /// Returns the distance in units of `allowed`; ∞ if the shapes or the positions of −∞ and NaN differ.
  double distance(Stage stage, const Block& ours, const DifferenceLimits& allowed, const Block& other) const;
  /// Returns the distance of a run's stage; if score steps are reordered, of its closest score step.
  double stage_distance(Run& run, Stage stage, const DifferenceLimits& allowed) const;
};

/// Some query rows and the first n_keys keys; n_keys 0 keeps all keys.
struct RowSelection {
  std::vector<std::size_t> rows;
  std::size_t n_keys = 0;
};
SharedBlock select_rows(Stage stage, const SharedBlock& block, const RowSelection& to);
/// Returns the recipe for some queries and, if they attend to no others, its first keys.
Recipe select_queries(Recipe m, const RowSelection& to);

/// A recipe at its first stage that differs, with the given stages before it.
class Scene {
 public:
  Scene(const Case& c, SharedRecipe recipe, Stage at, bool is_early = true);

  const Case& of;
  const SharedRecipe m;
  const Stage target;
  std::array<SharedBlock, attention::n_stages> known;  ///< given before the target: agreeing, or accepted
  Run run;
  DifferenceLimits allowed;
  std::optional<RowSelection> selection;
  SharedBlock value;
  std::vector<Deviation> rows() const;
  /// Returns the indices of an axis of the target with differing numbers; empty if the shapes differ.
  std::vector<std::size_t> differing_indices(std::size_t axis) const;

  const Block& observed(bool by_rows) const {
    return by_rows && selection ? *selected_observed_ : of.given(target);
  }
  double distance(const Block& ours, bool by_rows) const {
    return of.distance(target, ours, allowed, observed(by_rows));
  }
  /// Computes the target of a changed recipe; for large stages only some rows.
  SharedBlock computed(const Recipe& changed, StageSet affected_stages, bool by_rows) const;
  bool is_large() const { return selection.has_value(); }
  /// Returns the number of agreeing rows; a row of weights with the same zeros adds one half.
  double count_agreeing_rows(const Block& ours) const;

 private:
  StageSet visited() const;

  SharedBlock selected_observed_;
  std::array<SharedBlock, attention::n_stages> selected_values_;
};

/// Computes the target with a deviation.
SharedBlock changed_value(const Scene& scene, const Deviation& row, const Numbers& x);

/// Fitted numbers of several deviations, in order, and the remaining sum of squares.
struct Fit {
  std::vector<Numbers> numbers;
  double residual_squares = infinity;
};
/// Fits numbers by Levenberg–Marquardt, beginning at `starts`; nullopt if nothing can be fitted.
std::optional<Fit> fit_numbers(const Scene& scene, const std::vector<const Deviation*>& rows,
                               const std::vector<Numbers>& starts, std::size_t n_steps = 24);

}  // namespace core::check::inference
