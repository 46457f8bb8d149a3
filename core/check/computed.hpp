#pragma once

#include <armadillo>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/match.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/model.hpp"

namespace core::check {

// What keeping numbers as a type of tensors does to them; integers and bools count as exact.

/// How far keeping a number as a type may take it, 0 for exact ones.
double round_trip_error(formats::Dtype dtype, double number);

/// The coarsest of bfloat16, float16, float32 and float64 that keeps all of the numbers as they are.
formats::Dtype coarsest_type(std::span<const double> numbers);

/// Whether numbers of float64 are kept as they are.
bool is_exact(formats::Dtype dtype);

/// "float16", "float8_e5m2": the type that takes digits away, or "".
std::string rounding_words(formats::Dtype dtype);

/// The finest type that a tensor shows to have been rounded to: its own, or float32 when all numbers of a
/// float64 tensor are numbers of float32.
formats::Dtype rounding_of(const formats::Tensor& tensor);

// How far somebody's numbers are from ours, and how far they may be.

/// How far numbers may be apart that are called equal: |observed − ours| ≤ absolute + relative · |ours|, and
/// what the rounding of their type adds.
struct Tolerance {
  double relative = 1e-5, absolute = 1e-6;
  double of_largest = 0;  ///< this times the largest |ours| of a matrix is allowed besides
};

/// Sums in float32 round more often than once a stage.
constexpr double float32_sums = 16;

/// What may lie between two numbers.
struct Limits {
  Tolerance tolerance;
  formats::Dtype dtype;  ///< that observed numbers were rounded to
  double more = 0;       ///< allowed besides
  double sums = 0;  ///< so many roundings in float32, and in their type, to what such a sum may have added
  double added = 0;
};

/// What numbers were found to be, compared with ours one after the other.
struct Agreement {
  bool within = true;
  bool is_plain = true;  ///< within also without what the rounding of their type adds
  double largest = 0;    ///< |observed − ours|, 0 … ∞; NaN equals NaN, an infinity equals itself
  bool of_nan = false;   ///< that is ∞ as one alone is NaN
  double magnitude = 0;  ///< the largest finite |ours|
  std::size_t sequence = 0, head = 0, row = 0, column = 0;  ///< the first place that is so far apart, by rows
  std::size_t n_far = 0;  ///< numbers of the worst matrix that are further apart than they may be

  void add(double observed, double ours, const Limits& limits, std::size_t in_row, std::size_t in_column);
};

/// Rows of one sequence, of which a few are enough to tell that a model does not give somebody's tensors.
struct Sample {
  std::size_t sequence = 0;
  std::vector<std::size_t> rows;  ///< each once
};

/// Computes a few rows of models of one size, in a fraction of the time that all of them take.
///
/// Models that are tried one after the other have most of their projections in common; what these make of the
/// embeddings is kept.
class Sampler {
 public:
  /// The right model is the one of which others change some stages.
  Sampler(Sample sample, const Model& right);

  const Sample& sample() const { return sample_; }

  /// The stages of the sampled sequence up to one, but row a of each is row sample().rows[a]; rows behind
  /// those of the sample count for nothing. Nothing may be given in the model, and keys must be those of the
  /// tokens.
  ///
  /// Stages before the first are those of the right model, unless that makes mistakes, which may depend on
  /// what is changed.
  graph::Evaluation evaluate(const graph::Graph& graph, const Model& model, Stage last,
                             std::optional<Stage> first = {}) const;

 private:
  /// What keys or values of all heads are projected from, and the arithmetic.
  using Projection =
      std::tuple<attention::Precision, attention::Precision, std::optional<attention::Precision>, bool, bool,
                 attention::Linear, attention::SharedMatrix>;

