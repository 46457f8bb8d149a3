#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/graph/bugs.hpp"

/// Observed stages of a model, and how closely a graph must reproduce them.
namespace core::check {

using attention::Model;
using attention::Precision;
using attention::SharedMatrix;
using attention::Stage;
using graph::Editing;
using graph::LazyStages;

/// Scores below this count as masked, for any large negative number used as −∞.
inline constexpr double max_masked_score = -5000;

constexpr bool is_half(Precision precision) {
  return precision == Precision::float16 || precision == Precision::bfloat16;
}

/// A stage as it was observed; its shape differs from the model's if it is reported differently.
struct ObservedStage {
  Stage stage = Stage::weights;
  std::size_t n_sequences = 1;
  std::vector<SharedMatrix> matrices;  ///< [sequence · n + k]
  /// Largest relative, and smallest, error of storing a number in eight bits, coarser than every precision.
  double stored_relative = 0, stored_absolute = 0;
};

/// Largest allowed difference of a stage's numbers, and its largest root mean square.
struct AllowedDifference {
  double maximum = 0, max_rms = graph::infinity;
};

/// Differences of numbers, added up over matrices.
class NumberDistance {
 public:
  /// Adds a matrix of a stage. A number further off than `stop`, or a −∞ or NaN in one alone, makes the
  /// distance ∞; so does, unless numbers are exact, a masked weight, which is 0, in one alone.
  void add(const ObservedStage& of, const arma::mat& ours, const arma::mat& observed, bool is_exact,
           double stop);
  bool is_infinite() const { return is_infinite_; }
  /// Returns the distance in units of what is allowed.
  double in_units_of(const AllowedDifference& allowed) const;

 private:
  double maximum_ = 0, squares_ = 0, n_ = 0;
  bool is_infinite_ = false;
};

/// Stages were computed in this precision though they are given in a finer one: all, or up to one those that
/// are not given.
struct AssumedPrecision {
  Precision precision;
  std::optional<Stage> before = {};
};

/// The right model and the observed stages.
class Observation {
 public:
  Observation(std::shared_ptr<const Model> model, std::vector<ObservedStage> stages,
              std::optional<AssumedPrecision> assumed = {});
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  const Model& model() const { return *model_; }
  const std::vector<ObservedStage>& stages() const { return given_; }
  /// Returns the stages that were observed, in the order of computation.
  const std::vector<Stage>& order() const { return order_; }
  const ObservedStage& stage(Stage stage) const { return *at_[graph::index(stage)]; }
  const std::vector<SharedMatrix>& matrices(Stage stage) const;
  const arma::mat& matrix(Stage stage, std::size_t sequence, std::size_t nth) const;
  bool is_observed(Stage stage) const { return at_[graph::index(stage)]; }

  Precision precision() const { return precision_; }
  Precision precision(Stage stage) const { return precisions_[graph::index(stage)]; }
  bool is_exact() const { return precision_ == Precision::float64; }
  bool is_coarse() const { return is_half(precision_); }
  /// Whether reading all numbers takes long: some rows are then judged first.
  bool is_large() const { return is_large_; }
  /// Returns the rows that are judged first; none if all are.
  const std::vector<std::size_t>& rows() const { return rows_; }

  const Editing& right() const { return right_; }
  LazyStages& right_stages() const { return *right_stages_; }
  /// Returns the stages of an edited graph, exact ones and with the precisions of what was observed.
  struct BothStages {
    graph::Graph coarse_graph;
    std::shared_ptr<const Model> rounded_model;
    LazyStages exact;
    std::optional<LazyStages> coarse;
    LazyStages& rounded() { return coarse ? *coarse : exact; }
  };
  std::unique_ptr<BothStages> stages_of(const Editing& edited, bool from_right = true) const;
  /// Lets stages read an observed one, exactly or as it may have been before it was rounded; not if it was
  /// stored in eight bits.
  void give(LazyStages& stages, Stage stage, bool is_perturbed) const;

  /// Whether a stage of a graph has as many matrices as were observed.
  bool has_as_many(LazyStages& stages, Stage seen, Stage stage) const;
  bool has_same_shape(LazyStages& stages, Stage seen, Stage stage) const;
  /// Whether a graph has what a stage is computed from.
  bool can_compute(const Editing& edited, Stage stage) const;
  AllowedDifference allowed(Stage stage, Stage seen, LazyStages& exact, LazyStages& rounded) const;
  /// Returns the distance of a stage in units of `allowed`; ∞ where it is more than `slack`, or the shapes or
  /// positions of −∞ and NaN differ. `by_rows` compares the selected rows alone.
  double distance(LazyStages& stages, Stage seen, Stage stage, const AllowedDifference& allowed, double slack,
                  bool by_rows = false) const;
  /// Returns the stages that an observed one may be: if the scores' steps are reordered, any of them.
  std::vector<Stage> candidates_for(const Editing& edited, Stage stage) const;

 private:
  /// Returns a graph whose stages are rounded to the precisions of what was observed.
  graph::Graph coarse(graph::Graph graph) const;
  /// Returns the model of an edited graph with learned matrices in the precision of what was observed.
  std::shared_ptr<const Model> rounded_model(const Editing& edited) const;

  std::shared_ptr<const Model> model_;
  std::vector<ObservedStage> given_;
  std::vector<Stage> order_;
  std::array<const ObservedStage*, attention::n_stages> at_{};
  std::array<std::vector<SharedMatrix>, attention::n_stages> perturbed_;
  std::array<Precision, attention::n_stages> precisions_{};
  Precision precision_ = Precision::float64;
  bool is_large_ = false, can_compute_all_ = true;
  std::vector<std::size_t> rows_;
  std::shared_ptr<const Model> rounded_model_;
  Editing right_;
  graph::Graph coarse_right_;
  std::unique_ptr<LazyStages> right_stages_, coarse_right_stages_;
  mutable std::array<std::optional<AllowedDifference>, attention::n_stages> noise_;  // of large stages
};

bool is_score_step_stage(Stage stage);
bool has_key_rows(Stage stage);
/// Replaces masked scores by −∞, except in fully masked rows.
arma::mat with_masked_infinite(Stage stage, arma::mat numbers);
/// Returns the largest relative rounding error of a precision.
double relative_rounding(Precision precision);
/// Returns some rows of a matrix.
arma::mat rows_of(const arma::mat& all, const std::vector<std::size_t>& rows);
/// Returns the stages that are compared, in the order of computation.
const std::vector<Stage>& compared_stages();

/// Whether a model has the numbers of an edited graph in every stage that both have.
bool has_numbers_of(const Model& model, const Editing& edited);

/// Returns the model with overrides for the stages that an edited graph of it computes otherwise.
Model with_stages_of(const Editing& edited, Model model);

/// Returns the model of the first tokens alone, or nullptr if they depend on others.
std::shared_ptr<const Model> first_tokens(const Model& model, std::size_t n);
/// Returns the stages of the first tokens alone.
std::vector<ObservedStage> first_rows(std::vector<ObservedStage> stages, std::size_t n);

}  // namespace core::check
