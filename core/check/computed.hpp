#pragma once

#include <armadillo>
#include <cstddef>
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
#include "core/graph/lazy_stages.hpp"
#include "core/graph/model.hpp"

namespace core::check {

// Effects of storing numbers in a tensor type; integers and bools count as exact.

/// Returns the precision of a type that rounds, float64 for others and types of eight bits.
attention::Precision precision_of(formats::Dtype dtype);

/// Returns the largest error of storing a number in a type, 0 for exact types.
double round_trip_error(formats::Dtype dtype, double number);

/// Returns the coarsest of bfloat16, float16, float32 and float64 that represents all numbers exactly.
formats::Dtype coarsest_type(std::span<const double> numbers);

/// Whether a type represents float64 numbers exactly.
bool is_exact(formats::Dtype dtype);

/// Returns the name of a type that rounds ("float16", "float8_e5m2"), "" for exact types.
std::string rounding_words(formats::Dtype dtype);

/// Returns the finest type that a tensor was evidently rounded to: its own, or float32 if all numbers of a
/// float64 tensor are float32 numbers.
formats::Dtype rounding_of(const formats::Tensor& tensor);

// Differences between observed numbers and ours, and their tolerance.

/// Largest difference that counts as equal: |observed − ours| ≤ absolute + relative · |ours|, plus the
/// rounding error of their type.
struct Tolerance {
  double relative = 1e-5, absolute = 1e-6;
};

/// Roundings of float32 allowed per stage, because sums round more than once.
constexpr double max_float32_roundings = 16;

/// Limits of the difference between two numbers.
struct Limits {
  Tolerance tolerance;
  formats::Dtype dtype;  ///< type that observed numbers were rounded to
  double extra = 0;      ///< additional tolerance
  double sums = 0;       ///< roundings of |ours| + added that are allowed in float32 and in dtype
  double added = 0;
};

/// Result of comparing observed numbers with ours one by one.
struct Agreement {
  bool within = true;
  bool is_within_unrounded = true;  ///< within even without the rounding error of their type
  double largest = 0;  ///< |observed − ours|, 0 … ∞; NaN equals NaN, an infinity equals itself
  bool is_nan_mismatch = false;                             ///< it is ∞ because only one of the two is NaN
  double magnitude = 0;                                     ///< the largest finite |ours|
  std::size_t sequence = 0, head = 0, row = 0, column = 0;  ///< where `largest` first occurs, row by row
  std::size_t n_far = 0;  ///< numbers of the worst matrix that are out of tolerance

  void add(double observed, double ours, const Limits& limits, std::size_t in_row, std::size_t in_column);
};

/// Precisions of a model's arithmetic: its stages, the factors of its products, its softmax.
struct Precisions {
  attention::Precision stages, factors, softmax;
  /// Whether any is coarser than float64; coarsest() is the coarsest one.
  bool are_coarse() const { return coarsest() != attention::Precision::float64; }
  attention::Precision coarsest() const;
};
Precisions precisions_of(const Model& model);

/// As in the model; float32 in every stage; or with product factors truncated to TF32 and summed in float32,
/// as graphics cards do unless told to round first.
enum class Arithmetic { of_model, float32, truncate_to_tf32 };

/// Stages of a model, computed on demand.
class LazyTrace {
 public:
  /// Throws the errors of attend(), but only when stages are computed.
  explicit LazyTrace(Model model, Arithmetic arithmetic = Arithmetic::of_model)
      : model_(std::move(model)), arithmetic_(arithmetic) {}
  LazyTrace(const LazyTrace&) = delete;
  LazyTrace& operator=(const LazyTrace&) = delete;

  const Model& model() const { return model_; }
  bool is_truncated() const { return arithmetic_ == Arithmetic::truncate_to_tf32; }
  /// Returns a stage of a head, empty if the model lacks it.
  const arma::mat& matrix(Stage stage, std::size_t sequence, std::size_t head) const;

  /// Returns the same model with float32 in every stage, to measure the effect of its rounding.
  const LazyTrace& in_float32() const;

  /// Returns the matrices that a part of a reading can be: the stage, or its heads concatenated or averaged.
  ///
  /// Those after the first follow other conventions: an inverted or an additive mask (−∞ or any large
  /// negative number), a position bias that includes the mask, a dropout mask of 0 and 1, scores plus a large
  /// negative number, scores before or after a dropout on them.
  std::vector<arma::mat> forms(const Reading& reading, std::size_t sequence, std::size_t head) const;
  /// Returns the first of forms() alone.
  arma::mat form(const Reading& reading, std::size_t sequence, std::size_t head) const;

  /// Returns the largest difference between the stage in float32 and in float64, over all heads.
  double float32_error(const Reading& reading) const;

 private:
  struct Pass {
    Pass(graph::Graph g, const LazyTrace& of);
    graph::Graph graph;
    graph::NodeSet existing;
    graph::LazyStages stages;
  };
  Pass& pass() const;
  arma::mat mask(std::size_t sequence) const;
  arma::mat joined(const Reading& reading, std::size_t sequence) const;

  Model model_;
  Arithmetic arithmetic_ = Arithmetic::of_model;
  mutable std::unique_ptr<Pass> pass_;  // made when a stage is first read
  mutable std::shared_ptr<LazyTrace> float32_;
};

/// Returns the stage that a tensor of `stage` is compared with: itself or, if the model omits it (as by a
/// mistake), the nearest earlier stage; nullopt when there is none.
std::optional<Stage> effective_stage(const Model& model, Stage stage);

/// One matrix of a tensor: head h of its sequence s; in the model, `head` is the first head that has it.
struct Part {
  std::size_t s, h, sequence, head;
};
/// Returns the parts of a reading that are computed.
std::vector<Part> parts_of(const Reading& reading, const LazyTrace& computed);
/// Returns the numbers of a part.
arma::mat extract_matrix(const ObservedTensor& observed, const Reading& reading, const Part& part);

/// Compares a tensor, read in one way, with a computed model.
Agreement agreement(const ObservedTensor& observed, const Reading& reading, const LazyTrace& ours,
                    const Tolerance& tolerance);

/// Returns the first reading that agrees, or nullptr.
const Reading* agreeing_reading(const ObservedTensor& observed, const LazyTrace& ours,
                                const Tolerance& tolerance);

/// Comparison of tensors with the right model.
struct Comparison {
  const LazyTrace& reference;
  const std::vector<ObservedTensor>& observed;
  std::vector<const Reading*>
      agreeing_reading;  ///< [tensor]: reading that agrees with the right model, or nullptr
  const Tolerance& tolerance;
  const core::StopToken& token;  ///< of the search for causes
};

}  // namespace core::check