  Sample sample_;
  mutable std::vector<std::pair<Projection, attention::SharedMatrix>> projected_;       // models share them
  mutable std::optional<std::pair<attention::Dropout, attention::SharedMatrix>> kept_;  // likewise
  mutable std::optional<graph::Evaluation> right_;  // with all rows where others need them
  bool right_has_mistakes_;
};

/// What the arithmetic of a model rounds to: its stages, the factors of its products, its softmax.
struct Precisions {
  attention::Precision stages, factors, softmax;
  /// Whether it is coarser than float64, and what of it is coarsest.
  bool are_coarse() const { return coarsest() != attention::Precision::float64; }
  attention::Precision coarsest() const;
};
Precisions precisions_of(const Model& model);

/// As the model says; with float32 in every stage; or with the factors of every product cut to TF32 and added
/// up in float32, as graphics cards do that are not told to round first.
enum class Arithmetic { of_model, float32, cut_to_tf32 };

/// A model with its stages, in full or a sample of their rows, computed when they are first needed.
class Computed {
 public:
  /// Throws core::Error as attend() does, but when stages are computed. The sampler must outlive it.
  explicit Computed(Model model, const Sampler* sampler = nullptr,
                    Arithmetic arithmetic = Arithmetic::of_model)
      : model_(std::move(model)), sampler_(sampler), arithmetic_(arithmetic) {}
  /// The same for a model that differs from the sampler's right one in no stage before the first.
  Computed(Model model, const Sampler* sampler, Stage first)
      : model_(std::move(model)), sampler_(sampler), first_(first) {}

  const Model& model() const { return model_; }
  /// The sample that it is computed for, or nullptr when all rows are.
  const Sample* sample() const { return sampler_ ? &sampler_->sample() : nullptr; }
  bool is_cut() const { return arithmetic_ == Arithmetic::cut_to_tf32; }
  /// A stage as a head has it, empty where the model has none; row a of it is row a of the sample, if any.
  const arma::mat& matrix(Stage stage, std::size_t sequence, std::size_t head) const;

  /// The same model with float32 in every stage: what its rounding alone does is read from it.
  const Computed& in_float32() const;

  /// The matrices that a reading's part can be: that of the stage, or of its heads side by side or on
  /// average.
  ///
  /// Those behind the first are other customs of writing the same down: a mask that is 1 where it hides, a
  /// mask that is added (of −∞, for which any large negative number stands), a large negative number that is
  /// added, scores before or after a dropout that falls on them.
  std::vector<arma::mat> forms(const Reading& reading, std::size_t sequence, std::size_t head) const;
  /// The first of them alone.
  arma::mat form(const Reading& reading, std::size_t sequence, std::size_t head) const;

  /// How far float32 takes the numbers of a stage from those of float64, at most, over all heads.
  double float32_error(const Reading& reading) const;

 private:
  struct Pass {
    graph::Graph graph;
    graph::Evaluation stages;
    std::size_t n_done = 0;  ///< nodes, from the first
  };
  /// With the stage computed, and what it is made of.
  Pass& pass(std::size_t sequence, Stage stage) const;
  arma::mat mask(std::size_t sequence) const;
  arma::mat joined(const Reading& reading, std::size_t sequence) const;

  Model model_;
  const Sampler* sampler_;
  Arithmetic arithmetic_ = Arithmetic::of_model;
  std::optional<Stage> first_ = {};
  mutable std::map<std::size_t, Pass> passes_;  // kept because each may be asked for again and again
  mutable std::shared_ptr<Computed> float32_;
};

/// The stage of a model that numbers of another one of it are compared with: that stage, or where the model
/// leaves it out, as by a mistake, what it would have been made of; nothing where there is none.
std::optional<Stage> stage_for(const Model& model, Stage stage);

/// One matrix of a tensor: the h-th of its heads in the s-th of its sequences; head is the first that has it.
struct Part {
  std::size_t s, h, sequence, head;
};
/// The matrices that a computed model has of a reading.
std::vector<Part> parts_of(const Reading& reading, const Computed& computed);
/// The numbers of one of them, of the rows that are computed.
arma::mat numbers_of(const Observed& observed, const Reading& reading, const Part& part,
                     const Computed& computed);

/// Compares a tensor, read in one way, with a computed model.
Agreement agreement(const Observed& observed, const Reading& reading, const Computed& ours,
                    const Tolerance& tolerance);

/// The first of its readings that agrees, or nullptr.
const Reading* agreeing(const Observed& observed, const Computed& ours, const Tolerance& tolerance);

/// Tensors against the right model.
struct Comparison {
  const Computed& right;
  const std::vector<Observed>& observed;
  std::vector<const Reading*> agreeing;  ///< [tensor]: the reading that agrees with the right model, if any
  const Tolerance& tolerance;
  const core::Token& token;  ///< of a search for causes
};

}  // namespace core::check
